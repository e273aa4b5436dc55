"""Reading a run file: all of it is checked before any of it is used."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.run.outcome import Outcome
from mixcma.run.snapshot import Snapshot
from mixcma.space import Params, Space
from mixcma.store.checks import check_settings, check_types
from mixcma.store.schema import (
    APPLICATION_ID,
    KNOWN,
    OLDEST,
    PENDING,
    STATUSES,
    TABLES,
    VERSION,
    DamagedRunFile,
    columns,
    row_checksum,
    unpack,
)


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
    latent: NDArray[np.float64] | None  # (1 or 2, N): the latent point, then that before its integers were mutated

    @property
    def finished(self) -> bool:
        return self.status != PENDING

    @property
    def evaluated(self) -> bool:
        """Whether the objective was called for this candidate."""
        return self.status not in (PENDING, KNOWN)


class Generation(NamedTuple):
    """The distribution from which a generation was drawn, in latent coordinates."""

    id: int
    run: int
    generation: int
    step_size: float
    axis_ratio: float
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    theta: NDArray[np.float64]  # (N_cat K,): the probabilities of the choices


class RunRow(NamedTuple):
    run: int
    popsize: int
    evaluations_before: int
    stop: str | None


@dataclass(frozen=True)
class Record:
    """Everything that a run file holds."""

    path: Path
    version: int  # of the format
    settings: dict[str, Any]
    space: Space
    runs: list[RunRow]
    history: list[tuple[Params, Outcome]]  # what the model was told of an earlier search
    rows: list[Row]
    generations: list[Generation]
    snapshot: Snapshot
    snapshot_run: int
    total: tuple[int, int]  # the number of rows, and the sum of their checksums
    replaceable: dict[tuple[str, object], int]  # by table and key: checksums of rows that may still change


def read(path: str | Path) -> Record:
    """The content of a run file; raises a `DamagedRunFile` that says why it cannot be trusted.

    This works while another process writes to the file. Nothing is written, neither to the file nor beside it.
    """
    path = Path(path)
    _check_there(path)
    quiet = not _wal(path).exists()  # then no process writes, and the file alone holds everything
    try:
        return _read(path, quiet)
    except DamagedRunFile:
        if quiet and _wal(path).exists():  # a process began to write while the file was being read
            return _read(path, False)
        raise


def _read(path: Path, quiet: bool) -> Record:
    with _opened(path, quiet) as (connection, version):
        tables = {table: _rows(connection, path, table, version) for table in TABLES}
    try:
        return _record(path, version, tables)
    except DamagedRunFile:
        raise
    # the values of a row make no sense, or its JSON is nested without end
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise _damaged(path, str(error)) from error


def _wal(path: Path) -> Path:
    file = path.resolve()
    return file.with_name(file.name + "-wal")


def _check_there(path: Path) -> None:
    """Check what the file system says. Only SQLite may open the file: closing another handle would drop its locks."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise DamagedRunFile(f"run_file: expected a run file at {path}, but there is none; check the path") from None
    except (OSError, ValueError) as error:
        raise DamagedRunFile(f"run_file: {path} cannot be read ({error}); check the path") from error
    if path.is_dir():
        raise DamagedRunFile(f"run_file: expected a run file at {path}, but it is a folder; name a file in it")
    if not os.access(path, os.R_OK):
        raise DamagedRunFile(f"run_file: {path} cannot be read (Permission denied); make it readable")
    if size == 0:
        raise _foreign(path, "empty")


@contextlib.contextmanager
def _opened(path: Path, quiet: bool) -> Iterator[tuple[sqlite3.Connection, int]]:
    """A connection that sees one moment of the file, after the checks that concern the file as a whole; its version."""
    mode = "mode=ro&immutable=1" if quiet else "mode=ro"
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, isolation_level=None)
        with contextlib.closing(connection):
            connection.execute("BEGIN")
            yield connection, _checked_version(connection, path)
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error):
            raise _foreign(path, "something else", or_salvage=True) from error
        raise _damaged(path, str(error)) from error
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise _damaged(path, str(error)) from error


def _foreign(path: Path, what: str, or_salvage: bool = False) -> DamagedRunFile:
    remedy = "choose another path"
    if or_salvage:
        remedy += "; if it was a run file, this may save what is intact: mixcma salvage FILE NEW"
    return DamagedRunFile(f"run_file: expected a run file of mixcma, but {path} is {what}; {remedy}")


def _checked_version(connection: sqlite3.Connection, path: Path) -> int:
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if kind != APPLICATION_ID:
        raise _foreign(path, "another program's database")
    if not OLDEST <= version <= VERSION:
        raise DamagedRunFile(
            f"run_file: expected version {OLDEST} to {VERSION} of the format, but {path} has version {version}; "
            "use the mixcma that wrote it, or a newer one"
        )
    problem = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if problem != "ok":
        raise _damaged(path, problem)
    return int(version)


