"""Values, violations, ties -> a recombination weight for each candidate, in the candidates' own order."""

from __future__ import annotations

from mixcma.core.namespace import Array, idle, namespace

# Values whose difference is a smaller part of them are taken for equal.
ROUNDING = 1e-13
# An infinite value would have an infinite rounding.
LARGEST = 1e300


def _comparison(values: Array, violations: Array | None) -> tuple[Array, Array]:
    """[i, j]: whether j is strictly better than i, and whether it is at least as good. (..., L, L) each.

    Feasible candidates come before infeasible ones, then less violation, then the smaller value.
    """
    other, own = values[..., None, :], values[..., :, None]
    better, no_worse = other < own, other <= own
    if violations is not None:
        other, own = violations[..., None, :], violations[..., :, None]
        same = other == own
        better, no_worse = (other < own) | (same & better), (other < own) | (same & no_worse)
    return better, no_worse


def weights_by_rank(cumulative: Array, values: Array, violations: Array | None = None) -> Array:
    """The weight of each candidate; equal ones get the mean of the weights of the ranks they share.

    `cumulative` (L + 1,) are the sums of the weights: 0, w_1, w_1 + w_2, ...
    """
    xp = namespace(values)
    better, no_worse = _comparison(values, violations)
    first, last = better.sum(axis=-1), no_worse.sum(axis=-1)  # the ranks it shares: first + 1, ..., last
    cumulative = xp.asarray(cumulative)
    return (cumulative[last] - cumulative[first]) / (last - first)


def lead(values: Array, violations: Array | None, best: Array) -> tuple[Array | None, Array, Array]:
    """Whether each candidate is the first best of them and better than `best`, (..., L); None where none is, for sure.

    And the new best, (..., 2); and whether the best of them is as good as `best`, up to rounding, (..., 1) as 1 or 0.
    """
    xp = namespace(values)
    if violations is None:
        least, violation = values.min(axis=-1, keepdims=True), 0.0
    else:
        violation = violations.min(axis=-1, keepdims=True)
        values = xp.where(violations == violation, values, xp.inf)
        least = values.min(axis=-1, keepdims=True)
    before, value = best[..., :1], best[..., 1:]
    as_feasible = violation == before
    rounding = ROUNDING * xp.minimum(xp.abs(value), LARGEST)
    level = (as_feasible & (least >= value - rounding) & (least <= value + rounding)) * 1.0
    better = (violation < before) | (as_feasible & (least < value))
    if idle(better):
        return None, best, level
    first = xp.arange(values.shape[-1]) == values.argmin(axis=-1)[..., None]
    own = xp.concat([violation + xp.zeros_like(least), least], axis=-1)
    return better & first, xp.where(better, own, best), level


def led(leader: Array, v: Array, before: Array) -> Array:
    """The point (..., N) of the leader, or where there is none the one before it."""
    xp = namespace(v)
    return xp.where(leader.any(axis=-1, keepdims=True), xp.vecmat(leader * 1.0, v), before)


def penalised_ranks(values: Array, violations: Array | None, outside: Array) -> Array:
    """Ranks, plus a penalty for lying outside the bounds that grows with the distance. (..., L).

    The rank is the number of better candidates. One squared standard deviation outside costs a whole
    population's ranks, so the penalty depends neither on the scale of the values nor on that of x.
    """
    if violations is None:
        better = values[..., None, :] < values[..., :, None]
    else:
        better, _ = _comparison(values, violations)
    return better.sum(axis=-1) + values.shape[-1] * outside
