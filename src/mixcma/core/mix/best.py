"""The best candidate of a run so far, and how the best of a generation compares with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixcma.core.namespace import Array, clip, known_empty, namespace, pick

# The best value before there is one. Larger values are taken for it, so that they can be subtracted.
WORST_VALUE = 1e300
# Values whose difference is a smaller part of them count as equal.
ROUNDING = 1e-12


class BestSoFar(NamedTuple):
    """The best candidate of a run: least violation, then least value."""

    violation: Array  # (...)
    value: Array  # (...)
    point: Array  # (..., N) its latent point v


class BestComparison(NamedTuple):
    """How the best candidate of a generation, the first of equal ones, compares with the best before it."""

    first: Array  # (...) its index
    is_new_best: Array  # (...) bool: whether it is better
    best: BestSoFar  # the better of both
    level: Array  # (...) 1 if it is as good as the best before, up to rounding, else 0
    feasible: Array | float  # (...) the share of the candidates that violate nothing


def feasible_share(violations: Array) -> Array:
    """The share (...) of the candidates that violate nothing. Failed ones, of infinite violation, do not count."""
    xp = namespace(violations)
    succeeded = xp.maximum((violations < xp.inf).sum(axis=-1), 1)
    return (violations == 0.0).sum(axis=-1) / succeeded


def nothing_yet(m: Array) -> BestSoFar:
    """Before the first generation."""
    worst = WORST_VALUE + 0.0 * m[..., 0]
    return BestSoFar(worst, worst, m)


def compare_with_best(values: Array, violations: Array | None, v: Array, best: BestSoFar) -> BestComparison:
    """The candidates `v`, (..., L, N), against the best of the run before them."""
    xp, feasible, violation = namespace(values), 1.0, 0.0 * best.value
    if violations is not None:
        violation, feasible = violations.min(axis=-1), feasible_share(violations)
        values = xp.where(violations == violation[..., None], values, xp.inf)
    first = values.argmin(axis=-1)
    value = clip(pick(values, first), -WORST_VALUE, WORST_VALUE)
    gap, as_feasible = best.value - value, violation == best.violation
    level = as_feasible & (abs(gap) <= ROUNDING * abs(best.value))
    better = (violation < best.violation) | (as_feasible & (gap > 0.0))
    if not known_empty(better):
        best = choose(better, BestSoFar(violation, value, pick(v, first)), best)
    return BestComparison(first, better, best, level * 1.0, feasible)


def choose(better: Array, new: BestSoFar, old: BestSoFar) -> BestSoFar:
    """The new one in those runs in which it is better."""
    if isinstance(better, np.bool_):  # for speed: a single run
        return new if better else old
    xp = namespace(better)
    return BestSoFar(
        xp.where(better, new.violation, old.violation),
        xp.where(better, new.value, old.value),
        xp.where(better[..., None], new.point, old.point),
    )