def _damaged(path: Path, why: str) -> DamagedRunFile:
    return DamagedRunFile(
        f"run_file: {path} is damaged ({' '.join(why.split()):.500}); restore it from a copy, or save what is intact: "
        "mixcma salvage FILE NEW"
    )


def _rows(connection: sqlite3.Connection, path: Path, table: str, version: int) -> list[tuple[Any, ...]]:
    key = next(iter(TABLES[table]))
    named = ", ".join(columns(table, version))
    rows = connection.execute(f"SELECT {named} FROM {table} ORDER BY {key}").fetchall()
    for row in rows:
        if row_checksum(table, row[:-1]) != row[-1]:
            raise _damaged(path, f"the checksum of {table} {row[0]} does not match")
    return rows


def _record(path: Path, version: int, tables: dict[str, list[tuple[Any, ...]]]) -> Record:
    ((_, count, total, _),) = tables.pop("total")
    if (count, total) != total_of(tables):
        raise _damaged(path, "rows are missing or older than they should be")
    for table, listed in tables.items():
        check_types(table, listed)
    settings = {name: json.loads(value) for name, value, _ in tables["setting"]}
    check_settings(settings)
    space = Space.from_dict(settings["space"])
    rows = [row_of(space, *row[:-1]) for row in tables["evaluation"]]
    generations = [generation_of(*row[:-1]) for row in tables["generation"]]
    ((_, run, numbers, layout, arrays, _),) = tables["snapshot"]
    return Record(
        path=path,
        version=version,
        settings=settings,
        space=space,
        history=_history_of(space, settings.get("history", [])),
        runs=[RunRow(*row[:-1]) for row in tables["run"]],
        rows=rows,
        generations=generations,
        snapshot=Snapshot(json.loads(numbers), unpack(layout, arrays)),
        snapshot_run=run,
        total=(count, total),
        replaceable=_replaceable(tables),
    )


def _replaceable(tables: dict[str, list[tuple[Any, ...]]]) -> dict[tuple[str, object], int]:
    found = {(table, row[0]): row[-1] for table in ("setting", "run", "snapshot") for row in tables[table]}
    status = list(TABLES["evaluation"]).index("status")
    found.update((("evaluation", row[0]), row[-1]) for row in tables["evaluation"] if row[status] == PENDING)
    return found


def total_of(tables: dict[str, list[tuple[Any, ...]]]) -> tuple[int, int]:
    """The number of rows of all tables, and the sum of their checksums."""
    sums = [row[-1] for listed in tables.values() for row in listed]
    return len(sums), sum(sums)


def generation_of(id: int, run: int, number: int, step_size: float, axis_ratio: float, *arrays: bytes) -> Generation:
    return Generation(id, run, number, step_size, axis_ratio, *(np.frombuffer(array) for array in arrays))


def row_of(
    space: Space,
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
    traceback: str | None,
) -> Row:
    """A row of the table; raises an error if its values make no sense."""
    if status not in STATUSES:
        raise ValueError(f"evaluation {id} has the unknown status {status!r}")
    outcome = None
    if status != PENDING:
        violated = _numbers(json.loads(constraints or "[]"))
        outcome = Outcome(math.inf if value is None else value, violated, error, traceback)
    point = None if latent is None else np.frombuffer(latent).reshape(-1, len(space.free))
    values = json.loads(params)
    if (
        not isinstance(values, list)
        or len(values) != len(space)
        or not all(map(partial(_is_value, space), space, values))
    ):
        raise ValueError(f"evaluation {id} has other parameters than the space")
    given = space.from_row(values)
    return Row(id, run, generation, slot, given, status, outcome, started, seconds, counted, point)


def _is_value(space: Space, name: str, value: object) -> bool:
    """Whether an entry of a row can be the value of this variable, or says that it does not exist there."""
    return value == [] and name in space.conditions if isinstance(value, list | dict) else True


def _history_of(space: Space, entries: object) -> list[tuple[Params, Outcome]]:
    """A list each of the values of the parameters, the value and the constraints."""
    if not isinstance(entries, list) or not all(isinstance(entry, list) for entry in entries):
        raise ValueError(f"the setting history is {entries!r:.80}")
    told, n = [], len(space)
    for entry in entries:
        value, *constraints = _numbers(entry[n:])
        told.append((space.check_params(space.from_row(entry[:n])), Outcome(value, constraints)))
    return told


def _numbers(values: object) -> tuple[float, ...]:
    if not isinstance(values, list) or not all(isinstance(value, int | float) for value in values):
        raise ValueError(f"expected a list of numbers as constraints, but found {values!r:.80}")
    return tuple(values)
