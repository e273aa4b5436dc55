"""Damaged run files: whether they are read as they were or refused, and whether all that is intact can be saved.

    python benchmarks/damage.py             # 1,000 damaged copies
    python benchmarks/damage.py --copies 50

Each copy of a finished run file, or of one in the middle of a search with its WAL, is damaged at random: a few bits, a
stretch of noise, a page of zeroes, or its end cut off. Reading it must give a refusal in one sentence or all of what
was in it. Salvaging it must save every row whose own bytes are undamaged, and nothing that was never in the file; and
the search must go on from what was saved.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads only add noise at these sizes

import argparse
import logging
import random
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.run_file import SMALL, content, forget, moments, objective_with_everything, open_file, verdict

from mixcma import minimize, resume
from mixcma.search.salvaging import salvage
from mixcma.store import read, remains_of
from mixcma.store.pages import FRAME_HEADER, PAGE, WAL_HEADER, frames_of, pages_of, rows_of
from mixcma.store.salvage import checked_rows
from mixcma.store.schema import TABLES, columns

Key = tuple[str, Any]
Cells = tuple[Any, ...]
Place = tuple[bool, int, int]  # whether in the WAL, and a begin and an end


# Damage


def bits(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.randint(1, 20)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def noise(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(len(data))
    size = min(draw.randint(1, 3000), len(data) - begin)
    data[begin : begin + size] = draw.randbytes(size)


def lost_page(data: bytearray, draw: random.Random) -> None:
    begin = draw.randrange(0, len(data), PAGE)
    data[begin : begin + PAGE] = bytes(len(data[begin : begin + PAGE]))


def cut(data: bytearray, draw: random.Random) -> None:
    del data[draw.randint(1, len(data) - 1) :]


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (bits, noise, lost_page, cut)


# What was in the file


@dataclass(frozen=True)
class Original:
    """A run file before it is damaged."""

    database: bytes
    wal: bytes | None
    rows: dict[Key, Cells]  # as SQLite reads them
    versions: set[tuple[str, str]]  # of these and earlier rows, as texts
    places: dict[Key, list[Place]]  # which bytes each row consists of
    readable: frozenset[str]  # what reading may give


def finished(folder: Path, evaluations: int) -> Original:
    path = folder / "finished.db"
    minimize(objective_with_everything, SMALL, budget=evaluations, seed=3, popsize=6, run_file=path)
    database = path.read_bytes()
    rows = rows_in(path)
    readable = frozenset([content(read(path))])
    return Original(database, None, rows, versions_in(database, b""), places_in(database, b""), readable)


def with_wal(folder: Path) -> Original:
    """As a killed search leaves it. All rows are in the WAL, the oldest also in the file."""
    path = folder / "open.db"
    database, wal = open_file(path)
    readable = frozenset(moments(path, database, wal))
    path.write_bytes(database)
    path.with_name("open.db-wal").write_bytes(wal)
    rows = rows_in(path)
    forget(path)
    return Original(database, wal, rows, versions_in(database, wal), places_in(database, wal), readable)


def rows_in(path: Path) -> dict[Key, Cells]:
    found = {}
    with closing(sqlite3.connect(path)) as connection:
        for table in TABLES.keys() - {"total"}:
            for row in connection.execute(f"SELECT {', '.join(columns(table))} FROM {table}"):
                found[table, row[0]] = row[:-1]
    return found


def versions_in(database: bytes, wal: bytes) -> set[tuple[str, str]]:
    """All rows that stand anywhere in a file and its WAL, those left of earlier versions too."""
    pages, versions = pages_of(database, PAGE), set()
    for number, page in [*pages.items(), *frames_of(wal, PAGE)]:
        pages[number] = page
        versions |= {(table, repr(row)) for _, table, row in checked_rows(rows_of(number, pages))}
    return versions


def places_in(database: bytes, wal: bytes) -> dict[Key, list[Place]]:
    """Which bytes of the file and of its WAL each row consists of, in its newest version."""
    pages = pages_of(database, PAGE)
    begins: dict[int, Place] = {number: (False, (number - 1) * PAGE, 0) for number in pages}
    for place, (number, frame) in enumerate(frames_of(wal, PAGE)):
        pages[number] = frame
        begins[number] = (True, WAL_HEADER + place * (FRAME_HEADER + PAGE) + FRAME_HEADER, 0)
    found: dict[Key, list[Place]] = {}
    for number in pages:
        for each in rows_of(number, pages):
            for listed, table, row in checked_rows(iter([each])):
                if listed:
                    found[table, row[0]] = list(_places(each.touched, number, begins))
    return found


def _places(touched: tuple[tuple[int, int, int], ...], leaf: int, begins: dict[int, Place]) -> Iterator[Place]:
    """The bytes of a row, the head of its page, and what says in a WAL which page it is."""
    for number, begin, end in (*touched, (leaf, 0, 8)):
        in_wal, base, _ = begins[number]
        yield in_wal, base + begin, base + end
        if in_wal:
            yield True, base - FRAME_HEADER, base - FRAME_HEADER + 16
            yield True, 16, 24  # the salt of the frames that count


# The campaign


@dataclass
class Tally:
    """What came of the copies."""

    copies: int = 0
    reading: Counter[str] = field(default_factory=Counter)
    damaged: int = 0  # copies of which at least one row was lost
    rows: int = 0
    intact: int = 0  # rows whose own bytes are undamaged
    saved: int = 0
    continued: int = 0
    begun_again: int = 0
    nothing: int = 0  # copies of which not even the space was left
    faults: list[str] = field(default_factory=list)


def untouched(original: Original, database: bytes, wal: bytes) -> set[Key]:
    """The rows none of whose bytes have changed."""
    before, now = (original.database, original.wal or b""), (database, wal)
    return {
        key
        for key, places in original.places.items()
        if key in original.rows and all(before[which][a:b] == now[which][a:b] for which, a, b in places)
    }


def try_copy(original: Original, path: Path, seed: int, tally: Tally) -> None:
    """Damage a copy, read it, salvage it, and go on with what was saved."""
    draw = random.Random(seed)
    database, wal = bytearray(original.database), None if original.wal is None else bytearray(original.wal)
    damage = DAMAGES[seed % len(DAMAGES)]
    damage(database if wal is None or draw.random() < 0.5 else wal, draw)
    name = f"copy {seed} ({damage.__name__})"
    found = verdict(path, bytes(database), None if wal is None else bytes(wal), original.readable)
    tally.copies += 1
    tally.reading[found] += 1
    if found not in ("refused", "intact"):
        tally.faults.append(f"{name}: {found}")
    forget(path)
    path.write_bytes(database)
    if wal is not None:
        path.with_name(path.name + "-wal").write_bytes(wal)
    judge(original, path, untouched(original, bytes(database), bytes(wal or b"")), name, tally)


def judge(original: Original, path: Path, intact: set[Key], name: str, tally: Tally) -> None:
    try:
        tables = remains_of(path).tables
    except ValueError:
        tables = {}
    saved = {(table, key): row for table, rows in tables.items() for key, row in rows.items()}
    right = {key for key, row in saved.items() if repr(original.rows.get(key)) == repr(row)}
    missing = intact - right
    wrong = [key for key, row in saved.items() if key not in right and (key[0], repr(row)) not in original.versions]
    if missing or wrong:
        tally.faults.append(f"{name}: missing {sorted(map(str, missing))}, wrong {wrong}")
    tally.rows += len(original.rows)
    tally.damaged += len(right) < len(original.rows)
    tally.intact += len(intact)
    tally.saved += len(right)
    new = path.with_name("saved.db")
    forget(new)
    try:
        done = salvage(path, new)
    except ValueError:
        tally.nothing += 1
        if ("setting", "space") in right:
            tally.faults.append(f"{name}: could not be salvaged")
        return
    tally.continued += done.continues
    tally.begun_again += not done.continues
    budget = done.evaluations + 10
    if resume(new, objective_with_everything, budget=budget).evaluations != budget:
        tally.faults.append(f"{name}: the search did not go on")


def campaign(folder: Path, original: Original, seeds: range) -> Tally:
    tally = Tally()
    for seed in track(seeds, "damaged copies", transient=True):
        try_copy(original, folder / "copy.db", seed, tally)
    return tally


def table_of(tallies: dict[str, Tally]) -> Table:
    table = Table("", *tallies)
    for name, figure in {
        "copies": lambda t: t.copies,
        "read: refused": lambda t: t.reading["refused"],
        "read: intact": lambda t: t.reading["intact"],
        "read: anything else": lambda t: t.copies - t.reading["refused"] - t.reading["intact"],
        "copies that lost rows": lambda t: t.damaged,
        "rows in all copies": lambda t: t.rows,
        "undamaged rows": lambda t: t.intact,
        "saved rows": lambda t: t.saved,
        "salvaged, goes on where it stood": lambda t: t.continued,
        "salvaged, begins again with the data": lambda t: t.begun_again,
        "the space itself was lost": lambda t: t.nothing,
        "faults": lambda t: len(t.faults),
    }.items():
        table.add_row(name, *(str(figure(tally)) for tally in tallies.values()))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--copies", type=int, default=1000)
    parser.add_argument("--evaluations", type=int, default=300, help="of the search whose file is damaged")
    arguments = parser.parse_args()
    logging.getLogger("mixcma").setLevel(logging.ERROR)
    half = arguments.copies // 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tallies = {
            "finished file": campaign(folder, finished(folder, arguments.evaluations), range(half)),
            "file with a WAL": campaign(folder, with_wal(folder), range(half, arguments.copies)),
        }
    Console(width=120).print(table_of(tallies))
    faults = [fault for tally in tallies.values() for fault in tally.faults]
    print(*faults, sep="\n")
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
