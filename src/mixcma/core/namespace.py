"""The array namespace of the inputs, and the few functions on top of it that the algorithms share."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
from scipy import special
from scipy.linalg import lapack

# A NumPy or a JAX array: the one text of core/ runs on both, so no narrower type holds.
Array = Any
# A point at the mean itself has no length to divide by.
SMALLEST_NORM_SQ = 1e-300
# What NumPy's functions work on: arrays, and the numbers that single runs have in their place.
_NUMPY = (np.ndarray, np.generic, float)
# One number, or truth, of a single run.
_NUMBER = (float, bool, np.bool_)
# Numbers of an array in which the cost of a call counts more than that of going through them.
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


def wide(number: Array | float) -> Array | float:
    """What is one number a run, (...), so that it stands beside vectors: (..., 1). That of a single run does."""
    return number if isinstance(number, _NUMBER) else number[..., None]


def wider(number: Array | float) -> Array | float:
    """The same beside matrices: (..., 1, 1)."""
    return number if isinstance(number, _NUMBER) else number[..., None, None]


def held(low: Array | float, x: Array | float, high: float) -> Array | float:
    """x, or the bound that it is beyond. Of the number of a single run Python finds it several times as fast."""
    if isinstance(x, float):
        return min(max(x, low), high)
    xp = namespace(x)
    return xp.minimum(xp.maximum(x, low), high)


def picked(rows: Array, index: Array) -> Array:
    """Of each run the row, or number, of that index: (..., L) or (..., L, N) and (...) -> (...) or (..., N)."""
    if index.ndim == 0:
        return rows[index]
    chosen = index[..., None, None] if rows.ndim > index.ndim + 1 else index[..., None]
    return namespace(rows).take_along_axis(rows, chosen, axis=index.ndim).squeeze(index.ndim)


def distinct(values: Array) -> bool:
    """Whether no two numbers (..., L) of a run are known to be equal; a compiled text cannot know."""
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

    Of a single one LAPACK is called without NumPy's checks, which take as long as a small matrix does.
    """
    if isinstance(C, np.ndarray) and C.ndim == 2:
        eigenvalues, B, failed = lapack.dsyevd(C.T)
        if not failed:
            return eigenvalues, B
    eigenvalues, B = namespace(C).linalg.eigh(C)
    return eigenvalues, B


def zeros_at_the_end(vector: Array) -> int:
    """How many there are for sure, unless all are zeros: known in a single run."""
    return int((vector[::-1] != 0.0).argmax()) if isinstance(vector, np.ndarray) and vector.ndim == 1 else 0


def framed(block: Array, size: int, diagonal: float) -> Array:
    """The matrix (size, size) of a single run that begins with the block; the rest is 0, or `diagonal` on that."""
    matrix, n = np.zeros((size, size)) if diagonal == 0.0 else diagonal * np.eye(size), len(block)
    matrix[:n, :n] = block
    return matrix


def sqrt(x: Array) -> Array:
    """Of one number a run. Python is several times as fast where there is a single one, as in `exp`."""
    return math.sqrt(x) if isinstance(x, float) else namespace(x).sqrt(x)


def exp(x: Array) -> Array:
    """Of one number a run."""
    return math.exp(x) if isinstance(x, float) else namespace(x).exp(x)


def unpaired(pairs: Array) -> tuple[Array, Array]:
    """Two numbers a run: (..., 2) -> (...), (...)."""
    if isinstance(pairs, np.ndarray) and pairs.ndim == 1:
        first, second = pairs.tolist()
        return first, second
    return pairs[..., 0], pairs[..., 1]


def paired(first: Array | float, second: Array | float) -> Array:
    """(...), (...) -> (..., 2)."""
    if isinstance(first, float):
        return np.array([first, second])
    return namespace(first).stack([first, second], axis=-1)


def squared_norm(vectors: Array) -> Array:
    """||.||^2 over the last axis, which is kept with length 1."""
    return namespace(vectors).vecdot(vectors, vectors)[..., None]


def everywhere(mask: Array | bool) -> bool:
    """Whether a mask is known to select everything."""
    if isinstance(mask, np.ndarray):
        return bool(mask.all())
    return isinstance(mask, bool | np.bool_) and bool(mask)


def idle(mask: Array | bool) -> bool:
    """Whether a mask is known to select nothing, so that work which would change nothing can be left out.

    A compiled text cannot know; there the work is done, and changes nothing.
    """
    if isinstance(mask, np.ndarray):
        # of a small array the bytes are searched several times as fast as by any()
        return b"\x01" not in mask.tobytes() if mask.size < SMALL else not mask.any()
    return mask is False or (isinstance(mask, np.bool_) and not mask)
