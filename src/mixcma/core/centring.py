"""Integer centring (Marty et al., LB+IC-CMA-ES, 2024), which CatCMA with Margin and mix share."""

from __future__ import annotations

from mixcma.core.namespace import Array, namespace
from mixcma.core.update import combine


def centring_moves(v: Array, centre: Array, left: Array, taking_part: Array) -> Array:
    """How far each point (..., L, N) is moved.

    Points that left the mean's cell go to the `centre` of theirs. That shifts the sum of all points; the others make
    up for it on the way to their own centres, all by the same part of it. `left` and `taking_part` are bool; points
    that take no part are not moved.
    """
    xp = namespace(v)
    way, ones = xp.where(taking_part, centre - v, 0.0), xp.ones(v.shape[-2])
    moved = xp.where(left, way, 0.0)
    bias, others = combine(ones, moved), way - moved
    opposite = xp.where(others * bias[..., None, :] < 0.0, others, 0.0)
    available = combine(ones, opposite)
    part = xp.minimum(1.0, -bias / xp.where(available == 0.0, 1.0, available))
    return moved + part[..., None, :] * opposite
