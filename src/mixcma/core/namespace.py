"""The array namespace of the inputs, and the few functions on top of it that all algorithms share."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
from scipy import special
from scipy.linalg import lapack

# A NumPy or a JAX array: the one text of core/ runs on both, so no narrower type holds.
Array = Any
# Squared lengths that are divided by are at least this: a point at the mean itself has none.
SMALLEST_NORM_SQ = 1e-300
# What NumPy's functions work on: arrays, and the plain numbers that single runs use instead.
_NUMPY = (np.ndarray, np.generic, float)
# The numbers and truth values of a single run.
_NUMBER = (float, bool, np.bool_)
# In arrays smaller than this, the cost of a call outweighs that of going through the numbers.
SMALL = 5000


def namespace(x: Array) -> ModuleType:
    """The module whose functions work on `x`: numpy, or jax.numpy."""
    if isinstance(x, _NUMPY):
        return np
    module: ModuleType = x.__array_namespace__()
    return module


def ndtr(x: Array) -> Array:
    """The standard normal distribution function. Upper tails are ndtr(-x), exact where 1 - ndtr(x) is 0."""
    return _special(x).ndtr(x)


def ndtri(p: Array) -> Array:
    """The standard normal quantile. The paper's sqrt(chi2_ppf(1 - 2p)) is ``-ndtri(p)`` for p <= 1/2."""
    return _special(p).ndtri(p)


def _special(x: Array) -> Any:
    if isinstance(x, np.ndarray | float):
        return special
    import jax.scipy.special  # only reached with a JAX array, so JAX is there

    return jax.scipy.special


def as_column(number: Array | float) -> Array | float:
    """Append an axis for broadcasting against vectors: (...) -> (..., 1). A Python number broadcasts as it is."""
    return number if isinstance(number, _NUMBER) else number[..., None]


def as_matrix(number: Array | float) -> Array | float:
    """Append two axes for broadcasting against matrices: (...) -> (..., 1, 1)."""
    return number if isinstance(number, _NUMBER) else number[..., None, None]


def clip(x: Array | float, low: Array | float, high: float) -> Array | float:
    """x, limited to [low, high]."""
    if isinstance(x, float):  # a single run: Python's own numbers are several times as fast
        return min(max(x, low), high)
    xp = namespace(x)
    return xp.minimum(xp.maximum(x, low), high)


def pick(rows: Array, index: Array) -> Array:
    """Each run's entry at that index: (..., L) or (..., L, N) and (...) -> (...) or (..., N)."""
    if index.ndim == 0:
        return rows[index]
    chosen = index[..., None, None] if rows.ndim > index.ndim + 1 else index[..., None]
    return namespace(rows).take_along_axis(rows, chosen, axis=index.ndim).squeeze(index.ndim)


def known_repeated(rows: Array) -> bool:
    """Whether all rows (..., L, N) of a run are known to be one row, broadcast."""
    return isinstance(rows, np.ndarray) and rows.strides[-2] == 0


def known_distinct(values: Array) -> bool:
    """Whether the numbers (..., L) of each run are known to be distinct; compiled code cannot know."""
    if not isinstance(values, np.ndarray):
        return False
    if values.ndim == 1:
        return len(set(values.tolist())) == len(values)
    ordered = np.sort(values, axis=-1)
    return not (ordered[..., 1:] == ordered[..., :-1]).any()


def inner(a: Array, b: Array) -> Array:
    """sum_j a_j b_j: (..., N), (..., N) -> (...)."""
    return a.dot(b) if a.ndim == 1 else namespace(a).vecdot(a, b)


def eigh(C: Array) -> tuple[Array, Array]:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors.

    For a single matrix LAPACK is called directly: NumPy's checks take as long as decomposing a small matrix.
    """
    if isinstance(C, np.ndarray) and C.ndim == 2:
        eigenvalues, B, failed = lapack.dsyevd(C.T)
        if not failed:
            return eigenvalues, B
    eigenvalues, B = namespace(C).linalg.eigh(C)
    return eigenvalues, B


def trailing_zeros(vector: Array) -> int:
    """How many zeros the vector is known to end with, unless all are zeros; 0 for batches and compiled code."""
    return int((vector[::-1] != 0.0).argmax()) if isinstance(vector, np.ndarray) and vector.ndim == 1 else 0


def padded(block: Array, size: int) -> Array:
    """A (size, size) matrix that begins with the block; the rest is 0."""
    matrix, n = np.zeros((size, size)), len(block)
    matrix[:n, :n] = block
    return matrix


def sqrt(x: Array) -> Array:
    """The square root of one number per run; in a single run Python's own is several times as fast."""
    return math.sqrt(x) if isinstance(x, float) else namespace(x).sqrt(x)


def exp(x: Array) -> Array:
    """The exponential of one number per run."""
    return math.exp(x) if isinstance(x, float) else namespace(x).exp(x)


def squared_norm(vectors: Array) -> Array:
    """||.||^2 over the last axis, which is kept with length 1."""
    return namespace(vectors).vecdot(vectors, vectors)[..., None]


def known_empty(mask: Array | bool) -> bool:
    """Whether a mask is known to select nothing, so that work which would change nothing can be skipped.

    Compiled code cannot know: there the work is done, and changes nothing.
    """
    if isinstance(mask, np.ndarray):
        # for a small array, searching its bytes is several times as fast as any()
        return b"\x01" not in mask.tobytes() if mask.size < SMALL else not mask.any()
    return mask is False or (isinstance(mask, np.bool_) and not mask)
