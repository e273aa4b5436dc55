"""Searches on worker processes that get SIGKILL and go on; benchmarks/kills.py has the long version."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.kills import MARK, POPSIZE, SECONDS, alive, command, content, killed_search, logged, search

from mixcma.store import read

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found by /proc")


def test_a_search_that_is_killed_five_times_ends_as_if_nothing_had_been(tmp_path):
    """Nothing finished is evaluated again, the file is intact after every kill, no worker lives on."""
    campaign = killed_search(tmp_path / "search", generations=60, seed=1, kills=5, longest=0.15)
    assert campaign.faults == []
    assert campaign.kills == 5
    assert campaign.most_repeated <= POPSIZE  # two under way, and those whose results were not received yet


# A search that is killed when the draft of its file is written, before that is renamed, or after.
KILLED = """
import os, signal, sys
from pathlib import Path
from benchmarks.kills import search
from mixcma.store.writer import Writer

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def rename_and_die(*arguments, rename=os.replace):
    rename(*arguments)
    die()

moment, path, log = sys.argv[1:]
if moment == "written":
    Writer._write_rows = die
else:
    os.replace = die if moment == "before" else rename_and_die
search(Path(path), Path(log), 3, 1, 1, 0.0)
"""


@pytest.mark.parametrize("moment", ["written", "before", "after"])
def test_a_search_that_is_killed_while_its_file_is_made_begins_again(tmp_path, moment):
    path, log, whole = tmp_path / "run.db", tmp_path / "log", tmp_path / "whole.db"
    search(whole, tmp_path / "whole.log", 3, 1, 1, 0.0)
    killed = subprocess.run([sys.executable, "-c", KILLED, moment, str(path), str(log)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.exists() == (moment == "after")
    search(path, log, 3, 1, 1, 0.0)
    assert content(path) == content(whole)
    names = {p.name for p in tmp_path.iterdir()} - {"run.db-wal", "run.db-shm", "whole.db-wal", "whole.db-shm"}
    assert names == {"run.db", "log", "whole.db", "whole.log"}


def test_the_workers_of_a_killed_search_end_with_it(tmp_path):
    """Also those in the middle of a long evaluation."""
    path, log, mark = tmp_path / "run.db", tmp_path / "log", "long"
    environment = {**os.environ, MARK: f"{mark}{os.getpid()}"}
    with subprocess.Popen(
        command(path, log, 3, 1, 2, 60.0), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while len(logged(log)) < 2 and process.poll() is None:
            time.sleep(0.01)
        there = alive(environment[MARK])
        process.kill()
        process.wait()
        deadline = time.monotonic() + 10
        while alive(environment[MARK]) and time.monotonic() < deadline:
            time.sleep(0.01)
        left = alive(environment[MARK])
        for number in left:
            os.kill(number, signal.SIGKILL)
    assert len(there) == 5  # the search, and two workers with a keeper each
    assert left == []
    assert {row.status for row in read(path).rows} == {"pending"}
    assert len(read(path).rows) == POPSIZE


def test_a_terminated_search_says_how_to_go_on_and_does(tmp_path):
    """SIGTERM, as a scheduler sends it before SIGKILL."""
    path, log, whole = tmp_path / "run.db", tmp_path / "log", tmp_path / "whole.db"
    search(whole, tmp_path / "whole.log", 60, 1, 2, 0.0)
    begin = command(path, log, 60, 1, 2, SECONDS)
    with subprocess.Popen(begin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while len(logged(log)) < 50:
            assert process.poll() is None
            time.sleep(0.001)
        process.terminate()
        said = process.communicate()[1]
    assert process.returncode == 0
    assert f"mixcma.resume('{path}', objective)" in said
    assert sorted(p.name for p in tmp_path.glob("run.db*")) == ["run.db"]
    finished = [row.id for row in read(path).rows if row.finished]
    assert 40 <= len(finished) < 60 * POPSIZE
    subprocess.run([*begin[:-1], "0.0"], check=True, stdout=subprocess.DEVNULL)
    assert content(path) == content(whole)


def test_the_program_that_is_killed_can_be_run_by_hand(tmp_path):
    """It is a process like any user's: it ends with 0 and leaves a file."""
    begin = command(tmp_path / "run.db", tmp_path / "log", 2, 1, 1, 0.0)
    assert begin[0] == sys.executable
    assert subprocess.run(begin, capture_output=True, text=True, check=True).stdout == "begin\n"
    assert len(logged(tmp_path / "log")) == 2 * POPSIZE
