"""pycma with its support for integers, LB+IC-CMA-ES."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixcma.experiments.race.task import FloatArray, Scoreboard, Task


class Pycma:
    """cma.CMAEvolutionStrategy with `integer_variables`, `bounds` and `CMA_stds`."""

    def __init__(self, task: Task, start: FloatArray, popsize: int | None, seed: int) -> None:
        import cma

        options = {
            "integer_variables": np.flatnonzero(task.integer).tolist(),
            "bounds": [_bounds(task.low), _bounds(task.high)],
            "CMA_stds": task.std.tolist(),
            "seed": seed,
            "verbose": -9,
        }
        if popsize is not None:
            options["popsize"] = popsize
        self._strategy: Any = cma.CMAEvolutionStrategy(start, 1.0, options)
        self.popsize: int = self._strategy.popsize

    def step(self, evaluate: Scoreboard) -> float:
        points = self._strategy.ask()
        values = [evaluate(np.asarray(point, dtype=np.float64)) for point in points]
        self._strategy.tell(points, values)
        return min(values)

    def converged(self) -> bool:
        return bool(self._strategy.stop())


class PycmaSurrogate(Pycma):
    """The same with its linear-quadratic surrogate, as in cma.fmin_lq_surr2: the model says which candidates are
    evaluated, and its optimum is one of the next."""

    def __init__(self, task: Task, start: FloatArray, popsize: int | None, seed: int) -> None:
        from cma.fitness_models import SurrogatePopulation

        super().__init__(task, start, popsize, seed)
        self._integer = task.integer
        self._surrogate: Any = SurrogatePopulation(None)

    def step(self, evaluate: Scoreboard) -> float:
        values: list[float] = []

        def fitness(point: object) -> float:
            values.append(evaluate(np.asarray(point, dtype=np.float64)))
            return values[-1]

        self._surrogate.fitness = fitness
        points = self._strategy.ask()
        self._strategy.tell(points, self._surrogate(points))
        optimum = np.asarray(self._surrogate.model.xopt, dtype=np.float64)
        if np.isfinite(optimum).all():
            self._strategy.inject([np.where(self._integer, np.round(optimum), optimum)])
        return min(values)


def _bounds(bounds: FloatArray) -> list[float | None] | None:
    """The bounds as pycma expects them: None where there is no bound, and a single None if there are none at all."""
    listed = [float(bound) if np.isfinite(bound) else None for bound in bounds]
    return None if set(listed) == {None} else listed
