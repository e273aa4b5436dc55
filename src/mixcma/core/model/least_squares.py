"""Linear least squares, with the leverage of every point (docs/model.md, "Polynomials")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dgecon

from mixcma.core.model.features import FloatArray

# Columns are as good as independent if the reciprocal of their condition number is larger than this.
INDEPENDENT = 1e-6
# Of others, a column adds nothing if less than this part of it is independent of the rest; its coefficient is zero.
RANK_TOLERANCE = 1e-13


class Solution(NamedTuple):
    c: FloatArray  # (columns, outputs) the coefficients
    leverage: FloatArray  # (n,) how much what is fitted to a point follows its own value


def least_squares(A: FloatArray, b: FloatArray) -> Solution:
    """c with the least |A c - b|, for A (n, columns) and b (n, outputs).

    Columns are made as long as 1; those that are zero have the coefficient zero.
    """
    lengths = np.sqrt(_squares(A, axis=0))
    some = lengths > 0.0
    c = np.zeros((A.shape[1], b.shape[1]))
    if not some.any():
        return Solution(c, np.zeros(len(A)))
    A = A[:, some] / lengths[some]
    solved = _of_independent(A, b) or _of_dependent(A, b)
    c[some] = solved.c / lengths[some, None]
    return Solution(c, solved.leverage)


def _of_independent(A: FloatArray, b: FloatArray) -> Solution | None:
    """With A = Q R, the rows of Q are those of A R^-1, and the leverage of a point is the squared length of its row.

    R' R c = A' b is solved, and once more for what remains of b (the corrected seminormal equations: Bjorck, 1987).
    That takes a third of the time that Q would. None if the columns are not independent.
    """
    n, columns = A.shape
    if n < columns:
        return None
    (R,) = qr(A, mode="r", check_finite=False)
    R = R[:columns]
    reciprocal, _ = dgecon(R, np.abs(R).sum(axis=0).max())  # R is its own LU decomposition
    if not reciprocal > INDEPENDENT:
        return None
    Q = solve_triangular(R, A.T, trans="T", check_finite=False).T
    c = solve_triangular(R, Q.T @ b, check_finite=False)
    c += solve_triangular(R, Q.T @ (b - A @ c), check_finite=False)
    return Solution(c, _squares(Q, axis=1))


def _of_dependent(A: FloatArray, b: FloatArray) -> Solution:
    """By QR that takes the most independent columns first, and leaves out those that add nothing."""
    Q, R, place = qr(A, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(R.diagonal())
    rank = int((sizes > RANK_TOLERANCE * sizes[0]).sum())
    kept: FloatArray = np.asarray(Q[:, :rank], dtype=np.float64)
    c = np.zeros((A.shape[1], b.shape[1]))
    c[place[:rank]] = solve_triangular(R[:rank, :rank], kept.T @ b, check_finite=False)
    return Solution(c, _squares(kept, axis=1))


def _squares(A: FloatArray, axis: int) -> FloatArray:
    """The squared lengths of the columns (axis 0) or rows (axis 1)."""
    lengths: FloatArray = np.einsum("ij,ij->j" if axis == 0 else "ij,ij->i", A, A)
    return lengths
