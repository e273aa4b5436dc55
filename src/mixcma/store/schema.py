"""The tables of a run file, the checksum that every row carries, and arrays as raw bytes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

APPLICATION_ID = 0x6D786D61  # "mxma", in the header of the file
VERSION = 3  # the newest version of the format
OLDEST = 2  # the oldest that can be read and continued

# The columns of every table; behind them comes the checksum of the row.
TABLES: dict[str, dict[str, str]] = {
    # what defines the search: space, method, seed, ...; one JSON text each
    "setting": {"name": "TEXT PRIMARY KEY", "value": "TEXT"},
    # the first run, and one row per restart
    "run": {
        "run": "INTEGER PRIMARY KEY",
        "popsize": "INTEGER",
        "evaluations_before": "INTEGER",
        "stop": "TEXT",  # why it ended; NULL while it runs
    },
    # the distribution from which each generation was drawn: latent means, standard deviations (0 for integers that
    # only mutate), and the probabilities of the choices of categories
    "generation": {
        "id": "INTEGER PRIMARY KEY",
        "run": "INTEGER",
        "generation": "INTEGER",
        "step_size": "REAL",
        "axis_ratio": "REAL",
        "mean": "BLOB",
        "deviation": "BLOB",
        "theta": "BLOB",
    },
    # every candidate
    "evaluation": {
        "id": "INTEGER PRIMARY KEY",
        "run": "INTEGER",
        "generation": "INTEGER",
        "slot": "INTEGER",
        "params": "TEXT",  # JSON list, in the order of the space
        "status": "TEXT",
        "value": "REAL",
        "constraints": "TEXT",  # JSON list
        "error": "TEXT",
        "started": "REAL",  # seconds since the epoch
        "seconds": "REAL",
        "counted": "INTEGER",  # in asynchronous runs, the order in which results were used
        "latent": "BLOB",  # in asynchronous runs: the latent point, then that before its integers were mutated
        "traceback": "TEXT",  # where the objective raised an exception
    },
    # the newest state of the optimizer: one row
    "snapshot": {
        "id": "INTEGER PRIMARY KEY",
        "run": "INTEGER",
        "numbers": "TEXT",  # JSON
        "layout": "TEXT",  # JSON: [[name, dtype, shape], ...]
        "arrays": "BLOB",  # the bytes of all arrays, one after the other
    },
    # the number of rows in all tables above, and the sum of their checksums: one row
    "total": {"id": "INTEGER PRIMARY KEY", "rows": "INTEGER", "sum": "INTEGER"},
}

# Columns that an older file has not, with the version that added them. They stand behind the checksum in the table.
ADDED: dict[str, dict[str, int]] = {"evaluation": {"traceback": 3}}

PENDING, DONE, FAILED, TIMED_OUT, KNOWN = "pending", "done", "failed", "timed out", "known"
STATUSES = (PENDING, DONE, FAILED, TIMED_OUT, KNOWN)


class DamagedRunFile(ValueError):
    """The file is not a run file, or it cannot be trusted."""


def columns(table: str, version: int = VERSION) -> list[str]:
    """The columns of a table and its checksum, as SQL expressions; those that a version has not are NULL."""
    added = ADDED.get(table, {})
    return [*("NULL" if added.get(name, 0) > version else name for name in TABLES[table]), "checksum"]


def statements() -> list[str]:
    """The SQL that creates an empty run file."""
    made = [f"PRAGMA application_id = {APPLICATION_ID}"]
    for table, kinds in TABLES.items():
        first = ", ".join(f"{name} {kind}" for name, kind in kinds.items() if name not in ADDED.get(table, {}))
        made.append(f"CREATE TABLE {table} ({first}, checksum INTEGER NOT NULL)")
    return [*made, *upgrades(OLDEST)]


def upgrades(version: int) -> list[str]:
    """The SQL that makes a file of the newest version from one of another."""
    made = [
        f"ALTER TABLE {table} ADD COLUMN {name} {TABLES[table][name]}"
        for table, names in ADDED.items()
        for name, since in names.items()
        if since > version
    ]
    return [*made, f"PRAGMA user_version = {VERSION}"]


def insert(table: str) -> str:
    """The SQL that writes a row with its checksum; it replaces a row with the same key."""
    names = columns(table)
    return f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def row_checksum(table: str, row: Sequence[object]) -> int:
    """The checksum of a row. A row without a traceback has the one that it had before there were tracebacks."""
    return checksum(row[:-1] if table == "evaluation" and row[-1] is None else row)


def checksum(row: Sequence[object]) -> int:
    """The checksum of the values and their types, as Python writes them; any single flipped byte changes it."""
    shown = [("bytes", len(value), zlib.crc32(value)) if isinstance(value, bytes) else value for value in row]
    return zlib.crc32(repr(shown).encode())


def pack(arrays: Mapping[str, NDArray[np.float64]]) -> tuple[str, bytes]:
    """Arrays -> a layout in JSON and raw bytes."""
    layout = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    return json.dumps(layout), b"".join(array.tobytes() for array in arrays.values())


def unpack(layout: str, data: bytes) -> dict[str, NDArray[Any]]:
    arrays, start = {}, 0
    for name, dtype, shape in json.loads(layout):
        array = np.frombuffer(data, dtype=np.dtype(dtype), count=int(np.prod(shape)), offset=start)
        arrays[name] = array.reshape(shape).copy()
        start += array.nbytes
    return arrays
