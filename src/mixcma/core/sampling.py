"""(state, noise) -> a generation's samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mixcma.core.namespace import SMALLEST_NORM_SQ, Array, namespace, squared_norm
from mixcma.core.state import Lead, State
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
    cells: Array | None = None  # mix: (..., L, N) of v, or (..., 1, N) if those of all candidates are the same
    left: Array | None = None  # mix: (..., L, N) bool: in another cell than m; None if none is, for sure
    older: Array | None = None  # (..., L) bool: drawn by an older state of the run, see `delayed`; None if none was
    penalty: Array | None = None  # (..., L) added to the objective's value before ranking
    better: Array | None = None  # (..., L) the weights of the better half, for a method that also uses those of all
    lead: Lead | None = None  # the best of the generation and that of the run: mix


def gaussian(state: State, normal: Array) -> tuple[Array, Array]:
    """y_i = C^(1/2) xi_i,  x_i - m = sigma y_i."""
    y = normal @ state.root
    return y, state.sigma[..., None] * y


def expressed(state: State, v: Array, step: Array, allowed: Callable[[Array], Array]) -> Sample:
    """Points that another state drew, with `step` = x - m, as samples of this one.

    y = (x - m) / sigma gets the Mahalanobis length that is `allowed` for its own, (..., L, 1).
    """
    xp = namespace(v)
    y = step / state.sigma[..., None]
    z = y @ state.inverse_root
    length = xp.sqrt(xp.maximum(squared_norm(z), SMALLEST_NORM_SQ))
    kept = allowed(length) / length
    return Sample(kept * y, kept * z, kept * step, v)


def no_longer_than_usual(strategy: Strategy) -> Callable[[Array], Array]:
    """At most sqrt(N) + 2 N / (N + 2), so that one point from far away cannot upset the paths.

    N. Hansen, Injecting external solutions into CMA-ES, 2011.
    """
    n = strategy.dimension
    return lambda length: namespace(length).minimum(length, n**0.5 + 2 * n / (n + 2))


def delayed(state: State, v: Array, step: Array, redrawn: Array) -> Sample:
    """Points that an older state of this run drew; `redrawn` is the z that this state draws with the same noise.

    They lie farther away and are worse: with the lengths that they have from here they would shrink the step size. So
    they get those of their noise, and half of their direction from it too, which says how they differ from each other
    and not how the mean has moved since.
    """
    xp = namespace(v)
    length = xp.sqrt(squared_norm(redrawn))
    z = (expressed(state, v, step, lambda _: length).z + redrawn) / 2
    y = z @ state.root
    return Sample(y, z, state.sigma[..., None] * y, v)
