"""The state of mix, and which of its coordinates are live, open and frozen (docs/mix.md, "Notation")."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mixcma.core.categories import CategoryState
from mixcma.core.coordinates import cell_index
from mixcma.core.mix.best import BestSoFar
from mixcma.core.mix.constants import MixConstants, MutationConstants, mix_constants, mutation_constants
from mixcma.core.namespace import Array, as_column, known_empty, namespace, ndtri
from mixcma.core.setting import CategorySetting

# C is decomposed before floats that are alone have replaced this part of it.
LARGEST_CHANGE_OF_FLOATS = 0.3


class MixState(NamedTuple):
    """See the glossary of `mixcma.core`, and docs/mix.md."""

    m: Array
    sigma: Array
    C: Array
    A: Array
    p_sigma: Array
    p_c: Array
    root: Array
    inverse_root: Array
    eigenvalues: Array
    live: Array  # l: (..., N) 1 for the coordinates of the Gaussian, 0 for frozen integers and for categories
    p: Array  # (..., N) the probability with which each integer last left its cell
    g_idle: Array  # (...) generations since a discrete coordinate last changed for the better
    level: Array  # (...) 1 if the last generation's best was as good as the best before it, up to rounding
    best: BestSoFar
    categories: CategoryState
    is_open: Array  # o: (..., N_cat) 1 or, for a category that is frozen, 0
    generation: Array | int


class Partition(NamedTuple):
    """Which coordinates are live, open and frozen, and the constants that depend on their numbers."""

    constants: MixConstants
    mutation: MutationConstants
    active: Array  # (..., N) bool: live, or an open category
    frozen: Array  # (..., N) bool
    frozen_share: Array  # (..., N) 1 / sqrt(n_F) where it is frozen, else 0
    beyond: Array  # (..., N) 0 where it is frozen, else 2: more than any uniform
    live_integers: Array  # (..., N) bool
    n_active: Array  # (...)
    nothing_frozen: bool  # known to be so; False in compiled code
    no_live_integers: bool  # known to be so
    nothing_discrete_varies: bool  # known to be so: every cell is that of the mean, but for mutations


@dataclass(frozen=True, eq=False)
class MixSetting(CategorySetting):
    """What stays fixed during a run of mix."""

    # for speed, single runs keep the last partition and the last cells of the mean, which seldom change
    _last: list[Any] = field(default_factory=lambda: [None, None, None], init=False, repr=False)
    _last_cells: list[Any] = field(default_factory=lambda: [None, None], init=False, repr=False)

    @cached_property
    def eigen_interval(self) -> int:
        """As often as in the other methods, or as the floats need it once they alone are live."""
        c = MixConstants._make(self._constants[:, int(self.floats.sum()) or self.strategy.dimension])
        return min(super().eigen_interval, max(1, int(LARGEST_CHANGE_OF_FLOATS / c.eta_C)))

    @cached_property
    def floats(self) -> Array:
        """(N,) bool: the coordinates that can never freeze, which are live in every state."""
        return ~self.settles

    @cached_property
    def float_places(self) -> Array:
        """Their indices."""
        return self.floats.nonzero()[0]

    @cached_property
    def precise_places(self) -> Array:
        """Of these the floats themselves; where there are none, integers that are searched as floats."""
        discrete = self.coordinates.discrete[self.float_places]
        return self.float_places if discrete.all() else self.float_places[~discrete]

    @cached_property
    def has_floats(self) -> bool:
        return bool(self.floats.any())

    @cached_property
    def settles(self) -> Array:
        """(N,) bool: the D integers and categories, which can freeze."""
        return self.coordinates.margin | (self.numbers == 0.0)

    @cached_property
    def s_frozen(self) -> Array:
        """(N,) S_j / 2 / -ndtri(alpha): with it, an integer leaves its cell from the centre with 2 alpha. Floats: 1."""
        deviation = self.coordinates.granularity / 2 / -float(ndtri(self.alpha))
        return np.where(self.coordinates.margin, deviation, 1.0)

    def cells_of(self, m: Array) -> Array:
        """The cells of a mean, repeated for every candidate: (..., L, N)."""
        xp, rows = namespace(m), (*m.shape[:-1], self.strategy.popsize, m.shape[-1])
        if not isinstance(m, np.ndarray) or m.ndim > 1:
            return xp.broadcast_to(cell_index(self.coordinates, m)[..., None, :], rows)
        discrete = m[self._first_discrete :].tobytes()
        if self._last_cells[0] != discrete:
            self._last_cells[:] = discrete, np.broadcast_to(cell_index(self.coordinates, m), rows)
        return self._last_cells[1]

    @cached_property
    def _first_discrete(self) -> int:
        return int((~self.coordinates.discrete).sum())

    def partition(self, state: MixState) -> Partition:
        """Which coordinates are live, open and frozen."""
        if not isinstance(state.live, np.ndarray):
            return self._partition(state.live, state.is_open)
        if self._last[0] is not state.live or self._last[1] is not state.is_open:
            self._last[:] = state.live, state.is_open, self._partition(state.live, state.is_open)
        partition: Partition = self._last[2]
        return partition

    def _partition(self, live: Array, is_open: Array) -> Partition:
        xp, N = namespace(live), self.strategy.dimension
        active = xp.concat([live[..., :N], is_open], axis=-1) > 0.0
        frozen, live_integers = self.settles & ~active, self.coordinates.margin & (live > 0.0)
        n, n_F = live.sum(axis=-1), frozen.sum(axis=-1)
        all_settle = bool((self.settles == self.coordinates.discrete).all())
        mutation = MutationConstants._make(_column(self._mutation_constants, n_F))
        return Partition(
            constants=self.constants(n),
            mutation=mutation,
            active=active,
            frozen=frozen,
            beyond=2.0 * ~frozen,
            frozen_share=frozen / as_column(mutation.n_F) ** 0.5,
            live_integers=live_integers,
            n_active=active.sum(axis=-1),
            nothing_frozen=known_empty(frozen),
            no_live_integers=known_empty(live_integers),
            nothing_discrete_varies=known_empty(live_integers) and known_empty(is_open > 0.0) and all_settle,
        )

    def constants(self, n: Array) -> MixConstants:
        """Those while n coordinates (...) are live."""
        return MixConstants._make(_column(self._constants, n))

    @cached_property
    def _constants(self) -> Array:
        return mix_constants(self.strategy, int(self.coordinates.margin.sum()))

    @cached_property
    def _mutation_constants(self) -> Array:
        return mutation_constants(int(self.settles.sum()), self.strategy.popsize)


def _column(table: Array, number: Array) -> Any:
    """The column for each number (...): arrays of that shape, or floats for a single run, which are faster."""
    if isinstance(number, np.number):
        return table[:, int(number)].tolist()
    xp = namespace(number)
    return xp.asarray(table)[:, xp.astype(number, xp.int64)]
