"""Restarts for racers that do not restart by themselves: one rule for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Protocol

from mixcma.core.stopping import Window, flat_window
from mixcma.experiments.race.task import FloatArray, Scoreboard, Task

# A run may go on for so many evaluations per variable, and ten generations, without a better value.
PATIENCE = 30.0


class Generational(Protocol):
    """An optimiser that works generation by generation."""

    @property
    def popsize(self) -> int: ...

    def step(self, evaluate: Scoreboard) -> float:
        """Run one generation, and return its lowest value."""

    def converged(self) -> bool:
        """Whether the package itself would stop now."""


# (task, start, popsize or None for the package's own, seed) -> one run
Begin = Callable[[Task, FloatArray, int | None, int], Generational]


def run_by_generations(begin: Begin, task: Task, evaluate: Scoreboard) -> None:
    """Run the optimiser again and again until the scoreboard ends the race; only once if the task has no restarts.

    A run ends when its package says so or, if a restart may follow, when the best value of a generation has not changed
    for 10 + 30 N / lambda generations. Each restart doubles the population (IPOP).
    """
    popsize: int | None = None
    for run in itertools.count():
        optimiser = begin(task, task.start(run), popsize, task.seed_of(run))
        recent = Window(flat_window(task.dimension, optimiser.popsize, PATIENCE))
        while not optimiser.converged() and not (task.restarts and recent.is_flat(0.0)):
            recent.add(optimiser.step(evaluate))
        if not task.restarts:
            return
        popsize = 2 * optimiser.popsize
