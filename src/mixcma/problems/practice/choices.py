"""Choices: which terms of a regression, which projects, which assets, which rule at every stage of a job shop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mixcma.problems.engineering import Design
from mixcma.problems.practice.grid import TABLES
from mixcma.run.outcome import Outcome
from mixcma.space import Bool, Categorical, Float, Space, Value

REGRESSION = TABLES / "regression.npz"
_MEASURED = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
TERMS = (
    *_MEASURED,
    *(f"{a} x {b}" for a, b in itertools.combinations_with_replacement(_MEASURED, 2) if (a, b) != ("sex", "sex")),
)


@cache
def _sums() -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Products of the terms with each other, (64, 64), and with the target, (64,), over all patients; their number."""
    with np.load(REGRESSION) as file:
        return file["products"], file["target"], int(file["count"])


def regression_terms(params: Mapping[str, Value]) -> float:
    """The Bayesian information criterion of a linear regression with some of 64 terms.

    B. Efron, T. Hastie, I. Johnstone & R. Tibshirani (2004), Least angle regression, Annals of Statistics 32(2):
    407-499: the progress of diabetes in 442 patients, from ten measurements, their products, and the squares of all
    but the sex. ``benchmarks/practice_tables.py`` has made the sums from scikit-learn's copy of the data.

    Best known: -294.8804 with seven terms, where more than half of 3,166 searches from random terms ended that go on
    until no term can be put in, left out or replaced for the better.
    """
    products, target, count = _sums()
    chosen = [k for k, name in enumerate(TERMS) if params[name]]
    some = target[chosen]
    explained = float(some @ np.linalg.solve(products[np.ix_(chosen, chosen)], some)) / count if chosen else 0.0
    return count * math.log(1.0 - explained) + len(chosen) * math.log(count)


# What the projects earn, and what they need of each of ten budgets: the fifth problem of Petersen (1967).
_EARNINGS = (
    *(100, 220, 90, 400, 300, 400, 205, 120, 160, 580, 400, 140, 100, 1300, 650),
    *(320, 480, 80, 60, 2550, 3100, 1100, 950, 450, 300, 220, 200, 520),
)
_NEEDS = np.array(
    [
        [8, 24, 13, 80, 70, 80, 45, 15, 28, 90, 130, 32, 20, 120, 40, 30, 20, 6, 3, 180, 220, 50, 30, 50, 12, 5, 8, 18],
        [
            *(8, 44, 13, 100, 100, 90, 75, 25, 28, 120, 130, 32, 40, 160, 40),
            *(60, 55, 10, 6, 240, 290, 80, 90, 70, 27, 17, 8, 28),
        ],
        [3, 6, 4, 20, 20, 30, 8, 3, 12, 14, 40, 6, 3, 20, 5, 0, 5, 3, 0, 20, 30, 40, 10, 0, 5, 0, 0, 10],
        [5, 9, 6, 40, 30, 40, 16, 5, 18, 24, 60, 16, 11, 30, 25, 10, 13, 5, 1, 80, 60, 50, 20, 30, 10, 5, 3, 20],
        [5, 11, 7, 50, 40, 40, 19, 7, 18, 29, 70, 21, 17, 30, 25, 15, 25, 5, 1, 100, 70, 55, 20, 50, 15, 15, 6, 20],
        [5, 11, 7, 55, 40, 40, 21, 9, 18, 29, 70, 21, 17, 35, 25, 20, 25, 5, 2, 110, 70, 55, 20, 50, 20, 15, 6, 20],
        [0, 0, 1, 10, 4, 10, 0, 6, 0, 6, 32, 3, 0, 70, 10, 0, 0, 0, 0, 0, 30, 10, 0, 10, 10, 5, 0, 10],
        [3, 4, 5, 20, 14, 20, 6, 12, 10, 18, 42, 9, 12, 100, 20, 5, 6, 4, 1, 20, 50, 30, 5, 20, 20, 10, 10, 20],
        [3, 6, 9, 30, 29, 20, 12, 12, 10, 30, 42, 18, 18, 110, 20, 15, 18, 7, 2, 40, 60, 50, 25, 25, 25, 15, 10, 28],
        [3, 8, 9, 35, 29, 20, 16, 15, 10, 30, 42, 20, 18, 120, 20, 20, 22, 7, 3, 50, 60, 55, 25, 30, 25, 15, 10, 28],
    ],
    dtype=np.float64,
)
_BUDGETS = np.array([930, 1210, 272, 462, 532, 572, 240, 400, 470, 490], dtype=np.float64)


