"""DX-NES-ICI, as implemented in its authors' package."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixcma.core.strategy import default_popsize
from mixcma.experiments.race.task import FloatArray, Scoreboard, Task


class DxNesIci:
    """dxnesici.DXNESICI with the margin 1 / (N lambda) that its authors recommend.

    The package expects floats before integers, uses one step size for all coordinates, and knows no bounds. The search
    therefore reorders the coordinates and measures them in units of the initial standard deviations. A float outside
    its bounds is evaluated on the bound, and its squared distance from it, in these units, is added to the value.
    """

    def __init__(self, task: Task, start: FloatArray, popsize: int | None, seed: int) -> None:
        from dxnesici import DXNESICI

        popsize = default_popsize(task.dimension) if popsize is None else popsize
        self.popsize = popsize + popsize % 2  # its samples are mirrored
        self._task = task
        self._order = np.argsort(task.integer, kind="stable")
        self._unit = task.std[self._order]
        integers = np.flatnonzero(task.integer)
        self._evaluate: Scoreboard
        self._optimiser: Any = DXNESICI(
            len(start) - len(integers),
            [[value / float(task.std[j]) for value in task.values(j)] for j in integers.tolist()],
            self._value,
            (start[self._order] / self._unit)[:, None],
            1.0,
            self.popsize,
            1.0 / (task.dimension * self.popsize),
            seed=seed,
        )

    def _value(self, given: FloatArray) -> float:
        task, drawn = self._task, np.empty(self._task.dimension)
        drawn[self._order] = given[:, 0] * self._unit
        drawn[task.integer] = np.rint(drawn[task.integer])
        point = np.clip(drawn, task.low, task.high)
        return self._evaluate(point) + float(np.sum(((drawn - point) / task.std) ** 2))

    def step(self, evaluate: Scoreboard) -> float:
        self._evaluate = evaluate
        _, least = self._optimiser.next_generation()
        return float(least)

    def converged(self) -> bool:
        """The limits that the package's own `optimize` checks between two generations."""
        eigenvalues = np.linalg.eigvalsh(self._optimiser.bbT)
        too_small = eigenvalues[0] < self._optimiser.minimal_eigval
        return bool(too_small or eigenvalues[-1] / eigenvalues[0] > self._optimiser.maximal_cond_num)
