"""minimize(): the loop that joins optimizer, evaluation and restarts."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Literal

from mixcma.core.methods import Cma
from mixcma.core.stopping import (
    BUDGET,
    CALLBACK,
    EXHAUSTED,
    FAILING,
    INTERRUPTED,
    TARGET,
    Stopping,
    StopReason,
)
from mixcma.core.strategy import default_popsize
from mixcma.encoding import Encoding
from mixcma.evaluation import Objective, evaluate
from mixcma.noise import fresh_seed
from mixcma.optimizer import Best, Optimizer, checked_count, checked_seed, checked_space
from mixcma.outcome import Outcome
from mixcma.progress import Progress, progress_display
from mixcma.restarts import ipop_popsize, start_mean
from mixcma.space import Params, Space, Value

logger = logging.getLogger("mixcma")
Callback = Callable[[Progress], object]


@dataclass(frozen=True)
class Run:
    """One run of a search with restarts."""

    popsize: int
    evaluations: int
    best_value: float
    stop: StopReason


@dataclass(frozen=True)
class Result:
    """What a search found, and why it ended.

    Attributes
    ----------
    params, value
        The best point and its value: a feasible one if any was found. None and inf if all failed.
    violation
        Total constraint violation of that point; 0 where feasible.
    evaluations, failures
        Calls of the objective, and how many of them failed.
    stop
        Why it ended, with advice: ``print(result.stop)``.
    runs
        The runs it consists of: one, and one more for every restart.
    seed
        With it, the same search can be made again.
    first_error
        The first failed evaluation's error, or None.
    """

    params: Params | None
    value: float
    violation: float
    evaluations: int
    failures: int
    stop: StopReason
    runs: tuple[Run, ...]
    seed: int
    first_error: str | None

    @property
    def feasible(self) -> bool:
        return self.violation == 0.0


@dataclass
class _Search:
    """The mutable account of one call of `minimize`."""

    objective: Objective
    budget: int
    target: float | None
    callback: Callback | None
    display: Callback | None
    raise_errors: bool
    known: dict[tuple[Value, ...], Outcome] | None  # outcomes by point, where no point is evaluated twice
    evaluations: int = 0
    failures: int = 0
    first_error: str | None = None
    best: Best | None = None
    run_best: float = math.inf
    runs: list[Run] = field(default_factory=list)

    def run(self, optimizer: Optimizer) -> StopReason:
        """One run to its end: the search's own reason to stop, or the run's."""
        self.run_best, before, reason = math.inf, self.evaluations, INTERRUPTED
        try:
            reason = self._generations(optimizer)
        finally:
            self.runs.append(Run(optimizer.popsize, self.evaluations - before, self.run_best, reason))
        return reason

    def _generations(self, optimizer: Optimizer) -> StopReason:
        while not optimizer.stop:
            reason = self._generation(optimizer)
            if reason is not None:
                return reason
        return optimizer.stop

    def _generation(self, optimizer: Optimizer) -> StopReason | None:
        candidates, outcomes = optimizer.ask(), []
        for candidate in candidates:
            outcome = self._recall(candidate.params)
            if outcome is None:
                if self.evaluations >= self.budget:
                    return BUDGET
                outcome = evaluate(self.objective, candidate.params, self.raise_errors)
                self._record(candidate.params, outcome)
                if self.display is not None:
                    self.display(self._progress(optimizer))
            if outcome.feasible:
                self.run_best = min(self.run_best, outcome.value)
            if self._reached():
                return TARGET
            outcomes.append(outcome)
        optimizer.tell(candidates, outcomes)
        if self.callback is not None and self.callback(self._progress(optimizer)):
            return CALLBACK
        return None

    def _recall(self, params: Params) -> Outcome | None:
        return None if self.known is None else self.known.get(tuple(params.values()))

    def _record(self, params: Params, outcome: Outcome) -> None:
        self.evaluations += 1
        if self.known is not None:
            self.known[tuple(params.values())] = outcome
        if outcome.failed:
            self.failures += 1
            if self.first_error is None:
                self.first_error = outcome.error
                message = "evaluation %d failed: %s; it is ranked last, and later failures are only counted"
                logger.warning(message, self.evaluations, outcome.error)
            return
        key = (outcome.violation, outcome.value)
        if self.best is None or key < (self.best.violation, self.best.value):
            self.best = Best(params, outcome.value, outcome.violation, self.evaluations)

    def _reached(self) -> bool:
        best = self.best
        return self.target is not None and best is not None and best.feasible and best.value <= self.target

    def _progress(self, optimizer: Optimizer) -> Progress:
        return Progress(
            evaluations=self.evaluations,
            budget=self.budget,
            run=optimizer.run,
            generation=optimizer.generation,
            popsize=optimizer.popsize,
            step_size=optimizer.step_size,
            failures=self.failures,
            best=self.best,
        )

    def result(self, stop: StopReason, seed: int) -> Result:
        best = self.best
        return Result(
            params=None if best is None else dict(best.params),
            value=math.inf if best is None else best.value,
            violation=math.inf if best is None else best.violation,
            evaluations=self.evaluations,
            failures=self.failures,
            stop=stop,
            runs=tuple(self.runs),
            seed=seed,
            first_error=self.first_error,
        )


def minimize(
    objective: Objective,
    space: Space,
    *,
    budget: int,
    target: float | None = None,
    method: str | Cma = "margin",
    seed: int | None = None,
    popsize: int | None = None,
    restarts: bool | int = True,
    callback: Callback | None = None,
    progress: bool = False,
    on_error: Literal["fail", "raise"] = "fail",
    cache: bool | None = None,
    stopping: Stopping = Stopping(),
) -> Result:
    """Minimise `objective` over `space`.

    Parameters
    ----------
    objective
        Called with a dict of Python floats, ints and bools; returns a number, or an `Outcome` with
        constraints. If it raises or returns NaN, the evaluation has failed and is ranked last.
    budget
        The largest number of evaluations.
    target
        Stop as soon as a feasible value is at or below this.
    method, popsize, stopping
        As for `Optimizer`; `popsize` is that of the first run.
    seed
        The same seed gives the same search; None draws one, reported in the result.
    restarts
        Whether to start again, with a doubled population and from a random point, when a run has
        converged before the budget is spent; a number allows at most so many restarts.
    callback
        Called after every generation with a `Progress`; a true return value stops the search.
    progress
        Show a live display in the terminal.
    on_error
        ``"fail"`` counts an exception as a failed evaluation, ``"raise"`` lets it through.
    cache
        Whether a point that was evaluated before is answered from memory, at no cost to the budget.
        Default: where every variable is discrete.

    Examples
    --------
    >>> from mixcma import Bool, Float, Int, Space, minimize
    >>> space = Space({"x": Float(-5, 5), "n": Int(0, 9), "on": Bool()})
    >>> def cost(p):
    ...     return p["x"]**2 + (p["n"] - 3)**2 + p["on"]
    >>> result = minimize(cost, space, budget=2000, target=1e-9, seed=1)
    >>> result.params["n"], result.params["on"], result.stop.name
    (3, False, 'target')
    """
    _check_settings(objective, target, restarts, callback, cache, on_error)
    checked_space(space)
    budget = checked_count("budget", budget, 1)
    seed = fresh_seed() if seed is None else checked_seed(seed)
    cache = space.size is not None if cache is None else cache
    encoding = Encoding(space)
    first = default_popsize(encoding.dimension) if popsize is None else popsize
    allowed = math.inf if restarts is True else int(restarts)
    known: dict[tuple[Value, ...], Outcome] | None = {} if cache else None
    with progress_display(budget) if progress else nullcontext(None) as display:
        search = _Search(objective, budget, target, callback, display, on_error == "raise", known)

        def optimizer_of(run: int) -> Optimizer:
            return Optimizer(
                space,
                method=method,
                seed=seed,
                popsize=ipop_popsize(first, run),
                mean=start_mean(encoding, seed, run),
                stopping=stopping,
                run=run,
            )

        try:
            stop = _search(search, optimizer_of, allowed, space.size if cache else None)
        except KeyboardInterrupt:
            stop = INTERRUPTED
    return search.result(stop, seed)


def _search(
    search: _Search, optimizer_of: Callable[[int], Optimizer], restarts: float, points: int | None
) -> StopReason:
    """Run after run until there is a reason to stop; `points` is the size of a space whose points are remembered."""
    run = 0
    while True:
        optimizer, before = optimizer_of(run), search.evaluations
        reason = search.run(optimizer)
        logger.info("run %d ended after %d evaluations: %s", run, search.evaluations - before, reason)
        if reason is not optimizer.stop or reason is FAILING or run >= restarts:
            return reason
        if points is not None and search.evaluations in (before, points):
            return EXHAUSTED
        run += 1


def _check_settings(
    objective: object, target: object, restarts: object, callback: object, cache: object, on_error: object
) -> None:
    if not callable(objective):
        raise ValueError(f"objective: expected a function of a dict, but got {objective!r}; pass a callable")
    if target is not None and (isinstance(target, bool) or not isinstance(target, Real) or math.isnan(target)):
        raise ValueError(f"target: expected a number or None, but got {target!r}; leave it out")
    if not isinstance(restarts, Integral) or restarts < 0:
        raise ValueError(f"restarts: expected True, False or a number of restarts, but got {restarts!r}; pass True")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback: expected a function of a Progress or None, but got {callback!r}; pass a callable")
    if cache is not None and not isinstance(cache, bool):
        raise ValueError(f"cache: expected True, False or None, but got {cache!r}; leave it out")
    if on_error not in ("fail", "raise"):
        raise ValueError(f'on_error: expected "fail" or "raise", but got {on_error!r}; choose one of them')
