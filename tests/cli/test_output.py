"""Standard output that is full, closed or not read, and problems that are corrected or gone between two commands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mixcma import Float, Space, minimize
from mixcma.cli import main
from mixcma.store import read

MAIN = [sys.executable, "-c", "from mixcma.cli import main; main()"]
PROBLEM = """
[objective]
python = "{module}:cost"
[run]
budget = {budget}
seed = 1
[space.x]
type = "{kind}"
low = 1
high = 5
"""
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")


@pytest.fixture
def problem(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def write(body, kind="float", budget=40, folder=tmp_path):
        (folder / "of_a_test.py").write_text(f"def cost(p):\n    return {body}\n")
        path = folder / "problem.toml"
        path.write_text(PROBLEM.format(module="of_a_test", kind=kind, budget=budget))
        return path

    return write


def run(*arguments, **streams):
    return subprocess.run([*MAIN, *map(str, arguments)], check=False, stderr=subprocess.PIPE, text=True, **streams)


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("how", [[], ["--quiet"], ["--json"]], ids=" ".join)
def test_a_full_output_does_not_end_a_search(problem, monkeypatch, how, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    path = problem("p['x'] ** 2")
    with open("/dev/full", "w") as full:
        ended = run("run", path, *how, stdout=full)
    assert len(read(path.with_suffix(".db")).rows) >= 40
    assert "Traceback" not in ended.stderr
    assert "standard output cannot be written" in ended.stderr


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", [["show"], ["export", "--csv", "-"]], ids=" ".join)
def test_a_full_output_is_said_in_a_sentence(tmp_path, monkeypatch, command, unbuffered):
    """Where output is buffered, all of it is written when the command ends."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    path = tmp_path / "run.db"
    minimize(lambda p: p["x"] ** 2, Space({"x": Float(-1, 1)}), budget=20, seed=1, run_file=path)
    with open("/dev/full", "w") as full:
        ended = run(command[0], path, *command[1:], stdout=full)
    assert ended.returncode == 2
    assert ended.stderr == "standard output cannot be written (No space left on device); send it somewhere else\n"


def test_points_that_failed_are_tried_again_once_the_problem_is_corrected(problem):
    """In a space without floats, where a point is otherwise evaluated once."""
    assert run("run", problem("1 / 0", "int", budget=9)).returncode == 1
    path = problem("abs(p['x'] - 3)", "int", budget=30)
    assert run("run", path).returncode == 0
    assert min(row.outcome.value for row in read(path.with_suffix(".db")).rows if row.status == "done") == 0.0


def test_a_run_whose_folder_is_gone_evaluates_nothing(problem, tmp_path, run_command):
    there = tmp_path / "there"
    there.mkdir()
    file = tmp_path / "run.db"
    assert run("run", problem("p['x'] ** 2", folder=there), "--run-file", file).returncode == 0
    there.rename(tmp_path / "elsewhere")
    before = file.read_bytes()
    result = run_command(main, ["resume", str(file), "--budget", "80"])
    assert result.exit_code == 2
    assert "which is gone; put it back" in result.stderr
    assert file.read_bytes() == before


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")
def test_a_folder_in_which_no_file_can_be_made():
    with pytest.raises(ValueError, match="cannot be written"):
        minimize(lambda p: 0.0, Space({"x": Float(-1, 1)}), budget=20, run_file="/proc/run.db")
