"""The bed ``categories``: half floats, a quarter integers, a quarter categories; one run per case, to 1e-10."""

from __future__ import annotations

import numpy as np

from mixcma.experiments.race.beds.base import Bed, Case, Challenge, Choice, budget_of, wanted
from mixcma.experiments.race.task import FloatArray, Objective, Task

DIMENSIONS = (20, 40)
BUDGET = 10_000  # evaluations per variable
TARGET = 1e-10
LOW, HIGH = -10, 10
_STARTS = 55_05  # keeps the starts and the best choices independent of other uses of the seed

# the number of choices, and the axis ratio of the floats
_PROBLEMS = {"SphereCategories3": (3, 1.0), "SphereCategories5": (5, 1.0), "EllipsoidCategories5": (5, 1000.0)}


def cases(choice: Choice) -> list[Case]:
    return [
        Case("categories", name, dimension, seed)
        for name in wanted(choice, tuple(_PROBLEMS))
        for dimension in choice.dimensions or DIMENSIONS
        for seed in range(choice.seeds)
    ]


def open_case(case: Case, choice: Choice) -> Challenge:
    """Numbers start uniformly in [1, 3], with standard deviation 1; the best choices differ between seeds."""
    choices, ratio = _PROBLEMS[case.problem]
    n, rng = case.dimension, np.random.default_rng((_STARTS, case.instance))
    floats, integers = n // 2, n // 4
    kind = np.repeat([0, 1, 2], [floats, integers, n - floats - integers])
    task = Task(
        low=np.array([-np.inf, LOW, 0.0])[kind],
        high=np.array([np.inf, HIGH, choices - 1.0])[kind],
        integer=kind > 0,
        mean=np.where(kind == 2, (choices - 1) / 2, rng.uniform(1.0, 3.0, n)),
        std=np.ones(n),
        seed=case.instance,
        budget=budget_of(choice, n, BUDGET * n),
        target=TARGET,
        category=kind == 2,
    )
    best = rng.integers(choices, size=n - floats - integers).astype(np.float64)
    return Challenge(task, _objective(ratio ** (np.arange(floats) / (floats - 1)), integers, best), (TARGET,))


def _objective(scale: FloatArray, integers: int, best: FloatArray) -> Objective:
    """sum_j (s_j x_j)^2 + sum_j z_j^2 + the number of categories that are not at their best choice."""
    floats = len(scale)

    def value(point: FloatArray) -> float:
        x, z, c = scale * point[:floats], point[floats : floats + integers], point[floats + integers :]
        return float(x @ x + z @ z + np.sum(c != best))

    return value


BED = Bed("categories", cases, open_case, tuple(_PROBLEMS))
