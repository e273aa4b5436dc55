"""State: everything a run is at the end of a generation, arrays only."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mixcma.core.namespace import Array, eigh, framed, idle, namespace, zeros_at_the_end

# Eigenvalues are held above this, so that a C that lost positive definiteness shows up as a
# condition number that ends the run, not as a NaN.
SMALLEST_EIGENVALUE = 1e-300
# The best value before there is one. Values beyond it are taken for it, so that they can be subtracted.
NOTHING = 1e300


class State(NamedTuple):
    """See the glossary of `mixcma.core` for names and shapes."""

    m: Array
    sigma: Array
    C: Array
    A: Array
    p_sigma: Array
    p_c: Array
    root: Array
    inverse_root: Array
    eigenvalues: Array  # (..., N) ascending, of C at the last decomposition
    recalled: Array  # (..., N) the latent point of the best: of the last generation for CMA-ES-IM, of the run for mix
    live: Array  # (..., N) 1 or, for an integer that mix has frozen, 0
    leaving: Array  # (..., N) mix: the probability of leaving the cell that a live integer had
    long: Array  # (...) mix: generations since p_sigma became long
    idle: Array  # (...) mix: generations since an integer last changed for the better
    level: Array  # (...) mix: 1 if the last generation's best was as good as that of the run, up to rounding
    best: Array  # (..., 2) mix: violation and value of the best candidate so far
    theta: Array  # (..., N_cat, K) the probabilities of the choices of each category
    signal: Array  # (..., N_cat, K) the path of their gradient, for its rate
    rate: Array  # (..., 3) of that: gamma, Delta and delta
    open: Array  # (..., N_cat) mix: 1 or, for a category that has settled, 0
    generation: Array | int  # t, the same for all runs of a batch


class Lead(NamedTuple):
    """How the best candidate of a generation, the first of equal ones, compares with the best of the run."""

    first: Array  # (...) its index
    better: Array  # (...) bool: whether it is better
    best: Array  # (..., 2) violation and value of the best so far
    point: Array  # (..., N) its latent point
    level: Array  # (...) 1 if it is as good as the best of the run, up to rounding, else 0
    feasible: Array | None  # (...) the share of all candidates that violate nothing; None if nothing is violated


def initial_state(m: Array, choices: Array | tuple[int, ...] = ()) -> State:
    """The start of a run: sigma = 1, C = A = I, no paths; all choices of a category are as probable.

    `choices` are their numbers; the categories are the last coordinates, and no part of the Gaussian.
    """
    xp, categories = namespace(m), len(choices)
    zeros, ones = xp.zeros_like(m), xp.ones_like(m)
    identity = xp.eye(m.shape[-1]) * ones[..., None]
    numbers = np.arange(m.shape[-1]) < m.shape[-1] - categories
    live = numbers * ones
    counts = np.asarray(choices)[:, None] if categories else np.ones((0, 1))
    even = (np.arange(counts.max(initial=1)) < counts) / counts  # (N_cat, K)
    theta = xp.asarray(even) + zeros[..., :1, None]
    return State(
        m=m,
        sigma=ones[..., :1],
        C=identity,
        A=ones,
        p_sigma=zeros,
        p_c=zeros,
        root=live[..., None] * identity,
        inverse_root=live[..., None] * identity,
        eigenvalues=ones,
        recalled=m,
        live=live,
        leaving=ones,
        long=zeros[..., 0],
        idle=zeros[..., 0],
        level=zeros[..., 0],
        best=xp.full((*m.shape[:-1], 2), NOTHING) + 0.0 * m[..., :1],
        theta=theta,
        signal=xp.zeros_like(theta),
        rate=xp.asarray([0.0, 1.0, 1.0]) + zeros[..., :1],
        open=xp.ones_like(theta[..., 0]),
        generation=0,
    )


def started_from(m: Array, covariance: Array, choices: Array | tuple[int, ...] = ()) -> State:
    """The start of a run whose first samples are N(m, covariance); sigma^2 is its scale, det C = 1.

    `covariance` (..., N, N) has the rows and columns of the identity for categories.
    """
    xp = namespace(m)
    n = max(1, m.shape[-1] - len(choices))
    sigma = xp.exp(xp.linalg.slogdet(covariance)[1] / (2 * n))[..., None]
    return decompose(initial_state(m, choices)._replace(sigma=sigma, C=covariance / (sigma**2)[..., None]))


def map_arrays(function: Callable[..., Array], state: State, *others: State) -> State:
    """Apply `function` to each array of the states; the generation is that of the first."""
    arrays = [function(*fields) for fields in zip(*(each[:-1] for each in (state, *others)))]
    return State._make([*arrays, state.generation])


def decompose(state: State) -> State:
    """C = B D^2 B^T, and from it the symmetric roots B D B^T and B D^-1 B^T; 0 for frozen coordinates.

    The symmetric roots do not depend on the signs and order of the eigenvectors, so back ends agree.
    """
    size = state.live.shape[-1]
    n = size - zeros_at_the_end(state.live)  # who is frozen at the end is no part of it
    xp, C, live, inside = namespace(state.C), state.C[..., :n, :n], state.live[..., :n], None
    if not idle(live == 0.0):  # the rows and columns of frozen coordinates are those of the identity
        inside = live[..., :, None] * live[..., None, :]
        C = inside * C + (1.0 - live)[..., None] * xp.eye(n)
    eigenvalues, B = eigh(C)
    eigenvalues = xp.maximum(eigenvalues, SMALLEST_EIGENVALUE)
    D = xp.sqrt(eigenvalues)[..., None, :]
    root, inverse_root = (B * D) @ B.mT, (B / D) @ B.mT
    if inside is not None:
        root, inverse_root = inside * root, inside * inverse_root
    if n < size:
        C, root, inverse_root = framed(C, size, 1.0), framed(root, size, 0.0), framed(inverse_root, size, 0.0)
        eigenvalues = np.sort(np.append(eigenvalues, np.ones(size - n)))
    return state._replace(C=C, eigenvalues=eigenvalues, root=root, inverse_root=inverse_root)


def deviations(state: State) -> Array:
    """sigma C_jj^(1/2): (..., N)."""
    return state.sigma * namespace(state.C).sqrt(state.C.diagonal(axis1=-2, axis2=-1))
