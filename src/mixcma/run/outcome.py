"""What one evaluation gave: a value and constraints, or a failure."""

from __future__ import annotations

import itertools
import math
import numbers
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# How outcomes are ordered: less violation before more, then the smaller value. Smaller is better.
Order = tuple[float, float]
NOTHING_YET: Order = (math.inf, math.inf)


@dataclass(frozen=True)
class Outcome:
    """The result of one evaluation.

    Parameters
    ----------
    value
        What is minimised.
    constraints
        g1, g2, ...: the point is feasible where every one is <= 0.
    error
        Why the evaluation failed; None if it did not.
    traceback
        Where the objective raised an exception, as Python prints it; None if it did not.

    Examples
    --------
    >>> Outcome(3.0, constraints=[-1.0, 0.25]).violation
    0.25
    """

    value: float
    constraints: Sequence[float] = ()
    error: str | None = None
    traceback: str | None = None

    @property
    def violation(self) -> float:
        """The total violation, sum max(0, g); 0 where feasible, infinite where failed."""
        if self.failed:
            return math.inf
        if not self.constraints:
            return 0.0
        return sum((max(0.0, g) for g in self.constraints), 0.0)

    @property
    def feasible(self) -> bool:
        return self.violation == 0.0

    @property
    def order(self) -> Order:
        """Smaller is better."""
        return self.violation, self.value

    @property
    def failed(self) -> bool:
        return self.error is not None


# What an error says is kept up to so many characters, and the end of its traceback.
LONGEST_ERROR, LONGEST_TRACEBACK = 2000, 8000
# An evaluation with more constraints than this has failed: they may be an iterator without an end.
MOST_CONSTRAINTS = 10**6


def failure(error: str, traceback: str | None = None) -> Outcome:
    """A failed evaluation: it is ranked behind all others. Its texts are valid Unicode of a sensible length."""
    text = _unicode(error[: LONGEST_ERROR + 1])
    if len(text) > LONGEST_ERROR:
        text = text[: LONGEST_ERROR - 3] + "..."
    if traceback is not None:
        traceback = _unicode(traceback[-LONGEST_TRACEBACK - 1 :])
        if len(traceback) > LONGEST_TRACEBACK:  # the end says what was raised, and where
            traceback = "..." + traceback[3 - LONGEST_TRACEBACK :]
    return Outcome(math.inf, (), text, traceback)


def _unicode(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def interpret(given: object) -> Outcome:
    """Read what an objective returned: a number, an Outcome, or something that counts as a failure.

    NaN, None and things that are not numbers are failures. -inf is refused with a ValueError,
    since nothing could ever beat it. +inf is a value, behind every finite one of equal violation.
    """
    if type(given) is float and given > -math.inf:  # for speed: the common case; NaN is not above anything
        return Outcome(given)
    # whatever it is goes in, to be checked as a value below
    outcome = given if isinstance(given, Outcome) else Outcome(given)  # type: ignore[arg-type]
    if outcome.failed:
        return failure(str(outcome.error), None if outcome.traceback is None else str(outcome.traceback))
    value = _real(outcome.value)
    if value is None:
        return failure(f"expected a number, but the objective returned {_shown(outcome.value)}")
    if value == -math.inf:
        raise ValueError(
            "the value of an evaluation: expected a number, but got -inf; nothing could ever beat it, "
            "so return a finite value, or +inf or NaN for a point that failed"
        )
    if (
        isinstance(outcome.constraints, str | bytes)
        or getattr(outcome.constraints, "shape", None) == ()
        or not hasattr(outcome.constraints, "__iter__")
    ):
        return failure(f"expected a list of constraints, but got {_shown(outcome.constraints)}")
    constraints = [_real(g) for g in itertools.islice(outcome.constraints, MOST_CONSTRAINTS + 1)]
    if len(constraints) > MOST_CONSTRAINTS:
        return failure(f"expected at most {MOST_CONSTRAINTS:,} constraints, but got more; return the largest of them")
    if any(g is None for g in constraints):
        return failure(f"expected numbers as constraints, but got {_shown(outcome.constraints)}")
    return Outcome(value, tuple(g for g in constraints if g is not None))


def _real(given: object) -> float | None:
    """A float that is not NaN, from any real number or zero-dimensional array; else None."""
    if type(given) is float:
        return given if given == given else None
    if getattr(given, "shape", None) == () and hasattr(given, "item"):
        if getattr(given, "mask", False):  # a value of numpy.ma that is missing; item() would make up a number
            return None
        given = given.item()
    if not isinstance(given, numbers.Real):
        return None
    try:
        number = float(given)
    except OverflowError:  # an int beyond the floats
        number = -math.inf if isinstance(given, int) and given < 0 else math.inf
    return None if math.isnan(number) else number


def _shown(given: object) -> str:
    """What was given, in at most 80 characters; of something long only a part is read."""
    shown = _brief.repr(given)
    return shown if len(shown) <= 80 else shown[:77] + "..."


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 80
_brief.maxlist = _brief.maxtuple = _brief.maxdict = _brief.maxset = _brief.maxarray = 20


class Told(NamedTuple):
    """The outcomes of a generation as arrays; `violations` is None where nothing is violated."""

    values: NDArray[np.float64]
    violations: NDArray[np.float64] | None
    failures: int
    best: int  # index of the best: least violation, then least value
    best_value: float
    best_violation: float
    evaluated: int  # how many of them were evaluated; the others are guessed


def read_outcomes(given: Sequence[object]) -> Told:
    """Numbers, Outcomes, None -> arrays. Plain floats, the common case, are read at once."""
    # mypy does not see that the first condition makes them floats
    if set(map(type, given)) == {float} and math.isfinite(sum(given)):  # type: ignore[arg-type]
        values = np.array(given)
        best = int(values.argmin())
        return Told(values, None, 0, best, float(values[best]), 0.0, len(given))
    return gather([interpret(value) for value in given])


def gather(outcomes: Sequence[Outcome]) -> Told:
    """Outcomes that have been interpreted -> arrays."""
    values = np.array([outcome.value for outcome in outcomes])
    violations = np.array([outcome.violation for outcome in outcomes])
    failures = sum(outcome.failed for outcome in outcomes)
    best = int(np.lexsort((values, violations))[0])
    violated = violations if violations.any() else None
    return Told(values, violated, failures, best, float(values[best]), float(violations[best]), len(outcomes))
