"""Setting: what stays fixed during a run of any method. Methods that need more derive from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixcma.core.categories import Categories, categories_of, margin_of
from mixcma.core.coordinates import Coordinates
from mixcma.core.namespace import Array
from mixcma.core.strategy import Strategy, strategy

# C is decomposed again once the updates since the last time have replaced this part of it: at N = 20, 40 and 60
# every 3, 11 and 23 generations. Compared with every generation, that costs one or two percent more evaluations.
LARGEST_CHANGE = 0.05


@dataclass(frozen=True, eq=False)
class Setting:
    """The strategy's constants, and what each latent coordinate means."""

    strategy: Strategy
    coordinates: Coordinates

    @cached_property
    def eigen_interval(self) -> int:
        """Generations between eigendecompositions."""
        return max(1, int(LARGEST_CHANGE / (self.strategy.c_1 + self.strategy.c_mu)))

    @cached_property
    def latent_bounds(self) -> tuple[Array, Array] | None:
        """(L, N) each, repeated for every candidate: arrays of one shape are compared twice as fast."""
        low, high, rows = self.coordinates.latent_low, self.coordinates.latent_high, np.ones((self.strategy.popsize, 1))
        return None if low is None or high is None else (low * rows, high * rows)


@dataclass(frozen=True, eq=False)
class CategorySetting(Setting):
    """What CatCMA with Margin and mix know as well: the margin of integers and categories."""

    @cached_property
    def alpha(self) -> float:
        """The margin: 1 - 0.73^(1 / D), for D integers and categories."""
        return margin_of(int(self.coordinates.margin.sum()) + len(self.coordinates.choices))

    @cached_property
    def categories(self) -> Categories:
        return categories_of(self.coordinates, self.alpha)

    @cached_property
    def numbers(self) -> Array:
        """(N,): 1 for numbers, 0 for categories."""
        return 1.0 * (np.arange(len(self.coordinates.last)) < self.strategy.dimension)


def strategy_of(coordinates: Coordinates, popsize: int | None) -> Strategy:
    """Table 1 for these coordinates; categories are no part of N, but count for the population size."""
    categories = len(coordinates.choices)
    return strategy(len(coordinates.discrete) - categories, popsize, categories=categories)
