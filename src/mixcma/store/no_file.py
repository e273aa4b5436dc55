"""NoFile: stands in for the run file of a search that keeps none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mixcma.core.stopping import StopReason
from mixcma.evaluation import CallResult
from mixcma.run.optimizer import Candidate, Optimizer
from mixcma.run.outcome import Outcome
from mixcma.run.stream import Drawn
from mixcma.space import Params


class Entry(NamedTuple):
    """A candidate to evaluate, with its number in the file, and its outcome if that is known."""

    id: int
    params: Params
    outcome: Outcome | None = None
    known: bool = False  # whether the outcome is that of another candidate, and cost no evaluation


class NoFile:
    """Numbers the candidates, as `RunFile` does, and writes nothing."""

    path = None
    record = None

    def __init__(self, x0: Sequence[Params]) -> None:
        self._x0 = x0
        self._ids = 0

    def slots(self, optimizer: Optimizer) -> list[int]:
        return []

    def asked(self, optimizer: Optimizer, candidates: Sequence[Candidate]) -> list[Entry]:
        return self._numbered([candidate.params for candidate in candidates])

    def x0(self) -> list[Entry]:
        return self._numbered(self._x0)

    def drawn(self, drawn: Drawn) -> int:
        self._ids += 1
        return self._ids

    def _numbered(self, points: Sequence[Params]) -> list[Entry]:
        first, self._ids = self._ids + 1, self._ids + len(points)
        return [Entry(id, params) for id, params in enumerate(points, start=first)]

    def begin_run(self, optimizer: Optimizer, evaluations_before: int) -> None: ...

    def end_run(self, optimizer: Optimizer, evaluations_before: int, stop: StopReason) -> None: ...

    def opened(self, optimizer: Optimizer) -> None: ...

    def closed(self, optimizer: Optimizer, counted: int) -> None: ...

    def finished(self, id: int, call: CallResult, counts: bool = False) -> int:
        return 0

    def record_known(self, id: int, outcome: Outcome, counts: bool = False) -> int:
        return 0

    def flush(self) -> None: ...

    def settle(self) -> None: ...

    def set(self, name: str, value: object) -> None: ...

    def close(self) -> None: ...
