"""Values, violations, ties -> a recombination weight for each candidate, in the candidates' own order."""

from __future__ import annotations

from mixcma.core.namespace import Array, known_distinct, namespace
from mixcma.core.strategy import RankWeights


def _better(values: Array, violations: Array | None) -> Array:
    """[i, j]: whether candidate j is strictly better than i, (..., L, L).

    Less violation is better; at equal violation, the smaller value.
    """
    better = values[..., None, :] < values[..., :, None]
    if violations is None:
        return better
    other, own = violations[..., None, :], violations[..., :, None]
    return (other < own) | ((other == own) & better)


def weights_by_rank(rank_weights: RankWeights, values: Array, violations: Array | None = None) -> Array:
    """The weight of each candidate; equal ones get the mean of the weights of the ranks they share."""
    if violations is None and known_distinct(values):
        return rank_weights.weights[values.argsort(axis=-1).argsort(axis=-1)]
    better, sums = _better(values, violations), namespace(values).asarray(rank_weights.sums)
    # the ranks that it shares: first + 1, ..., last
    first, last = better.sum(axis=-1), values.shape[-1] - better.sum(axis=-2)
    return (sums[last] - sums[first]) / (last - first)


def penalised_ranks(values: Array, violations: Array | None, outside: Array) -> Array:
    """Ranks, plus a penalty for lying outside the bounds that grows with the distance. (..., L).

    The rank is the number of better candidates. One squared standard deviation outside costs as many ranks as there
    are candidates, so the penalty depends neither on the scale of the values nor on that of x.
    """
    return _better(values, violations).sum(axis=-1) + values.shape[-1] * outside
