"""A smooth interpolation of the values, for what is not quadratic (docs/model.md, "Kriging")."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, inv
from scipy.spatial.distance import cdist

from mixcma.core.model.features import FloatArray

# The correlation of neighbouring points falls over this distance, times the root of the number of features.
LENGTH = 1.0
# What is added to the correlation of a point with itself, for numerical reasons.
NUGGET = 1e-6


class Kriging(NamedTuple):
    """A constant plus a sum of correlations with the points that it was fitted to; several outputs side by side."""

    rows: FloatArray  # (n, p) scaled features
    coefficients: FloatArray  # (n + 1, outputs), the last one the constant
    honest: FloatArray  # (n, outputs): each point as predicted from all the others

    def predict(self, rows: FloatArray) -> FloatArray:
        """Scaled features (L, p) -> (L, outputs)."""
        predicted: FloatArray = correlations(rows, self.rows) @ self.coefficients[:-1] + self.coefficients[-1]
        return predicted


def fit_kriging(rows: FloatArray, outputs: FloatArray) -> Kriging | None:
    """Ordinary kriging. Without point i it is predicted as y_i - a_i / (K^-1)_ii (Dubrule 1983)."""
    n = len(rows)
    bordered = np.ones((n + 1, n + 1))
    bordered[:n, :n] = correlations(rows, rows) + NUGGET * np.eye(n)
    bordered[n, n] = 0.0
    try:
        inverse = inv(bordered, check_finite=False)
    except LinAlgError:
        return None
    a = inverse[:, :n] @ outputs
    if not np.isfinite(a).all():
        return None
    return Kriging(rows, a, outputs - a[:n] / inverse.diagonal()[:n, None])


def correlations(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Matern 5/2: (1 + r + r^2/3) exp(-r), where r is sqrt(5) times the distance in lengths: (L, n)."""
    r = cdist(rows, others) * math.sqrt(5 / rows.shape[1]) / LENGTH
    matern: FloatArray = (1 + r + r * r / 3) * np.exp(-r)
    return matern
