"""RunFile: what a search writes as it goes."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mixcma.core.state import deviations
from mixcma.core.stopping import StopReason
from mixcma.evaluation import Report
from mixcma.optimizer import Optimizer
from mixcma.outcome import Outcome
from mixcma.space import Params
from mixcma.store.lock import Lock
from mixcma.store.reading import Record, Row, read
from mixcma.store.schema import (
    DONE,
    FAILED,
    KNOWN,
    PENDING,
    TABLES,
    TIMED_OUT,
    VERSION,
    DamagedRunFile,
    checksum,
    insert,
    pack,
    statements,
)
from mixcma.stream import Drawn

logger = logging.getLogger("mixcma")
Cells = tuple[object, ...]  # a row of a table, without its checksum

# Writing snapshots may cost this part of writing the evaluations between them.
SNAPSHOT_SHARE = 0.25
# A commit survives the death of the process; it is forced to the disk, to survive that of the machine, when
# the last time is this many seconds ago.
SYNC_EVERY = 1.0
# While the disk is full, writing is tried again after this many seconds.
RETRY_EVERY = 1.0
# An evaluation that took this many seconds is committed at once; faster ones share a commit, this often.
WORTH_A_COMMIT = 0.001
COMMIT_EVERY = 0.01


X0_GENERATION = -1
# Values this close are the same number, rounded differently.
SAME_POINT = 1e-6
# The tables whose rows may be replaced at any time; candidates are until they are finished.
REPLACED = ("setting", "run", "snapshot")


class Entry(NamedTuple):
    """A candidate to be evaluated, under the number it has in the file; with its outcome, if that is known."""

    id: int
    params: Params
    outcome: Outcome | None = None
    known: bool = False  # the outcome is that of another candidate, and cost nothing


class NoFile:
    """Stands in for the run file of a search that keeps none."""

    path = None
    record = None

    def __init__(self, x0: Sequence[Params]) -> None:
        self._x0 = x0
        self._ids = 0

    def asked(self, optimizer: Optimizer, candidates: Sequence[Params]) -> list[Entry]:
        return self._numbered(candidates)

    def x0(self) -> list[Entry]:
        return self._numbered(self._x0)

    def drawn(self, drawn: Drawn) -> int:
        self._ids += 1
        return self._ids

    def _numbered(self, points: Sequence[Params]) -> list[Entry]:
        first, self._ids = self._ids + 1, self._ids + len(points)
        return [Entry(id, params) for id, params in enumerate(points, start=first)]

    def begin_run(self, optimizer: Optimizer, evaluations_before: int) -> None: ...

    def moved(self, optimizer: Optimizer) -> None: ...

    def end_run(self, optimizer: Optimizer, evaluations_before: int, stop: StopReason) -> None: ...

    def opened(self, optimizer: Optimizer) -> None: ...

    def closed(self, optimizer: Optimizer, counted: int) -> None: ...

    def finished(self, id: int, report: Report, counts: bool = False) -> int:
        return 0

    def known(self, id: int, outcome: Outcome, counts: bool = False) -> int:
        return 0

    def settle(self) -> None: ...

    def set(self, name: str, value: object) -> None: ...

    def close(self) -> None: ...


class RunFile:
    """The writing side of a run file. Rows are queued, and each `_commit` is one transaction.

    Where the disk is full the queue waits in memory, and is written when there is room again.
    """

    def __init__(self, path: Path, must_exist: bool = False) -> None:
        """Take the lock; `record` is what the file holds, None where there is no file yet."""
        self.path = path
        if not path.name or "\0" in str(path):
            raise ValueError(f"run_file: expected the path of a file, but got {str(path)!r}; name one")
        if not path.parent.is_dir():
            raise ValueError(f"run_file: expected a folder at {path.parent}, but there is none; create it first")
        self._file = path.resolve()  # what SQLite keeps beside a file is beside what a link leads to
        try:
            self._lock = Lock(path)
        except OSError as error:
            raise ValueError(f"run_file: {path} cannot be written ({error.strerror}); choose another path") from error
        self._queue: list[tuple[str, Cells]] = []  # rows with their checksums
        self._total = (0, 0)  # rows, and the sum of their checksums
        self._replaceable: dict[tuple[str, object], int] = {}  # checksums of rows that may yet change
        self._pending: dict[int, Cells] = {}
        self._recorded: dict[tuple[int, int], list[Row]] = {}
        self._ids = self._generation_ids = 0
        self._counted = 0
        self._since_snapshot = 0
        self._synced = -math.inf
        self._committed = -math.inf
        self._full_sync = True
        self._failing_since: float | None = None
        self._retry_at = 0.0
        self._connection: sqlite3.Connection | None = None
        self.record: Record | None = None
        try:
            if must_exist or path.exists():
                self.record = read(path)
                self._continue(self.record)
                self._connect()
        except BaseException:
            self._lock.release()
            raise

    def create(self, settings: Mapping[str, object], optimizer: Optimizer, x0: Sequence[Params]) -> None:
        """Make the file, complete from the first moment on: under another name, and renamed when it is."""
        for name, value in settings.items():
            self.set(name, value)
        self.begin_run(optimizer, 0)
        for slot, params in enumerate(x0):
            self._candidate(0, X0_GENERATION, slot, params, None)
        draft = self._beside(".new")
        stale = [draft, *(self._beside(end) for end in (".new-wal", ".new-shm", "-wal", "-shm"))]
        try:
            for left in stale:  # by a process that was killed, or of a file that was removed
                left.unlink(missing_ok=True)
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN")
                for statement in statements():
                    connection.execute(statement)
                self._write_queue(connection)
                connection.execute("COMMIT")
            os.replace(draft, self._file)
        except (sqlite3.Error, OSError) as error:
            for left in stale:
                left.unlink(missing_ok=True)
            raise ValueError(f"run_file: {self.path} cannot be written ({error}); choose another path") from error
        self._queue.clear()
        self._connect()
        self._recorded = _by_generation(read(self.path).rows)

    def _beside(self, end: str) -> Path:
        return self._file.with_name(self._file.name + end)

    def begin_run(self, optimizer: Optimizer, evaluations_before: int) -> None:
        """The first run, or a restart. It is committed with its first generation."""
        self._put("run", (optimizer.run, optimizer.popsize, evaluations_before, None))
        self._snapshot(optimizer, self._counted)

    def moved(self, optimizer: Optimizer) -> None:
        """The start of the first run changed. It is committed with its first generation."""
        self._snapshot(optimizer, 0)

    def end_run(self, optimizer: Optimizer, evaluations_before: int, stop: StopReason) -> None:
        self._put("run", (optimizer.run, optimizer.popsize, evaluations_before, stop.name))
        self._snapshot(optimizer, self._counted)
        self._commit()

    def asked(self, optimizer: Optimizer, candidates: Sequence[Params]) -> list[Entry]:
        """A generation was drawn: its candidates, its distribution, and now and then a snapshot.

        A generation that the file holds already comes back with what is known of it.
        """
        recorded = self._recorded.pop((optimizer.run, optimizer.generation), None)
        if recorded is not None:
            self._check_same(recorded, candidates)
            return [_entry(row) for row in recorded]
        self._distribution(optimizer)
        if self._since_snapshot >= _snapshot_interval(optimizer):
            self._snapshot(optimizer, 0)
        self._since_snapshot += 1
        run, generation = optimizer.run, optimizer.generation
        entries = [
            Entry(self._candidate(run, generation, slot, params, None), params)
            for slot, params in enumerate(candidates)
        ]
        self._commit()
        return entries

    def x0(self) -> list[Entry]:
        """The points to be evaluated before the first generation."""
        return [_entry(row) for row in self._recorded.get((0, X0_GENERATION), [])]

    def drawn(self, drawn: Drawn) -> int:
        """A single candidate of an asynchronous run."""
        latent = drawn.latent.tobytes()
        if drawn.unmutated is not drawn.latent:
            latent += drawn.unmutated.tobytes()
        id = self._candidate(drawn.run, drawn.generation, drawn.slot, drawn.params, latent)
        self._commit()
        return id

    def opened(self, optimizer: Optimizer) -> None:
        """A run begins to draw asynchronously; committed with its first candidate."""
        self._distribution(optimizer)

    def closed(self, optimizer: Optimizer, counted: int) -> None:
        """A generation of an asynchronous run closed, with the result that was `counted` so."""
        self._distribution(optimizer)
        self._snapshot(optimizer, counted)
        self._commit()

    def finished(self, id: int, report: Report, counts: bool = False) -> int:
        """An evaluation is done; it is in the file when this returns. Very fast ones share a commit.

        In an asynchronous run it `counts`: results are numbered in the order of their use.
        """
        status = TIMED_OUT if report.timed_out else FAILED if report.outcome.failed else DONE
        self._settle(id, status, report.outcome, report.started, report.seconds, counts)
        if report.seconds >= WORTH_A_COMMIT or time.monotonic() - self._committed >= COMMIT_EVERY:
            self._commit()
        return self._counted

    def settle(self) -> None:
        """All that is finished is in the file when this returns: before a generation counts."""
        self._commit()

    def known(self, id: int, outcome: Outcome, counts: bool = False) -> int:
        """A candidate was answered without an evaluation; the file learns it with the next commit."""
        self._settle(id, KNOWN, outcome, None, None, counts)
        return self._counted

    def set(self, name: str, value: object) -> None:
        """Change a setting; committed with what comes next."""
        self._put("setting", (name, json.dumps(value, default=_plain)))

    def close(self) -> None:
        """Write what is left, and give the file free."""
        try:
            self._retry_at = 0.0
            self._commit()
            if self._queue and self._connection is not None:
                logger.warning(
                    "run_file: %s could not be completed: the last %d rows are lost", self.path, len(self._queue)
                )
            if self._connection is not None:
                self._connection.close()
        finally:
            self._lock.release()

    # Rows

    def _candidate(self, run: int, generation: int, slot: int, params: Params, latent: bytes | None) -> int:
        self._ids += 1
        row = _pending_row(self._ids, run, generation, slot, params, latent)
        self._pending[self._ids] = row
        self._put("evaluation", row)
        return self._ids

    def _settle(
        self, id: int, status: str, outcome: Outcome, started: float | None, seconds: float | None, counts: bool
    ) -> None:
        row = self._pending.pop(id, None)
        if row is None:  # the file has it from before
            return
        value = None if outcome.failed else outcome.value + 0.0  # SQLite does not keep the sign of -0.0
        constraints = json.dumps(list(outcome.constraints)) if outcome.constraints else None
        self._counted += counts
        counted = self._counted if counts else None
        result = (status, value, constraints, outcome.error, started, seconds, counted)
        self._put("evaluation", (*row[:5], *result, row[-1]))

    def _distribution(self, optimizer: Optimizer) -> None:
        state = optimizer.state
        self._generation_ids += 1
        ratio = math.sqrt(state.eigenvalues[-1] / state.eigenvalues[0])
        mean, deviation = state.m.tobytes(), (deviations(state) * state.A).tobytes()
        row = (self._generation_ids, optimizer.run, optimizer.generation, optimizer.step_size, ratio, mean, deviation)
        self._put("generation", row)

    def _snapshot(self, optimizer: Optimizer, counted: int) -> None:
        snapshot = optimizer.snapshot()
        numbers = {**snapshot.numbers, "counted": counted}
        self._put("snapshot", (1, optimizer.run, json.dumps(numbers), *pack(snapshot.arrays)))
        self._since_snapshot = 0

    def _put(self, table: str, row: Cells) -> None:
        """Queue a row, in the place of one with the same key, and keep the total true."""
        count, total = self._total
        new, old = checksum(row), self._replaceable.pop((table, row[0]), None)
        self._total = (count + 1, total + new) if old is None else (count, total - old + new)
        if table in REPLACED or row[5] == PENDING:
            self._replaceable[table, row[0]] = new
        self._queue.append((table, (*row, new)))

    # Transactions

    def _connect(self) -> None:
        if not os.access(self._file, os.W_OK):  # SQLite would find out too late, and leave read-only files beside it
            raise ValueError(f"run_file: {self.path} cannot be written (Permission denied); make it writable")
        self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=5.0)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute(f"PRAGMA user_version = {VERSION}")  # a true write: can it be written?
        except sqlite3.Error as error:
            self._connection.close()
            raise ValueError(f"run_file: {self.path} cannot be written ({error}); make it writable") from error

    def _continue(self, record: Record) -> None:
        """Count on from what the file holds."""
        self._ids, self._generation_ids = len(record.rows), len(record.generations)
        self._total, self._replaceable = record.total, dict(record.replaceable)
        self._counted = max((row.counted or 0 for row in record.rows), default=0)
        self._recorded = _by_generation(record.rows)
        for row in record.rows:
            if not row.finished:
                latent = None if row.latent is None else row.latent.tobytes()
                self._pending[row.id] = _pending_row(row.id, row.run, row.generation, row.slot, row.params, latent)

    def _check_same(self, recorded: list[Row], candidates: Sequence[Params]) -> None:
        """The candidates drawn again must be those in the file, but for rounding on another machine."""
        if [row.params for row in recorded] == list(candidates):
            return
        if all(_close(row.params, params) for row, params in zip(recorded, candidates)):
            logger.warning(
                "run_file: %s was written where numbers are rounded differently; the run goes on from what was "
                "evaluated, but not bit for bit as it would have there",
                self.path,
            )
            return
        raise DamagedRunFile(
            f"run_file: the candidates of generation {recorded[0].generation} in {self.path} are not those that its "
            "state draws; use the mixcma that wrote it, or start with another file"
        )

    def _commit(self) -> None:
        """Write the queue in one transaction. If that fails it stays, to be written when it can be."""
        if not self._queue or self._connection is None or time.monotonic() < self._retry_at:
            return
        try:
            self._choose_sync(self._connection)
            self._connection.execute("BEGIN IMMEDIATE")
            self._write_queue(self._connection)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._failed(self._connection, error)
            return
        self._queue.clear()
        self._committed = time.monotonic()
        if self._failing_since is not None:
            logger.warning("run_file: %s can be written again, and is complete", self.path)
            self._failing_since, self._retry_at = None, 0.0

    def _write_queue(self, connection: sqlite3.Connection) -> None:
        for table, row in self._queue:
            connection.execute(_INSERT[table], row)
        total = (1, *self._total)
        connection.execute(_INSERT["total"], (*total, checksum(total)))

    def _choose_sync(self, connection: sqlite3.Connection) -> None:
        now = time.monotonic()
        due = now - self._synced >= SYNC_EVERY
        if due:
            self._synced = now
        if due != self._full_sync:
            connection.execute(f"PRAGMA synchronous = {'FULL' if due else 'NORMAL'}")
            self._full_sync = due

    def _failed(self, connection: sqlite3.Connection, error: sqlite3.Error) -> None:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        self._retry_at = time.monotonic() + RETRY_EVERY
        if self._failing_since is None:
            self._failing_since = time.monotonic()
            logger.warning(
                "run_file: %s cannot be written (%s); the run goes on in memory and tries again, "
                "but what it finds is lost if it is killed now; make room on the disk",
                self.path, error,
            )  # fmt: skip


_INSERT = {table: insert(table) for table in TABLES}


def _entry(row: Row) -> Entry:
    return Entry(row.id, row.params, row.outcome, row.status == KNOWN)


def _by_generation(rows: list[Row]) -> dict[tuple[int, int], list[Row]]:
    grouped: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row.run, row.generation), []).append(row)
    return grouped


def _pending_row(id: int, run: int, generation: int, slot: int, params: Params, latent: bytes | None) -> Cells:
    point = json.dumps(list(params.values()))
    return (id, run, generation, slot, point, PENDING, None, None, None, None, None, None, latent)


def _close(params: Params, others: Params) -> bool:
    return all(
        math.isclose(value, other, rel_tol=SAME_POINT, abs_tol=SAME_POINT**2)
        if isinstance(value, float)
        else value == other
        for value, other in zip(params.values(), others.values())
    )


def _plain(value: object) -> object:
    """A number of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be kept in a run file")


def _snapshot_interval(optimizer: Optimizer) -> int:
    """Generations between snapshots: a snapshot is about 3 N^2 numbers, a generation lambda N."""
    return math.ceil(3 * optimizer.encoding.dimension / (SNAPSHOT_SHARE * optimizer.popsize))
