"""A quadratic model with the few products that matter, where there are too few points for all
(docs/model.md, "Sparse polynomials")."""

from __future__ import annotations

import math

import numpy as np

from mixcma.core.model.features import Features, FloatArray, IntArray
from mixcma.core.model.polynomial import Polynomial, fit_columns

# With more features than this, their products are too many to look at.
MOST_FEATURES = 80
# Of the products that matter, this part is taken at a time, since some of them only stand for others.
PART = 0.25
# There are at least so many points per coefficient.
POINTS_PER_COEFFICIENT = 1.5
# A product whose part independent of the model is shorter than this, relative to its length, adds nothing.
LEAST_LENGTH = 1e-6


def fit_sparse(features: Features, rows: FloatArray, outputs: FloatArray, weights: FloatArray) -> Polynomial | None:
    """A diagonal model, and the products that say more of the value (the first output) than chance would; None if
    there are none."""
    if features.count > MOST_FEATURES:
        return None
    columns = features.matrix(rows, "full")
    diagonal = features.sizes["diagonal"]
    chosen = diagonal + _products(columns * weights[:, None], outputs[:, 0] * weights, diagonal)
    if not len(chosen):
        return None
    return fit_columns(features, "sparse", columns, np.append(np.arange(diagonal), chosen), outputs, weights)


def _products(weighted: FloatArray, y: FloatArray, diagonal: int) -> IntArray:
    """The numbers of the products that are chosen, by their correlation with what the others leave unexplained.

    The largest of m correlations with n - c random numbers, c coefficients being used up, is about
    sqrt(2 log(m) / (n - c)): one that is larger counts.
    """
    n, most = len(y), int(len(y) / POINTS_PER_COEFFICIENT)
    Q, _ = np.linalg.qr(weighted[:, :diagonal])  # what the model has, made orthonormal
    products = weighted[:, diagonal:]
    length_sq = _squares(products)
    left_sq = length_sq - _squares(Q.T @ products)  # of what is left of each product
    rest = y - Q @ (Q.T @ y)
    chosen = np.zeros(0, dtype=np.int64)
    while diagonal + len(chosen) < most:
        left_sq[chosen] = 0.0
        new = left_sq > LEAST_LENGTH**2 * length_sq
        size = np.where(new, np.sqrt(np.maximum(left_sq, 0.0)) * math.sqrt(float(rest @ rest) or 1.0), np.inf)
        correlation = np.abs(rest @ products) / size
        chance = math.sqrt(2.0 * math.log(max(len(size), 2)) / (n - diagonal - len(chosen)))
        matter = np.flatnonzero(correlation > chance)
        if not len(matter):
            break
        best = matter[np.argsort(-correlation[matter], kind="stable")]
        best = best[: min(math.ceil(PART * len(matter)), most - diagonal - len(chosen))]
        added, _ = np.linalg.qr(products[:, best] - Q @ (Q.T @ products[:, best]))
        Q, chosen = np.concatenate([Q, added], axis=1), np.append(chosen, best)
        rest = rest - added @ (added.T @ rest)
        left_sq = left_sq - _squares(added.T @ products)
    return np.sort(chosen)


def _squares(columns: FloatArray) -> FloatArray:
    """The squared lengths."""
    lengths_sq: FloatArray = np.einsum("ij,ij->j", columns, columns)
    return lengths_sq
