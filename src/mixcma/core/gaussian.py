"""The Gaussian that every method searches with: how it starts, its decomposition, its standard deviations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from mixcma.core.namespace import Array, eigh, known_empty, namespace, padded, trailing_zeros

# Eigenvalues are kept above this, so that a C that is no longer positive definite shows up as a condition number
# that ends the run, not as a NaN.
SMALLEST_EIGENVALUE = 1e-300


class Start(NamedTuple):
    """How a run starts: N(m, covariance), and the probabilities of the choices of each category.

    The coordinates of categories come last. In m they hold the most probable choice; in the covariance their rows
    and columns are those of the identity.
    """

    m: Array  # (..., N)
    covariance: Array  # (..., N, N)
    theta: Array  # (..., N_cat, K)


class GaussianState(Protocol):
    """What the states of all methods have in common; see the glossary of `mixcma.core` for names and shapes."""

    @property
    def m(self) -> Array: ...
    @property
    def sigma(self) -> Array: ...
    @property
    def C(self) -> Array: ...
    @property
    def p_sigma(self) -> Array: ...
    @property
    def p_c(self) -> Array: ...
    @property
    def root(self) -> Array: ...
    @property
    def inverse_root(self) -> Array: ...
    @property
    def eigenvalues(self) -> Array: ...
    @property
    def generation(self) -> Array | int: ...


class Roots(NamedTuple):
    """What a decomposition of C gives; the names are those of the states' fields."""

    root: Array  # C^(1/2): (..., N, N)
    inverse_root: Array  # C^(-1/2): (..., N, N)
    eigenvalues: Array  # (..., N) ascending


def even_probabilities(choices: Array | tuple[int, ...]) -> Array:
    """(N_cat, K): every choice of a category is equally probable; K is the largest number of choices."""
    counts = np.asarray(choices)[:, None] if len(choices) else np.ones((0, 1))
    even: Array = (np.arange(counts.max(initial=1)) < counts) / counts
    return even


def start_at(m: Array, choices: Array | tuple[int, ...] = ()) -> Start:
    """N(m, I), and equal probabilities."""
    xp = namespace(m)
    identity = xp.eye(m.shape[-1]) * xp.ones_like(m)[..., None]
    return Start(m, identity, xp.asarray(even_probabilities(choices)) + xp.zeros_like(m)[..., :1, None])


def initial_gaussian(start: Start) -> dict[str, Array]:
    """The fields that the states of all methods have in common: sigma^2 is the scale of the covariance, det C = 1."""
    m, xp = start.m, namespace(start.m)
    size, categories = m.shape[-1], start.theta.shape[-2]
    numbers = 1.0 * (np.arange(size) < size - categories)
    sigma = xp.exp(xp.linalg.slogdet(start.covariance)[1] / (2 * max(1, size - categories)))[..., None]
    of_numbers = numbers[:, None] * numbers
    C = of_numbers * start.covariance / (sigma**2)[..., None] + (1.0 - numbers)[:, None] * xp.eye(size)
    return {
        "m": m,
        "sigma": sigma,
        "C": C,
        "p_sigma": xp.zeros_like(m),
        "p_c": xp.zeros_like(m),
        **decompose(C, numbers + xp.zeros_like(m))._asdict(),
        "generation": 0,
    }


def decompose(C: Array, live: Array | None = None) -> Roots:
    """C = B D^2 B^T, and from it the symmetric roots B D B^T and B D^-1 B^T.

    The symmetric roots do not depend on the signs and the order of the eigenvectors, so all back ends agree.
    `live` (..., N) is 1 or, for coordinates that are no part of the Gaussian, 0: their rows and columns of C count as
    those of the identity, and those of the roots are 0.
    """
    if live is None:
        return _roots(C)
    size = C.shape[-1]
    n = size - trailing_zeros(live)  # for speed: what is not live at the end is not decomposed
    C, live, inside = C[..., :n, :n], live[..., :n], None
    if not known_empty(live == 0.0):
        inside = live[..., :, None] * live[..., None, :]
        C = inside * C + (1.0 - live)[..., None] * namespace(C).eye(n)
    root, inverse_root, eigenvalues = _roots(C)
    if inside is not None:
        root, inverse_root = inside * root, inside * inverse_root
    if n == size:
        return Roots(root, inverse_root, eigenvalues)
    eigenvalues = np.sort(np.concatenate([eigenvalues, np.ones(size - n)]))
    return Roots(padded(root, size), padded(inverse_root, size), eigenvalues)


def _roots(C: Array) -> Roots:
    xp = namespace(C)
    eigenvalues, B = eigh(C)
    eigenvalues = xp.maximum(eigenvalues, SMALLEST_EIGENVALUE)
    D = xp.sqrt(eigenvalues)[..., None, :]
    return Roots((B * D) @ B.mT, (B / D) @ B.mT, eigenvalues)


def set_apart(matrix: Array, which: Array, diagonal: Array) -> Array:
    """The matrix, with 0 in the rows and columns of `which` (..., N), but for 1 where `diagonal` says so."""
    if isinstance(matrix, np.ndarray) and matrix.ndim == 2:  # for speed: a single run
        matrix, places = matrix.copy(), which.nonzero()[0]
        matrix[places] = matrix[:, places] = 0.0
        matrix[places, places] = diagonal[places]
        return matrix
    kept, identity = 1.0 - which, namespace(matrix).eye(matrix.shape[-1])
    return kept[..., :, None] * kept[..., None, :] * matrix + diagonal[..., None] * identity


def deviations(state: GaussianState) -> Array:
    """sigma C_jj^(1/2): (..., N)."""
    return state.sigma * namespace(state.C).sqrt(state.C.diagonal(axis1=-2, axis2=-1))


S = TypeVar("S", bound=tuple[Any, ...])


def map_arrays(function: Callable[..., Array], state: S, *others: S) -> S:
    """Apply `function` to each array of a state, and of others like it; the generation is that of the first."""
    mapped = []
    for name, *parts in zip(state._fields, state, *others):  # type: ignore[attr-defined]  # a NamedTuple
        if name == "generation":
            mapped.append(parts[0])
        else:
            mapped.append((map_arrays if isinstance(parts[0], tuple) else _apply)(function, *parts))
    return type(state)._make(mapped)  # type: ignore[attr-defined,no-any-return]


def _apply(function: Callable[..., Array], *arrays: Array) -> Array:
    return function(*arrays)
