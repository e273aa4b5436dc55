"""Searches on two worker processes that are killed at random moments and go on, until they are finished.

    python benchmarks/kills.py                 # 6 searches of 60 generations, 48 kills
    python benchmarks/kills.py --every-call    # killed at every system call that changes a file (needs strace)

A search is a process of its own with two workers; all evaluations leave a line in a log. It gets SIGKILL after a
random delay, counted from the start of the search, from the moment its run file appears under its first name, or
from its first new evaluation. After every kill: the file, if there is one, is intact by SQLite's own check and can be
read; no process of the search is alive for long; and nothing that was finished then is evaluated ever again. In the
end the candidates, their order and values, the distributions and the result are those of a search nobody killed.

With --every-call a short search in one process is killed, one after the other, at each of its calls of pwrite,
fdatasync, rename, ... on the run file and the files beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Bool, Categorical, Float, Int, Result, Space, minimize
from mixcma.space import Params
from mixcma.store import read

SPACE = Space(
    {
        "x": Float(-50, 50, mean=3, std=2),
        "y": Float(-50, 50, mean=3, std=2),
        "n": Int(0, 99),
        "on": Bool(),
        "way": Categorical(["short", "long", "none"]),
        "steps": Int(1, 9, when={"way": "long"}),
        "pace": Float(0, 1, when={"way": ["short", "long"]}),
    }
)
POPSIZE = 8
SECONDS = 0.004  # of one evaluation
MARK = "MIXCMA_KILLS"  # the variable by which the processes of a search are known
LONGEST_LIFE = 10.0  # seconds that a worker may outlive its search
COLUMNS = ("search", "kills", "without a file", "repeated", "most after a kill", "workers gone after, s", "faults")
# System calls that change files.
CALLS = ("write", "pwrite64", "ftruncate", "fsync", "fdatasync", "openat", "rename", "unlink")


def logging_objective(log: str, seconds: float) -> Callable[[Params], float]:
    """The sphere, which says what it evaluates; a closure, so that it travels by value."""

    def objective(p: Params) -> float:
        line = json.dumps(list(p.values())) + "\n"
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, line.encode())  # one call, so lines of two workers do not mix
        os.close(file)
        time.sleep(seconds)
        way = (
            3.0 if p["way"] == "none" else (p["pace"] - 0.3) ** 2 + (abs(p["steps"] - 4) if p["way"] == "long" else 1.0)
        )
        return (p["x"] - 1) ** 2 + (p["y"] + 2) ** 2 + (p["n"] - 40) ** 2 / 100 + p["on"] + way

    return objective


def search(path: Path, log: Path, generations: int, seed: int, workers: int, seconds: float) -> Result:
    objective = logging_objective(str(log), seconds)
    budget = POPSIZE * generations
    return minimize(objective, SPACE, budget=budget, seed=seed, popsize=POPSIZE, workers=workers, run_file=path)


def child(arguments: list[str]) -> None:
    """The process that is killed."""
    path, log, generations, seed, workers, seconds = arguments
    print("begin", flush=True)
    search(Path(path), Path(log), int(generations), int(seed), int(workers), float(seconds))


def command(path: Path, log: Path, generations: int, seed: int, workers: int, seconds: float) -> list[str]:
    settings = [str(value) for value in (path, log, generations, seed, workers, seconds)]
    return [sys.executable, str(Path(__file__).resolve()), "--child", *settings]


def alive(mark: str) -> list[int]:
    """The processes that carry the mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def content(path: Path) -> tuple[object, ...]:
    """All that a search leaves, but for times."""
    record = read(path)
    rows = [(r.id, r.run, r.generation, r.slot, r.params, r.status, r.outcome) for r in record.rows]
    generations = [(*g[:5], g.mean.tobytes(), g.deviation.tobytes()) for g in record.generations]
    return rows, generations, record.runs


