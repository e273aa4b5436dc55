"""Objectives and programs that misbehave, in every way of running: does the search keep its promises?

    python benchmarks/attack                                # the whole campaign
    python benchmarks/attack --only returns_nan hangs       # some cases, by name
    python benchmarks/attack --ways workers loky            # some ways of running
    python benchmarks/attack --table                        # the cases, as the table of docs/reliability.md

Each case is an objective or a program that misbehaves at a quarter of the points of a small search. In each way of
running that makes sense for it, the search is a process of its own, which is watched. The laws: every value in the
run file is that of its point, by a formula; no evaluation fails without need; no search hangs; none ends with an
exception; no process is left. There is a line for each run that breaks a law, and a table at the end.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

import argparse
import contextlib
import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import laws
import objectives
import programs
from cases import COMMAND_LINE, DASK, NOTHING, TIMEOUT, WAYS, Case
from rich.console import Console
from rich.table import Table

MARK = "MIXCMA_ATTACK"  # the variable by which the processes of the cluster are known
KINDS: dict[str, dict[str, Case]] = {"objective": {**objectives.CASES}, "program": {**programs.CASES}}


class Run(NamedTuple):
    kind: str
    case: Case
    way: str

    def __str__(self) -> str:
        return f"{self.kind} {self.case.name}, {self.way}"


def runs(only: list[str] | None, kinds: list[str], ways: list[str]) -> Iterator[Run]:
    for way in ways:
        for kind in kinds:
            if kind == "objective" and way == COMMAND_LINE:
                continue
            for case in KINDS[kind].values():
                if (only is None or case.name in only) and case.can_run(way):
                    yield Run(kind, case, way)


class Cluster:
    """A LocalCluster in a process of its own, which is replaced if a case has ruined it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._mark = ""
        self.address: str | None = None
        self.left: list[str] = []

    def open(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._mark = uuid.uuid4().hex
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, MARK: self._mark, "PYTHONPATH": path}
        command = [sys.executable, str(Path(__file__).parent), "--cluster"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()

    def close(self) -> None:
        """End the cluster; what outlives it is noted."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(15)
        deadline = time.monotonic() + laws.GRACE
        while (found := self._marked()) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.left += [command for _, command in found]
        for process, _ in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, 9)
        self._process.kill()
        self._process.wait()
        self._process = None

    def _marked(self) -> list[tuple[int, str]]:
        """The processes of the cluster, and all that they started."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self._mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append((int(folder.name), command[:80]))
        return found


def serve_cluster() -> None:
    """Be the process of the cluster, until stdin is closed."""
    from distributed import LocalCluster

    owner = os.dup(1)  # nobody reads what the workers print, so they must not inherit this pipe
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    options = {"dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        os.write(owner, f"{cluster.scheduler_address}\n".encode())
        sys.stdin.read()


def campaign(wanted: list[Run], jobs: int, keep: Path | None) -> tuple[dict[Run, laws.Verdict], list[str]]:
    """The verdicts of all runs, and the processes that outlived the cluster."""
    fork = multiprocessing.get_context("fork")
    waiting, running, verdicts = list(wanted), {}, {}
    cluster = Cluster()
    with tempfile.TemporaryDirectory(prefix="attack-") as temporary:
        root = keep or Path(temporary)
        try:
            while waiting or running:
                while len(running) < jobs and (run := next_run(waiting, running)) is not None:
                    waiting.remove(run)
                    if run.way == DASK:
                        cluster.open()
                    folder = root / f"{run.kind}-{run.case.name}-{run.way}"
                    shutil.rmtree(folder, ignore_errors=True)
                    folder.mkdir(parents=True)
                    target = laws.supervise
                    process = fork.Process(target=target, args=(run.case, run.way, folder, cluster.address))
                    process.start()
                    running[run] = process, folder
                for run, (process, folder) in list(running.items()):
                    process.join(0.005)
                    if process.is_alive():
                        continue
                    del running[run]
                    verdicts[run] = verdict = verdict_in(folder)
                    for fault in verdict.faults:
                        print(f"{run}: {fault}", flush=True)
                    if run.way == DASK and (verdict.hung or verdict.broken):
                        cluster.close()
        finally:
            for process, _ in running.values():
                process.terminate()
                process.join()
            cluster.close()
    for command in cluster.left:
        print(f"dask: a process outlived the cluster: {command}")
    return verdicts, cluster.left


def next_run(waiting: Iterable[Run], running: Iterable[Run]) -> Run | None:
    """The first run that can begin now: of those on dask, which share a cluster, only one at a time."""
    on_dask = any(run.way == DASK for run in running)
    return next((run for run in waiting if not (on_dask and run.way == DASK)), None)


def verdict_in(folder: Path) -> laws.Verdict:
    try:
        return laws.Verdict(**json.loads((folder / laws.VERDICT).read_text()))
    except (OSError, ValueError):
        return laws.Verdict(broken=["the supervisor came to harm"])


def summary(verdicts: dict[Run, laws.Verdict], left: list[str]) -> Table:
    columns = ("", "cases", "runs", "values checked", "misbehaved", "wrong", "lost", "hangs", "broken", "left")
    table = Table(*columns)
    for way in [*WAYS, "all"]:
        found = {run: verdict for run, verdict in verdicts.items() if way in (run.way, "all")}
        if not found:
            continue
        of_cluster = len(left) if way in (DASK, "all") else 0
        counts = (
            len({(run.kind, run.case.name) for run in found}), len(found),
            sum(verdict.checked for verdict in found.values()), sum(verdict.misbehaved for verdict in found.values()),
            sum(len(verdict.wrong) for verdict in found.values()), sum(len(verdict.lost) for verdict in found.values()),
            sum(verdict.hung for verdict in found.values()), sum(bool(verdict.broken) for verdict in found.values()),
            sum(len(verdict.left) for verdict in found.values()) + of_cluster,
        )  # fmt: skip
        table.add_row(way, *map(str, counts))
    return table


def case_table() -> str:
    """The cases as Markdown."""
    lines = []
    for kind, cases in KINDS.items():
        lines += [f"### {kind.capitalize()}s that misbehave", ""]
        lines += ["| name | what it does wrong | what mixcma makes of it |", "| --- | --- | --- |"]
        lines += [f"| `{case.name}` | {case.wrong} | {case.makes}{_where(case)} |" for case in cases.values()]
        lines += [""]
    return "\n".join(lines)


def _where(case: Case) -> str:
    after = "; later evaluations of that process may fail too" if case.spoils else ""
    after += "; where that cannot be, the problem is refused" if case.refusable else ""
    return after + {NOTHING: "", TIMEOUT: " (with a timeout)"}.get(case.needs, " (in a worker process)")


def main() -> None:
    names = [*objectives.CASES, *programs.CASES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help="cases; default: all")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    parser.add_argument("--limit", type=float, default=laws.HANG, help="seconds after which a search hangs")
    parser.add_argument("--keep", type=Path, help="a folder in which the files of each run are left")
    parser.add_argument("--times", action="store_true", help="also list the ten slowest runs")
    parser.add_argument("--table", action="store_true", help="print the table of cases, and run nothing")
    parser.add_argument("--cluster", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cluster:
        serve_cluster()
        return
    if options.table:
        print(case_table())
        return
    laws.HANG = options.limit
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and end what was started
    keep = options.keep.resolve() if options.keep else None
    began = time.monotonic()
    verdicts, left = campaign(list(runs(options.only, options.kinds, options.ways)), options.jobs, keep)
    Console(width=120).print(summary(verdicts, left), f"{time.monotonic() - began:.0f} s", highlight=False)
    if options.times:
        for run in sorted(verdicts, key=lambda run: -verdicts[run].seconds)[:10]:
            print(f"{verdicts[run].seconds:.1f} s: {run}")
    if left or any(verdict.faults for verdict in verdicts.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
