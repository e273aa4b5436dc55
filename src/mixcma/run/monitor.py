"""RunMonitor: how a run is going; whether it should end, or go back to where it was better."""

from __future__ import annotations

import math
from typing import Any

from mixcma.core.gaussian import SMALLEST_EIGENVALUE
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
from mixcma.run.outcome import NOTHING_YET, Order, Told

# A run is judged by its last generations: so many evaluations per coordinate, and ten generations. Without floats
# there are more, since the last values may have to be found one at a time.
PATIENCE, PATIENCE_WITHOUT_FLOATS = 15.0, 30.0
# A run whose integers have settled is given up where an earlier one is better by this many times its latest gain.
HOPELESS_GAP = 3.0
# In the window of flatness there are so many evaluations more per frozen coordinate, so that mutations may succeed.
PATIENCE_PER_FROZEN = 20.0
# Whether the run has strayed is checked whenever it would stop, and otherwise every so many generations.
LOOK_BACK = 8
# If the last generations are worse than the best by more than this part of it, they are elsewhere.
STRAYED = 1e-9


class RunMonitor:
    """The best outcomes of the last generations, and what else tells how a run is going.

    Parameters
    ----------
    stopping
        When to give up.
    target
        The value that is asked for; close to it, the run is not given up for small improvements.
    dimension, floats
        How many coordinates there are, and how many of them have no cells.
    popsize
        Candidates per generation.
    """

    def __init__(self, stopping: Stopping, target: float | None, dimension: int, floats: int, popsize: int) -> None:
        self.best = NOTHING_YET  # of this run
        self.to_beat = NOTHING_YET  # the best of earlier runs
        self.returned_to = NOTHING_YET  # the best when the search last went back
        self._fruitless = 0  # how many runs in a row, just before this one, had no success at all
        self._stopping, self._target = stopping, target
        self._dimension, self._floats, self._popsize = dimension, floats, popsize
        self._smallest = self._largest = self._variance = 1.0
        self._failed_generations = 0
        self._evaluated, self._best_of_few = 0, NOTHING_YET  # of generations that were evaluated in part
        self._per_coordinate = PATIENCE if floats else PATIENCE_WITHOUT_FLOATS
        longest = flat_window(dimension, popsize, max(self._per_coordinate, PATIENCE_PER_FROZEN))
        self._values, self._violations = Window(longest), Window(longest)
        self.set_varying(dimension)

    def come_after(self, earlier: RunMonitor) -> None:
        """This run follows another one of the same search."""
        self.to_beat = min(earlier.to_beat, earlier.best)
        self._fruitless = earlier._fruitless + 1 if earlier.best == NOTHING_YET else 0

    def record(self, told: Told, varying: int) -> None:
        """A generation was told; `varying` coordinates of the state that drew it vary, other than by mutation."""
        self._failed_generations = 0
        if varying != self._varying:
            self.set_varying(varying)
        order = told.best_violation, told.best_value
        self.best = min(self.best, order)
        # generations that were evaluated in part count together, until there are as many evaluations as in a whole one
        self._evaluated += told.evaluated
        self._best_of_few = min(self._best_of_few, order)
        if self._evaluated < self._popsize:
            return
        # if nothing varies, no candidate is the mean itself, and what counts is whether one is better
        violation, value = self._best_of_few if varying else self.best
        self._evaluated, self._best_of_few = 0, NOTHING_YET
        self._violations.add(violation)
        self._values.add(value)

    def record_failure(self) -> None:
        """A whole generation failed."""
        self._failed_generations += 1

    def record_return(self, varying: int) -> None:
        """The search goes on from the best point of the run, with its integers."""
        self.returned_to = self.best
        self.set_varying(varying)
        self.record_decomposition(1.0, 1.0, 1.0)
        self._forget()

    def record_decomposition(self, smallest: float, largest: float, variance: float) -> None:
        """The extreme eigenvalues of C, and the smallest variance of the candidates as a multiple of sigma^2."""
        self._smallest, self._largest, self._variance = smallest, largest, variance

    def stop_reason(self, sigma: float) -> StopReason | None:
        """Why the run should end, if it should."""
        limits, smallest, largest = self._stopping, self._smallest, self._largest
        if self._failed_generations >= limits.failing_generations:
            return OUTDONE if self._began_badly() else FAILING
        in_range = 1 / LARGEST_SCALE < sigma < LARGEST_SCALE and largest < LARGEST_SCALE
        if not in_range or smallest <= SMALLEST_EIGENVALUE:
            return NUMERICAL
        if sigma * sigma * self._variance < limits.min_variance and not self._gains_by_mutation():
            return VARIANCE
        if largest > limits.max_condition * smallest:
            return CONDITION
        flat = limits.flat_tolerance
        if flat is not None:
            length = self._flat_window
            if self._values.is_flat(flat, self._target, length) and self._violations.is_flat(flat, None, length):
                return FLAT
        return OUTDONE if self._is_outdone() else None

    @property
    def may_return(self) -> bool:
        """Whether there is a best point to go back to that the search has not gone back to yet."""
        return math.isfinite(self.best[1]) and self.best < self.returned_to

    def has_strayed(self, generation: int, stop: StopReason | None) -> bool:
        """Whether the integers have settled and the search goes on, or is about to end, where it once was better."""
        if not self._floats or self._varying > self._floats or not (stop or generation % LOOK_BACK == 0):
            return False
        if not self.may_return:
            return False
        violation, value = self.best
        length, gains = self._window, 0.0 if stop else HOPELESS_GAP
        if self._violations.least(length) > violation:
            return self._violations.least(length) - violation > gains * self._violations.gained(length)
        gap = self._values.least(length) - value
        return gap > max(STRAYED * abs(value), gains * self._values.gained(length))

    @property
    def patience(self) -> int:
        """After how many evaluations without a change a run is flat."""
        return self._flat_window * self._popsize

    def snapshot(self) -> dict[str, Any]:
        """All that is not in the state."""
        return {
            "failed_generations": self._failed_generations,
            "evaluated": self._evaluated,
            "best_of_few": list(self._best_of_few),
            "values": self._values.snapshot(),
            "violations": self._violations.snapshot(),
            "fruitless": self._fruitless,
            "best_order": list(self.best),
            "to_beat": list(self.to_beat),
            "returned_to": list(self.returned_to),
        }

    def restore(self, numbers: dict[str, Any], varying: int) -> None:
        self._failed_generations = numbers["failed_generations"]
        self.set_varying(varying)
        self._evaluated = numbers.get("evaluated", 0)
        violation, value = numbers.get("best_of_few", NOTHING_YET)
        self._best_of_few = float(violation), float(value)
        self._fruitless = numbers.get("fruitless", 0)
        self._values.restore(numbers["values"])
        self._violations.restore(numbers["violations"])
        self.best, self.to_beat, self.returned_to = (
            (float(numbers[name][0]), float(numbers[name][1])) for name in ("best_order", "to_beat", "returned_to")
        )

    def reset_failures(self) -> None:
        """Whoever goes on after failures has changed something: the run gets as many generations again."""
        self._failed_generations = 0

    def set_varying(self, varying: int) -> None:
        """How many coordinates vary, other than by mutation.

        Once no integer does, but floats do, fewer generations tell whether the run is getting anywhere. Before it is
        given up as flat, mutations of the others get their chance too.
        """
        self._varying = varying
        n = varying if 0 < varying <= self._floats else self._dimension
        self._window = flat_window(n, self._popsize, self._per_coordinate)
        frozen = PATIENCE_PER_FROZEN / self._per_coordinate * (self._dimension - n)  # as if so many more were live
        self._flat_window = flat_window(n + frozen, self._popsize, self._per_coordinate)

    def _forget(self) -> None:
        self._evaluated, self._best_of_few = 0, NOTHING_YET
        self._values.forget()
        self._violations.forget()

    def _gains_by_mutation(self) -> bool:
        """Whether the integers have settled, but the run still gets better: floats that have converged can wait."""
        if not 0 < self._varying <= self._floats < self._dimension:
            return False
        length, tolerance = self._flat_window, STRAYED * abs(self.best[1])
        return self._values.gained(length) > tolerance or self._violations.gained(length) > 0.0

    def _began_badly(self) -> bool:
        """Whether a restart has begun where everything fails, unlike the run before it: the next one may not."""
        return self.best == NOTHING_YET != self.to_beat and self._fruitless == 0

    def _is_outdone(self) -> bool:
        """Whether the integers have settled and an earlier run is better by more than this one can still gain."""
        to_beat: Order = self.to_beat
        if not math.isfinite(to_beat[1]) or self._floats == self._dimension or self._varying > self._floats:
            return False
        length = self._window
        if self.best[0] != to_beat[0]:
            return self.best[0] - to_beat[0] > HOPELESS_GAP * self._violations.gained(length)
        return self.best[1] - to_beat[1] > HOPELESS_GAP * self._values.gained(length)
