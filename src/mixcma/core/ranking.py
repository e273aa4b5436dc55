"""Values, violations, ties -> a recombination weight for each candidate, in the candidates' own order."""

from __future__ import annotations

from typing import NamedTuple

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


class Lead(NamedTuple):
    """How the best candidate of a generation, the first of equal ones, compares with the best of the run."""

    leader: Array | None  # (..., L) bool: it, if it is better; None where it is not, for sure
    best: Array  # (..., 2) violation and value of the best so far
    point: Array  # (..., N) its latent point
    level: Array  # (...) 1 if it is as good as the best of the run, up to rounding, else 0


def lead(values: Array, violations: Array | None, v: Array, best: Array, point: Array) -> Lead:
    """The candidates `v`, (..., L, N), against the `best` of the run, which was at `point`."""
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
        return Lead(None, best, point, level * 1.0)
    first = xp.arange(values.shape[-1]) == values.argmin(axis=-1)[..., None]
    own, there = xp.concat([violation[..., None], least[..., None]], axis=-1), xp.vecmat(first * 1.0, v)
    if idle(~better):
        return Lead(first, own, there, level * 1.0)
    better = better[..., None]
    return Lead(better & first, xp.where(better, own, best), xp.where(better, there, point), level * 1.0)


def penalised_ranks(values: Array, violations: Array | None, outside: Array) -> Array:
    """Ranks, plus a penalty for lying outside the bounds that grows with the distance. (..., L).

    The rank is the number of better candidates. One squared standard deviation outside costs a whole
    population's ranks, so the penalty depends neither on the scale of the values nor on that of x.
    """
    return _better(values, violations).sum(axis=-1) + values.shape[-1] * outside
