"""The bed ``practice``: problems as they come up in practice, with few evaluations, and how far each racer gets.

The regret of a value is its distance to the best known one, in units of what chance finds: 1 is the median of the best
of 20 random feasible points. Targets are regrets from 1 to 1e-4, so the regret at any number of evaluations can be read
from the targets hit by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mixcma.experiments.race.beds.base import Bed, Case, Challenge, Choice, wanted
from mixcma.experiments.race.beds.designs import open_design
from mixcma.problems.practice import PRACTICE

CHECKPOINTS = (50, 100, 200, 500, 1000, 2000)
BUDGET = 1000
REGRETS = 10.0 ** -np.linspace(0.0, 4.0, 101)


def cases(choice: Choice) -> list[Case]:
    return [
        Case("practice", name, len(PRACTICE[name].space), seed)
        for name in wanted(choice, tuple(PRACTICE))
        for seed in range(choice.seeds)
    ]


def open_case(case: Case, choice: Choice) -> Challenge:
    """Nobody is told the best known value; the race ends at a regret of 1e-4. The user's budget is that of a run."""
    design = PRACTICE[case.problem]
    assert design.typical is not None
    challenge = open_design(design, case, choice, restarts=True)
    budget = BUDGET if choice.budget is None else choice.budget
    targets = design.best_known + REGRETS * (design.typical - design.best_known)
    return replace(challenge, task=replace(challenge.task, budget=budget), targets=tuple(targets.tolist()))


def regret_at(hits: Sequence[int], evaluations: int) -> float:
    """The regret after so many evaluations: that of the last target hit by then; 1 if none was, and at most 1."""
    count = sum(hit <= evaluations for hit in hits)
    return float(REGRETS[max(count - 1, 0)])


BED = Bed("practice", cases, open_case, tuple(PRACTICE))
