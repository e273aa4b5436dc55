"""What a bed of the race is: its cases, and how each is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mixcma.experiments.race.task import BoolArray, FloatArray, Objective, Task


@dataclass(frozen=True)
class Case:
    """One problem that every racer meets once: `instance` is the seed, or COCO's instance."""

    bed: str
    problem: str
    dimension: int
    instance: int


@dataclass(frozen=True)
class Challenge:
    """A case, opened: where to start, what to minimise, the values to reach."""

    task: Task
    objective: Objective
    targets: Sequence[float]
    stop_at_target: bool = True


@dataclass(frozen=True)
class Choice:
    """What was asked for; None stands for the bed's own.

    Parameters
    ----------
    budget
        Evaluations a variable.
    spread
        Initial standard deviation as a part of the range, where a bed starts at the centre.
    """

    problems: tuple[str, ...] | None = None
    dimensions: tuple[int, ...] | None = None
    instances: tuple[int, ...] = (1, 2, 3)
    seeds: int = 10
    budget: int | None = None
    spread: float = 1 / 6


@dataclass(frozen=True)
class Bed:
    """A set of cases. `cases` and `open` take what was asked for; `package` is what it needs installed."""

    name: str
    cases: Callable[[Choice], list[Case]]
    open: Callable[[Case, Choice], Challenge]
    problems: tuple[str, ...]
    package: str | None = None


def budget_of(choice: Choice, dimension: int, default: int) -> int:
    return default if choice.budget is None else choice.budget * dimension


def wanted(choice: Choice, problems: Sequence[str]) -> list[str]:
    return [name for name in problems if choice.problems is None or name in choice.problems]


# The smallest initial standard deviation of an integer: with less, a bit would hardly move from where it is.
LEAST_INTEGER_STD = 0.3


def centred(
    low: FloatArray, high: FloatArray, integer: BoolArray, choice: Choice, *, seed: int, budget: int, restarts: bool
) -> Task:
    """A task that starts at the centre of its domain, with standard deviations that are a part of the range."""
    std = choice.spread * (high - low)
    std = np.where(integer, np.maximum(std, LEAST_INTEGER_STD), std)
    return Task(low, high, integer, (low + high) / 2, std, seed=seed, budget=budget, restarts=restarts)
