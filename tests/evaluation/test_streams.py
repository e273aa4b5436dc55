"""Standard streams that are closed, full, broken or missing change nothing for the evaluations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mixcma import Float, Space, minimize
from mixcma.store import read

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
MIXCMA = [sys.executable, "-c", "from mixcma.cli import main; main()"]
PROBLEM = """
[objective]
{objective}
[run]
budget = 6
seed = 1
workers = {workers}
[space.x]
type = "float"
low = -5
high = 5
"""
PROGRAM = f'command = ["{sys.executable}", "-c", "import sys; print(float(sys.argv[1]) ** 2)", "{{x}}"]'
FUNCTION = 'python = "module:cost"'
MODULE = """
import os, sys
def cost(p):
    print("hello")
    print("trouble", file=sys.stderr)
    return p["x"] ** 2
"""


def problem(folder, objective, workers):
    (folder / "module.py").write_text(MODULE)
    path = folder / "problem.toml"
    path.write_text(PROBLEM.format(objective=objective, workers=workers))
    return path


def statuses(folder):
    return [row.status for row in read(folder / "problem.db").rows if row.evaluated]


@pytest.mark.parametrize(
    ("closed", "workers", "objective"),
    [
        (">&- 2>&- <&-", 1, PROGRAM),
        (">&- 2>&- <&-", 1, FUNCTION),
        (">&- 2>&- <&-", 2, PROGRAM),
        (">&- 2>&- <&-", 2, FUNCTION),
        (">&-", 2, FUNCTION),
        ("<&- 2>&-", 2, FUNCTION),
    ],
)
def test_a_run_with_closed_streams_evaluates_as_any_other(closed, workers, objective, tmp_path):
    path = problem(tmp_path, objective, workers)
    subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *MIXCMA, "run", str(path), "--quiet"], timeout=120, check=False)
    assert statuses(tmp_path) == ["done"] * 6


@pytest.mark.parametrize("objective", [PROGRAM, FUNCTION], ids=["program", "function"])
def test_a_run_with_an_empty_environment_evaluates_as_any_other(objective, tmp_path):
    path = problem(tmp_path, objective, 2)
    # as cron would, but with the modules of this process
    where = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([*MIXCMA, "run", str(path), "--quiet"], env=where, stdin=subprocess.DEVNULL, timeout=120, check=True)
    assert statuses(tmp_path) == ["done"] * 6


def a_full_disk():
    return Path("/dev/full").open("wb")


def a_pipe_without_a_reader():
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "wb")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("stream", [a_full_disk, a_pipe_without_a_reader], ids=lambda stream: stream.__name__)
def test_what_workers_cannot_print_fails_no_evaluation(stream, tmp_path):
    path = problem(tmp_path, FUNCTION, 2)
    with stream() as unwritable:
        subprocess.run(
            [*MIXCMA, "run", str(path), "--quiet"], stdout=unwritable, stderr=unwritable, timeout=120, check=False
        )
    assert statuses(tmp_path) == ["done"] * 6


def leave(*_):
    raise SystemExit


class Jammed:
    """A stream that calls for the end of the program whatever is done with it."""

    write = flush = close = fileno = isatty = leave


CLOSINGS = {
    "closed": lambda: sys.stdout.close(),
    "missing": lambda: setattr(sys, "stdout", None),
    "both closed": lambda: (sys.stdout.close(), sys.stderr.close()),
    "closed below Python": lambda: (os.close(1), os.close(2)),
    "not streams": lambda: setattr(sys, "stdout", 3),
    "jammed": lambda: setattr(sys, "stdout", Jammed()),
}


@pytest.mark.parametrize("name", CLOSINGS)
def test_an_objective_that_closes_its_streams_in_a_worker_harms_nobody(name):
    close = CLOSINGS[name]

    def objective(p):
        if sys.stdout is not None and not getattr(sys.stdout, "closed", False):
            try:
                close()
            except OSError:
                return p["x"] ** 2  # they were closed before
        return p["x"] ** 2

    result = minimize(objective, PLANE, budget=12, seed=1, workers=2)
    assert (result.evaluations, result.failures) == (12, 0)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are found by /proc")
def test_where_the_owner_has_no_streams_its_workers_have_dev_null(tmp_path):
    log = tmp_path / "log"
    program = f"""
import os
from mixcma import Float, Space, minimize
def objective(p):
    with open({str(log)!r}, "a") as file:
        file.write(" ".join(os.readlink(f"/proc/self/fd/{{number}}") for number in range(3)) + "\\n")
    return p["x"] ** 2
minimize(objective, Space({{"x": Float(-5, 5)}}), budget=3, seed=1, workers=2)
"""
    subprocess.run(["sh", "-c", '"$@" >&- 2>&- <&-', "sh", sys.executable, "-c", program], timeout=60, check=True)
    assert log.read_text().splitlines() == ["/dev/null /dev/null /dev/null"] * 3
