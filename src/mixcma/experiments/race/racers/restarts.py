"""The restarts of racers that do not restart themselves: one rule for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Protocol

from mixcma.core.stopping import Window, flat_window
from mixcma.experiments.race.task import FloatArray, Scoreboard, Task


class Generational(Protocol):
    """An optimiser that works by generations."""

    @property
    def popsize(self) -> int: ...

    def step(self, evaluate: Scoreboard) -> float:
        """One generation; the least value of it."""

    def converged(self) -> bool:
        """Whether the package itself would stop now."""


# (task, start, popsize or None for the package's own, seed) -> one run
Begin = Callable[[Task, FloatArray, int | None, int], Generational]


def run_by_generations(begin: Begin, task: Task, evaluate: Scoreboard) -> None:
    """Run after run until the scoreboard calls the end; a single run where the task has no restarts.

    A run is over when its package says so or, where a restart may follow, when the best value of a generation
    has not changed over 10 + 30 N / lambda generations. Each restart doubles the population (IPOP).
    """
    popsize: int | None = None
    for run in itertools.count():
        optimiser = begin(task, task.start(run), popsize, task.seed_of(run))
        recent = Window(flat_window(task.dimension, optimiser.popsize))
        while not optimiser.converged() and not (task.restarts and recent.is_flat(0.0)):
            recent.add(optimiser.step(evaluate))
        if not task.restarts:
            return
        popsize = 2 * optimiser.popsize
