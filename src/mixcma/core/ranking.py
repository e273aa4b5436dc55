"""Values, violations, ties -> a recombination weight for each candidate, in the candidates' own order."""

from __future__ import annotations

from mixcma.core.namespace import Array, distinct, everywhere, held, idle, namespace, paired, picked, unpaired, wide
from mixcma.core.state import NOTHING, Lead
from mixcma.core.strategy import Weighing

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


def weights_by_rank(weighing: Weighing, values: Array, violations: Array | None = None) -> Array:
    """The weight of each candidate; equal ones get the mean of the weights of the ranks they share."""
    if violations is None and distinct(values):
        return weighing.weights[values.argsort(axis=-1).argsort(axis=-1)]
    better, sums = _better(values, violations), namespace(values).asarray(weighing.sums)
    # the ranks it shares: first + 1, ..., last
    first, last = better.sum(axis=-1), values.shape[-1] - better.sum(axis=-2)
    return (sums[last] - sums[first]) / (last - first)


def lead(values: Array, violations: Array | None, v: Array, best: Array, point: Array) -> Lead:
    """The candidates `v`, (..., L, N), against the `best` of the run, which was at `point`."""
    xp, (before, value) = namespace(values), unpaired(best)
    violation, feasible = 0.0 * before, None
    if violations is not None:
        violation, feasible = violations.min(axis=-1), (violations == 0.0).sum(axis=-1) / values.shape[-1]
        values = xp.where(violations == violation[..., None], values, xp.inf)
    first = values.argmin(axis=-1)
    least = held(-NOTHING, picked(values, first), NOTHING)
    gap, as_feasible = value - least, violation == before
    level = as_feasible & (abs(gap) <= ROUNDING * abs(value))
    better = (violation < before) | (as_feasible & (gap > 0.0))
    if idle(better):
        return Lead(first, better, best, point, level * 1.0, feasible)
    own, there = paired(violation, least), picked(v, first)
    if everywhere(better):
        return Lead(first, better, own, there, level * 1.0, feasible)
    chosen, where = xp.where(wide(better), own, best), xp.where(wide(better), there, point)
    return Lead(first, better, chosen, where, level * 1.0, feasible)


def leader(lead: Lead, candidates: int) -> Array:
    """(..., L) bool: the best of the generation, if it is better than the best of the run before."""
    xp = namespace(lead.best)
    return wide(lead.better) & (xp.arange(candidates) == lead.first[..., None])


def penalised_ranks(values: Array, violations: Array | None, outside: Array) -> Array:
    """Ranks, plus a penalty for lying outside the bounds that grows with the distance. (..., L).

    The rank is the number of better candidates. One squared standard deviation outside costs a whole
    population's ranks, so the penalty depends neither on the scale of the values nor on that of x.
    """
    return _better(values, violations).sum(axis=-1) + values.shape[-1] * outside
