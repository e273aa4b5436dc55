"""Result by result: every worker is kept busy, and a generation closes when enough results are in."""

from __future__ import annotations

from typing import Any

from mixcma.core.stopping import BUDGET, TARGET, StopReason
from mixcma.run.optimizer import Optimizer
from mixcma.run.outcome import Outcome
from mixcma.run.stream import EXPLORED, Drawn, Stream
from mixcma.search.base import Search
from mixcma.store import Record, Row


class AsynchronousSearch(Search):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._flying: dict[int, Drawn] = {}  # candidates under evaluation, by their number in the file
        self._followers: dict[int, list[tuple[int, Drawn]]] = {}  # later draws of a point that is under evaluation
        self._unused: list[Row] = []  # results in the file that are newer than the snapshot
        self._unfinished: list[Row] = []  # candidates in the file that were under evaluation
        self._slots = 0  # how many draws of the present run the file holds

    def go_on_from(self, record: Record, optimizer: Optimizer) -> None:
        """Results newer than the snapshot are used in their order; unfinished candidates are evaluated again."""
        drawn = [row for row in record.rows if row.latent is not None]
        later = [row for row in drawn if row.counted is not None and row.counted > record.snapshot.numbers["counted"]]
        self._unused = sorted(later, key=lambda row: row.counted or 0)
        self._unfinished = [row for row in drawn if not row.finished]
        self._slots = 1 + max((row.slot % EXPLORED for row in drawn if row.run == optimizer.run), default=-1)

    def _run(self, optimizer: Optimizer) -> StopReason:
        if not self._slots:
            self.file.opened(optimizer)
        stream, self._slots = Stream(optimizer, self._slots), 0
        reason = self._take_up(stream)
        while reason is None and not optimizer.stop:
            reason = self._fill(stream)
            if reason is None and not optimizer.stop:
                reason = self._receive_one(stream) if self._flying else self._exhausted() or BUDGET
        while reason is None and self.account.cache and self._flying:  # else "exhausted" could be said too early
            reason = self._receive_one(stream)
        return reason or optimizer.stop or BUDGET

    def _take_up(self, stream: Stream) -> StopReason | None:
        """Use the results that the run file holds, then evaluate its unfinished candidates again."""
        unused, self._unused = self._unused, []
        for row in unused:
            assert row.outcome is not None
            assert row.counted is not None
            reason = self._use(stream, _drawn(row), row.outcome, row.evaluated, row.counted)
            if reason is not None:
                return reason
        unfinished, self._unfinished = self._unfinished, []
        for row in unfinished[: max(0, self.account.budget - self.account.evaluations)]:
            reason = self._answer_or_submit(stream, row.id, _drawn(row))
            if reason is not None:
                return reason
        return None

    def _fill(self, stream: Stream) -> StopReason | None:
        """Draw from the newest state until every worker is busy, or the rest of the budget is under evaluation."""
        optimizer, account = stream.optimizer, self.account
        capacity = self.evaluator.capacity or optimizer.popsize
        known = 0
        while len(self._flying) < capacity and not optimizer.stop:
            if account.evaluations + len(self._flying) >= account.budget or self._following() >= optimizer.popsize:
                return None
            if self._flying and known >= optimizer.popsize:  # results under way may change what is drawn
                return None
            drawn = stream.draw(waiting=list(self._flying.values()))
            reason = self._answer_or_submit(stream, self.file.drawn(drawn), drawn)
            if reason is not None:
                return reason
            known += account.recall(drawn.params) is not None
        return None

    def _answer_or_submit(self, stream: Stream, id: int, drawn: Drawn) -> StopReason | None:
        known = self.account.recall(drawn.params)
        if known is None:
            self._submit(id, drawn)
            return None
        counted = self.file.record_known(id, known, counts=True)
        return self._use(stream, drawn, known, False, counted)

    def _submit(self, id: int, drawn: Drawn) -> None:
        if self.account.cache:
            for other, flying in self._flying.items():
                if flying.params == drawn.params:
                    self._followers.setdefault(other, []).append((id, drawn))
                    return
        self._flying[id] = drawn
        self.evaluator.submit(id, drawn.params)

    def _following(self) -> int:
        return sum(map(len, self._followers.values()))

    def _receive_one(self, stream: Stream) -> StopReason | None:
        id, call = self._next()
        drawn = self._flying.pop(id)
        counted = self.file.finished(id, call, counts=True)
        reason = self._use(stream, drawn, call.outcome, True, counted)
        for follower, same in self._followers.pop(id, []):
            counted = self.file.record_known(follower, call.outcome, counts=True)
            reason = reason or self._use(stream, same, call.outcome, False, counted)
        return reason

    def _use(self, stream: Stream, drawn: Drawn, outcome: Outcome, evaluated: bool, counted: int) -> StopReason | None:
        """Take a result, which was the `counted`-th, and learn from it."""
        optimizer = stream.optimizer
        if evaluated:
            self._take(optimizer, drawn.params, outcome)
        if drawn.run == optimizer.run:
            self.account.see(outcome, evaluated)
        if self.account.reached:
            return TARGET
        if not optimizer.stop and stream.take(drawn, outcome):
            self.file.closed(optimizer, counted)
            return self._generation_ended(optimizer)
        return None


def _drawn(row: Row) -> Drawn:
    assert row.latent is not None
    return Drawn(row.params, row.latent, row.run, row.generation, row.slot, foreign=row.slot >= EXPLORED)
