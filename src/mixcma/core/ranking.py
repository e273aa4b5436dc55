"""Values, violations, ties -> a recombination weight for each candidate, in the candidates' own order."""

from __future__ import annotations

from mixcma.core.namespace import Array, idle, namespace
from mixcma.core.state import NOTHING

# Values whose difference is a smaller part of them are taken for equal.
ROUNDING = 1e-12


def _better(values: Array, violations: Array | None) -> Array:
    """[i, j]: whether candidate j is strictly better than i, (..., L, L).

    Feasible candidates come before infeasible ones, then less violation, then the smaller value.
    """
    better = values[..., None, :] < values[..., :, None]
    if violations is None:
        return better
    other, own = violations[..., None, :], violations[..., :, None]
    return (other < own) | ((other == own) & better)


def weights_by_rank(cumulative: Array, values: Array, violations: Array | None = None) -> Array:
    """The weight of each candidate; equal ones get the mean of the weights of the ranks they share.

    `cumulative` (L + 1,) are the sums of the weights: 0, w_1, w_1 + w_2, ...
    """
    better, cumulative = _better(values, violations), namespace(values).asarray(cumulative)
    first, last = (
        better.sum(axis=-1),
        values.shape[-1] - better.sum(axis=-2),
    )  # the ranks it shares: first + 1, ..., last
    return (cumulative[last] - cumulative[first]) / (last - first)


def lead(values: Array, violations: Array | None, best: Array) -> tuple[Array | None, Array, Array]:
    """Whether each candidate is the first best of them and better than `best`, (..., L); None where none is, for sure.

    And the new best, (..., 2); and whether the best of them is as good as `best`, up to rounding, (..., 1) as 1 or 0.
    Here what is one number a run has no axis of its own: in a single run it is a scalar, which is faster.
    """
    xp, before, value = namespace(values), best[..., 0], best[..., 1]
    least, violation = values.min(axis=-1), 0.0 * before
    if violations is not None:
        violation = violations.min(axis=-1)
        values = xp.where(violations == violation[..., None], values, xp.inf)
        least = values.min(axis=-1)
    least = xp.minimum(xp.maximum(least, -NOTHING), NOTHING)
    gap, as_feasible = value - least, violation == before
    level = as_feasible & (abs(gap) <= ROUNDING * abs(value))
    better = (violation < before) | (as_feasible & (gap > 0.0))
    if idle(better):
        return None, best, level[..., None] * 1.0
    first = xp.arange(values.shape[-1]) == values.argmin(axis=-1)[..., None]
    own = xp.stack([violation, least], axis=-1)
    return better[..., None] & first, xp.where(better[..., None], own, best), level[..., None] * 1.0


def led(leader: Array, v: Array, before: Array) -> Array:
    """The point (..., N) of the leader, or where there is none the one before it."""
    xp = namespace(v)
    return xp.where(leader.any(axis=-1, keepdims=True), xp.vecmat(leader * 1.0, v), before)


def penalised_ranks(values: Array, violations: Array | None, outside: Array) -> Array:
    """Ranks, plus a penalty for lying outside the bounds that grows with the distance. (..., L).

    The rank is the number of better candidates. One squared standard deviation outside costs a whole
    population's ranks, so the penalty depends neither on the scale of the values nor on that of x.
    """
    return _better(values, violations).sum(axis=-1) + values.shape[-1] * outside
