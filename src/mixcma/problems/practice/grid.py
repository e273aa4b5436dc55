"""A function known at the points of a grid: between them it is interpolated, one category or several at a time."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mixcma.space import Categorical, Float, Int, Space, Value, Variable

TABLES = Path(__file__).parent / "tables"
Axis = Sequence[Value]


@dataclass(frozen=True)
class Grid:
    """Measurements at all combinations of some values of each variable, in a file of this package.

    Between them the value is linear in each number (in its logarithm, for those with ``log=True``), so no value is
    below the lowest measurement.

    Parameters
    ----------
    name
        The table is ``tables/<name>.npz``; its array has one axis per variable, in the order of `axes`.
    axes
        For each variable the values at which was measured: all choices of a category, ascending numbers otherwise.
    """

    name: str
    axes: Mapping[str, Axis]

    @property
    def space(self) -> Space:
        """The variables, from the first to the last value of each."""
        return Space({name: _variable(axis) for name, axis in self.axes.items()})

    @property
    def path(self) -> Path:
        return TABLES / f"{self.name}.npz"

    def __call__(self, params: Mapping[str, Value]) -> float:
        table = _table(self.path)
        for name, axis in self.axes.items():
            table = _reduced(table, axis, params[name])
        return float(table)

    def best(self) -> tuple[dict[str, Value], float]:
        """The lowest measurement, and where it is."""
        table = _table(self.path)
        place = np.unravel_index(int(table.argmin()), table.shape)
        return {name: axis[int(i)] for (name, axis), i in zip(self.axes.items(), place)}, float(table.min())


def is_log(axis: Axis) -> bool:
    """Floats over more than two powers of ten are on a logarithmic scale."""
    return isinstance(axis[0], float) and axis[0] > 0 and axis[-1] / axis[0] > 100


def _variable(axis: Axis) -> Variable:
    if isinstance(axis[0], str):
        return Categorical(list(axis))
    if isinstance(axis[0], int):
        return Int(axis[0], axis[-1])
    return Float(axis[0], axis[-1], log=is_log(axis))


def _reduced(table: NDArray[np.float64], axis: Axis, value: Value) -> NDArray[np.float64]:
    """The table without its first axis, at a value of the variable there."""
    if isinstance(axis[0], str):
        return np.asarray(table[axis.index(value)])
    i = min(max(bisect_right(axis, value) - 1, 0), len(axis) - 2)
    low, high, at = (math.log(x) for x in (axis[i], axis[i + 1], value)) if is_log(axis) else (*axis[i : i + 2], value)
    share = (at - low) / (high - low)
    return np.asarray((1 - share) * table[i] + share * table[i + 1])


@cache
def _table(path: Path) -> NDArray[np.float64]:
    with np.load(path) as file:
        return np.asarray(file["values"], dtype=np.float64)
