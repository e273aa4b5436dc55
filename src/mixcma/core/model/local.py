"""Quadratic models of the value and of each constraint around the best point (docs/model.md, "Constraints")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixcma.core.model.features import Features, FloatArray
from mixcma.core.model.surrogate import Evaluated

# The models are fitted to so many of the nearest points per coefficient, and at least to LEAST_NEAREST.
NEAREST, LEAST_NEAREST = 2.0, 30
# Products of features are left out where a full model would have more coefficients than this.
MOST_COEFFICIENTS = 150
# The curvature is shrunk by one of these, in units of the largest singular value squared.
RIDGES = 10.0 ** np.array([-9.0, -6.0, -4.0, -3.0, -2.0, -1.0])
# Singular values below this part of the largest are rounding errors.
RANK_TOLERANCE = 1e-9
# A point whose prediction follows its own value entirely says nothing of the error.
LARGEST_LEVERAGE = 1 - 1e-6
# Integers reach a little beyond their neighbours, at least.
ONE_STEP = 1.01


class Local(NamedTuple):
    """c + G u + u' H u / 2 for each output, where u = (features - origin) / reach; exact at the best point.

    Output 0 is the value, then come the constraints, each divided by a typical size.
    """

    features: Features
    centre: FloatArray  # (N,) the best point
    origin: FloatArray  # (p,) its features
    reach: FloatArray  # (p,) how far the model is believed; 1 for indicators
    c: FloatArray  # (outputs,)
    G: FloatArray  # (outputs, p)
    H: FloatArray  # (outputs, p, p)
    errors: FloatArray  # (outputs,) typical error of a point that is predicted from the others; 0 if unknown

    def rows(self, points: FloatArray) -> FloatArray:
        """Latent points (n, N) -> u: (n, p)."""
        scaled: FloatArray = (self.features.rows(points) - self.origin) / self.reach
        return scaled


def fit_local(features: Features, evaluated: Evaluated, radius: float) -> Local | None:
    """Fit to the points nearest to the best one, which weigh the more the nearer they are; None if it fails."""
    best = int(np.lexsort((evaluated.values, evaluated.violations))[0])
    n, centre = features.numbers, evaluated.points[best]
    granularity = np.asarray(features.coordinates.granularity)[:n]
    reach = np.concatenate([np.maximum(radius, ONE_STEP * granularity), np.ones(features.count - n)])
    origin = features.rows(centre[None])[0]
    rows = (features.rows(evaluated.points) - origin) / reach
    other_choices = (evaluated.points[:, n:] != centre[n:]).sum(axis=1)
    distance_sq = (rows[:, :n] ** 2).sum(axis=1) + other_choices
    near = np.argsort(distance_sq, kind="stable")[: max(LEAST_NEAREST, int(NEAREST * _coefficients(features)))]
    near = near[near != best]
    if not len(near):
        return None
    outputs = np.column_stack([evaluated.values, evaluated.constraints])
    largest = np.abs(outputs).max(axis=0)
    outputs = outputs / np.where(largest > 0.0, largest, 1.0)
    weights = 1 / (1 + distance_sq[near])
    differences = outputs[near] - outputs[best]
    units = np.sqrt((weights**2 @ differences**2) / (weights @ weights))
    units = np.where(units > 0.0, units, 1.0)
    G, H, errors = _fit(features, rows[near], differences / units, weights[:, None])
    model = Local(features, centre, origin, reach, outputs[best] / units, G, H, errors)
    return model if all(np.isfinite(part).all() for part in model[2:]) else None


def _coefficients(features: Features) -> int:
    sizes = features.sizes
    return sizes["full"] if sizes["full"] <= MOST_COEFFICIENTS else sizes["diagonal"]


def _fit(
    features: Features, rows: FloatArray, outputs: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """G, H and errors: linear, diagonal and full models with more or less curvature, for each output the best."""
    U, s, V = _decomposed(rows * w)
    y = outputs * w
    rest, leverage = y - U @ (U.T @ y), (U * U).sum(axis=1)
    errors, H = _honest_errors(rest, leverage, w), np.zeros((outputs.shape[1], features.count, features.count))
    for products in (False, True)[: 1 + (features.sizes["full"] <= MOST_COEFFICIENTS)]:
        columns = _curved_columns(features, rows, products) * w
        U2, s2, V2 = _decomposed(columns - U @ (U.T @ columns))
        if not len(s2):
            continue
        along = U2.T @ rest
        for ridge in RIDGES:
            kept = s2**2 / (s2**2 + ridge * s2[0] ** 2)
            error = _honest_errors(rest - U2 @ (kept[:, None] * along), leverage + (U2 * U2) @ kept, w)
            better = error < errors
            if better.any():
                H[better] = _hessians(features, V2.T @ ((kept / s2)[:, None] * along[:, better]), products)
                errors = np.where(better, error, errors)
    G = V.T @ ((U.T @ (y - w * _curvature(rows, H))) / s[:, None])
    return G.T, H, np.where(np.isfinite(errors), errors, 0.0)


def _curvature(rows: FloatArray, H: FloatArray) -> FloatArray:
    """u' H u / 2: (n, p), (outputs, p, p) -> (n, outputs)."""
    curved: FloatArray = ((H @ rows.T) * rows.T).sum(axis=1).T / 2
    return curved


def _curved_columns(features: Features, rows: FloatArray, products: bool) -> FloatArray:
    """Scaled so that the sum of the squares of their coefficients is that of the entries of H."""
    squares = rows[:, : features.numbers] ** 2 / 2
    if not products:
        return squares
    i, j = features.pairs
    return np.concatenate([squares, rows[:, i] * rows[:, j] / np.sqrt(2)], axis=1)


def _hessians(features: Features, c: FloatArray, products: bool) -> FloatArray:
    """Coefficients of these columns (columns, outputs) -> H: (outputs, p, p)."""
    n, p = features.numbers, features.count
    H = np.zeros((c.shape[1], p, p))
    H[:, np.arange(n), np.arange(n)] = c[:n].T
    if products:
        i, j = features.pairs
        H[:, i, j] = H[:, j, i] = c[n:].T / np.sqrt(2)
    return H


def _decomposed(columns: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """U, s, V' of the singular value decomposition, without rounding errors."""
    U, s, V = np.linalg.svd(columns, full_matrices=False)
    kept = s > RANK_TOLERANCE * s.max(initial=0.0)
    return U[:, kept], s[kept], V[kept]


def _honest_errors(rest: FloatArray, leverage: FloatArray, w: FloatArray) -> FloatArray:
    """(outputs,) weighted root mean square errors of points that are predicted from the others; inf if unknown."""
    free = leverage < LARGEST_LEVERAGE
    if free.sum() < 2:
        return np.full(rest.shape[1], np.inf)
    honest = rest[free] / (1 - leverage[free])[:, None]
    errors: FloatArray = np.sqrt((honest**2).sum(axis=0) / (w[free] ** 2).sum())
    return errors
