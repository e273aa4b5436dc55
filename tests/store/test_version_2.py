"""Run files of version 2 of the format, which had no tracebacks: they are read, and a search goes on in them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from mixcma import Float, Int, Outcome, Space, minimize, resume
from mixcma.cli import main
from mixcma.run.outcome import failure
from mixcma.store import read
from mixcma.store.schema import VERSION

SPACE = Space({"x": Float(-5, 5), "n": Int(0, 9)})
TRACEBACK = 'Traceback (most recent call last):\n  File "cost.py", line 3, in cost\nValueError: nine\n'


def cost(p):
    if p["n"] > 6:
        return failure("ValueError: nine", TRACEBACK)
    return Outcome(p["x"] ** 2 + (p["n"] - 3) ** 2)


def without_traceback(p):
    return replace(cost(p), traceback=None)


def rows(path):
    return [(r.id, r.run, r.generation, r.slot, r.params, r.status, r.outcome) for r in read(path).rows]


def version(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


@pytest.fixture
def old(tmp_path):
    """A file as version 2 wrote it."""
    path = tmp_path / "old.db"
    minimize(without_traceback, SPACE, budget=100, seed=1, run_file=path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE evaluation DROP COLUMN traceback")
        connection.execute("PRAGMA user_version = 2")
    return path


def test_it_is_read_shown_and_exported(old, run_command, tmp_path):
    minimize(without_traceback, SPACE, budget=100, seed=1, run_file=tmp_path / "new.db")
    assert rows(old) == rows(tmp_path / "new.db")
    assert read(old).version == 2
    assert run_command(main, ["show", str(old)]).exit_code == 0
    assert run_command(main, ["export", str(old), "--json", "-"]).exit_code == 0
    assert version(old) == 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_search_goes_on_in_it(old, tmp_path, asynchronous):
    whole = tmp_path / "new.db"
    minimize(without_traceback, SPACE, budget=100, seed=1, run_file=whole)
    again, unbroken = (resume(path, cost, budget=200) for path in (old, whole))
    assert replace(again, run_file=None) == replace(unbroken, run_file=None)
    assert rows(old) == rows(whole)
    assert {row.outcome.traceback for row in read(old).rows if row.status == "failed"} <= {None, TRACEBACK}
    assert version(old) == VERSION


def test_what_is_refused_is_left_at_its_version(old):
    with pytest.raises(ValueError, match="holds another run"):
        minimize(cost, SPACE, budget=200, seed=2, run_file=old)
    assert version(old) == 2


def test_if_it_is_removed_in_mid_run_everything_is_in_the_new_file(old):
    expected = len([row for row in read(old).rows if row.evaluated])

    def objective(p):
        old.unlink(missing_ok=True)
        return cost(p)

    result = resume(old, objective, budget=150)
    assert expected == 100
    assert sum(row.evaluated for row in read(result.run_file).rows) == 150


# Tracebacks


@pytest.fixture
def failing(tmp_path):
    path = tmp_path / "failing.db"
    minimize(cost, SPACE, budget=100, seed=1, run_file=path)
    return path


def test_a_traceback_comes_back_as_it_was(failing):
    found = {row.outcome.traceback for row in read(failing).rows if row.status == "failed"}
    assert found == {TRACEBACK}
    assert {row.outcome.traceback for row in read(failing).rows if row.status == "done"} == {None}


def test_a_changed_traceback_is_noticed(failing):
    with closing(sqlite3.connect(failing, isolation_level=None)) as connection:
        connection.execute("UPDATE evaluation SET traceback = NULL WHERE status = 'failed'")
    with pytest.raises(ValueError, match="checksum"):
        read(failing)


def test_the_first_warning_has_it(caplog):
    minimize(cost, SPACE, budget=100, seed=1)
    (warning,) = [record.getMessage() for record in caplog.records if "failed" in record.getMessage()]
    assert 'File "cost.py", line 3, in cost' in warning


def test_show_prints_it_once_for_each_error(tmp_path, run_command):
    path = tmp_path / "run.db"

    def many(p):
        if p["n"] > 2:
            return failure(f"ValueError: {p['n']}", "Traceback\n" + "  line\n" * 100 + f"  in the end {p['n']}\n")
        return p["x"]

    minimize(many, SPACE, budget=100, seed=1, run_file=path)
    shown = run_command(main, ["show", str(path)]).stdout
    assert shown.count("in the end") == 3
    assert shown.count("  line") < 60
    assert "other error" in shown


def test_it_is_exported_and_reported(failing, run_command, tmp_path):
    assert '"traceback": "Traceback' in run_command(main, ["export", str(failing), "--json", "-"]).stdout
    assert 'File ""cost.py"", line 3' in run_command(main, ["export", str(failing), "--csv", "-"]).stdout
    pytest.importorskip("plotly")
    run_command(main, ["report", str(failing), "-o", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text()
    assert "<details><summary>Traceback</summary><pre" in page
    assert "line 3, in cost" in page
