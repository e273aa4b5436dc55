"""What happens outside the bounds: the box of Section 3, and the bounds of floats."""

from __future__ import annotations

from mixcma.core.coordinates import Coordinates
from mixcma.core.namespace import Array, namespace, squared_norm


def box_penalty(coordinates: Coordinates, v: Array, weight: float) -> Array:
    """weight * ||x_feas - x||^2 over the discrete coordinates, in units of their granularity. (..., L).

    The paper's weight is 1/N, its granularity 1.
    """
    xp = namespace(v)
    feasible = xp.minimum(xp.maximum(v, coordinates.box_low), coordinates.box_high)
    S = xp.where(coordinates.discrete, coordinates.granularity, 1.0)
    return weight * squared_norm((v - feasible) / S)[..., 0]


def overshoot(coordinates: Coordinates, v: Array) -> Array:
    """How far candidates lie beyond the bounds, (..., L, N); 0 inside."""
    xp = namespace(v)
    return v - xp.minimum(xp.maximum(v, coordinates.latent_low), coordinates.latent_high)


def distance_outside(beyond: Array, sd: Array, slack: float) -> Array:
    """sum_j max(0, |beyond_j| / sd_j - slack)^2: (..., L)."""
    xp = namespace(beyond)
    outside = xp.abs(beyond) / sd[..., None, :]
    return squared_norm(xp.maximum(outside - slack, 0.0) if slack else outside)[..., 0]