def project_selection(params: Mapping[str, Value]) -> Outcome:
    """What the chosen ones of 28 research projects earn, negative since it is to be large.

    C. C. Petersen (1967), Computational experience with variants of the Balas algorithm applied to the selection of
    R&D projects, Management Science 13(9): 736-750, the fifth problem (of ``mknap1`` in the OR-Library of J. E.
    Beasley). Each of ten budgets is a constraint.

    Best known, proven optimal: -12400.
    """
    chosen = np.array([params[f"project_{k}"] for k in range(1, 29)], dtype=np.float64)
    return Outcome(-float(chosen @ _EARNINGS), constraints=tuple((_NEEDS @ chosen / _BUDGETS - 1.0).tolist()))


_RETURNS = (8.0, 9.0, 12.0, 7.0)
_COVARIANCE = ((4.0, 3.0, -1.0, 0.0), (3.0, 6.0, 1.0, 0.0), (-1.0, 1.0, 10.0, 0.0), (0.0, 0.0, 0.0, 0.0))


def portfolio(params: Mapping[str, Value]) -> Outcome:
    """Variance of a portfolio of at most three of four assets that has to return 10 percent.

    A. S. Manne (1986), GAMS/MINOS: three examples, Stanford University (alan in MINLPLib). The weights of what is held
    are divided by their sum; the last asset has no risk.

    Best known, proven optimal: 2.925.
    """
    held = [float(params[f"hold_{i}"]) * params[f"weight_{i}"] for i in range(1, 5)]
    total = sum(held)
    shares = [weight / total if total > 0 else 0.0 for weight in held]
    variance = sum(a * b * _COVARIANCE[i][j] for i, a in enumerate(shares) for j, b in enumerate(shares))
    count = sum(bool(params[f"hold_{i}"]) for i in range(1, 5))
    return Outcome(
        variance,
        constraints=(1.0 - sum(a * r for a, r in zip(shares, _RETURNS)) / 10.0, (count - 3.0) / 3.0),
    )


# The job shop ft10 of Fisher & Thompson (1963): machine and time of every operation, a row per job.
_JOBS = tuple(
    tuple(zip(numbers[::2], numbers[1::2]))
    for numbers in (
        (0, 29, 1, 78, 2, 9, 3, 36, 4, 49, 5, 11, 6, 62, 7, 56, 8, 44, 9, 21),
        (0, 43, 2, 90, 4, 75, 9, 11, 3, 69, 1, 28, 6, 46, 5, 46, 7, 72, 8, 30),
        (1, 91, 0, 85, 3, 39, 2, 74, 8, 90, 5, 10, 7, 12, 6, 89, 9, 45, 4, 33),
        (1, 81, 2, 95, 0, 71, 4, 99, 6, 9, 8, 52, 7, 85, 3, 98, 9, 22, 5, 43),
        (2, 14, 0, 6, 1, 22, 5, 61, 3, 26, 4, 69, 8, 21, 7, 49, 9, 72, 6, 53),
        (2, 84, 1, 2, 5, 52, 3, 95, 8, 48, 9, 72, 0, 47, 6, 65, 4, 6, 7, 25),
        (1, 46, 0, 37, 3, 61, 2, 13, 6, 32, 5, 21, 9, 32, 8, 89, 7, 30, 4, 55),
        (2, 31, 0, 86, 1, 46, 5, 74, 4, 32, 6, 88, 8, 19, 9, 48, 7, 36, 3, 79),
        (0, 76, 1, 69, 3, 76, 5, 51, 2, 85, 9, 11, 6, 40, 7, 89, 4, 26, 8, 74),
        (1, 85, 0, 13, 2, 61, 6, 7, 8, 64, 9, 76, 5, 47, 3, 52, 4, 90, 7, 45),
    )
)
_LEFT = tuple(tuple(sum(time for _, time in job[k:]) for k in range(len(job))) for job in _JOBS)
STAGES = 20
_PER_STAGE = sum(len(job) for job in _JOBS) // STAGES

# The job with the lowest figure goes first: (time of its operation, work left, operations left, when it was ready).
RULES: dict[str, Callable[[int, int, int, int], int]] = {
    "shortest operation": lambda time, work, operations, ready: time,
    "longest operation": lambda time, work, operations, ready: -time,
    "least work left": lambda time, work, operations, ready: work,
    "most work left": lambda time, work, operations, ready: -work,
    "most operations left": lambda time, work, operations, ready: -operations,
    "first come": lambda time, work, operations, ready: ready,
}