def logged(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def copied(path: Path, folder: Path) -> Path | None:
    """The file with its WAL, to look at without a trace."""
    if not path.exists():
        return None
    for name in (path.name, path.name + "-wal", path.name + "-journal"):
        (folder / name).unlink(missing_ok=True)
        if path.with_name(name).exists():
            shutil.copy(path.with_name(name), folder / name)
    (folder / (path.name + "-shm")).unlink(missing_ok=True)
    return folder / path.name


def finished_points(copy: Path) -> list[str]:
    """The points whose values the file has, as the log writes them; the file is checked on the way."""
    points = [json.dumps(list(row.params.values())) for row in read(copy).rows if row.finished]
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    if answer != "ok":
        raise AssertionError(f"integrity check: {answer}")
    return points


@dataclass
class Campaign:
    """What happened to one search."""

    kills: int = 0
    before_the_file: int = 0  # kills before the file was there
    repeated: int = 0  # evaluations that were under way and made again
    most_repeated: int = 0  # the most of them after one kill
    lives: list[float] = field(default_factory=list)  # seconds until the last worker was gone
    faults: list[str] = field(default_factory=list)

    def check_kill(self, path: Path, folder: Path, mark: str) -> list[str]:
        """Right after a kill; the points that must not be evaluated again."""
        self.kills += 1
        self._wait_for_workers(mark)
        copy = copied(path, folder)
        if copy is None:
            self.before_the_file += 1
            return []
        try:
            return finished_points(copy)
        except (ValueError, AssertionError) as error:
            self.faults.append(f"kill {self.kills}: {error}")
            return []

    def check_log(self, earlier: list[str], lines: list[str], finished: list[str], expected: Counter[str]) -> None:
        """What was evaluated since the last kill, against what was before it and what the file had then.

        The search itself comes to the same point more than once: it is `expected` so many times.
        """
        again = [point for point, count in (Counter(lines) + Counter(finished)).items() if count > expected[point]]
        repeated = Counter(earlier) + Counter(lines) - expected
        self.most_repeated = max(self.most_repeated, repeated.total() - self.repeated)
        self.repeated = repeated.total()
        if again:
            self.faults.append(f"after kill {self.kills}: {len(again)} finished evaluations were made again")

    def check_end(self, path: Path, whole: tuple[object, ...], lines: list[str], expected: list[str]) -> None:
        for name, found, wanted in zip(("candidates", "distributions", "runs"), content(path), whole):
            if found != wanted:
                self.faults.append(f"in the end: the {name} are not those of the unbroken search")
        if set(lines) != set(expected):
            self.faults.append("in the end: the points that were evaluated are not those of the unbroken search")

    def _wait_for_workers(self, mark: str) -> None:
        began = time.monotonic()
        while left := alive(mark):
            if time.monotonic() - began > LONGEST_LIFE:
                self.faults.append(f"kill {self.kills}: processes {left} live on")
                for number in left:
                    os.kill(number, signal.SIGKILL)
                break
            time.sleep(0.005)
        self.lives.append(time.monotonic() - began)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition() and process.poll() is None:
        time.sleep(0.0005)


def kill_later(process: subprocess.Popen[str], path: Path, log: Path, draw: random.Random, longest: float) -> bool:
    """Wait for a random moment, and kill; whether it was still running."""
    early, late = ["start", "file"], ["start", "evaluation", "evaluation", "evaluation"]
    kind = draw.choice(late if path.exists() else early)
    if kind == "start":  # workers start, the file is made, the first evaluations begin
        time.sleep(draw.uniform(0.0, 0.5))
    elif kind == "file":
        draft = path.with_name(path.name + ".new")
        wait_until(lambda: draft.exists() or path.exists(), process)
        time.sleep(draw.choice([0.0, 0.0, 0.001, 0.003, 0.01]))
    else:
        lines = len(logged(log))
        wait_until(lambda: len(logged(log)) > lines, process)
        time.sleep(draw.uniform(0.0, longest))
    running = process.poll() is None
    process.kill()
    process.wait()
    return running


def killed_search(folder: Path, generations: int, seed: int, kills: int, longest: float = 0.35) -> Campaign:
    """Kill a search so often, let it finish, and compare it with one that was left alone.

    `longest`: the most seconds from its first new evaluation to the kill.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "look").mkdir()
    path, log, whole = folder / "run.db", folder / "log", folder / "whole.db"
    search(whole, folder / "whole.log", generations, seed, 2, 0.0)
    expected = Counter(logged(folder / "whole.log"))
    campaign, draw, finished, mark = Campaign(), random.Random(seed), list[str](), uuid.uuid4().hex
    begin = command(path, log, generations, seed, 2, SECONDS)
    environment = {**os.environ, MARK: mark}
    while campaign.kills < kills:
        before = len(logged(log))
        with subprocess.Popen(begin, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            running = kill_later(process, path, log, draw, longest)
        lines = logged(log)
        campaign.check_log(lines[:before], lines[before:], finished, expected)
        if not running:  # it came to its end
            break
        finished = campaign.check_kill(path, folder / "look", mark)
        if campaign.faults:
            return campaign
    before = len(logged(log))
    subprocess.run(begin, env=environment, check=True, stdout=subprocess.DEVNULL)
    lines = logged(log)
    campaign.check_log(lines[:before], lines[before:], finished, expected)
    campaign.check_end(path, content(whole), lines, logged(folder / "whole.log"))
    left = sorted(p.name for p in folder.iterdir() if p.name.startswith("run.db") and p.name != "run.db")
    unexpected = [name for name in left if not name.endswith(("-wal", "-shm"))]
    if unexpected:
        campaign.faults.append(f"in the end: {', '.join(unexpected)} left behind")
    return campaign


def run_campaigns(folder: Path, searches: int, generations: int, kills: int, seed: int) -> tuple[Table, bool]:
    table, good = Table(*COLUMNS), True
    total = Campaign()
    for number in track(range(searches), "searches", transient=True):
        campaign = killed_search(folder / str(number), generations, seed + number, kills)
        lives = f"{statistics.median(campaign.lives):.2f}, at most {max(campaign.lives):.2f}"
        counts = (campaign.kills, campaign.before_the_file, campaign.repeated, campaign.most_repeated)
        table.add_row(str(number), *map(str, counts), lives, "; ".join(campaign.faults) or "none")
        total.kills += campaign.kills
        total.before_the_file += campaign.before_the_file
        total.repeated += campaign.repeated
        total.most_repeated = max(total.most_repeated, campaign.most_repeated)
        total.lives += campaign.lives
        good &= not campaign.faults
    lives = f"{statistics.median(total.lives):.2f}, at most {max(total.lives):.2f}"
    counts = (total.kills, total.before_the_file, total.repeated, total.most_repeated)
    table.add_row("all", *map(str, counts), lives, "")
    return table, good


# Every system call


def run_every_call(folder: Path, generations: int, seed: int) -> tuple[Table, bool]:
    """Kill a short search at its first, second, ... call of each kind on its files."""
    whole = folder / "whole.db"
    search(whole, folder / "whole.log", generations, seed, 1, 0.0)
    expected = content(whole)
    table, good = Table("call", "kills", "faults"), True
    for call in CALLS:
        faults, number = list[str](), 0
        while True:
            number += 1
            fault = killed_at(folder / f"{call}{number}", call, number, generations, seed, expected)
            if fault == "not killed":
                break
            if fault is not None:
                faults.append(f"{number}: {fault}")
        table.add_row(call, str(number - 1), "\n".join(faults) or "none")
        good &= not faults
    return table, good


def killed_at(
    folder: Path, call: str, number: int, generations: int, seed: int, expected: tuple[object, ...]
) -> str | None:
    folder.mkdir()
    (folder / "look").mkdir()
    path, log = (folder / "run.db").resolve(), folder / "log"
    ends = ("", "-wal", "-shm", "-journal", ".lock", ".new", ".new-wal", ".new-shm", ".new-journal")
    tracer = ["strace", "-f", "-qq", "-o", os.devnull]
    for end in ends:
        tracer += ["-P", f"{path}{end}"]
    tracer += ["-e", f"inject={call}:signal=KILL:when={number}"]
    begin = command(path, log, generations, seed, 1, 0.0)
    if subprocess.run([*tracer, *begin], stdout=subprocess.DEVNULL).returncode == 0:
        shutil.rmtree(folder)
        return "not killed"
    try:
        copy = copied(path, folder / "look")
        finished = [] if copy is None else finished_points(copy)
        before = len(logged(log))
        search(path, log, generations, seed, 1, 0.0)
        if set(logged(log)[before:]) & set(finished):
            return "finished evaluations were made again"
        if content(path) != expected:
            return "not the unbroken search"
    except (ValueError, AssertionError) as error:
        return str(error)
    shutil.rmtree(folder)
    return None


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--searches", type=int, default=6)
    parser.add_argument("--kills", type=int, default=8, help="of each search")
    parser.add_argument("--generations", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every-call", action="store_true", help="kill at every system call that changes a file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.every_call:
            table, good = run_every_call(Path(folder), 2, arguments.seed)
        else:
            searches, kills = arguments.searches, arguments.kills
            table, good = run_campaigns(Path(folder), searches, arguments.generations, kills, arguments.seed)
    Console(width=160).print(table)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
