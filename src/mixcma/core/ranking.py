"""Values, violations, ties -> a recombination weight for each candidate, in the candidates' own order."""

from __future__ import annotations

from typing import NamedTuple

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


class Ranks(NamedTuple):
    """The ranks that each candidate has, or shares with those that are equal to it: first + 1, ..., last."""

    first: Array  # (..., L) how many are better
    last: Array | None  # (..., L); None where all are known to be distinct, and last = first + 1


def ranks_of(values: Array, violations: Array | None = None) -> Ranks:
    """The ranks of candidates by violation, then by value."""
    if violations is None and known_distinct(values):
        return Ranks(values.argsort(axis=-1).argsort(axis=-1), None)
    better = _better(values, violations)
    return Ranks(better.sum(axis=-1), values.shape[-1] - better.sum(axis=-2))


def weights_of(rank_weights: RankWeights, ranks: Ranks) -> Array:
    """The weight of each candidate; equal ones get the mean of the weights of the ranks they share."""
    if ranks.last is None:
        return rank_weights.weights[ranks.first]
    sums = namespace(ranks.first).asarray(rank_weights.sums)
    return (sums[ranks.last] - sums[ranks.first]) / (ranks.last - ranks.first)


def weights_by_rank(rank_weights: RankWeights, values: Array, violations: Array | None = None) -> Array:
    """The weights of candidates with these values."""
    return weights_of(rank_weights, ranks_of(values, violations))


def penalised_ranks(values: Array, violations: Array | None, outside: Array) -> Array:
    """Ranks, plus a penalty for lying outside the bounds that grows with the distance. (..., L).

    The rank is the number of better candidates. One squared standard deviation outside costs as many ranks as there
    are candidates, so the penalty depends neither on the scale of the values nor on that of x.
    """
    return _better(values, violations).sum(axis=-1) + values.shape[-1] * outside
