"""Reading a run file: all of it is checked before any of it is believed."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.optimizer import Snapshot
from mixcma.outcome import Outcome
from mixcma.space import Params, Space
from mixcma.store.schema import (
    APPLICATION_ID,
    KNOWN,
    PENDING,
    STATUSES,
    TABLES,
    VERSION,
    DamagedRunFile,
    checksum,
    unpack,
)

MAGIC = b"SQLite format 3\x00"


class Row(NamedTuple):
    """One candidate of a run file."""

    id: int
    run: int
    generation: int  # -1 for the points given as x0
    slot: int
    params: Params
    status: str
    outcome: Outcome | None  # None while pending
    started: float | None
    seconds: float | None
    counted: int | None
    latent: NDArray[np.float64] | None

    @property
    def finished(self) -> bool:
        return self.status != PENDING

    @property
    def evaluated(self) -> bool:
        """Whether the objective was called for it."""
        return self.status not in (PENDING, KNOWN)


class Generation(NamedTuple):
    """The distribution that a generation was drawn from, in latent coordinates."""

    id: int
    run: int
    generation: int
    step_size: float
    axis_ratio: float
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


class RunRow(NamedTuple):
    run: int
    popsize: int
    evaluations_before: int
    stop: str | None


@dataclass(frozen=True)
class Record:
    """All that a run file holds."""

    path: Path
    settings: dict[str, Any]
    space: Space
    runs: list[RunRow]
    rows: list[Row]
    generations: list[Generation]
    snapshot: Snapshot
    snapshot_run: int


def read(path: str | Path) -> Record:
    """The content of a run file, or a `DamagedRunFile` that says why it cannot be trusted.

    Works while another process writes to it.
    """
    path = Path(path)
    with _opened(path) as connection:
        tables = {table: _rows(connection, path, table) for table in TABLES}
    try:
        return _record(path, tables)
    except DamagedRunFile:
        raise
    except (ValueError, KeyError, TypeError, IndexError) as error:  # what a row says does not make sense
        raise _damaged(path, str(error)) from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only view of one moment, after the checks that concern the file as a whole."""
    _check_header(path)
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
        with contextlib.closing(connection):
            connection.execute("BEGIN")
            _check_kind(connection, path)
            yield connection
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise _damaged(path, str(error)) from error


def _check_header(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except FileNotFoundError:
        raise DamagedRunFile(f"run_file: expected a run file at {path}, but there is none; check the path") from None
    except OSError as error:
        raise DamagedRunFile(f"run_file: {path} cannot be read ({error.strerror}); check the path") from error
    if start != MAGIC:
        raise DamagedRunFile(
            f"run_file: expected a run file of mixcma, but {path} is {'empty' if not start else 'something else'}; "
            "choose another path"
        )


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if kind != APPLICATION_ID:
        raise DamagedRunFile(
            f"run_file: expected a run file of mixcma, but {path} is another program's database; choose another path"
        )
    if version != VERSION:
        raise DamagedRunFile(
            f"run_file: {path} has version {version} of the format, and this mixcma reads version {VERSION}; "
            "use the mixcma that wrote it, or a newer one"
        )
    problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if problem != "ok":
        raise _damaged(path, problem)


def _damaged(path: Path, why: str) -> DamagedRunFile:
    return DamagedRunFile(
        f"run_file: {path} is damaged ({' '.join(why.split())}); restore it from a copy, or start with another file"
    )


def _rows(connection: sqlite3.Connection, path: Path, table: str) -> list[tuple[Any, ...]]:
    columns = ", ".join([*TABLES[table], "checksum"])
    key = next(iter(TABLES[table]))
    rows = connection.execute(f"SELECT {columns} FROM {table} ORDER BY {key}").fetchall()
    for row in rows:
        if checksum(row[:-1]) != row[-1]:
            raise _damaged(path, f"the checksum of {table} {row[0]} does not fit")
    return [row[:-1] for row in rows]


def _record(path: Path, tables: dict[str, list[tuple[Any, ...]]]) -> Record:
    settings = {name: json.loads(value) for name, value in tables["setting"]}
    space = Space.from_dict(settings["space"])
    rows = [_row(space.names, *row) for row in tables["evaluation"]]
    generations = [_generation(*row) for row in tables["generation"]]
    for table, numbered in (("evaluation", rows), ("generation", generations)):
        if [entry.id for entry in numbered] != list(range(1, len(numbered) + 1)):
            raise _damaged(path, f"rows of {table} are missing")
    ((_, run, numbers, layout, arrays),) = tables["snapshot"]
    runs = [RunRow(*row) for row in tables["run"]]
    if [entry.run for entry in runs] != list(range(len(runs))) or run != len(runs) - 1:
        raise _damaged(path, "a run is missing")
    snapshot = Snapshot(json.loads(numbers), unpack(layout, arrays))
    return Record(path, settings, space, runs, rows, generations, snapshot, run)


def _generation(
    id: int, run: int, generation: int, step_size: float, axis_ratio: float, mean: bytes, deviation: bytes
) -> Generation:
    return Generation(id, run, generation, step_size, axis_ratio, np.frombuffer(mean), np.frombuffer(deviation))


def _row(
    names: tuple[str, ...],
    id: int,
    run: int,
    generation: int,
    slot: int,
    params: str,
    status: str,
    value: float | None,
    constraints: str | None,
    error: str | None,
    started: float | None,
    seconds: float | None,
    counted: int | None,
    latent: bytes | None,
) -> Row:
    if status not in STATUSES:
        raise ValueError(f"evaluation {id} has the unknown status {status!r}")
    outcome = None
    if status != PENDING:
        outcome = Outcome(math.inf if value is None else value, tuple(json.loads(constraints or "[]")), error)
    point = None if latent is None else np.frombuffer(latent)
    given = dict(zip(names, json.loads(params)))
    return Row(id, run, generation, slot, given, status, outcome, started, seconds, counted, point)
