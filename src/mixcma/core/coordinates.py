"""What each latent coordinate means: its scale, its bounds, its cells and their values.

The search runs in a latent space in which every variable starts with standard deviation 1. A latent
number u stands for ``t = origin + scale * u``, and t for a float, for the logarithm of one, or for a
point on a line that is cut into cells, one per discrete value:

- evenly spaced values (integers, booleans): cell k holds ``(k - 1/2) * width < u <= (k + 1/2) * width``;
- integers on a log scale: the same in exp(t);
- arbitrary sets: thresholds midway between neighbouring values, as in Section 4.1 of the paper.

The latent number of a category is the place of its choice, 0, 1, ...; these coordinates come last.

The cells of evenly spaced values are arithmetic, so that a range of 2**60 needs no table.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from mixcma.core.namespace import Array, namespace

# exp() of more is not a float.
LARGEST_LOG = 709.75
LARGEST_FLOAT = 1.7976931348623157e308
# Cells narrower than this part of the latent number around them cannot be told apart.
NARROWEST_CELL = 8 * sys.float_info.epsilon


class LogGrid(NamedTuple):
    """Evenly spaced values searched on a log scale; neutral entries where ``member`` is False."""

    member: Array  # (N,) bool
    origin: Array  # (N,) t = origin + scale * u, as in Coordinates; 0 elsewhere
    scale: Array  # (N,) 0 elsewhere
    first: Array  # (N,) the smallest value; 1 elsewhere
    spacing: Array  # (N,) distance of neighbouring values; 0 elsewhere


class Tables(NamedTuple):
    """Arbitrary sets of values, T of them, the longest with K values."""

    member: Array  # (N,) bool
    columns: Array  # (T,) int: the coordinate of each table
    row: Array  # (N,) int: the table of each coordinate, 0 where there is none
    thresholds: Array  # (T, K-1) latent midpoints, padded with +inf
    values: Array  # (T, K) padded with the last value


class Condition(NamedTuple):
    """One variable exists only where another one has one of these values."""

    child: int
    parent: int
    cells: tuple[float, ...]  # of the parent


class Coordinates(NamedTuple):
    """The constants of each coordinate, of shape (N,)."""

    origin: Array  # t = origin + scale * u
    scale: Array
    log: Array | None  # bool: t is the logarithm of the value; None if no coordinate has one
    low: Array | None  # the smallest float allowed; None if no float is bounded
    high: Array | None
    latent_low: Array | None  # where the bounds are in latent units, for floats and for three or more values
    latent_high: Array | None
    discrete: Array  # bool
    margin: Array  # bool: discrete, and its cells wide enough to be told apart in floats
    choices: Array  # (N_cat,) int: the number of choices of each category; these are the last coordinates
    last: Array  # K - 1: the index of the last cell, 0 for floats
    width: Array  # latent width of an evenly spaced cell, 1 for others
    first: Array  # value of cell 0, evenly spaced
    spacing: Array  # distance of the values, 0 for floats
    log_grid: LogGrid | None
    tables: Tables | None
    granularity: Array  # S of Section 2.2: mean latent distance of neighbouring values, 0 for floats
    anchor: Array  # where CMA-ES-IM counts cells from: the threshold of two values, else the first value
    box_low: Array  # the box of Section 3 for discrete coordinates, infinite for floats
    box_high: Array
    conditions: tuple[Condition, ...] = ()
    absent: Array | None = None  # where variables stand that do not exist; None if there are no conditions


def cell_index(coordinates: Coordinates, u: Array) -> Array:
    """The index of the cell that holds u: (..., N) -> (..., N), whole floats from 0 to last."""
    xp = namespace(u)
    k = xp.ceil(u / coordinates.width - 0.5)
    grid, tables = coordinates.log_grid, coordinates.tables
    if grid is not None:
        value = xp.exp(xp.minimum(grid.origin + grid.scale * u, LARGEST_LOG))
        on_grid = xp.ceil((value - grid.first) / xp.where(grid.member, grid.spacing, 1.0) - 0.5)
        k = xp.where(grid.member, on_grid, k)
    if tables is not None:
        below = tables.thresholds < u[..., tables.columns][..., None]  # (..., T, K-1)
        counts = xp.sum(below, axis=-1)
        k = xp.where(tables.member, counts[..., tables.row], k)
    return xp.minimum(xp.maximum(k, 0.0), coordinates.last)


def threshold_above(coordinates: Coordinates, k: Array) -> Array:
    """The latent threshold between cells k and k+1 (meaningless, but finite, beyond the ends)."""
    xp = namespace(k)
    threshold = (k + 0.5) * coordinates.width
    grid, tables = coordinates.log_grid, coordinates.tables
    if grid is not None:
        value = grid.first + grid.spacing * (xp.maximum(k, 0.0) + 0.5)
        on_grid = (xp.log(value) - grid.origin) / xp.where(grid.member, grid.scale, 1.0)
        threshold = xp.where(grid.member, on_grid, threshold)
    if tables is not None:
        inside = xp.minimum(xp.maximum(k, 0.0), xp.maximum(coordinates.last - 1.0, 0.0))
        listed = _lookup(tables.thresholds, tables, inside)
        threshold = xp.where(tables.member, listed, threshold)
    return threshold


def ends(coordinates: Coordinates, k: Array) -> tuple[Array, Array]:
    """The thresholds below and above cell k."""
    above = threshold_above(coordinates, k)
    if coordinates.log_grid is None and coordinates.tables is None:
        return above - coordinates.width, above
    below = threshold_above(coordinates, k - 1.0)
    # the highest cells of a wide log scale are narrower than the spacing of floats, and would have no width
    xp = namespace(above)
    least = below + NARROWEST_CELL * xp.maximum(xp.abs(below), 1.0)
    return below, xp.where(k > 0.0, xp.maximum(above, least), above)


def cell_centre(coordinates: Coordinates, k: Array) -> Array:
    """The latent point of the value of cell k; meaningless for floats."""
    xp = namespace(k)
    centre = k * coordinates.width
    grid, tables = coordinates.log_grid, coordinates.tables
    if grid is not None:
        value = grid.first + grid.spacing * xp.maximum(k, 0.0)
        on_grid = (xp.log(value) - grid.origin) / xp.where(grid.member, grid.scale, 1.0)
        centre = xp.where(grid.member, on_grid, centre)
    if tables is not None:
        listed = (_lookup(tables.values, tables, k) - coordinates.origin) / coordinates.scale
        centre = xp.where(tables.member, listed, centre)
    return centre


def float_values(coordinates: Coordinates, u: Array) -> Array:
    """The floats that latent points stand for, clipped to their bounds; meaningless for discrete ones."""
    xp = namespace(u)
    x = coordinates.origin + coordinates.scale * u
    if coordinates.log is not None:
        held = xp.minimum(x, LARGEST_LOG)
        x = xp.where(coordinates.log, xp.exp(xp.where(coordinates.log, held, 0.0)), x)
    if coordinates.low is not None:
        x = xp.minimum(xp.maximum(x, coordinates.low), coordinates.high)
    return x


def values_at(coordinates: Coordinates, u: Array) -> Array:
    """The values that latent points stand for, all as floats: (..., N) -> (..., N)."""
    xp = namespace(u)
    k = cell_index(coordinates, u)
    of_cells = coordinates.first + coordinates.spacing * k
    if coordinates.tables is not None:
        tables = coordinates.tables
        of_cells = xp.where(tables.member, _lookup(tables.values, tables, k), of_cells)
    return xp.where(coordinates.discrete, of_cells, float_values(coordinates, u))


def _lookup(listing: Array, tables: Tables, k: Array) -> Array:
    """``listing[row, k]`` for every coordinate; entries of coordinates without a table are arbitrary."""
    xp = namespace(k)
    length = listing.shape[-1]
    column = xp.minimum(xp.maximum(k, 0.0), length - 1.0)
    flat = tables.row * length + xp.astype(column, tables.row.dtype)
    return xp.take(xp.reshape(xp.asarray(listing), (-1,)), flat)
