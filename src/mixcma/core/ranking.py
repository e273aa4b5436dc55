"""Values, violations, ties -> a recombination weight for each candidate, in the candidates' own order."""

from __future__ import annotations

from mixcma.core.namespace import Array, namespace
from mixcma.core.strategy import Strategy


def count_better(values: Array, violations: Array | None = None) -> tuple[Array, Array]:
    """For each candidate, how many are strictly better, and how many are at least as good (itself too).

    Feasible candidates come before infeasible ones, then less violation, then the smaller value.
    (..., L) -> two integer arrays (..., L).
    """
    other, own = values[..., None, :], values[..., :, None]
    better, no_worse = other < own, other <= own
    if violations is not None:
        other, own = violations[..., None, :], violations[..., :, None]
        same = other == own
        better, no_worse = (other < own) | (same & better), (other < own) | (same & no_worse)
    return better.sum(axis=-1), no_worse.sum(axis=-1)


def weights_by_rank(strategy: Strategy, values: Array, violations: Array | None = None) -> Array:
    """The weight of each candidate; equal ones get the mean of the weights of the ranks they share."""
    xp = namespace(values)
    better, no_worse = count_better(values, violations)
    cumulative = xp.asarray(strategy.cumulative_weights)
    return (cumulative[no_worse] - cumulative[better]) / (no_worse - better)


def penalised_ranks(values: Array, violations: Array | None, outside: Array) -> Array:
    """Ranks, plus a penalty for lying outside the bounds that grows with the distance. (..., L).

    A rank is the mean over equal candidates. One squared standard deviation outside costs a whole
    population's ranks, so the penalty depends neither on the scale of the values nor on that of x.
    """
    better, no_worse = count_better(values, violations)
    return (better + no_worse) / 2 + values.shape[-1] * outside
