"""Course: how a run is going; whether it is to end, or to go back to where it once was better."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixcma.core.state import NOTHING, SMALLEST_EIGENVALUE
from mixcma.core.stopping import (
    CONDITION,
    FAILING,
    FLAT,
    LARGEST_SCALE,
    NUMERICAL,
    OUTDONE,
    VARIANCE,
    Stopping,
    StopReason,
    Window,
    flat_window,
)
from mixcma.run.outcome import Told

# A run whose integers have settled is given up where an earlier one is better by so many times what it lately gained.
HOPELESS_GAP = 3.0
# Whether it has strayed is looked at whenever it would stop, and else every so many generations.
LOOK_BACK = 8
# Where the last generations are worse than the best by more than this part of it, they are elsewhere.
STRAYED = 1e-9

Order = tuple[float, float]  # violation and value: smaller is better
NEVER: Order = (math.inf, math.inf)


class Course:
    """The best values of the last generations, and what else tells how a run is going.

    Parameters
    ----------
    stopping
        When to give up.
    target
        The value that is asked for; close to it, the run is not given up for small improvements.
    dimension, floats
        How many coordinates there are, and how many of them have no cells.
    popsize
        Candidates a generation.
    """

    def __init__(self, stopping: Stopping, target: float | None, dimension: int, floats: int, popsize: int) -> None:
        self.to_beat = NEVER  # the best of earlier runs
        self.returned_to = NEVER  # the best when the search last went back
        self._stopping, self._target = stopping, target
        self._dimension, self._floats, self._popsize = dimension, floats, popsize
        self._vary(dimension)
        self._smallest = self._largest = 1.0  # eigenvalues
        self._failed_generations = 0
        window = flat_window(dimension, popsize)
        self._values, self._violations = Window(window), Window(window)

    def went_on(self, told: Told, varying: int, best: NDArray[np.float64]) -> None:
        """A generation was told; `varying` and `best`, (2,), are those of the state that drew it."""
        self._failed_generations = 0
        if varying != self._varying:
            self._vary(varying)
        violation, value = told.best_violation, told.best_value
        if not varying:  # no candidate is the mean: what counts is whether one is better
            violation, value = min(violation, best[0]), min(value, best[1])
        self._violations.add(violation)
        self._values.add(value)

    def failed(self) -> None:
        """A whole generation failed."""
        self._failed_generations += 1

    def went_back(self, best: Order, varying: int) -> None:
        """The search goes on from the best point of the run, with its integers."""
        self.returned_to = best
        self._vary(varying)
        self._smallest = self._largest = 1.0
        self._values.forget()
        self._violations.forget()

    def decomposed(self, eigenvalues: NDArray[np.float64]) -> None:
        """Those of C, in ascending order."""
        self._smallest, self._largest = float(eigenvalues[0]), float(eigenvalues[-1])

    def stop_reason(self, sigma: float, best: NDArray[np.float64]) -> StopReason | None:
        """Why the run is to end, if it is."""
        limits, smallest, largest = self._stopping, self._smallest, self._largest
        if self._failed_generations >= limits.failing_generations:
            return FAILING
        in_range = 1 / LARGEST_SCALE < sigma < LARGEST_SCALE and largest < LARGEST_SCALE
        if not in_range or smallest <= SMALLEST_EIGENVALUE:
            return NUMERICAL
        if sigma * sigma * smallest < limits.min_variance:
            return VARIANCE
        if largest > limits.max_condition * smallest:
            return CONDITION
        flat = limits.flat_tolerance
        if flat is not None:
            length = self._window
            if self._values.is_flat(flat, self._target, length) and self._violations.is_flat(flat, None, length):
                return FLAT
        return OUTDONE if self._is_outdone(best) else None

    def has_strayed(self, best: NDArray[np.float64], generation: int, stop: StopReason | None) -> bool:
        """Whether the integers have settled and the search goes on, or is about to end, where it once was better."""
        if not self._floats or self._varying > self._floats or not (stop or generation % LOOK_BACK == 0):
            return False
        violation, value = order_of(best)
        if value >= NOTHING or (violation, value) >= self.returned_to:
            return False
        length, gains = self._window, 0.0 if stop else HOPELESS_GAP
        if self._violations.least(length) > violation:
            return self._violations.least(length) - violation > gains * self._violations.gained(length)
        gap = self._values.least(length) - value
        return gap > max(STRAYED * abs(value), gains * self._values.gained(length))

    def snapshot(self) -> dict[str, Any]:
        """All that is not in the state."""
        return {
            "failed_generations": self._failed_generations,
            "values": self._values.snapshot(),
            "violations": self._violations.snapshot(),
            "to_beat": list(self.to_beat),
            "returned_to": list(self.returned_to),
        }

    def restore(self, numbers: dict[str, Any], varying: int, eigenvalues: NDArray[np.float64]) -> None:
        self._failed_generations = numbers["failed_generations"]
        self._vary(varying)
        self._values.restore(numbers["values"])
        self._violations.restore(numbers["violations"])
        self.to_beat, self.returned_to = order_of(numbers["to_beat"]), order_of(numbers["returned_to"])
        self.decomposed(eigenvalues)

    def forgive(self) -> None:
        """Whoever goes on after failures has changed something: it gets as many generations again."""
        self._failed_generations = 0

    def _vary(self, varying: int) -> None:
        """So many coordinates vary, other than by mutation.

        Where no integer does any more, but floats do, fewer generations tell whether the run goes on.
        """
        settled = 0 < varying <= self._floats
        self._varying, self._window = varying, flat_window(varying if settled else self._dimension, self._popsize)

    def _is_outdone(self, best: NDArray[np.float64]) -> bool:
        """Whether the integers have settled and an earlier run is better by more than this one can still gain."""
        if self.to_beat[1] >= NOTHING or self._floats == self._dimension or self._varying > self._floats:
            return False
        length = self._window
        (violation, value), (violation_to_beat, value_to_beat) = order_of(best), self.to_beat
        if violation != violation_to_beat:
            return bool(violation - violation_to_beat > HOPELESS_GAP * self._violations.gained(length))
        return bool(value - value_to_beat > HOPELESS_GAP * self._values.gained(length))


def order_of(numbers: NDArray[np.float64] | list[float]) -> Order:
    violation, value = numbers
    return float(violation), float(value)
