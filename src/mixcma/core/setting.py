"""Setting: what stays fixed during a run, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mixcma.core.categories import Categories, categories
from mixcma.core.coordinates import Coordinates
from mixcma.core.namespace import Array, idle, namespace, ndtri
from mixcma.core.strategy import CovariancePace, Pace, Strategy, covariance_paces, margin_of, paces


class Live(NamedTuple):
    """What mix knows of the live coordinates."""

    pace: Pace
    rates: CovariancePace  # of those that C relates, bits not counted
    is_live: Array  # (..., N) bool
    integers: Array  # (..., N) bool: live and discrete
    some_live: Array  # (..., 1) bool
    all_live: bool  # for sure
    no_integers: bool  # for sure
    frozen_direction: Array  # (..., N) of length 1, along the frozen coordinates


@dataclass(frozen=True, eq=False)
class Setting:
    """The constants of the strategy and of the coordinates; the properties are mix's."""

    strategy: Strategy
    coordinates: Coordinates
    _last_given: list[Any] = field(default_factory=lambda: [None, None], init=False, repr=False)

    @cached_property
    def alpha(self) -> float:
        """The margin of mix and of CatCMA with Margin."""
        return margin_of(int(self.coordinates.margin.sum()) + len(self.coordinates.choices))

    @cached_property
    def categories(self) -> Categories | None:
        return categories(self.coordinates, self.alpha)

    @cached_property
    def has_floats(self) -> bool:
        return not self.coordinates.discrete.all()

    @cached_property
    def all_but_first(self) -> Array:
        """(L, 1): 0, 1, 1, ..."""
        return np.arange(self.strategy.popsize)[:, None].clip(max=1) * 1.0

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

    def given(self, live: Array) -> Live:
        """What depends on the live coordinates (..., N). The last answer is kept, since they seldom change."""
        if not isinstance(live, np.ndarray):
            return self._given(live)
        if self._last_given[0] is not live:
            self._last_given[:] = live, self._given(live)
        answer: Live = self._last_given[1]
        return answer

    def _given(self, live: Array) -> Live:
        pace = Pace._make(_looked_up(self._paces, live.sum(axis=-1, keepdims=True)))
        is_live = live > 0.0
        integers = self.coordinates.margin & is_live
        return Live(
            pace=pace,
            rates=CovariancePace._make(_looked_up(self._covariance_paces, live @ self._counted)),
            is_live=is_live,
            integers=integers,
            some_live=is_live.any(axis=-1, keepdims=True),
            all_live=idle(~is_live),
            no_integers=idle(integers),
            frozen_direction=(1.0 - live) / pace.root_frozen,
        )

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
