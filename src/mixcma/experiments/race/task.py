"""What all racers are given: a Task to start from, and a Scoreboard that evaluates, counts and calls the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixcma.run.outcome import Outcome

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Objective = Callable[[FloatArray], Outcome | float]

# Added to the violation of an infeasible point for racers that know no constraints (static penalty).
INFEASIBLE = 1e9
# Floats without bounds: how many standard deviations from the mean a racer looks that needs a box.
BOX_REACH = 10.0
# Floats without bounds: random starts lie within so many standard deviations of the mean.
START_REACH = 2.0
_STARTS = 9_1503  # sets the stream of the random starts apart from other uses of a seed


@dataclass(frozen=True)
class Task:
    """Where a racer may search and where it starts; every array is (N,), in the order of the points.

    Parameters
    ----------
    low, high
        Bounds; infinite where a float has none.
    integer
        Which coordinates are whole numbers; those with two values are `binary`.
    mean, std
        Centre and standard deviation of the first candidates.
    budget
        The largest number of evaluations.
    restarts
        Whether to start again after convergence, until the budget is spent.
    target
        The value that is known to be good enough, for racers that take one; None where it is a secret.
    category
        Which coordinates are the place of a choice, from 0 on, and have no order; integers to those who know none.
    """

    low: FloatArray
    high: FloatArray
    integer: BoolArray
    mean: FloatArray
    std: FloatArray
    seed: int
    budget: int
    restarts: bool = False
    target: float | None = None
    category: BoolArray | None = None

    @property
    def dimension(self) -> int:
        return len(self.mean)

    @cached_property
    def binary(self) -> BoolArray:
        two_values: BoolArray = self.high - self.low == 1
        return self.integer & two_values & ~self.categorical

    @cached_property
    def categorical(self) -> BoolArray:
        return np.zeros(self.dimension, dtype=bool) if self.category is None else self.category

    def start(self, run: int) -> FloatArray:
        """The mean of the first run is given; those after it are uniform between the bounds, the same for all."""
        if run == 0:
            return self.mean.copy()
        low = np.where(np.isfinite(self.low), self.low, self.mean - START_REACH * self.std)
        high = np.where(np.isfinite(self.high), self.high, self.mean + START_REACH * self.std)
        return np.random.default_rng((_STARTS, self.seed, run)).uniform(low, high)

    def seed_of(self, run: int) -> int:
        """A seed of 31 bits, not 0 (which means "none" to some packages), for each run."""
        return int(np.random.SeedSequence((self.seed, run)).generate_state(1)[0] >> 1) + 1

    @cached_property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """Finite bounds, for racers that need them."""
        low = np.where(np.isfinite(self.low), self.low, self.mean - BOX_REACH * self.std)
        high = np.where(np.isfinite(self.high), self.high, self.mean + BOX_REACH * self.std)
        return low, high

    def values(self, coordinate: int) -> list[int]:
        """The values of an integer coordinate."""
        return list(range(int(self.low[coordinate]), int(self.high[coordinate]) + 1))


class Over(Exception):
    """The race is over: the budget is spent or the last target hit. Only the Scoreboard raises it."""


class Scoreboard:
    """Evaluates points for a racer: counts them, notes when each target is first hit, and calls the end.

    Parameters
    ----------
    targets
        Values in descending order; a feasible point at or below one hits it.
    stop_at_target
        Whether the last target ends the race; if not, it is seen whether the racer stops by itself.
    """

    def __init__(self, objective: Objective, task: Task, targets: Sequence[float], stop_at_target: bool = True) -> None:
        self._objective = objective
        self._low, self._high, self._integer = task.low, task.high, task.integer
        self._budget = task.budget
        self._targets = targets
        self.stop_at_target = stop_at_target
        self.evaluations = 0
        self.best = math.inf
        self.hits: list[int] = []  # evaluations at which the first, second, ... target was hit

    @property
    def reached(self) -> bool:
        """Whether every target was hit."""
        return len(self.hits) == len(self._targets)

    def __call__(self, point: FloatArray) -> float:
        """The value of a point; infeasible ones are worse than all others, by their violation."""
        outcome = self.outcome(point)
        return outcome.value if outcome.feasible else INFEASIBLE + outcome.violation

    def outcome(self, point: FloatArray) -> Outcome:
        """The value and the constraints of a point."""
        if self.evaluations >= self._budget:
            raise Over
        self._refuse_outside(point)
        self.evaluations += 1
        given = self._objective(point)
        outcome = given if isinstance(given, Outcome) else Outcome(float(given))
        if outcome.feasible:
            self._note(outcome.value)
        if self.reached and self.stop_at_target:
            raise Over
        return outcome

    def _note(self, value: float) -> None:
        self.best = min(self.best, value)
        while not self.reached and value <= self._targets[len(self.hits)]:
            self.hits.append(self.evaluations)

    def _refuse_outside(self, point: FloatArray) -> None:
        """No racer gains by points that the others are not allowed."""
        inside = (self._low <= point) & (point <= self._high)
        if not (inside & ~(self._integer & (point != np.rint(point)))).all():
            raise ValueError(f"a point of the space was expected, but the racer gave {point.tolist()}")
