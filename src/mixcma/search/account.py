"""Account: what a search has spent and found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mixcma.core.stopping import StopReason
from mixcma.run.optimizer import Best
from mixcma.run.outcome import Outcome
from mixcma.search.result import Run
from mixcma.space import Params, Value


@dataclass
class Account:
    """Evaluations against the budget, the best value against the target, and the points known so far."""

    budget: int
    target: float | None
    cache: bool  # whether every point is evaluated at most once
    points: int | None = None  # how many the space has; None where that is infinite
    evaluations: int = 0
    failures: int = 0
    first_error: str | None = None
    improvements: list[Best] = field(default_factory=list)  # every best point so far, in turn
    runs: list[Run] = field(default_factory=list)
    run_start: int = 0  # evaluations before the present run
    run_best: float = math.inf
    recalls_failures: bool = True  # whether a point that failed counts as known, and is not tried again
    idle: int = 0  # how many of the newest candidates in a row cost no evaluation
    _known: dict[tuple[tuple[str, Value], ...], Outcome] = field(default_factory=dict)

    @property
    def best(self) -> Best | None:
        return self.improvements[-1] if self.improvements else None

    @property
    def reached(self) -> bool:
        """Whether the target has been reached."""
        best = self.best
        return self.target is not None and best is not None and best.feasible and best.value <= self.target

    @property
    def exhausted(self) -> bool:
        """Whether every point of the space is known, so that no search can find anything new."""
        return self.cache and self.points is not None and len(self._known) >= self.points

    def recall(self, params: Params) -> Outcome | None:
        return self._known.get(tuple(params.items())) if self.cache else None

    def take(self, params: Params, outcome: Outcome) -> None:
        """Count an evaluation."""
        self.evaluations += 1
        if self.cache and (self.recalls_failures or not outcome.failed):
            self._known[tuple(params.items())] = outcome
        if outcome.failed:
            self.failures += 1
            self.first_error = self.first_error or outcome.error
            return
        if self.best is None or outcome.order < self.best.order:
            self.improvements.append(Best(params, outcome.value, outcome.violation, self.evaluations))

    def see(self, outcome: Outcome, evaluated: bool) -> None:
        """Note the outcome of a candidate of the present run, whether it was evaluated or known."""
        self.idle = 0 if evaluated else self.idle + 1
        if outcome.feasible:
            self.run_best = min(self.run_best, outcome.value)

    def begin_run(self, evaluations_before: int) -> None:
        self.run_start = evaluations_before
        self.run_best = math.inf
        self.idle = 0

    def end_run(self, popsize: int, stop: StopReason) -> None:
        self.runs.append(Run(popsize, self.evaluations - self.run_start, self.run_best, stop))
