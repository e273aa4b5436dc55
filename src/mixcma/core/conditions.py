"""Which variables exist at a point: those whose conditions hold (docs/spaces.md, "Conditions")."""

from __future__ import annotations

from mixcma.core.coordinates import Coordinates, cell_index, values_at
from mixcma.core.namespace import Array, namespace


def existing(coordinates: Coordinates, cells: Array) -> Array:
    """Which variables exist at points with these cells: (..., N) bool.

    A variable has a condition for each of its ancestors, so whether its parents exist need not be asked.
    """
    xp = namespace(cells)
    columns = [xp.ones(cells.shape[:-1], dtype=bool)] * cells.shape[-1]
    for child, parent, allowed in coordinates.conditions:
        holds = (cells[..., parent, None] == xp.asarray(allowed)).any(axis=-1)
        columns[child] = columns[child] & holds
    return xp.stack(columns, axis=-1)


def without_absent(coordinates: Coordinates, points: Array) -> Array:
    """The points (..., N) with all variables that do not exist at the same place, so that equal points are equal."""
    if not coordinates.conditions:
        return points
    exists = existing(coordinates, cell_index(coordinates, points))
    return namespace(points).where(exists, points, coordinates.absent)


def existing_values(coordinates: Coordinates, points: Array, cells: Array) -> Array:
    """The values that points with these cells stand for, nan for what does not exist: (..., N)."""
    values = values_at(coordinates, points)
    if not coordinates.conditions:
        return values
    xp = namespace(values)
    return xp.where(existing(coordinates, cells), values, xp.nan)
