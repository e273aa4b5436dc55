"""The floats alone: a quadratic model within groups of points that share all their discrete values
(docs/model.md, "Floats alone")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixcma.core.model.descent import least_within, limits
from mixcma.core.model.features import Features, FloatArray, IntArray
from mixcma.core.model.least_squares import least_squares
from mixcma.core.model.polynomial import LARGEST_LEVERAGE
from mixcma.core.model.surrogate import FARTHEST, WEIGHT_OF_BEST, Evaluated, above_best, scaling_of

# The model is fitted to so many of the best points per coefficient, out of so many times as many of the newest, and
# needs some more than it has coefficients.
WINDOW, NEWEST, SPARE_POINTS = 4, 2, 2
# Products of floats are left out where there would be more coefficients than this.
MOST_COEFFICIENTS = 1000
# Models are compared by the group of the best point, if it has so many points, else by all.
LEAST_COMPARED = 4
# Where the values are all as close as this, squares are no longer floats.
LEAST_RANGE = 1e-100


class Fit(NamedTuple):
    """g' t + t' H t / 2, where t are the floats as they are scaled."""

    error: float  # of points that are predicted from the others
    g: FloatArray  # (floats,)
    H: FloatArray  # (floats, floats)


def proposal_of_floats(features: Features, evaluated: Evaluated) -> FloatArray | None:
    """The best point with its floats where the model is least (N,), which may be the point itself; None without one."""
    x = features.floats
    if not len(x):
        return None
    chosen, group = _grouped(features, evaluated)
    if not len(chosen):
        return None
    points, (values, _) = evaluated.points[chosen], above_best(evaluated.values[chosen])
    if values.max() < LEAST_RANGE:
        return None
    scaling = scaling_of(features, points)
    rows = scaling.rows(points)[:, x]
    if np.abs(rows).max() > FARTHEST:
        return None
    fits = []
    for products in (False, True) if _has_products(features) else (False,):
        columns = _columns(rows, products)
        for some in (group == 0, group >= 0) if group.any() else (group == 0,):
            fits.append(_fit(columns[some], values[some], group[some], len(x)))
    best = min((fit for fit in fits if fit is not None), key=lambda fit: fit.error, default=None)
    if best is None:
        return None
    low, high = ((side[x] - scaling.origin[x]) / scaling.spread[x] for side in limits(scaling))
    t = least_within(best.g, best.H, low, high)
    point: FloatArray = points[0].copy()
    if not best.g @ t + t @ best.H @ t / 2 < 0.0:
        return point
    point[x] = np.clip(scaling.origin[x] + t * scaling.spread[x], *(side[x] for side in limits(scaling)))
    return point


def size_of_floats(features: Features) -> int:
    """How many coefficients the largest model has."""
    x = len(features.floats)
    return x * (x + 3) // 2 if _has_products(features) else 2 * x


def window_of_floats(features: Features) -> int:
    """Among how many of the newest points the best are chosen."""
    return NEWEST * WINDOW * size_of_floats(features)


def _has_products(features: Features) -> bool:
    x = len(features.floats)
    return x > 1 and x * (x + 3) // 2 <= MOST_COEFFICIENTS


def _columns(rows: FloatArray, products: bool) -> FloatArray:
    i, j = np.triu_indices(rows.shape[1] if products else 0, 1)
    return np.concatenate([rows, rows**2, rows[:, i] * rows[:, j]], axis=1)


def _grouped(features: Features, evaluated: Evaluated) -> tuple[IntArray, IntArray]:
    """The best points that share their discrete values with another one, and their groups; that of the best is 0."""
    order = np.lexsort((evaluated.values, evaluated.violations))
    discrete = np.asarray(features.coordinates.discrete)
    _, group = np.unique(evaluated.points[order][:, discrete], axis=0, return_inverse=True)
    group = group.reshape(-1)
    if (group == group[0]).sum() < 2:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    chosen = np.flatnonzero(np.bincount(group)[group] > 1)[: WINDOW * size_of_floats(features)]
    return order[chosen], np.where(group == group[0], 0, 1 + group)[chosen]


def _fit(columns: FloatArray, values: FloatArray, group: IntArray, floats: int) -> Fit | None:
    """Weighted least squares with a constant for each group; points come in the order of their outcomes."""
    n, size = columns.shape
    members, groups = np.unique(group, return_inverse=True)
    if n < len(members) + size + SPARE_POINTS:
        return None
    w = np.linspace(WEIGHT_OF_BEST, 1.0, n)
    table = np.column_stack([columns, values])
    total = np.bincount(groups, w)
    means = np.stack([np.bincount(groups, w * column) for column in table.T]) / total
    table = (table - means[:, groups].T) * np.sqrt(w)[:, None]
    c, own = least_squares(table[:, :-1], table[:, -1:])
    c = c[:, 0]
    leverage = w / total[groups] + own
    honest = leverage < LARGEST_LEVERAGE
    compared = honest & (group == 0) if (honest & (group == 0)).sum() >= LEAST_COMPARED else honest
    if not compared.any() or not np.isfinite(c).all():
        return None
    errors = ((table[:, -1] - table[:, :-1] @ c) / np.sqrt(w))[compared] / (1.0 - leverage[compared])
    H = np.diag(2.0 * c[floats : 2 * floats])
    i, j = np.triu_indices(floats, 1)
    if size > 2 * floats:
        H[i, j] = H[j, i] = c[2 * floats :]
    return Fit(float(np.sqrt((errors[: max(1, len(errors) // 2)] ** 2).mean())), c[:floats], H)
