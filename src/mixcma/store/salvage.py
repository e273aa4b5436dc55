"""What is left of a damaged run file: every row whose checksum matches and whose values make sense."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mixcma.space import Space
from mixcma.store.checks import check_types
from mixcma.store.held import Cells
from mixcma.store.lock import Lock
from mixcma.store.names import beside
from mixcma.store.pages import PAGE, Found, frames_of, pages_of, rows_of
from mixcma.store.reading import generation_of, row_of
from mixcma.store.schema import ADDED, PENDING, TABLES, DamagedRunFile, row_checksum, unpack

# Tables are told apart by the number of values in a row; the columns that came later may be missing.
_BY_LENGTH = {
    length: table
    for table, names in TABLES.items()
    for length in range(len(names) + 1 - len(ADDED.get(table, {})), len(names) + 2)
}
_SENSELESS = (ValueError, KeyError, TypeError, IndexError, RecursionError)


@dataclass(frozen=True)
class Remains:
    """What is left of a run file: rows by table and key, without their checksums."""

    tables: dict[str, dict[Any, Cells]]
    written: int | None  # how many rows there were, without the total; None if that is lost

    @property
    def saved(self) -> int:
        return sum(map(len, self.tables.values()))

    @property
    def lost(self) -> int | None:
        return None if self.written is None else max(0, self.written - self.saved)

    @property
    def settings(self) -> dict[str, Any]:
        return {name: json.loads(value) for name, value in self.tables["setting"].values()}


def remains_of(path: Path) -> Remains:
    """Everything in a run file and its WAL that can be trusted. The file may be damaged in any way; it is only read."""
    try:
        lock = Lock(path)  # nobody writes, and closing the file below costs no other search of this process its locks
    except OSError:  # the folder cannot be written, so no search can be using the file
        lock = None
    try:
        data, wal = path.read_bytes(), b""
        if beside(path.resolve(), "-wal").exists():
            wal = beside(path.resolve(), "-wal").read_bytes()
    except OSError as error:
        raise DamagedRunFile(f"run_file: {path} cannot be read ({error.strerror}); check the path") from error
    finally:
        if lock is not None:
            lock.release()
    found = max((_remains(data, wal, size) for size in {PAGE, _page_size(data)}), key=lambda remains: remains.saved)
    if not found.saved:
        raise DamagedRunFile(f"run_file: expected a run file of mixcma, but nothing in {path} is a row of one; "
                             "check the path")  # fmt: skip
    return found


def _page_size(data: bytes) -> int:
    """What the header of the file says, if that is possible."""
    size = int.from_bytes(data[16:18], "big")
    size = 65536 if size == 1 else size
    return size if size >= 512 and size & (size - 1) == 0 else PAGE


def _remains(data: bytes, wal: bytes, size: int) -> Remains:
    tables: dict[str, dict[Any, Cells]] = {table: {} for table in TABLES}
    for listed, table, row in checked_rows(_everything(data, wal, size)):
        known = tables[table].get(row[0])
        if (known is None and (listed or table != "total")) or (known is not None and _newer(table, row, known)):
            tables[table][row[0]] = row
    written: Any = tables.pop("total").get(1, (1, None))[1]
    _drop_senseless(tables)
    return Remains(tables, written)


def _newer(table: str, row: Cells, known: Cells) -> bool:
    """Whether a row is certainly a later version: a finished candidate, or a run that has ended."""
    if table == "evaluation":
        return bool(known[5] == PENDING != row[5])
    return table == "run" and known[3] is None and row[3] is not None


def _everything(data: bytes, wal: bytes, size: int) -> Iterator[Found]:
    """First what the file holds with its WAL, then what lies below or is left of earlier versions."""
    below, frames = pages_of(data, size), frames_of(wal, size)
    newest = {**below, **dict(frames)}
    first = [found for number in newest for found in rows_of(number, newest)]
    yield from sorted(first, key=lambda found: not found.listed)
    for number, frame in reversed(frames):
        yield from _unlisted(rows_of(number, ChainMap({number: frame}, newest)))
    if frames:
        for number in below:
            yield from _unlisted(rows_of(number, below))


def _unlisted(found: Iterator[Found]) -> Iterator[Found]:
    return (each._replace(listed=False) for each in found)


def checked_rows(candidates: Iterator[Found]) -> Iterator[tuple[bool, str, Cells]]:
    """The candidates that are rows of a run file: their table and values, in the order of its columns."""
    for found in candidates:
        table = _BY_LENGTH.get(len(found.values))
        if table is None:
            continue
        row, checksum = _in_order(table, found)
        if row_checksum(table, row) == checksum:
            yield found.listed, table, row


def _in_order(table: str, found: Found) -> tuple[Cells, object]:
    """The values in the order of the columns, and the checksum, which stands before the columns that came later."""
    kinds, later = TABLES[table], len(ADDED.get(table, {}))
    at = len(kinds) - later
    values = [*found.values[:at], *found.values[at + 1 :]]
    values += [None] * (len(kinds) - len(values))
    for column, kind in enumerate(kinds.values()):
        value = values[column]
        if kind == "INTEGER PRIMARY KEY":
            values[column] = found.key
        elif kind == "REAL" and isinstance(value, int):  # SQLite keeps whole numbers as integers
            values[column] = float(value)
    return tuple(values), found.values[at]


def _drop_senseless(tables: dict[str, dict[Any, Cells]]) -> None:
    """Drop the rows whose values make no sense."""
    for table, rows in tables.items():
        _keep(rows, partial(_check_types_of_row, table))
    _keep(tables["setting"], _check_setting)
    _keep(tables["generation"], lambda row: generation_of(*row))
    _keep(tables["snapshot"], lambda row: (json.loads(row[2])["counted"], unpack(row[3], row[4])))
    described = tables["setting"].get("space")
    if described is not None:
        space = Space.from_dict(json.loads(described[1]))
        _keep(tables["evaluation"], lambda row: row_of(space, *row))


def _check_types_of_row(table: str, row: Cells) -> None:
    check_types(table, [row])


def _check_setting(row: Any) -> None:
    name, value = row[0], json.loads(row[1])
    if name == "space":
        Space.from_dict(value)


def _keep(rows: dict[Any, Cells], check: Callable[[Any], object]) -> None:
    for key, row in list(rows.items()):
        try:
            check(row)
        except _SENSELESS:
            del rows[key]
