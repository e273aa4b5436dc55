"""RunFile: what a search writes as it runs."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from mixcma.core.stopping import StopReason
from mixcma.evaluation import CallResult
from mixcma.run.optimizer import Candidate, Optimizer
from mixcma.run.outcome import Outcome
from mixcma.run.stream import Drawn
from mixcma.space import Params, Space, Value
from mixcma.store.held import Cells
from mixcma.store.names import check_name
from mixcma.store.no_file import Entry
from mixcma.store.reading import Record, Row, read
from mixcma.store.schema import (
    DONE,
    FAILED,
    KNOWN,
    PENDING,
    TIMED_OUT,
    DamagedRunFile,
    pack,
)
from mixcma.store.writer import Writer

logger = logging.getLogger("mixcma")

# Writing snapshots may cost this fraction of writing the evaluations between them.
SNAPSHOT_SHARE = 0.25
# An evaluation that took this many seconds is committed at once; faster ones share a commit every COMMIT_EVERY seconds.
WORTH_A_COMMIT = 0.001
COMMIT_EVERY = 0.01
# The generation of the points given as x0.
X0_GENERATION = -1
# Values this close are the same number, rounded differently.
SAME_POINT = 1e-6


class RunFile:
    """Writes a run file."""

    def __init__(self, path: Path, must_exist: bool = False) -> None:
        """Take the lock. `record` is what the file holds; None if there is no file yet."""
        self._writer = _writer_of(path)
        self._pending: dict[int, Cells] = {}
        self._space: Space  # once the file is created or read
        self._recorded: dict[tuple[int, int], list[Row]] = {}
        self._ids = self._generation_ids = 0
        self._counted = 0
        self._since_snapshot = 0
        self.record: Record | None = None
        try:
            if must_exist or path.exists():
                self.record = read(path)
                self._go_on(self.record)
        except BaseException:
            self._writer.close()
            raise

    @property
    def path(self) -> Path:
        """Where the file is. It changes if the file is removed, replaced or changed while the search runs."""
        return self._writer.path

    def create(self, settings: Mapping[str, object], optimizer: Optimizer, x0: Sequence[Params]) -> None:
        """Create the file; it appears complete, since it is written under another name and then renamed."""
        self._space = optimizer.space
        for name, value in settings.items():
            self.set(name, value)
        told = optimizer.told_before
        self.set("history", [[*self._space.row(p), float(outcome.value), *outcome.constraints] for p, outcome in told])
        self.begin_run(optimizer, 0)
        for slot, params in enumerate(x0):
            self._candidate(0, X0_GENERATION, slot, params, None)
        self._writer.create()
        self._recorded = _by_generation(read(self.path).rows)

    def begin_run(self, optimizer: Optimizer, evaluations_before: int) -> None:
        """The first run or a restart begins. This is committed with its first generation."""
        self._writer.put("run", (optimizer.run, optimizer.popsize, evaluations_before, None))
        self._snapshot(optimizer, self._counted)

    def end_run(self, optimizer: Optimizer, evaluations_before: int, stop: StopReason) -> None:
        self._writer.put("run", (optimizer.run, optimizer.popsize, evaluations_before, stop.name))
        self._snapshot(optimizer, self._counted)
        self._writer.commit()

    def slots(self, optimizer: Optimizer) -> list[int]:
        """The slots of the next generation that the file holds already."""
        return [row.slot for row in self._recorded.get((optimizer.run, optimizer.generation), [])]

    def asked(self, optimizer: Optimizer, candidates: Sequence[Candidate]) -> list[Entry]:
        """A generation was drawn: write its candidates, its distribution, and now and then a snapshot.

        If the file holds the generation already, its candidates come back with the outcomes that are known.
        """
        recorded = self._recorded.pop((optimizer.run, optimizer.generation), None)
        if recorded is not None:
            self._check_same(recorded, candidates)
            return self._entries(recorded, optimizer, candidates)
        self._distribution(optimizer)
        if self._since_snapshot >= _snapshot_interval(optimizer):
            self._snapshot(optimizer, 0)
        self._since_snapshot += 1
        run, generation = optimizer.run, optimizer.generation
        entries = [
            Entry(self._candidate(run, generation, candidate.slot, candidate.params, None), candidate.params)
            for candidate in candidates
        ]
        self._writer.commit()
        return entries

    def x0(self) -> list[Entry]:
        """The points to evaluate before the first generation."""
        return [_entry(row) for row in self._recorded.get((0, X0_GENERATION), [])]

    def drawn(self, drawn: Drawn) -> int:
        """One candidate of an asynchronous run was drawn; returns its number."""
        id = self._candidate(drawn.run, drawn.generation, drawn.slot, drawn.params, drawn.latents.tobytes())
        self._writer.commit()
        return id

    def opened(self, optimizer: Optimizer) -> None:
        """An asynchronous run begins to draw. This is committed with its first candidate."""
        self._distribution(optimizer)

    def closed(self, optimizer: Optimizer, counted: int) -> None:
        """A generation of an asynchronous run was closed by the result with the number `counted`."""
        self._distribution(optimizer)
        self._snapshot(optimizer, counted)
        self._writer.commit()

    def finished(self, id: int, call: CallResult, counts: bool = False) -> int:
        """An evaluation has finished. It is in the file when this returns, but very fast ones share a commit.

        In an asynchronous run it `counts`: results are numbered in the order of their use.
        """
        status = TIMED_OUT if call.timed_out else FAILED if call.outcome.failed else DONE
        self._finish(id, status, call.outcome, call.started, call.seconds, counts)
        if call.seconds >= WORTH_A_COMMIT or time.monotonic() - self._writer.committed >= COMMIT_EVERY:
            self._writer.commit()
        return self._counted

    def flush(self) -> None:
        """Every finished evaluation is in the file when this returns; called before a generation counts."""
        self._writer.commit()

    def record_known(self, id: int, outcome: Outcome, counts: bool = False) -> int:
        """A candidate was answered without an evaluation. This is written with the next commit."""
        self._finish(id, KNOWN, outcome, None, None, counts)
        return self._counted

    def set(self, name: str, value: object) -> None:
        """Change a setting. This is written with the next commit."""
        self._writer.put("setting", (name, json.dumps(value, default=_plain)))

    def settle(self) -> None:
        """Everything is in the file when this returns, and `path` is where it is; called at the end of a search."""
        self._writer.settle()

    def close(self) -> None:
        """Write what is left, and release the lock."""
        self._writer.close()

    # Rows

    def _candidate(self, run: int, generation: int, slot: int, params: Params, latent: bytes | None) -> int:
        self._ids += 1
        row = _pending_row(self._ids, run, generation, slot, self._space.row(params), latent)
        self._pending[self._ids] = row
        self._writer.put("evaluation", row)
        return self._ids

    def _finish(
        self, id: int, status: str, outcome: Outcome, started: float | None, seconds: float | None, counts: bool
    ) -> None:
        row = self._pending.pop(id, None)
        if row is None:  # the file holds its outcome already
            return
        value = None if outcome.failed else outcome.value + 0.0  # SQLite does not keep the sign of -0.0
        constraints = json.dumps(list(outcome.constraints)) if outcome.constraints else None
        self._counted += counts
        counted = self._counted if counts else None
        traceback = None if status == KNOWN else outcome.traceback  # it stands with the evaluation that raised it
        result = (status, value, constraints, outcome.error, started, seconds, counted)
        self._writer.put("evaluation", (*row[:5], *result, row[-2], traceback))

    def _distribution(self, optimizer: Optimizer) -> None:
        state = optimizer.state
        self._generation_ids += 1
        ratio = math.sqrt(state.eigenvalues[-1] / state.eigenvalues[0])
        about = (self._generation_ids, optimizer.run, optimizer.generation, optimizer.step_size, ratio)
        arrays = state.m, optimizer.method.spread(state), optimizer.method.probabilities(state)
        self._writer.put("generation", (*about, *(array.tobytes() for array in arrays)))

    def _snapshot(self, optimizer: Optimizer, counted: int) -> None:
        self._writer.put("snapshot", snapshot_row(optimizer, counted))
        self._since_snapshot = 0

    def _go_on(self, record: Record) -> None:
        """Continue the numbering of what the file holds."""
        self._writer.go_on(record)
        self._space = record.space
        self._ids = max((row.id for row in record.rows), default=0)
        self._generation_ids = max((generation.id for generation in record.generations), default=0)
        self._counted = max((row.counted or 0 for row in record.rows), default=0)
        self._recorded = _by_generation(record.rows)
        for row in record.rows:
            if not row.finished:
                latent = None if row.latent is None else row.latent.tobytes()
                values = record.space.row(row.params)
                self._pending[row.id] = _pending_row(row.id, row.run, row.generation, row.slot, values, latent)

    def _entries(self, recorded: list[Row], optimizer: Optimizer, candidates: Sequence[Candidate]) -> list[Entry]:
        """The candidates of a generation in the file; in a salvaged file some may be lost, which are put in again."""
        entries = {row.slot: _entry(row) for row in recorded}
        for candidate in candidates:
            if candidate.slot not in entries:
                id = self._candidate(optimizer.run, optimizer.generation, candidate.slot, candidate.params, None)
                entries[candidate.slot] = Entry(id, candidate.params)
        return [entries[candidate.slot] for candidate in candidates]

    def _check_same(self, recorded: list[Row], candidates: Sequence[Candidate]) -> None:
        """Check that the candidates drawn again are those in the file, up to rounding on another machine."""
        at = {candidate.slot: candidate.params for candidate in candidates}
        drawn = [at[row.slot] for row in recorded if row.slot in at]
        if [row.params for row in recorded] == drawn:
            return
        if len(drawn) == len(recorded) and all(
            _equal_but_for_rounding(row.params, params) for row, params in zip(recorded, drawn)
        ):
            logger.warning(
                "run_file: %s was written on a machine that rounds differently; the run continues from what was "
                "evaluated, but not bit for bit as it would have there",
                self.path,
            )
            return
        raise DamagedRunFile(
            f"run_file: expected the candidates that the state in {self.path} draws, but its generation "
            f"{recorded[0].generation} holds others; use the mixcma that wrote it, or start with another file"
        )


def write_run_file(path: Path, rows: Iterable[tuple[str, Cells]]) -> None:
    """Make a run file of rows that there are already; nothing is overwritten."""
    writer = _writer_of(path)
    try:
        if path.exists():
            raise ValueError(f"run_file: expected a name for a new file, but {path} is there already; choose another")
        for table, row in rows:
            writer.put(table, row)
        writer.create()
    finally:
        writer.close()


def _writer_of(path: Path) -> Writer:
    """A writer, which has the lock of the file, after the checks of its name and folder."""
    check_name(path)
    if not path.parent.is_dir():
        raise ValueError(f"run_file: expected a folder at {path.parent}, but there is none; create it first")
    try:
        return Writer(path)
    except OSError as error:
        raise ValueError(f"run_file: {path} cannot be written ({error.strerror}); choose another path") from error


def snapshot_row(optimizer: Optimizer, counted: int) -> Cells:
    snapshot = optimizer.snapshot()
    numbers = {**snapshot.numbers, "counted": counted}
    return (1, optimizer.run, json.dumps(numbers), *pack(snapshot.arrays))


def _entry(row: Row) -> Entry:
    return Entry(row.id, row.params, row.outcome, row.status == KNOWN)


def _by_generation(rows: list[Row]) -> dict[tuple[int, int], list[Row]]:
    grouped: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row.run, row.generation), []).append(row)
    return grouped


def _pending_row(id: int, run: int, generation: int, slot: int, values: list[Value], latent: bytes | None) -> Cells:
    return (id, run, generation, slot, json.dumps(values), PENDING, None, None, None, None, None, None, latent, None)


def _equal_but_for_rounding(params: Params, others: Params) -> bool:
    return params.keys() == others.keys() and all(
        math.isclose(value, other, rel_tol=SAME_POINT, abs_tol=SAME_POINT**2)
        if isinstance(value, float)
        else value == other
        for value, other in zip(params.values(), others.values())
    )


def _plain(value: object) -> object:
    """A NumPy number as a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be kept in a run file")


def _snapshot_interval(optimizer: Optimizer) -> int:
    """Generations between snapshots: a snapshot has about 3 N^2 numbers, a generation lambda N."""
    return math.ceil(3 * optimizer.encoding.dimension / (SNAPSHOT_SHARE * optimizer.popsize))
