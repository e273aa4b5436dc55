"""Setting: what stays fixed during a run, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mixcma.core.categories import Categories, categories
from mixcma.core.coordinates import Coordinates, cell_index
from mixcma.core.namespace import Array, held, idle, namespace, ndtri, wide
from mixcma.core.state import State
from mixcma.core.strategy import MutationPace, Pace, Strategy, margin_of, mutation_paces, paces


class Live(NamedTuple):
    """What mix knows of the coordinates that are live, open and frozen."""

    pace: Pace
    mutation: MutationPace
    active: Array  # (..., N) bool: live, or an open category
    frozen: Array  # (..., N) bool: to be mutated
    integers: Array  # (..., N) bool: live and discrete
    some_active: Array  # (..., 1) bool
    varying: Array  # (...) how many are active
    live_rows: Array  # (..., L, N) 1 or, for frozen coordinates, 0: the same for every candidate
    none_frozen: bool  # for sure
    no_integers: bool  # for sure
    settled: bool  # for sure: no integer is live, no category open
    frozen_direction: Array  # (..., N) of length 1, along the frozen coordinates
    out_of_reach: Array  # (..., N) 2, or 0 for the frozen coordinates


@dataclass(frozen=True, eq=False)
class Setting:
    """The constants of the strategy and of the coordinates; the properties serve mix and CatCMA with Margin."""

    strategy: Strategy
    coordinates: Coordinates
    _last_given: list[Any] = field(default_factory=lambda: [None, None, None], init=False, repr=False)
    _last_cell: list[Any] = field(default_factory=lambda: [None, None], init=False, repr=False)

    @cached_property
    def alpha(self) -> float:
        """The margin of mix and of CatCMA with Margin."""
        return margin_of(int(self.coordinates.margin.sum()) + len(self.coordinates.choices))

    @cached_property
    def categories(self) -> Categories | None:
        return categories(self.coordinates, self.alpha)

    @cached_property
    def floats(self) -> int:
        """How many there are; they are the first coordinates."""
        return int((~self.coordinates.discrete).sum())

    @cached_property
    def has_floats(self) -> bool:
        return self.floats > 0

    @cached_property
    def all_but_first(self) -> Array:
        """(L, 1): 0, 1, 1, ..."""
        return np.arange(self.strategy.popsize)[:, None].clip(max=1) * 1.0

    @cached_property
    def latent_bounds(self) -> tuple[Array, Array] | None:
        """(L, N) each, the same for every candidate: with one shape a comparison is twice as fast."""
        low, high, rows = self.coordinates.latent_low, self.coordinates.latent_high, np.ones((self.strategy.popsize, 1))
        return None if low is None or high is None else (low * rows, high * rows)

    @cached_property
    def groups(self) -> Array:
        """(N, 2): 1 for floats, for integers. Categories count as floats, and have nothing to add."""
        integers = self.coordinates.margin
        return np.stack([~integers, integers], axis=-1) * 1.0

    @cached_property
    def frozen_deviation(self) -> Array:
        """(N,): with it an integer leaves its cell from the centre with 2 alpha; 1 for floats."""
        deviation = self.coordinates.granularity / 2 / -float(ndtri(self.alpha))
        return np.where(self.coordinates.margin, deviation, 1.0)

    def cell(self, m: Array) -> Array:
        """That of the mean: (..., 1, N). In a single run the last answer is kept, since frozen integers do not move."""
        if not isinstance(m, np.ndarray) or m.ndim > 1:
            return cell_index(self.coordinates, m)[..., None, :]
        last, place = self._last_cell, m[self.floats :].tobytes()
        if last[0] != place:
            last[:] = place, cell_index(self.coordinates, m)[None]
        return last[1]

    def given(self, state: State) -> Live:
        """What depends on the live coordinates. The last answer is kept, since they seldom change."""
        if not isinstance(state.live, np.ndarray):
            return self._given(state.live, state.open)
        last = self._last_given
        if last[0] is not state.live or last[1] is not state.open:
            last[:] = state.live, state.open, self._given(state.live, state.open)
        answer: Live = last[2]
        return answer

    def _given(self, live: Array, open_: Array) -> Live:
        xp, n = namespace(live), self.strategy.dimension
        active = xp.concat([live[..., :n], open_], axis=-1) > 0.0
        frozen, integers = self.settles & ~active, self.coordinates.margin & (live > 0.0)
        varying = active.sum(axis=-1)  # all others are frozen
        mutation = MutationPace._make(_looked_up(self._mutation_paces, active.shape[-1] - varying))
        always = held(1.0 * (varying == 0), mutation.mutates_always, 1.0)
        return Live(
            pace=Pace._make(_looked_up(self._paces, live.sum(axis=-1))),
            mutation=mutation._replace(mutates_always=always),
            active=active,
            frozen=frozen,
            integers=integers,
            some_active=(varying > 0)[..., None],
            varying=varying,
            live_rows=live[..., None, :] * xp.ones((self.strategy.popsize, 1)),
            none_frozen=idle(frozen),
            no_integers=idle(integers),
            settled=idle(integers) and idle(open_ > 0.0),
            frozen_direction=frozen / wide(mutation.root_frozen),
            out_of_reach=2.0 * ~frozen,
        )

    @cached_property
    def settles(self) -> Array:
        """(N,) bool: integers and categories, which can freeze."""
        categories = np.arange(len(self.coordinates.margin)) >= self.strategy.dimension
        return self.coordinates.margin | categories

    @cached_property
    def all_settle(self) -> bool:
        """Whether all that is discrete does."""
        return bool((self.settles == self.coordinates.discrete).all())

    @cached_property
    def _paces(self) -> tuple[Array, list[list[float]]]:
        return _listed(paces(self.strategy, int(self.coordinates.margin.sum())))

    @cached_property
    def _mutation_paces(self) -> tuple[Array, list[list[float]]]:
        return _listed(mutation_paces(int(self.settles.sum()), self.strategy.popsize))


def _listed(table: Array) -> tuple[Array, list[list[float]]]:
    """A table of paces, for batches of runs, and its columns as lists, for single ones."""
    return table, table.T.tolist()


def _looked_up(table: tuple[Array, list[list[float]]], number: Array) -> Iterable[Array | float]:
    """The column of each number (...): floats for a single run, which are faster, else arrays of the same shape."""
    columns, listed = table
    if isinstance(number, np.number):
        return listed[int(number)]
    xp = namespace(number)
    found: Iterable[Array] = xp.asarray(columns)[:, xp.astype(number, xp.int64)]
    return found
