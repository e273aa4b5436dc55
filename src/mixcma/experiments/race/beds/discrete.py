"""The bed ``discrete``: no continuous variables; one run per case, to see whether it stops by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixcma.experiments.race.beds.base import Bed, Case, Challenge, Choice, budget_of, wanted
from mixcma.experiments.race.beds.designs import open_design
from mixcma.experiments.race.task import FloatArray, Objective, Task
from mixcma.problems import DESIGNS

BUDGET = 20_000
_STARTS = 40_40  # keeps the initial means independent of other uses of the seed


def one_max(bits: FloatArray) -> float:
    """The number of zero bits."""
    return len(bits) - float(np.sum(bits))


def leading_ones(bits: FloatArray) -> float:
    """The number of bits from the first zero on."""
    return len(bits) - float(np.sum(np.cumprod(bits)))


def integer_sphere(z: FloatArray) -> float:
    return float(z @ z)


def cases(choice: Choice) -> list[Case]:
    return [
        Case("discrete", name, _DIMENSIONS[name], seed)
        for name in wanted(choice, tuple(_DIMENSIONS))
        for seed in range(choice.seeds)
    ]


def open_case(case: Case, choice: Choice) -> Challenge:
    if case.problem == "gear_train":
        challenge = open_design(DESIGNS["gear_train"], case, choice, restarts=False)
    else:
        task = _task(case, budget_of(choice, case.dimension, BUDGET))
        challenge = Challenge(task, _OBJECTIVES[case.problem], (0.0,))
    return replace(challenge, stop_at_target=False)


def _task(case: Case, budget: int) -> Task:
    """The starts are those of the paper: bits at 0.5, integers uniform in [1, 3], standard deviation 1."""
    n, bits = case.dimension, case.problem != "IntegerSphere"
    uniform = np.random.default_rng((_STARTS, case.instance)).uniform(1.0, 3.0, n)
    return Task(
        low=np.full(n, 0.0 if bits else -10.0),
        high=np.full(n, 1.0 if bits else 10.0),
        integer=np.ones(n, dtype=bool),
        mean=np.full(n, 0.5) if bits else uniform,
        std=np.ones(n),
        seed=case.instance,
        budget=budget,
    )


_OBJECTIVES: dict[str, Objective] = {
    "OneMax": one_max,
    "LeadingOnes": leading_ones,
    "IntegerSphere": integer_sphere,
}
_DIMENSIONS = {"OneMax": 40, "LeadingOnes": 40, "IntegerSphere": 20, "gear_train": 4}
BED = Bed("discrete", cases, open_case, tuple(_DIMENSIONS))
