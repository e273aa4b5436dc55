"""The bed ``bbob-mixint``: COCO's suite of 24 mixed-integer functions, with restarts, to 51 targets."""

from __future__ import annotations

import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np

from mixcma.experiments.race.beds.base import Bed, Case, Challenge, Choice, budget_of, centred, wanted

DIMENSIONS = (5, 10, 20, 40)
LARGE_DIMENSIONS = (80, 160)
KNOWN_DIMENSIONS = (*DIMENSIONS, *LARGE_DIMENSIONS)
# Evaluations per variable.
BUDGET = 1000
BUDGET_OF_LARGE = 200
FUNCTIONS = tuple(f"f{number}" for number in range(1, 25))
PRECISIONS = np.logspace(2, -8, 51)  # f - f_opt

# COCO's groups (separable, moderately conditioned, ill-conditioned, multi-modal, multi-modal with weak structure), each
# with the number of its last function.
GROUPS = {"f1-5": 5, "f6-9": 9, "f10-14": 14, "f15-19": 19, "f20-24": 24}


def group_of(function: str) -> str:
    number = int(function[1:])
    return next(group for group, last in GROUPS.items() if number <= last)


def cases(choice: Choice) -> list[Case]:
    """One case per instance."""
    dimensions = choice.dimensions or DIMENSIONS
    for dimension in dimensions:
        if dimension not in KNOWN_DIMENSIONS:
            known = ", ".join(map(str, KNOWN_DIMENSIONS))
            raise ValueError(f"dimensions of bbob-mixint: expected some of {known}, but got {dimension}; choose others")
    return [
        Case("bbob-mixint", function, dimension, instance)
        for dimension in dimensions
        for function in wanted(choice, FUNCTIONS)
        for instance in choice.instances
    ]


def open_case(case: Case, choice: Choice) -> Challenge:
    """The first `number_of_integer_variables` coordinates are integers."""
    posed = _problem(case)
    task = centred(
        posed.lower_bounds,
        posed.upper_bounds,
        np.arange(case.dimension) < posed.number_of_integer_variables,
        choice,
        seed=case.instance,
        budget=budget_of(choice, case.dimension, default_budget(case.dimension)),
        restarts=True,
    )
    return Challenge(task, posed, (_optimum(posed) + PRECISIONS).tolist())


def default_budget(dimension: int) -> int:
    return dimension * (BUDGET_OF_LARGE if dimension in LARGE_DIMENSIONS else BUDGET)


def _problem(case: Case) -> Any:
    import cocoex

    number = int(case.problem[1:])
    options = f"dimensions:{case.dimension} function_indices:{number}"
    suite = cocoex.Suite("bbob-mixint", f"instances:{case.instance}", options)
    return suite.get_problem_by_function_dimension_instance(number, case.dimension, case.instance)


def _optimum(posed: Any) -> float:
    """f_opt. COCO reveals the optimum only by writing it to a hidden file in the current folder."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        posed._best_parameter("print")
        (written,) = Path(folder).iterdir()
        return float(posed(np.loadtxt(written)))


BED = Bed("bbob-mixint", cases, open_case, FUNCTIONS, package="coco-experiment")
