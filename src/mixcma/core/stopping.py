"""Named conditions that end a run, each with advice in words."""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass

from mixcma.core.gaussian import GaussianState
from mixcma.core.namespace import Array


@dataclass(frozen=True)
class StopReason:
    """Why a run ended. `name` is for programs, `str()` for people."""

    name: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message} {self.advice}"


TARGET = StopReason("target", "The target was reached.", "Lower the target to go further.")
BUDGET = StopReason("budget", "The budget of evaluations is spent.", "Raise the budget if the value was still falling.")
CALLBACK = StopReason("callback", "The callback asked to stop.", "Run on by returning a false value.")
INTERRUPTED = StopReason(
    "interrupted",
    "The run was interrupted.",
    "The result so far is kept; where there is a run file, the same call goes on from here.",
)
VARIANCE = StopReason(
    "variance",
    "The search has contracted to the precision of floats.",
    "It has converged; restart from elsewhere (restarts=True) if a better value must exist.",
)
CONDITION = StopReason(
    "condition",
    "The search has become ten million times as narrow in one direction as in another, which floats cannot resolve.",
    "Either the value hardly depends on some combination of the variables, and the search has converged in all others, "
    "or a larger popsize (restarts=True) helps.",
)
NUMERICAL = StopReason(
    "numerical",
    "The step size or the covariance matrix left the range of floats.",
    "The objective may fall without bound; bound the variables, or reduce std.",
)
FLAT = StopReason(
    "flat",
    "Nothing better has been found for many generations.",
    "It has converged, or lies on a plateau: restart with a larger popsize, or make the objective finer.",
)
OUTDONE = StopReason(
    "outdone",
    "The run had no hope of catching up with an earlier one.",
    "Its integers had settled, and it gained too little; or all of its evaluations failed. Other starts are tried if "
    "restarts are allowed.",
)
EXHAUSTED = StopReason(
    "exhausted",
    "Every point that the search still proposes has been evaluated.",
    "The best of a space this small is known, or as good as known; widen the space to go on.",
)
FAILING = StopReason(
    "failing",
    "Every evaluation of several generations in a row failed.",
    "Look at the first error, and call the objective by hand with the candidate's parameters.",
)

_ALL = (TARGET, BUDGET, CALLBACK, INTERRUPTED, VARIANCE, CONDITION, NUMERICAL, FLAT, OUTDONE, EXHAUSTED, FAILING)
REASONS: dict[str, StopReason] = {reason.name: reason for reason in _ALL}


@dataclass(frozen=True)
class Stopping:
    """When a run is given up.

    Parameters
    ----------
    min_variance
        Stop when the smallest eigenvalue of sigma^2 C is below this.
    max_condition
        Stop when the condition number of C is above this.
    flat_tolerance
        Stop when the best values of the last ``10 + 15 N / lambda`` generations (``10 + 30 N / lambda`` in a space
        without floats) differ by no more than this part of the value, and of the run's whole improvement (or than
        rounding). None switches this off, as in the paper, and the
        model's own check for convergence too.
    failing_generations
        Stop when so many generations in a row had no successful evaluation.
    """

    min_variance: float = 1e-30
    max_condition: float = 1e14
    flat_tolerance: float | None = 1e-12
    failing_generations: int = 3


# Beyond this, or below its inverse, products of the state's numbers would soon leave the range of floats.
LARGEST_SCALE = 1e100
# On the way to a target, values are flat that differ by less than this part of their distance from it.
NEAR_TARGET = 1e-3

PAPER_STOPPING = Stopping(flat_tolerance=None)


def flat_window(dimension: float, popsize: int, per_coordinate: float) -> int:
    """The number of generations that a run is judged by: so many evaluations per coordinate, and ten generations."""
    return 10 + math.ceil(per_coordinate * dimension / popsize)


def condition_number(state: GaussianState) -> Array:
    """The condition number of C at its last decomposition: (...,)."""
    return state.eigenvalues[..., -1] / state.eigenvalues[..., 0]


class Window:
    """The best values of the last generations, and the span of all generations so far."""

    def __init__(self, length: int) -> None:
        self._recent: deque[float] = deque(maxlen=length)
        self._length = length
        self._least, self._most = math.inf, -math.inf

    def add(self, value: float) -> None:
        self._recent.append(value)
        if math.isfinite(value):
            self._least, self._most = min(self._least, value), max(self._most, value)

    def snapshot(self) -> list[float]:
        """All it holds, as numbers."""
        return [self._least, self._most, *self._recent]

    def restore(self, numbers: list[float]) -> None:
        self._least, self._most, *recent = numbers
        self._recent.clear()
        self._recent.extend(recent)

    def least(self, length: int) -> float:
        """The least of the last `length` values; -inf where there are fewer."""
        if len(self._recent) < length:
            return -math.inf
        return min(itertools.islice(reversed(self._recent), length))

    def gained(self, length: int) -> float:
        """By how much they have fallen over the last `length` generations; infinite where there were fewer."""
        if len(self._recent) < length:
            return math.inf
        return self._recent[-length] - self.least(length)

    def forget(self) -> None:
        """The last values; the span of all stays."""
        self._recent.clear()

    def is_flat(self, tolerance: float, target: float | None = None, length: int | None = None) -> bool:
        """Whether the last values, `length` of them, are equal, up to rounding and that part of span and value.

        Close to a target, what still separates them from it counts as a difference.
        """
        length = length or self._length
        if len(self._recent) < length:
            return False
        first, last = self._recent[-length], self._recent[-1]
        if first == last and all(value == last for value in itertools.islice(reversed(self._recent), length)):
            return True
        if not (math.isfinite(first) and math.isfinite(last)):
            return False
        allowed = tolerance * min(self._most - self._least, abs(last))
        if target is not None:
            allowed = min(allowed, NEAR_TARGET * abs(last - target))
        allowed = max(allowed, 4 * math.ulp(first))
        if abs(first - last) > allowed:
            return False
        recent = list(itertools.islice(reversed(self._recent), length))
        return max(recent) - min(recent) <= allowed
