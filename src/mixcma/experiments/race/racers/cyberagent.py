"""CMA-ES with Margin and CatCMA with Margin, as implemented in the package cmaes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixcma.experiments.race.task import FloatArray, Scoreboard, Task


class CMAwM:
    """cmaes.CMAwM: sigma = 1 and C = diag(std^2) at the start."""

    def __init__(self, task: Task, start: FloatArray, popsize: int | None, seed: int) -> None:
        from cmaes import CMAwM as Optimiser

        self._optimiser: Any = Optimiser(
            mean=start,
            sigma=1.0,
            bounds=np.stack([task.low, task.high], axis=1),
            steps=task.integer.astype(np.float64),
            seed=seed,
            population_size=popsize,
            cov=np.diag(task.std**2),
        )
        self.popsize: int = self._optimiser.population_size

    def step(self, evaluate: Scoreboard) -> float:
        told = []
        for _ in range(self.popsize):
            point, latent = self._optimiser.ask()
            told.append((latent, evaluate(point)))
        self._optimiser.tell(told)
        return min(value for _, value in told)

    def converged(self) -> bool:
        return bool(self._optimiser.should_stop())


class CatCMAwM:
    """cmaes.CatCMAwM with binaries as integers; sigma = 1 and C = diag(std^2) at the start."""

    binaries_as_categories = False

    def __init__(self, task: Task, start: FloatArray, popsize: int | None, seed: int) -> None:
        from cmaes import CatCMAwM as Optimiser

        categorical = task.categorical | (task.binary & self.binaries_as_categories)
        self._task = task
        self._floats = np.flatnonzero(~task.integer)
        self._integers = np.flatnonzero(task.integer & ~categorical)
        self._categories = np.flatnonzero(categorical)
        self._gaussian = np.concatenate([self._floats, self._integers])
        self._optimiser: Any = Optimiser(
            x_space=[[task.low[j], task.high[j]] for j in self._floats] or None,
            z_space=[task.values(j) for j in self._integers.tolist()] or None,
            c_space=[len(task.values(j)) for j in self._categories.tolist()] or None,
            population_size=popsize,
            mean=start[self._gaussian],
            sigma=1.0,
            cov=np.diag(task.std[self._gaussian] ** 2),
            cat_param=_probabilities(task, start, self._categories) if len(self._categories) else None,
            seed=seed,
        )
        self.popsize: int = self._optimiser.population_size

    def step(self, evaluate: Scoreboard) -> float:
        told = []
        for _ in range(self.popsize):
            solution = self._optimiser.ask()
            told.append((solution, evaluate(self._point(solution))))
        least = min(value for _, value in told)
        self._optimiser.tell(told)  # this adds penalties to the values
        return least

    def _point(self, solution: Any) -> FloatArray:
        point = np.empty(self._task.dimension)
        for where, part in ((self._floats, solution.x), (self._integers, solution.z)):
            if len(where):
                point[where] = part
        if len(self._categories):  # one-hot
            point[self._categories] = self._task.low[self._categories] + np.argmax(solution.c, axis=1)
        return point

    def converged(self) -> bool:
        """Without a Gaussian the package has no stopping criterion, and warns when it is asked."""
        return len(self._gaussian) > 0 and bool(self._optimiser.should_stop())


def _probabilities(task: Task, start: FloatArray, categories: NDArray[np.int64]) -> FloatArray:
    """The initial probabilities: from the mean for binaries, equal for categories, and 0 beyond the last choice."""
    counts = [len(task.values(j)) for j in categories.tolist()]
    rows = np.zeros((len(counts), max(counts)))
    for row, j, count in zip(rows, categories.tolist(), counts):
        row[:count] = 1 / count if task.categorical[j] else (1 - start[j], start[j])
    return rows


class CatCMAwMCategories(CatCMAwM):
    """cmaes.CatCMAwM with binaries as categories of two, as its documentation recommends."""

    binaries_as_categories = True
