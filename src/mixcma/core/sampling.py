"""(state, noise) -> the candidates of a generation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mixcma.core.coordinates import Coordinates, cell_index
from mixcma.core.gaussian import GaussianState
from mixcma.core.namespace import SMALLEST_NORM_SQ, Array, namespace, squared_norm
from mixcma.core.strategy import Strategy


class Noise(NamedTuple):
    """The random numbers of a generation. Methods that use normals alone are given no uniforms.

    The uniforms are in (0, 1].
    """

    normal: Array  # (..., L, N)
    order: Array = None  # (..., N)
    geometric: Array = None  # (..., L, N)
    sign: Array = None  # (..., L, N)


class Sample(NamedTuple):
    """The candidates of a generation, one row per candidate."""

    y: Array  # (..., L, N) ~ N(0, C): drives the paths and the covariance
    z: Array  # (..., L, N) C^(-1/2) y
    step: Array  # (..., L, N) x - m: drives the mean
    v: Array  # (..., L, N) the latent points that are decoded and evaluated
    cells: Array  # (..., L, N) the cells of v
    older: Array  # (..., L) bool: drawn by an older state of the run


def complete(coordinates: Coordinates, y: Array, z: Array, step: Array, v: Array) -> Sample:
    """A sample of points v, with their cells; the present state drew all of them."""
    return Sample(y, z, step, v, cell_index(coordinates, v), namespace(v).zeros(v.shape[:-1], dtype=bool))


def gaussian(state: GaussianState, normal: Array) -> tuple[Array, Array]:
    """y_i = C^(1/2) xi_i,  x_i - m = sigma y_i."""
    y = normal @ state.root
    return y, state.sigma[..., None] * y


def expressed(
    coordinates: Coordinates, state: GaussianState, v: Array, step: Array, allowed: Callable[[Array], Array]
) -> Sample:
    """Points that another state drew, with `step` = x - m, as samples of this one.

    y = (x - m) / sigma is given the Mahalanobis length that is `allowed` for the one it has, (..., L, 1).
    """
    xp = namespace(v)
    y = step / state.sigma[..., None]
    z = y @ state.inverse_root
    length = xp.sqrt(xp.maximum(squared_norm(z), SMALLEST_NORM_SQ))
    kept = allowed(length) / length
    return complete(coordinates, kept * y, kept * z, kept * step, v)


def no_longer_than_usual(strategy: Strategy) -> Callable[[Array], Array]:
    """At most sqrt(N) + 2 N / (N + 2), so that one point from far away cannot upset the paths.

    N. Hansen, Injecting external solutions into CMA-ES, 2011.
    """
    n = strategy.dimension
    return lambda length: namespace(length).minimum(length, n**0.5 + 2 * n / (n + 2))
