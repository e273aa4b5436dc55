"""The bed ``practice``: problems as they come up in practice, with few evaluations, and how far each racer gets.

The regret of a value is its distance to the best known one, in units of what chance finds: 1 is the median of the best
of 20 random feasible points. Targets are regrets from 1 to 1e-4, so the regret at any number of evaluations can be read
from the targets hit by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mixcma.experiments.race.beds.base import Bed, Case, Challenge, Choice, wanted
from mixcma.experiments.race.beds.designs import open_design
from mixcma.problems.engineering import Design
from mixcma.problems.practice import PRACTICE

CHECKPOINTS = (50, 100, 200, 500, 1000, 2000)
BUDGET = 1000
REGRETS = 10.0 ** -np.linspace(0.0, 4.0, 101)


def bed_of(bed: str, designs: Mapping[str, Design], budget: int) -> Bed:
    """A bed of these designs, with so many evaluations unless the user says otherwise."""

    def cases(choice: Choice) -> list[Case]:
        return [
            Case(bed, name, len(designs[name].space), seed)
            for name in wanted(choice, tuple(designs))
            for seed in range(choice.seeds)
        ]

    return Bed(bed, cases, lambda case, choice: open_case(designs[case.problem], case, choice, budget), tuple(designs))


def open_case(design: Design, case: Case, choice: Choice, usual: int) -> Challenge:
    """Nobody is told the best known value; the race ends at a regret of 1e-4. The user's budget is that of a run."""
    assert design.typical is not None
    challenge = open_design(design, case, choice, restarts=True)
    budget = usual if choice.budget is None else choice.budget
    targets = design.best_known + REGRETS * (design.typical - design.best_known)
    return replace(challenge, task=replace(challenge.task, budget=budget), targets=tuple(targets.tolist()))


def regret_at(hits: Sequence[int], evaluations: int) -> float:
    """The regret after so many evaluations: that of the last target hit by then; 1 if none was, and at most 1."""
    count = sum(hit <= evaluations for hit in hits)
    return float(REGRETS[max(count - 1, 0)])


BED = bed_of("practice", PRACTICE, BUDGET)
