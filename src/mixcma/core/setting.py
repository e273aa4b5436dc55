"""Setting: what stays fixed during a run, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixcma.core.coordinates import Coordinates
from mixcma.core.namespace import Array, namespace, ndtri
from mixcma.core.strategy import Paces, Strategy, margin_of, paces


@dataclass(frozen=True, eq=False)
class Setting:
    """The constants of the strategy and of the coordinates; the properties are mix's."""

    strategy: Strategy
    coordinates: Coordinates

    @cached_property
    def alpha(self) -> float:
        """The margin of mix."""
        return margin_of(int(self.coordinates.margin.sum()))

    @cached_property
    def groups(self) -> Array:
        """(N, 3): 1 for all, for floats, for integers."""
        integers = self.coordinates.margin
        return np.stack([np.ones_like(integers), ~integers, integers], axis=-1) * 1.0

    @cached_property
    def frozen_deviation(self) -> Array:
        """(N,): with it an integer leaves its cell from the centre with 2 alpha; 1 for floats."""
        deviation = self.coordinates.granularity / 2 / -float(ndtri(self.alpha))
        return np.where(self.coordinates.margin, deviation, 1.0)

    def pace(self, live: Array) -> Paces:
        """Of the live coordinates (..., N): floats for a single run, else (..., 1) each."""
        if isinstance(live, np.ndarray) and live.ndim == 1:
            return self._paces[int(live.sum())]
        xp = namespace(live)
        n = xp.astype(live.sum(axis=-1, keepdims=True), xp.int64)
        return Paces._make(xp.asarray(self._table)[:, n])

    @cached_property
    def _table(self) -> Array:
        return paces(self.strategy, int(self.coordinates.margin.sum()))

    @cached_property
    def _paces(self) -> list[Paces]:
        return [Paces._make(column) for column in self._table.T.tolist()]
