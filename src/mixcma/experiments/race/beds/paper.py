"""The bed ``paper``: the functions of the paper and related ones; one run per case, to 1e-10."""

from __future__ import annotations

import numpy as np

from mixcma.experiments.race.beds.base import Bed, Case, Challenge, Choice, budget_of, wanted
from mixcma.experiments.race.task import Task
from mixcma.problems.paper import PROBLEMS, Problem, coupled, problem, rotated
from mixcma.space import Bool, Int

DIMENSIONS = (20, 40)
BUDGET = 10_000  # evaluations per variable, as in Section 5.2

NAMES = (*PROBLEMS, *(f"Rotated{name}" for name in PROBLEMS if "Ellipsoid" in name), "Coupled")


def posed_problem(name: str, dimension: int, seed: int) -> Problem:
    """The problem of this name; each seed has its own rotation."""
    if name == "Coupled":
        return coupled(dimension)
    straight = name.removeprefix("Rotated")
    return problem(name, dimension) if straight == name else rotated(problem(straight, dimension), seed)


def cases(choice: Choice) -> list[Case]:
    return [
        Case("paper", name, dimension, seed)
        for name in wanted(choice, NAMES)
        for dimension in choice.dimensions or DIMENSIONS
        for seed in range(choice.seeds)
    ]


def open_case(case: Case, choice: Choice) -> Challenge:
    posed = posed_problem(case.problem, case.dimension, case.instance)
    budget = budget_of(choice, case.dimension, BUDGET * case.dimension)
    return Challenge(task_of(posed, case.instance, budget), posed.function, (posed.success,))


def task_of(posed: Problem, seed: int, budget: int) -> Task:
    """The task of a problem, with starts and standard deviations as in Section 5.1; floats have no bounds."""
    variables = list(posed.space.values())
    integers = [isinstance(variable, Bool | Int) for variable in variables]
    bounds = [_bounds(variable) for variable in variables]
    return Task(
        low=np.array([low for low, _ in bounds]),
        high=np.array([high for _, high in bounds]),
        integer=np.array(integers),
        mean=np.array(list(posed.start(seed).values())),
        std=np.array([1.0 if variable.std is None else variable.std for variable in variables]),
        seed=seed,
        budget=budget,
        target=posed.success,
    )


def _bounds(variable: object) -> tuple[float, float]:
    if isinstance(variable, Int):
        return variable.low, variable.high
    return (0.0, 1.0) if isinstance(variable, Bool) else (-np.inf, np.inf)


BED = Bed("paper", cases, open_case, NAMES)
