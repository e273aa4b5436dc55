"""Search: run after run, until there is a reason to stop; what both ways of evaluating share."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from mixcma.core.stopping import BUDGET, EXHAUSTED, FAILING, INTERRUPTED, TARGET, StopReason
from mixcma.evaluation import Evaluator, Finished
from mixcma.run.optimizer import Optimizer
from mixcma.run.outcome import Outcome
from mixcma.search.account import Account
from mixcma.search.interrupts import Interrupts
from mixcma.search.progress import Progress
from mixcma.space import Params, Value
from mixcma.store import Entry, NoFile, Record, RunFile

logger = logging.getLogger("mixcma")
Callback = Callable[[Progress], object]


class Plan(NamedTuple):
    """Where the outcomes of candidates come from."""

    source: list[int]  # the candidate whose outcome is each one's; shorter where the budget ends
    answers: dict[int, Outcome]
    evaluated: set[int]  # those that cost an evaluation


class Search(ABC):
    def __init__(
        self,
        evaluator: Evaluator,
        account: Account,
        file: RunFile | NoFile,
        interrupts: Interrupts,
        *,
        callback: Callback | None,
        display: Callback | None,
        raise_errors: bool,
    ) -> None:
        self.evaluator = evaluator
        self.account = account
        self.file = file
        self.interrupts = interrupts
        self.callback = callback
        self.display = display
        self.raise_errors = raise_errors

    def run_all(
        self, optimizer: Optimizer, optimizer_of: Callable[[int], Optimizer], restarts: float, points: int | None
    ) -> StopReason:
        """Run after run. `points` is the size of a space whose points are remembered, else None."""
        reason = self._begin(optimizer)
        if reason is not None:
            return reason
        account = self.account
        while True:
            if account.reached:  # by what the run file holds
                return TARGET
            reason = self._one_run(optimizer)
            logger.info("run %d ended after %d evaluations: %s", optimizer.run, account.evaluations, reason)
            if reason is not optimizer.stop or reason is FAILING or optimizer.run >= restarts:
                return reason
            if points is not None and account.evaluations in (account.run_start, points):
                return EXHAUSTED
            earlier, optimizer = optimizer, optimizer_of(optimizer.run + 1)
            optimizer.follow(earlier)
            account.begin_run(account.evaluations)
            self.file.begin_run(optimizer, account.run_start)

    @abstractmethod
    def go_on_from(self, record: Record, optimizer: Optimizer) -> None:
        """Take up what a run file holds beyond its snapshot."""

    @abstractmethod
    def _run(self, optimizer: Optimizer) -> StopReason:
        """One run to its end: the search's own reason to stop, or the run's."""

    def _one_run(self, optimizer: Optimizer) -> StopReason:
        reason = INTERRUPTED
        try:
            reason = self._run(optimizer)
        finally:
            self.account.end_run(optimizer.popsize, reason)
        if reason is optimizer.stop:
            self.file.end_run(optimizer, self.account.run_start, reason)
        return reason

    def _begin(self, optimizer: Optimizer) -> StopReason | None:
        """Evaluate the points given as x0; the best of them is where the first run starts."""
        entries = self.file.x0()
        if not entries or (optimizer.run, optimizer.generation) != (0, 0):
            return None
        outcomes, reason = self._together(optimizer, entries)
        if reason is None:
            outcome, best = min(zip(outcomes, entries), key=lambda pair: pair[0].order)
            if not outcome.failed:
                optimizer.move_to(best.params)
                self.file.moved(optimizer)
        return reason

    def _together(self, optimizer: Optimizer, entries: list[Entry]) -> tuple[list[Outcome], StopReason | None]:
        """Evaluate candidates and take their outcomes in their own order; and why they are not all there.

        What counts is decided in the order of the candidates, so it does not depend on who finishes first:
        a target reached by one makes those behind it superfluous, even if they are finished.
        """
        plan, outcomes = self._plan(entries), list[Outcome]()
        for slot, (id, params, _, _) in enumerate(entries):
            source = plan.source[slot] if slot < len(plan.source) else None
            if source is None:
                return outcomes, BUDGET
            try:
                while source not in plan.answers:
                    self._receive(plan, entries)
            except KeyboardInterrupt:  # what came in is paid for: it counts in the partial result
                for paid in sorted(plan.evaluated & plan.answers.keys()):
                    if paid >= slot:
                        self._take(optimizer, entries[paid].params, plan.answers[paid])
                raise
            outcome = plan.answers[source]
            outcomes.append(outcome)
            self.account.see(outcome)
            if slot in plan.evaluated:
                self._take(optimizer, params, outcome)
            else:
                self.file.known(id, outcome)
            if self.account.reached:
                return outcomes, TARGET
        return outcomes, None

    def _plan(self, entries: list[Entry]) -> Plan:
        """Where the outcome of each candidate will come from; what must be evaluated is submitted."""
        plan = Plan([], {}, set())
        first: dict[tuple[Value, ...], int] = {}  # the candidate that a point is evaluated for
        affordable = self.account.budget - self.account.evaluations
        for slot, entry in enumerate(entries):
            known = entry.outcome if entry.outcome is not None else self.account.recall(entry.params)
            point = tuple(entry.params.values())
            if known is not None:
                plan.answers[slot] = known
                if entry.outcome is not None and not entry.known:  # the file has its evaluation
                    plan.evaluated.add(slot)
                    affordable -= 1
            elif self.account.cache and point in first:
                plan.source.append(first[point])
                continue
            elif affordable <= 0:
                break
            else:
                self.evaluator.submit(entry.id, entry.params)
                plan.evaluated.add(slot)
                affordable -= 1
            plan.source.append(slot)
            first.setdefault(point, slot)
        return plan

    def _receive(self, plan: Plan, entries: list[Entry]) -> None:
        """Wait for an evaluation; it is in the file before it counts."""
        id, report = self._next()
        self.file.finished(id, report)
        plan.answers[id - entries[0].id] = report.outcome  # their numbers are consecutive

    def _next(self) -> Finished:
        with self.interrupts.allowed():
            finished = self.evaluator.next()
        report = finished.report
        if self.raise_errors and report.outcome.failed:
            report.raise_failure()
        return finished

    def _take(self, optimizer: Optimizer, params: Params, outcome: Outcome) -> None:
        account = self.account
        account.take(params, outcome)
        if outcome.failed and account.failures == 1:
            message = "evaluation %d failed: %s; it is ranked last, and later failures are only counted"
            logger.warning(message, account.evaluations, outcome.error)
        if self.display is not None:
            self.display(self._progress(optimizer))

    def _asks_to_stop(self, optimizer: Optimizer) -> bool:
        if self.callback is None:
            return False
        with self.interrupts.allowed():
            return bool(self.callback(self._progress(optimizer)))

    def _progress(self, optimizer: Optimizer) -> Progress:
        return Progress(
            evaluations=self.account.evaluations,
            budget=self.account.budget,
            run=optimizer.run,
            generation=optimizer.generation,
            popsize=optimizer.popsize,
            step_size=optimizer.step_size,
            failures=self.account.failures,
            best=self.account.best,
        )
