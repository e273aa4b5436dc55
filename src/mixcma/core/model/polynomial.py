"""Linear, diagonal, sparse and full quadratic models by weighted least squares (docs/model.md, "Polynomials")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from mixcma.core.model.features import Features, FloatArray, IntArray, Kind

# A column adds nothing if less than this part of it is independent of the others; its coefficient is zero.
RANK_TOLERANCE = 1e-13
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
    """Least squares with the roots of weights (n,), by QR of columns of length 1, the most independent ones first.

    The columns that are not `used` have the coefficient zero. The leverage h_i of a point is how much its prediction
    follows its own value; without it, it is predicted as y_i - (y_i - prediction_i) / (1 - h_i).
    """
    weighted = columns[:, used] * weights[:, None]
    lengths = np.sqrt((weighted * weighted).sum(axis=0))
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    Q, R, place = qr(weighted / lengths, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(R.diagonal())
    rank = int((sizes > RANK_TOLERANCE * sizes[0]).sum())
    Q, kept = Q[:, :rank], place[:rank]
    c = np.zeros((columns.shape[1], outputs.shape[1]))
    solved = solve_triangular(R[:rank, :rank], Q.T @ (outputs * weights[:, None]), check_finite=False)
    c[used[kept]] = solved / lengths[kept, None]
    if not np.isfinite(c).all():
        return None
    leverage = (Q * Q).sum(axis=1)
    rest = np.where(leverage < LARGEST_LEVERAGE, 1 - leverage, np.nan)
    honest = outputs - (outputs - columns @ c) / rest[:, None]
    return Polynomial(features, kind, c, honest)