def job_shop(params: Mapping[str, Value]) -> float:
    """The time that ten jobs on ten machines take, if a rule for each of 20 stages says which job goes first.

    The jobs are ft10 of H. Fisher & G. L. Thompson (1963), Probabilistic learning combinations of local job-shop
    scheduling rules, in Industrial Scheduling, Prentice-Hall, which also has the idea of changing rules. Schedules are
    made as by B. Giffler & G. L. Thompson (1960), Algorithms for solving production-scheduling problems, Operations
    Research 8(4): 487-503: of the operations that could end first, the one whose job the rule prefers. A rule holds for
    five operations in a row.

    Best known: 1005, from 300,000 evaluations of simulated annealing; no schedule at all takes less than 930.
    """
    rules = [RULES[params[f"stage_{s}"]] for s in range(1, STAGES + 1)]
    free, ready, done = [0] * 10, [0] * 10, [0] * 10  # when each machine is free, each job ready; its operations done
    waiting = set(range(10))
    for turn in range(STAGES * _PER_STAGE):
        starts = {j: max(ready[j], free[_JOBS[j][done[j]][0]]) for j in waiting}
        first, leader = min((starts[j] + _JOBS[j][done[j]][1], j) for j in waiting)
        machine, rule = _JOBS[leader][done[leader]][0], rules[turn // _PER_STAGE]
        rivals = (j for j in waiting if _JOBS[j][done[j]][0] == machine and starts[j] < first)
        _, job = min((rule(_JOBS[j][done[j]][1], _LEFT[j][done[j]], 10 - done[j], ready[j]), j) for j in rivals)
        free[machine] = ready[job] = starts[job] + _JOBS[job][done[job]][1]
        done[job] += 1
        if done[job] == len(_JOBS[job]):
            waiting.remove(job)
    return float(max(ready))


_BEST_TERMS = ("sex", "bmi", "bp", "s3", "s5", "age x sex", "bmi x bp")
_LEFT_OUT = (4, 5, 6, 7, 8, 10, 11, 12, 13, 24)
_BEST_RULES = (
    *("least work left", "least work left", "least work left", "most work left", "least work left", "least work left"),
    *("most operations left", "longest operation", "shortest operation", "longest operation", "first come"),
    *("shortest operation", "most work left", "shortest operation", "longest operation", "first come"),
    *("most work left", "first come", "first come", "first come"),
)

CHOICES = (
    Design(
        name="regression_terms",
        space=Space({name: Bool() for name in TERMS}),
        evaluate=regression_terms,
        best_known=-294.88043411273713,
        best_params={name: name in _BEST_TERMS for name in TERMS},
        source="Efron, Hastie, Johnstone & Tibshirani (2004), Annals of Statistics 32(2): 407-499",
        typical=-162.13,
    ),
    Design(
        name="project_selection",
        space=Space({f"project_{k}": Bool() for k in range(1, 29)}),
        evaluate=project_selection,
        best_known=-12400.0,
        best_params={f"project_{k}": k not in _LEFT_OUT for k in range(1, 29)},
        source="Petersen (1967), Management Science 13(9): 736-750",
        typical=-9973.4,
    ),
    Design(
        name="portfolio",
        space=Space({f"weight_{i}": Float(0.0, 1.0) for i in range(1, 5)} | {f"hold_{i}": Bool() for i in range(1, 5)}),
        evaluate=portfolio,
        best_known=2.925000000002221,
        best_params={
            "weight_1": 0.65928350187,
            "weight_2": 0.9539,
            "weight_3": 0.9229969762,
            "weight_4": 0.175808982886,
            "hold_1": True,
            "hold_2": False,
            "hold_3": True,
            "hold_4": True,
        },
        source="Manne (1986), GAMS/MINOS: three examples, Stanford University",
        typical=3.2149,
    ),
    Design(
        name="job_shop",
        space=Space({f"stage_{s}": Categorical(list(RULES)) for s in range(1, STAGES + 1)}),
        evaluate=job_shop,
        best_known=1005.0,
        best_params={f"stage_{s}": rule for s, rule in enumerate(_BEST_RULES, start=1)},
        source="Fisher & Thompson (1963), Industrial Scheduling, Prentice-Hall",
        typical=1188,
    ),
)
