"""Search: run after run, until there is a reason to stop; what both ways of evaluating share."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from mixcma.core.stopping import BUDGET, CALLBACK, EXHAUSTED, FAILING, INTERRUPTED, TARGET, StopReason
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

# A run ends when this many generations in a row contain only points that are known already. Runs that still find
# something new have much shorter gaps; and the budget cannot end a run that costs nothing.
LONGEST_IDLE = 100


class Plan(NamedTuple):
    """Where the outcomes of candidates come from."""

    source: list[int]  # for each candidate, the one whose outcome is its own; the list ends where the budget does
    answers: dict[int, Outcome]
    evaluated: set[int]  # the candidates that cost an evaluation
    slots: dict[int, int]  # the place of each candidate by its number


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

    def run_all(self, optimizer: Optimizer, optimizer_of: Callable[[int], Optimizer], restarts: float) -> StopReason:
        """Run after run, until there is a reason to stop."""
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
            if account.cache and account.evaluations == account.run_start:  # a whole run proposed nothing new
                return EXHAUSTED
            earlier, optimizer = optimizer, optimizer_of(optimizer.run + 1)
            optimizer.follow(earlier)
            account.begin_run(account.evaluations)
            self.file.begin_run(optimizer, account.run_start)

    @abstractmethod
    def go_on_from(self, record: Record, optimizer: Optimizer) -> None:
        """Take up what a run file holds that is newer than its snapshot."""

    @abstractmethod
    def _run(self, optimizer: Optimizer) -> StopReason:
        """Carry one run to its end; returns why the search ends, or why this run did (`optimizer.stop`)."""

    def _one_run(self, optimizer: Optimizer) -> StopReason:
        reason = INTERRUPTED
        try:
            reason = self._exhausted() or self._run(optimizer)
        finally:
            self.account.end_run(optimizer.popsize, reason)
        if reason is optimizer.stop:
            self.file.end_run(optimizer, self.account.run_start, reason)
        return reason

    def _begin(self, optimizer: Optimizer) -> StopReason | None:
        """Evaluate the points given as x0; the first run starts at the best of them."""
        entries = self.file.x0()
        if not entries or (optimizer.run, optimizer.generation) != (0, 0):
            return None
        outcomes, reason = self._together(optimizer, entries)
        if reason is None:
            optimizer.start_from([(entry.params, outcome) for entry, outcome in zip(entries, outcomes)])
        return reason

    def _together(self, optimizer: Optimizer, entries: list[Entry]) -> tuple[list[Outcome], StopReason | None]:
        """Evaluate candidates and take their outcomes in the order of the candidates.

        Returns the outcomes, and the reason if some are missing. What counts is decided in the order of the candidates,
        so it does not depend on which evaluation finishes first: when one reaches the target, those behind it do not
        count, even if they are finished.
        """
        plan, outcomes = self._plan(entries), list[Outcome]()
        for slot, (id, params, _, _) in enumerate(entries):
            source = plan.source[slot] if slot < len(plan.source) else None
            if source is None:
                return outcomes, BUDGET
            try:
                while source not in plan.answers:
                    self._receive(plan)
            except KeyboardInterrupt:  # finished evaluations are paid for: they count in the partial result
                for paid in sorted(plan.evaluated & plan.answers.keys()):
                    if paid >= slot:
                        self._take(optimizer, entries[paid].params, plan.answers[paid])
                raise
            outcome = plan.answers[source]
            outcomes.append(outcome)
            self.account.see(outcome, slot in plan.evaluated)
            if slot in plan.evaluated:
                self._take(optimizer, params, outcome)
            else:
                self.file.record_known(id, outcome)
            if self.account.reached:
                return outcomes, TARGET
        return outcomes, None

    def _plan(self, entries: list[Entry]) -> Plan:
        """Decide where the outcome of each candidate comes from, and submit those that must be evaluated."""
        plan = Plan([], {}, set(), {entry.id: slot for slot, entry in enumerate(entries)})
        first: dict[tuple[tuple[str, Value], ...], int] = {}  # the first candidate at each point
        affordable = self.account.budget - self.account.evaluations
        for slot, entry in enumerate(entries):
            known = entry.outcome if entry.outcome is not None else self.account.recall(entry.params)
            point = tuple(entry.params.items())
            if known is not None:
                plan.answers[slot] = known
                if entry.outcome is not None and not entry.known:  # the file holds its evaluation
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

    def _receive(self, plan: Plan) -> None:
        """Wait for an evaluation; it is in the file before it counts."""
        id, call = self._next()
        self.file.finished(id, call)
        plan.answers[plan.slots[id]] = call.outcome

    def _next(self) -> Finished:
        with self.interrupts.allowed():
            finished = self.evaluator.next()
        if self.raise_errors and finished.call.outcome.failed:
            finished.call.raise_failure()
        return finished

    def _take(self, optimizer: Optimizer, params: Params, outcome: Outcome) -> None:
        account = self.account
        account.take(params, outcome)
        if outcome.failed and account.failures == 1:
            message = "evaluation %d failed: %s; it is ranked last, and later failures are only counted%s"
            where = "" if outcome.traceback is None else f"\n{outcome.traceback.rstrip()}"
            logger.warning(message, account.evaluations, outcome.error, where)
        if self.display is not None:
            self.display(self._progress(optimizer))

    def _generation_ended(self, optimizer: Optimizer) -> StopReason | None:
        """Called after every generation, also after one that cost no evaluation; returns why the search ends."""
        self.interrupts.check()
        if self.callback is not None:
            with self.interrupts.allowed():
                if self.callback(self._progress(optimizer)):
                    return CALLBACK
        if self.account.idle >= LONGEST_IDLE * optimizer.popsize:
            optimizer.stop = optimizer.stop or EXHAUSTED
        return self._exhausted()

    def _exhausted(self) -> StopReason | None:
        """The reason to stop where every point of the space has been evaluated."""
        if not self.account.exhausted:
            return None
        return FAILING if self.account.best is None else EXHAUSTED

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
