"""Setting: what stays fixed during a run, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixcma.core.coordinates import Coordinates
from mixcma.core.namespace import Array, namespace, ndtri
from mixcma.core.strategy import CovariancePace, Pace, Strategy, covariance_paces, margin_of, paces


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
    def has_floats(self) -> bool:
        return not self.coordinates.discrete.all()

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

    @cached_property
    def related(self) -> Array | None:
        """(N, N) bool: whether C relates two coordinates, which it does not where one has two values. None if all."""
        if not self._bits.any():
            return None
        return ~(self._bits | self._bits[:, None])

    def pace(self, live: Array) -> Pace:
        """Of the live coordinates (..., N): floats for a single run, else (..., 1) each."""
        return Pace._make(_looked_up(self._paces, live.sum(axis=-1, keepdims=True)))

    def covariance_pace(self, live: Array) -> CovariancePace:
        """Of the live coordinates (..., N), not counting those of two values."""
        related = live @ self._counted  # (..., 1)
        return CovariancePace._make(_looked_up(self._covariance_paces, related))

    @cached_property
    def _bits(self) -> Array:
        return self.coordinates.margin & (self.coordinates.last == 1)

    @cached_property
    def _counted(self) -> Array:
        """(N, 1)."""
        return np.where(self._bits, 0.0, 1.0)[:, None]

    @cached_property
    def _paces(self) -> tuple[Array, list[list[float]]]:
        table = paces(self.strategy, int(self.coordinates.margin.sum()))
        return table, table.T.tolist()

    @cached_property
    def _covariance_paces(self) -> tuple[Array, list[list[float]]]:
        table = covariance_paces(self.strategy, int(self.coordinates.margin.sum()))
        return table, table.T.tolist()


def _looked_up(table: tuple[Array, list[list[float]]], number: Array) -> Iterable[Array | float]:
    """The column of each number (..., 1): floats for a single run, which are faster, else arrays of the same shape."""
    columns, listed = table
    if isinstance(number, np.ndarray) and number.ndim == 1:
        return listed[int(number[0])]
    xp = namespace(number)
    found: Iterable[Array] = xp.asarray(columns)[:, xp.astype(number, xp.int64)]
    return found
