"""Run files of version 0.1: they are read, shown, reported and exported; going on with them is refused."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from mixcma import minimize, resume
from mixcma.cli import main
from mixcma.store import read

DATA = Path(__file__).parent / "data"
# the settings of each file, and its rows: done, failed, pending
MIX = {"space": ["x", "n", "lined", "material", "plate", "rate", "fixed"], "method": "Mix", "rows": (298, 2, 6)}
ASYNCHRONOUS = {"space": ["x", "n"], "method": "Margin", "rows": (60, 0, 0)}
FILES = {"mix_0_1.db": MIX, "asynchronous_0_1.db": ASYNCHRONOUS}


@pytest.fixture(params=FILES)
def old(request, tmp_path):
    """A copy of a file, and what is in it."""
    return Path(shutil.copy(DATA / request.param, tmp_path)), FILES[request.param]


def evaluated(path):
    return [row for row in read(path).rows if row.evaluated]


def test_it_is_read(old):
    path, known = old
    record = read(path)
    assert record.settings["versions"]["mixcma"] == "0.1.0"
    assert record.settings["method"]["type"] == known["method"]
    assert list(record.space) == known["space"]
    statuses = [row.status for row in record.rows]
    assert tuple(statuses.count(status) for status in ("done", "failed", "pending")) == known["rows"]
    assert [generation.generation for generation in record.generations] == list(range(len(record.generations)))
    for row in record.rows:
        assert record.space.check_params(row.params) == row.params
        assert row.finished == (row.outcome is not None)
        assert (row.latent is not None) == record.settings["asynchronous"]


def test_it_is_shown(old, run_command):
    path, known = old
    shown = run_command(main, ["show", str(path)], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.stderr
    done, failed, _ = known["rows"]
    best = min((row.outcome for row in evaluated(path) if not row.outcome.failed), key=lambda outcome: outcome.order)
    for words in (f"{done + failed} of {done + failed} evaluations, 1 run", f"{best.value:.8g}", *known["space"]):
        assert words in " ".join(shown.stdout.split())


def test_a_report_is_made_of_it(old, run_command, tmp_path):
    pytest.importorskip("plotly")
    path, known = old
    made = run_command(main, ["report", str(path), "--out", str(tmp_path / "page.html")])
    assert made.exit_code == 0, made.stderr
    page = (tmp_path / "page.html").read_text()
    assert all(name in page for name in known["space"])


def test_it_is_exported(old, run_command):
    path, known = old
    table = run_command(main, ["export", str(path), "--csv", "-"])
    text = run_command(main, ["export", str(path), "--json", "-"])
    assert (table.exit_code, text.exit_code) == (0, 0), table.stderr + text.stderr
    rows, entries = list(csv.DictReader(io.StringIO(table.stdout))), json.loads(text.stdout)["evaluations"]
    assert len(rows) == len(entries) == sum(known["rows"])
    for row, entry, kept in zip(rows, entries, read(path).rows):
        assert entry["params"] == kept.params
        assert {name: row[name] for name in known["space"]} == {name: str(v) for name, v in kept.params.items()}
        assert entry["value"] == (kept.outcome.value if kept.status == "done" else None)


def never(params):
    raise AssertionError("called")


@pytest.mark.parametrize("budget", [None, 1000])
def test_going_on_is_refused(old, budget):
    path, _ = old
    with pytest.raises(ValueError, match=r"begun by an earlier version of mixcma.* history= set to this file"):
        resume(path, never, budget=budget, on_error="raise")


def test_what_is_refused_is_left_as_it_was(old):
    path, _ = old
    before = read(path)
    with pytest.raises(ValueError, match="earlier version"):
        resume(path, never, budget=1000)
    after = read(path)
    assert after.settings == before.settings
    assert after.total == before.total


def test_it_is_a_history_to_start_from(old):
    path, _ = old
    points = [(row.params, row.outcome) for row in evaluated(path)]

    def objective(params):
        return params["x"] ** 2 + params["n"]

    space = read(path).space
    by_path, by_list = (minimize(objective, space, budget=30, seed=1, history=given) for given in (path, points))
    assert by_path == by_list != minimize(objective, space, budget=30, seed=1)
