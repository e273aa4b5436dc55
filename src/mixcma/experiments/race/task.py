"""What every racer is given: a Task, and a Scoreboard that evaluates points, counts them, and ends the race."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.run.outcome import Outcome

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Objective = Callable[[FloatArray], Outcome | float]

# Added to the violation of an infeasible point, for racers that cannot handle constraints (a static penalty).
INFEASIBLE = 1e9
# Racers that need bounds search a float without bounds within this many standard deviations of the mean.
BOX_REACH = 10.0
# Random starts of a float without bounds lie within this many standard deviations of the mean.
START_REACH = 2.0
_STARTS = 9_1503  # keeps the random starts independent of other uses of the seed


class Condition(NamedTuple):
    """A coordinate exists only where another one has one of these values."""

    child: int
    parent: int
    values: tuple[float, ...]


@dataclass(frozen=True)
class Task:
    """Where a racer may search and where it starts. Every array is (N,), in the order of the coordinates.

    Parameters
    ----------
    low, high
        The bounds; infinite where a float has none.
    integer
        Which coordinates are integers; those with two values are `binary`.
    mean, std
        The centre and the standard deviations of the first candidates.
    budget
        The largest number of evaluations.
    restarts
        Whether to start again after convergence, until the budget is spent.
    target
        The value to reach, for racers that accept a target; None if they are not to know it.
    category
        Which coordinates are the index of a choice, from 0 on, without an order. Racers that cannot handle
        categories treat them as integers.
    conditions
        Which coordinates exist only where others have certain values. Elsewhere they make no difference, so racers
        that cannot handle conditions may ignore them.
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
    conditions: tuple[Condition, ...] = ()

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
        """The start of a run: the mean for the first run, then uniform random points; the same for all racers."""
        if run == 0:
            return self.mean.copy()
        low = np.where(np.isfinite(self.low), self.low, self.mean - START_REACH * self.std)
        high = np.where(np.isfinite(self.high), self.high, self.mean + START_REACH * self.std)
        return np.random.default_rng((_STARTS, self.seed, run)).uniform(low, high)

    def seed_of(self, run: int) -> int:
        """The seed of a run: 31 bits, and not 0, which means "no seed" to some packages."""
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


def asked_for(task: Task, ask: Callable[[int], float]) -> FloatArray:
    """The point that `ask` gives a coordinate at a time, parents first; those that do not exist are at their start."""
    point = np.clip(task.start(0), *task.box)
    point = np.where(task.integer, np.rint(point), point)
    waiting, exists = list(range(task.dimension)), set[int]()
    while waiting:
        j = next(j for j in waiting if not any(c.parent in waiting for c in task.conditions if c.child == j))
        waiting.remove(j)
        own = [c for c in task.conditions if c.child == j]
        if all(c.parent in exists and point[c.parent] in c.values for c in own):
            exists.add(j)
            point[j] = ask(j)
    return point


class Over(Exception):
    """The race is over: the budget is spent, or the last target was hit. Only the Scoreboard raises this."""


class Scoreboard:
    """Evaluates points for a racer, counts them, notes when each target is first hit, and ends the race.

    Parameters
    ----------
    targets
        Values in descending order; a feasible point at or below one hits it.
    stop_at_target
        Whether the race ends when the last target is hit. If not, it shows whether the racer stops by itself.
    """

    def __init__(self, objective: Objective, task: Task, targets: Sequence[float], stop_at_target: bool = True) -> None:
        self._objective = objective
        self._low, self._high, self._integer = task.low, task.high, task.integer
        self._budget = task.budget
        self._targets = targets
        self.stop_at_target = stop_at_target
        self.evaluations = 0
        self.best = math.inf
        self.hits: list[int] = []  # the evaluations at which the first, second, ... target was hit

    @property
    def reached(self) -> bool:
        """Whether every target was hit."""
        return len(self.hits) == len(self._targets)

    def __call__(self, point: FloatArray) -> float:
        """The value of a point. Infeasible points are worse than all feasible ones, by their violation."""
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
        """Refuse points outside the space, so that no racer has an advantage."""
        inside = (self._low <= point) & (point <= self._high)
        if not (inside & ~(self._integer & (point != np.rint(point)))).all():
            raise ValueError(
                f"expected a point of the space, but the racer proposed {point.tolist()}; clip and round its points"
            )
