"""Candidates outside the bounds are evaluated on them, and lose ranks by their distance."""

from __future__ import annotations

from mixcma.core.namespace import Array, as_matrix, known_empty, namespace, squared_norm
from mixcma.core.setting import Setting


def known_inside(setting: Setting, v: Array) -> bool:
    """Whether all candidates are known to lie inside the bounds."""
    bounds = setting.latent_bounds
    return bounds is None or known_empty((v < bounds[0]) | (v > bounds[1]))


def distance_outside(v: Array, low: Array, high: Array, sd: Array, slack: Array | float) -> Array:
    """sum_j max(0, |v_j - nearest point inside| / sd_j - slack)^2: (..., L)."""
    xp = namespace(v)
    outside = xp.abs(v - xp.minimum(xp.maximum(v, low), high)) / sd[..., None, :]
    return squared_norm(xp.maximum(outside - as_matrix(slack), 0.0))[..., 0]
