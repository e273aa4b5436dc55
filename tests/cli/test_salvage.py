"""`mixcma salvage` recommends what works: by which command a run can go on depends on what is left of it."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

import pytest

from mixcma import Float, Space, minimize
from mixcma.cli import main

PROBLEM = f"""
[objective]
command = ["{sys.executable}", "-c", "print(1.0)", "{{x}}"]
[run]
budget = 6
seed = 1
[space.x]
type = "float"
low = -5
high = 5
"""


@pytest.fixture
def problem(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM)
    return path


def lose_notes(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE setting SET value = '{}' WHERE name = 'notes'")


def test_resume_is_recommended_if_the_problem_is_stored(problem, tmp_path, run_command):
    assert run_command(main, ["run", str(problem), "--quiet"]).exit_code == 0
    new = tmp_path / "new.db"
    said = run_command(main, ["salvage", str(problem.with_suffix(".db")), str(new)]).stdout
    assert f"  mixcma resume {new}\n" in said
    assert "mixcma run" not in said
    assert "mixcma.resume" not in said


def test_without_the_stored_problem_the_problem_file_is_asked_for(problem, tmp_path, run_command):
    assert run_command(main, ["run", str(problem), "--quiet"]).exit_code == 0
    lose_notes(problem.with_suffix(".db"))
    new = tmp_path / "new.db"
    said = run_command(main, ["salvage", str(problem.with_suffix(".db")), str(new)]).stdout
    assert "The stored problem is lost" in said
    assert f"mixcma run PROBLEM --run-file {new}\n" in said
    assert f"mixcma resume {new}" not in said
    assert f"mixcma.resume({str(new)!r}, objective)" in said
    again = run_command(main, ["run", str(problem), "--run-file", str(new), "--budget", "8", "--quiet"])
    assert again.exit_code == 0, again.stderr
    assert "8 evaluations" in again.stdout


def test_a_run_from_python_goes_on_in_python(tmp_path, run_command):
    path, new = tmp_path / "run.db", tmp_path / "new.db"
    minimize(lambda p: p["x"] ** 2, Space({"x": Float(-5, 5)}), budget=6, seed=1, run_file=path)
    said = run_command(main, ["salvage", str(path), str(new)]).stdout
    assert f"  mixcma.resume({str(new)!r}, objective)   # in Python\n" in said
    assert f"mixcma resume {new}" not in said
    assert "mixcma run" not in said
