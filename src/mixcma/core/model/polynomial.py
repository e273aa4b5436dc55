"""Linear, diagonal, sparse and full quadratic models by weighted least squares (docs/model.md, "Polynomials")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixcma.core.model.features import Features, FloatArray, IntArray, Kind
from mixcma.core.model.least_squares import least_squares

# A point whose prediction follows its own value entirely has no honest prediction.
LARGEST_LEVERAGE = 1 - 1e-6


class Polynomial(NamedTuple):
    """c_0 + sum c_j u_j + ..., for scaled features u; several outputs side by side."""

    features: Features
    kind: Kind
    coefficients: FloatArray  # (columns, outputs)
    honest: FloatArray  # (n, outputs): each point as predicted from all the others; NaN where they say nothing of it

    def predict(self, rows: FloatArray) -> FloatArray:
        """Scaled features (L, p) -> (L, outputs)."""
        predicted: FloatArray = self.features.matrix(rows, self.kind) @ self.coefficients
        return predicted

    def gradient_and_hessian(self, output: int) -> tuple[FloatArray, FloatArray]:
        """g and H of one output at the origin: c_0 + g' u + u' H u / 2."""
        c, p, n = self.coefficients[:, output], self.features.count, self.features.numbers
        H = np.zeros((p, p))
        if self.kind != "linear":
            H[np.arange(n), np.arange(n)] = 2 * c[1 + p : 1 + p + n]
        if self.kind in ("sparse", "full"):
            i, j = self.features.pairs
            H[i, j] = H[j, i] = c[1 + p + n :]
        return c[1 : 1 + p], H


def fit_polynomial(
    features: Features, rows: FloatArray, outputs: FloatArray, weights: FloatArray, kind: Kind
) -> Polynomial | None:
    """A model with all the columns of its kind."""
    columns = features.matrix(rows, kind)
    return fit_columns(features, kind, columns, np.arange(columns.shape[1]), outputs, weights)


def fit_columns(
    features: Features, kind: Kind, columns: FloatArray, used: IntArray, outputs: FloatArray, weights: FloatArray
) -> Polynomial | None:
    """Least squares with the roots of weights (n,).

    The columns that are not `used` have the coefficient zero. The leverage h_i of a point is how much its prediction
    follows its own value; without it, it is predicted as y_i - (y_i - prediction_i) / (1 - h_i).
    """
    c = np.zeros((columns.shape[1], outputs.shape[1]))
    c[used], leverage = least_squares(columns[:, used] * weights[:, None], outputs * weights[:, None])
    if not np.isfinite(c).all():
        return None
    rest = np.where(leverage < LARGEST_LEVERAGE, 1 - leverage, np.nan)
    honest = outputs - (outputs - columns @ c) / rest[:, None]
    return Polynomial(features, kind, c, honest)
