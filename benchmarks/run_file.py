"""What a run file costs, and what becomes of a damaged one.

    python benchmarks/run_file.py            # size, time to go on, time to append a generation
    python benchmarks/run_file.py --damage   # every byte flipped, every page cut off

The first makes a search of 100,000 evaluations over 10 floats and 10 integers with the default population and
restarts. "Ready to go on" is the time from the call of resume() to its first new evaluation. Appending is the time
of a search with a run file less that of the same search without, by the number of generations; the two take turns,
and each figure is the median over the turns.

The second flips every bit of a finished run file, and every byte of a file with its WAL as a killed search leaves
them (by one bit, and by all bits), and cuts them off at many places. What is read then must be a refusal in one
sentence or all of what was in the file: with a WAL, all of what was in it at some earlier commit.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads only add noise at these sizes

import argparse
import collections
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Bool, Float, Int, Outcome, Progress, Space, Stopping, minimize, resume
from mixcma.space import Params
from mixcma.store import Record, read

LARGEST_MB, LONGEST_RESUME, LONGEST_APPEND_MS = 60.0, 5.0, 1.0
TWENTY = Space({f"x{i}": Float(-10, 10) for i in range(10)} | {f"z{i}": Int(-10, 10) for i in range(10)})
SMALL = Space({"x": Float(-5, 5), "n": Int(0, 9), "on": Bool()})
WAL_HEADER, FRAME_HEADER, PAGE = 32, 24, 4096


def sphere(p: Params) -> float:
    return sum(value * value for value in p.values())


# What it costs


def make_large(path: Path, evaluations: int) -> float:
    began = time.perf_counter()
    result = minimize(sphere, TWENTY, budget=evaluations, seed=1, run_file=path)
    assert result.evaluations == evaluations
    return time.perf_counter() - began


def time_to_go_on(path: Path, evaluations: int) -> float:
    """Seconds until a copy of the file has its next evaluation."""
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    called: list[float] = []

    def objective(p: Params) -> float:
        called.append(time.perf_counter())
        return sphere(p)

    began = time.perf_counter()
    resume(copy, objective, budget=evaluations + 1)
    copy.unlink()
    return called[0] - began


def time_of_search(generations: int, seed: int, path: Path | None) -> float:
    """Seconds of a search of so many generations of 12."""
    limits = Stopping(flat_tolerance=None)
    began = time.perf_counter()
    result = minimize(sphere, TWENTY, budget=12 * generations, seed=seed, stopping=limits, run_file=path)
    seconds = time.perf_counter() - began
    assert result.evaluations == 12 * generations
    assert len(result.runs) == 1
    if path is not None:
        path.unlink()
    return seconds


def measure(folder: Path, evaluations: int, turns: int, generations: int) -> Table:
    path = folder / "large.db"
    made = make_large(path, evaluations)
    size = path.stat().st_size / 1e6
    ready = statistics.median(time_to_go_on(path, evaluations) for _ in range(turns))
    append = []
    for turn in track(range(turns), "searches with and without", transient=True):
        without = time_of_search(generations, turn, None)
        append.append(1e3 * (time_of_search(generations, turn, folder / "turn.db") - without) / generations)
    record = read(path)
    table = Table("measured", "figure", "bar", "", title=f"{evaluations:,} evaluations, N = 20")
    for name, figure, bar, unit in (
        ("size of the file", size, LARGEST_MB, "MB"),
        ("ready to go on", ready, LONGEST_RESUME, "s"),
        ("appending a generation of 12", statistics.median(append), LONGEST_APPEND_MS, "ms"),
    ):
        table.add_row(name, f"{figure:.3f} {unit}", f"< {bar:g} {unit}", "ok" if figure < bar else "MISSED")
    table.add_row("  least and most of its turns", f"{min(append):.3f} .. {max(append):.3f} ms")
    table.add_row("the whole search", f"{made:.1f} s")
    table.add_row("its runs and generations", f"{len(record.runs)}, {len(record.generations)}")
    return table


# What becomes of a damaged one


def content(record: Record) -> str:
    """All of a run file as one text; two texts are equal only if every value and type is."""
    rows = [row._replace(latent=row.latent is not None and row.latent.tobytes()) for row in record.rows]
    generations = [g._replace(mean=g.mean.tobytes(), deviation=g.deviation.tobytes()) for g in record.generations]
    arrays = {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in record.snapshot.arrays.items()}
    settings, numbers = sorted(record.settings.items()), record.snapshot.numbers
    return repr((settings, record.space, record.runs, rows, generations, record.snapshot_run, numbers, arrays))


def forget(path: Path) -> None:
    """Remove a run file and what SQLite keeps beside it."""
    for name in ("", "-wal", "-shm", "-journal", ".lock", ".new"):
        path.with_name(path.name + name).unlink(missing_ok=True)


def verdict(path: Path, database: bytes, wal: bytes | None, allowed: Iterable[str]) -> str:
    """What reading these bytes gives: "refused", "intact", or what is wrong with the answer."""
    forget(path)
    path.write_bytes(database)
    if wal is not None:
        path.with_name(path.name + "-wal").write_bytes(wal)
    try:
        found = content(read(path))
    except ValueError as error:
        text = str(error)
        good = text.startswith("run_file: ") and "; " in text and "\n" not in text and str(path) in text
        return "refused" if good else f"refused, but not in a sentence: {text!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "intact" if found in allowed else "WRONG"


class Damage(NamedTuple):
    """Bytes of the database or of its WAL that are changed, or where it ends."""

    in_wal: bool
    position: int
    mask: int | None  # None: it is cut off here

    def done_to(self, database: bytes, wal: bytes | None) -> tuple[bytes, bytes | None]:
        if self.in_wal:
            assert wal is not None
            return database, self._changed(wal)
        return self._changed(database), wal

    def _changed(self, data: bytes) -> bytes:
        if self.mask is None:
            return data[: self.position]
        changed = bytearray(data)
        changed[self.position] ^= self.mask
        return bytes(changed)


def flips(in_wal: bool, positions: Iterable[int], every_bit: bool = False) -> Iterator[Damage]:
    """Each position by all bits, and by every one or by one that changes with the position."""
    for position in positions:
        for bit in range(8) if every_bit else [(position * 5 + position // 8) % 8]:
            yield Damage(in_wal, position, 1 << bit)
        yield Damage(in_wal, position, 0xFF)


def cuts(in_wal: bool, size: int) -> Iterator[Damage]:
    """At every 512 bytes, beside them, and at odd places."""
    places = {max(0, place + off) for place in range(0, size, 512) for off in (-1, 0, 1, 171)}
    return (Damage(in_wal, place, None) for place in sorted(places) if place < size)


def objective_with_everything(p: Params) -> Outcome:
    """Values, constraints and failures."""
    if p["on"] and p["n"] > 6:
        raise ValueError("no such thing")
    return Outcome(sphere(p), [p["x"] - 1.0, -0.5])


def finished_file(path: Path) -> bytes:
    """A small finished run file."""
    plain = "mix-without-model"
    minimize(objective_with_everything, SMALL, budget=14, seed=3, popsize=4, run_file=path, method=plain)
    return path.read_bytes()


def open_file(path: Path) -> tuple[bytes, bytes]:
    """A run file and its WAL in the middle of a search, as a kill would leave them."""
    copied: list[tuple[bytes, bytes]] = []

    def callback(progress: Progress) -> bool:
        copied.append((path.read_bytes(), path.with_name(path.name + "-wal").read_bytes()))
        return progress.evaluations >= 12

    with patch("mixcma.store.run_file.WORTH_A_COMMIT", 0.0):  # as if evaluations took their time
        minimize(objective_with_everything, SMALL, budget=100, seed=3, popsize=4, run_file=path, callback=callback)
    forget(path)
    return copied[-1]


def commits(wal: bytes) -> list[int]:
    """Where in a WAL each commit ends."""
    frames = range(WAL_HEADER, len(wal) - FRAME_HEADER - PAGE + 1, FRAME_HEADER + PAGE)
    return [at + FRAME_HEADER + PAGE for at in frames if int.from_bytes(wal[at + 4 : at + 8], "big")]


def moments(path: Path, database: bytes, wal: bytes) -> list[str]:
    """What the file held when it was made, and after each commit since."""
    held = []
    for end in [0, *commits(wal)]:
        forget(path)
        path.write_bytes(database)
        path.with_name(path.name + "-wal").write_bytes(wal[:end])
        held.append(content(read(path)))
    forget(path)
    return held


def _verdicts(
    folder: Path, database: bytes, wal: bytes | None, allowed: frozenset[str], damages: list[Damage]
) -> list[tuple[str, str]]:
    path = folder / f"{os.getpid()}.db"
    found = [(verdict(path, *damage.done_to(database, wal), allowed), str(damage)) for damage in damages]
    forget(path)
    return found


def damage_all(folder: Path, processes: int) -> tuple[Table, bool]:
    whole = finished_file(folder / "whole.db")
    expected = frozenset([content(read(folder / "whole.db"))])
    database, wal = open_file(folder / "open.db")
    earlier = frozenset(moments(folder / "open.db", database, wal))
    campaigns = {
        "finished file, every bit flipped": (whole, None, expected, flips(False, range(len(whole)), every_bit=True)),
        "finished file, cut off": (whole, None, expected, cuts(False, len(whole))),
        "file with a WAL, bytes of the file flipped": (database, wal, earlier, flips(False, range(len(database)))),
        "file with a WAL, bytes of the WAL flipped": (database, wal, earlier, flips(True, range(len(wal)))),
        "file with a WAL, WAL cut off": (database, wal, earlier, cuts(True, len(wal))),
    }
    table, good = Table("damage", "times", "refused", "intact", "other"), True
    for name, (file, log, allowed, given) in campaigns.items():
        damages = list(given)
        parts = [damages[i : i + 500] for i in range(0, len(damages), 500)]
        counts: collections.Counter[str] = collections.Counter()
        with ProcessPoolExecutor(processes) as pool:
            work = pool.map(partial(_verdicts, folder, file, log, allowed), parts)
            for found in track(work, name, total=len(parts), transient=True):
                counts.update(kind for kind, _ in found)
                for kind, damage in found:
                    if kind not in ("refused", "intact"):
                        good = False
                        print(f"{name}: {damage}: {kind}")
        other = sum(counts.values()) - counts["refused"] - counts["intact"]
        table.add_row(name, str(len(damages)), str(counts["refused"]), str(counts["intact"]), str(other))
    return table, good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--damage", action="store_true", help="damage files instead of measuring")
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--generations", type=int, default=300, help="of each search that is timed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.damage:
            table, good = damage_all(Path(folder), arguments.processes)
        else:
            table = measure(Path(folder), arguments.evaluations, arguments.turns, arguments.generations)
            good = True
    console.print(table)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
