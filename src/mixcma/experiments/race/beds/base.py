"""A test bed of the race: its cases, and how each case is set up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mixcma.experiments.race.task import BoolArray, FloatArray, Objective, Task


@dataclass(frozen=True)
class Case:
    """One problem that every racer gets once; `instance` is the seed, or COCO's instance."""

    bed: str
    problem: str
    dimension: int
    instance: int


@dataclass(frozen=True)
class Challenge:
    """A case that is set up: the task, the objective, and the values to reach."""

    task: Task
    objective: Objective
    targets: Sequence[float]
    stop_at_target: bool = True


@dataclass(frozen=True)
class Choice:
    """What the user asked for; None stands for the default of the bed.

    Parameters
    ----------
    budget
        Evaluations per variable; on the beds ``practice`` and ``branches``, those of a run.
    spread
        The initial standard deviation as a fraction of the range, on beds that start at the centre.
    """

    problems: tuple[str, ...] | None = None
    dimensions: tuple[int, ...] | None = None
    instances: tuple[int, ...] = (1, 2, 3)
    seeds: int = 10
    budget: int | None = None
    spread: float = 1 / 6


@dataclass(frozen=True)
class Bed:
    """A set of cases. `cases` and `open` are given the user's choice; `package` is what must be installed."""

    name: str
    cases: Callable[[Choice], list[Case]]
    open: Callable[[Case, Choice], Challenge]
    problems: tuple[str, ...]
    package: str | None = None


def budget_of(choice: Choice, dimension: int, default: int) -> int:
    return default if choice.budget is None else choice.budget * dimension


def wanted(choice: Choice, problems: Sequence[str]) -> list[str]:
    return [name for name in problems if choice.problems is None or name in choice.problems]


# The smallest initial standard deviation of an integer: with a smaller one a bit would hardly ever change.
LEAST_INTEGER_STD = 0.3


def centred(
    low: FloatArray, high: FloatArray, integer: BoolArray, choice: Choice, *, seed: int, budget: int, restarts: bool
) -> Task:
    """A task that starts at the centre of its domain, with standard deviations that are a fraction of the range."""
    std = choice.spread * (high - low)
    std = np.where(integer, np.maximum(std, LEAST_INTEGER_STD), std)
    return Task(low, high, integer, (low + high) / 2, std, seed=seed, budget=budget, restarts=restarts)
