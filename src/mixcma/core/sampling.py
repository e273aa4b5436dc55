"""(state, noise) -> a generation's samples."""

from __future__ import annotations

from typing import NamedTuple

from mixcma.core.namespace import SMALLEST_NORM_SQ, Array, namespace, squared_norm
from mixcma.core.state import State
from mixcma.core.strategy import Strategy


class Noise(NamedTuple):
    """A generation's random numbers. The uniforms are in (0, 1] and used by CMA-ES-IM and mix."""

    normal: Array  # (..., L, N)
    order: Array = None  # (..., N)
    geometric: Array = None  # (..., L, N)
    sign: Array = None  # (..., L, N)


class Sample(NamedTuple):
    """A generation's candidates, one row each."""

    y: Array  # (..., L, N) ~ N(0, C): drives the paths and the covariance
    z: Array  # (..., L, N) C^(-1/2) y
    step: Array  # (..., L, N) x - m: drives the mean
    v: Array  # (..., L, N) the latent points that are decoded and evaluated
    cells: Array | None = None  # (..., L, N) of v: mix
    left: Array | None = None  # (..., L, N) bool: integers in another cell than that of m: mix
    penalty: Array | None = None  # (..., L) added to the objective's value before ranking
    better: Array | None = None  # (..., L) the weights of the better half, for a method that also uses those of all
    leader: Array | None = None  # (..., L) bool: the best of the generation, if it is the best of the run
    feasible: Array | None = None  # (..., 1) the share of candidates that violate nothing; None if all
    level: Array | None = None  # (..., 1) 1 if the best of the generation is as good as the best of the run, else 0


def gaussian(state: State, normal: Array) -> tuple[Array, Array]:
    """y_i = C^(1/2) xi_i,  x_i - m = sigma y_i."""
    y = normal @ state.root
    return y, state.sigma[..., None] * y


def expressed(strategy: Strategy, state: State, v: Array, step: Array) -> Sample:
    """Points that another state drew, with `step` = x - m, as samples of this one.

    y = (x - m) / sigma is shortened to a Mahalanobis length of at most sqrt(N) + 2 N / (N + 2), so that
    one point from far away cannot upset the paths (Hansen, Injecting external solutions into CMA-ES, 2011).
    """
    xp, n = namespace(v), strategy.dimension
    y = step / state.sigma[..., None]
    z = y @ state.inverse_root
    length = xp.sqrt(xp.maximum(squared_norm(z), SMALLEST_NORM_SQ))
    kept = xp.minimum(1.0, (n**0.5 + 2 * n / (n + 2)) / length)
    return Sample(kept * y, kept * z, kept * step, v)
