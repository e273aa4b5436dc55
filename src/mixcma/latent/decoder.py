"""Floats and cells -> parameters: dicts of true Python values."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mixcma.core.namespace import known_repeated
from mixcma.latent.axis import Axis
from mixcma.space import Bool, Float, Int, Params, Space, Value, Variable

FloatArray = NDArray[np.float64]


class Decoder:
    """Floats and cell indices -> dicts of true Python values, in the order of the space.

    Each kind of variable is a block of columns that is converted at once.
    """

    def __init__(self, space: Space, names: Sequence[str], axes: Sequence[Axis]) -> None:
        blocks = [_block(space[name], line) for name, line in zip(names, axes)]
        ends = np.cumsum([0] + [blocks.count(block) for block in ("float", "int", "bool", "listed")]).tolist()
        self._floats, self._ints, self._bools, self._listed = (
            slice(start, end) for start, end in itertools.pairwise(ends)
        )
        integers = axes[self._ints]
        self._first = np.array([int(a.first) for a in integers], dtype=np.int64)
        self._spacing = np.array([int(a.spacing) for a in integers], dtype=np.int64)
        self._spaced = bool((self._spacing != 1).any())
        self._last = np.array([a.cells - 1 for a in integers], dtype=np.int64)
        self._beyond_floats = bool((self._last > 2**53).any())
        self._present = [start < end for start, end in itertools.pairwise(ends)]
        self._values = [space[name].listed for name in names[self._listed]]
        self._names, self._float_names, self._cell_names = names, names[self._floats], names[self._floats.stop :]
        # faster to copy and fill than dicts that grow, and in order
        self._blank: Params = {**dict.fromkeys(space.names, 0), **space.constants}
        self._shared: tuple[FloatArray | None, Params] = None, self._blank
        self._space = space

    def __call__(self, floats: FloatArray, k: FloatArray) -> list[Params]:
        """(L, N), (L, N) -> L dicts."""
        rows: list[list[Value]] = floats[:, self._floats].tolist()
        if known_repeated(k):  # for speed: one row of cells is decoded once
            names, blank = self._float_names, self._with_cells(k)
        else:
            names, blank, rows = self._names, self._blank, _joined(rows, self._of_cells(k))
        params = [blank.copy() for _ in rows]
        for each, row in zip(params, rows):
            each.update(zip(names, row))
        return list(map(self._space.active, params)) if self._space.conditions else params

    def _with_cells(self, k: FloatArray) -> Params:
        """A blank with the values of cells whose rows are all the same; the last one is kept, since it comes again."""
        if self._shared[0] is not k:
            self._shared = k, {**self._blank, **dict(zip(self._cell_names, self._of_cells(k[:1])[0]))}
        return self._shared[1]

    def _of_cells(self, k: FloatArray) -> list[list[Value]]:
        """The values of the variables that are no floats, a row for each row of cells."""
        _, ints, bools, listed = self._present
        rows: list[list[Value]] = [[] for _ in k]
        if ints:
            index = k[:, self._ints].astype(np.int64)
            if self._beyond_floats:  # where the last index is not exact as a float
                index = np.minimum(index, self._last)
            rows = (self._first + (self._spacing * index if self._spaced else index)).tolist()
        if bools:
            rows = _joined(rows, (k[:, self._bools] > 0.5).tolist())
        if listed:
            indices = k[:, self._listed].astype(np.int64).tolist()
            rows = _joined(rows, [[z[i] for z, i in zip(self._values, row)] for row in indices])
        return rows


def _block(variable: Variable, line: Axis) -> str:
    """How the values of a column are found: "listed" by the index of their cell."""
    if line.category:
        return "listed"
    if isinstance(variable, Bool):
        return "bool"
    return "float" if isinstance(variable, Float) else "int" if isinstance(variable, Int) else "listed"


def _joined(left: list[list[Value]], right: list[list[Value]]) -> list[list[Value]]:
    return list(map(operator.add, left, right))
