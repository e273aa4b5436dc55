"""A search under supervision, and the laws that it is held to."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
import searches
from cases import AGAIN, BEGUN, COMMAND_LINE, FAILED, INSIDE, MAY_DIE, VALUE, Case, misbehaves

from mixcma.store import read

HANG = 60.0  # seconds after which a search counts as hanging
GRACE = 4.0  # seconds that a process may outlive its search
OWNER_LIFE = 0.5  # seconds from the beginning of its misbehaviour until the process of the search is killed
VERDICT = "verdict.json"
PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Verdict:
    """What came of one run of a case."""

    checked: int = 0  # recorded values that were compared with the formula
    misbehaved: int = 0  # evaluations at points where the case misbehaves
    wrong: list[str] = field(default_factory=list)  # values that are not those of their points
    lost: list[str] = field(default_factory=list)  # evaluations that failed without need
    hung: bool = False
    broken: list[str] = field(default_factory=list)  # searches that ended with an exception, or left no run file
    left: list[str] = field(default_factory=list)  # processes that outlived the search
    seconds: float = 0.0

    @property
    def faults(self) -> list[str]:
        found = ["hangs"] if self.hung else []
        found += [f"{len(self.wrong)} wrong values, such as {self.wrong[0]}"] if self.wrong else []
        found += [f"{len(self.lost)} evaluations lost, such as {self.lost[0]}"] if self.lost else []
        found += self.broken
        found += [f"{len(self.left)} processes left, such as {self.left[0]}"] if self.left else []
        return found


def supervise(case: Case, way: str, folder: Path, cluster: str | None) -> None:
    """Run a case in a process of its own, and write the verdict into `folder`.

    Orphans become children of this process, so it finds whatever the search has left.
    """
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    verdict, began = Verdict(), time.monotonic()
    try:
        with busy_files(case, folder):
            search = start(case, way, folder, cluster)
            status = kill_owner(search, folder) if case.owner_dies else wait(search, HANG)
            verdict.hung = status is None
        if not verdict.hung:
            left = leftovers(GRACE)
            verdict.left = left if way != INSIDE or not case.leaves else []
        end_descendants()
        if not verdict.hung and not case.owner_dies:
            check_end(case, way, folder, search, status, verdict)
        check_values(case, folder / searches.RUN_FILE, verdict)
    finally:
        end_descendants()
        verdict.seconds = time.monotonic() - began
        (folder / VERDICT).write_text(json.dumps(asdict(verdict)))


@contextlib.contextmanager
def busy_files(case: Case, folder: Path) -> Iterator[None]:
    """Hold the programs open for writing where the case is about that."""
    with contextlib.ExitStack() as stack:
        if getattr(case, "file", None) == "busy":
            for n in range(1, searches.LAST + 1, 4):
                stack.enter_context(open(folder / f"program{n}", "a"))
        yield


def start(case: Case, way: str, folder: Path, cluster: str | None) -> int:
    """Fork the process of the search."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        os.chdir(folder)
        output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        searches.run(case, way, cluster)
        sys.stdout = sys.stderr = None  # type: ignore[assignment]  # the case may have broken them
    finally:
        os._exit(0)


def wait(process: int, seconds: float) -> int | None:
    """The status with which a child ends within so many seconds, else None."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def kill_owner(process: int, folder: Path) -> int | None:
    """Kill the process of the search when its objective misbehaves; its status, or None if that never came."""
    deadline = time.monotonic() + HANG
    while not (folder / BEGUN).exists():
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)
    time.sleep(OWNER_LIFE)
    os.kill(process, signal.SIGKILL)
    return wait(process, HANG)


def leftovers(grace: float) -> list[str]:
    """The processes that still run after so many seconds."""
    deadline = time.monotonic() + grace
    while (found := descendants()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def descendants() -> list[str]:
    """The commands of all processes that descend from this one and have not ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline())[:80])
    return found


def end_descendants() -> None:
    while descendants():
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.01)


# The laws


def check_end(case: Case, way: str, folder: Path, search: int, status: int | None, verdict: Verdict) -> None:
    """A search comes to its end, once, and without an exception."""
    if way == COMMAND_LINE:
        if status not in (0, 1) and not (case.refusable and status == 2):
            verdict.broken.append(f"mixcma run ended with status {status}")
        return
    ends = {path.name: json.loads(path.read_text()) for path in folder.glob("end-*.json")}
    own = ends.pop(f"end-{search}.json", None)
    if ends:
        verdict.broken.append("the search went on in a second process")
    if own is None:
        verdict.broken.append(f"the process of the search ended early, with status {status}")
    elif own["stop"] != "finished" and not (case.refusable and own["stop"] == "ValueError"):
        verdict.broken.append(f"the search ended with {own['stop']}: {own['error'][:200]}")


def check_values(case: Case, path: Path, verdict: Verdict) -> None:
    """Every recorded value is that of its point; what should have one has one, and what should have none has none."""
    if not path.exists():
        if not verdict.faults and not case.refusable and not case.owner_dies:
            verdict.broken.append("there is no run file")
        return
    try:
        rows = [row for row in read(path).rows if row.evaluated]
    except ValueError as error:
        verdict.broken.append(f"the run file cannot be read: {error}")
        return
    if not rows and not verdict.hung and not case.owner_dies:
        verdict.broken.append("nothing was evaluated")
    for row in rows:
        bad = misbehaves(dict(zip(("x", "n"), row.params.values())))
        verdict.misbehaved += bad
        assert row.outcome is not None
        if row.outcome.failed:
            if not case.spoils and not (bad and case.makes not in (VALUE, MAY_DIE)):
                verdict.lost.append(f"evaluation {row.id}: {str(row.outcome.error)[:120]}")
            continue
        verdict.checked += 1
        value = case.value if bad and case.value is not None else searches.honest(case, row.params)
        if bad and case.makes in (FAILED, AGAIN):
            verdict.wrong.append(f"evaluation {row.id}: {row.outcome.value} instead of a failure")
        elif row.outcome.value != value:
            verdict.wrong.append(f"evaluation {row.id}: {row.outcome.value} instead of {value}")
