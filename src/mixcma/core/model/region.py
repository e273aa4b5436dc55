"""How far the models of the constraints are believed, and by what margin (docs/model.md, "Constraints")."""

from __future__ import annotations

from typing import Any, NamedTuple

# In latent units, in which every variable starts with standard deviation 1.
FIRST_RADIUS, LEAST_RADIUS, LARGEST_RADIUS = 2.0, 1e-6, 4.0
GROWTH, SHRINKAGE = 1.3, 0.8
# The margin, in errors of the models: doubled after an infeasible proposal, halved after a feasible one.
FIRST_MARGIN, LEAST_MARGIN, LARGEST_MARGIN = 1.0, 0.01, 2.0
# The second failure in a row, and every fourth from then on, adds a proposal from a model of this radius.
WIDE_RADIUS, WIDE_AFTER, WIDE_EVERY = 6.0, 2, 4
# After so many failures in a row there is a pause of so many generations, then of twice as many, and so on.
MOST_FAILURES, FIRST_PAUSE, LONGEST_PAUSE = 13, 4, 64


class Attempt(NamedTuple):
    """How a point is to be proposed."""

    radius: float
    margin: float


class Region:
    """What is remembered of proposals under constraints."""

    def __init__(self) -> None:
        self.radius, self.margin = FIRST_RADIUS, FIRST_MARGIN
        self._failures = 0  # in a row
        self._waiting, self._pause = 0, FIRST_PAUSE  # generations still to wait, and the length of the next pause

    def attempts(self) -> list[Attempt]:
        """The proposals of this generation, none during a pause."""
        if self._waiting:
            return []
        attempts = [Attempt(self.radius, self.margin)]
        if self._failures >= WIDE_AFTER and (self._failures - WIDE_AFTER) % WIDE_EVERY == 0:
            attempts.append(Attempt(WIDE_RADIUS, self.margin))
        return attempts

    def rest(self) -> None:
        """A generation without proposals is over."""
        self._waiting = max(0, self._waiting - 1)

    def judge(self, succeeded: bool, feasible: bool) -> None:
        """Whether one of the proposals is the best point so far, and whether the first of them is feasible."""
        self.margin = max(self.margin / 2, LEAST_MARGIN) if feasible else min(2 * self.margin, LARGEST_MARGIN)
        if succeeded:
            self.radius = min(GROWTH * self.radius, LARGEST_RADIUS)
            self._failures, self._pause = 0, FIRST_PAUSE
            return
        self.radius, self._failures = max(SHRINKAGE * self.radius, LEAST_RADIUS), self._failures + 1
        if self._failures == MOST_FAILURES:
            self.radius, self._failures = FIRST_RADIUS, 0
            self._waiting, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)

    def snapshot(self) -> dict[str, Any]:
        return {
            "radius": self.radius,
            "margin": self.margin,
            "failures": self._failures,
            "waiting": self._waiting,
            "pause": self._pause,
        }

    def restore(self, numbers: dict[str, Any]) -> None:
        self.radius, self.margin = float(numbers["radius"]), float(numbers["margin"])
        self._failures = int(numbers["failures"])
        self._waiting, self._pause = int(numbers["waiting"]), int(numbers["pause"])
