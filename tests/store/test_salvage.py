"""A damaged run file: every row that is intact is saved, and the search goes on from there.

`python benchmarks/damage.py` does to 1,000 copies what is done here to some.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.damage import campaign, finished, with_wal

from mixcma import Bool, Float, Int, Outcome, Space, minimize, resume
from mixcma.search.salvaging import salvage
from mixcma.store import DamagedRunFile, read, remains_of
from tests.search.virtual_time import BOTH, WHOLE

SPACE = Space({"x": Float(-5, 5), "n": Int(0, 9), "on": Bool()})
OPTIONS = {"budget": 300, "seed": 1, "popsize": 8}


def cost(p):
    if p["n"] == 9:
        raise ValueError("nine")
    return Outcome(p["x"] ** 2 + (p["n"] - 3) ** 2 + p["on"], [p["x"] - 4])


def rows(path):
    return [(r.id, r.run, r.generation, r.slot, r.params, r.status, r.outcome) for r in read(path).rows]


def same(result):
    return replace(result, run_file=None)


@pytest.fixture
def method(request):
    return getattr(request, "param", WHOLE)


@pytest.fixture
def path(tmp_path, method):
    """A file of a search without a model, or with it in the tests of both."""
    made = tmp_path / "run.db"
    minimize(cost, SPACE, run_file=made, method=method, **OPTIONS)
    return made


OF_BOTH = pytest.mark.parametrize("method", ["mix", WHOLE], indirect=True)


@pytest.fixture
def new(tmp_path):
    return tmp_path / "new.db"


def spoil(path, *statements):
    """Change rows without their checksums."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_small_campaign(tmp_path):
    for original, seeds in ((finished(tmp_path, 120), range(24)), (with_wal(tmp_path), range(24, 40))):
        tally = campaign(tmp_path, original, seeds)
        assert tally.faults == []
        assert tally.damaged > 3
        assert tally.saved >= tally.intact > 0
        assert tally.continued > 3


@OF_BOTH
def test_of_an_intact_file_all_is_saved(path, new):
    done = salvage(path, new)
    assert (done.run_file, done.lost, done.evaluations, done.continues) == (new, 0, 300, True)
    assert read(new).total == read(path).total
    assert rows(new) == rows(path)


@OF_BOTH
def test_one_damaged_row_costs_one_row_and_the_search_goes_on_as_it_would_have(path, new):
    whole = resume(path, cost, budget=400)
    spoil(path, "UPDATE evaluation SET value = value + 1 WHERE id = 20")
    with pytest.raises(DamagedRunFile, match=r"save what is intact: mixcma salvage"):
        read(path)
    done = salvage(path, new)
    assert (done.lost, done.evaluations, done.continues) == (1, 399, True)
    assert [row.id for row in read(new).rows] == [id for id in range(1, len(read(new).rows) + 2) if id != 20]
    again = resume(new, cost, budget=499)
    spoil(path, "UPDATE evaluation SET value = value - 1 WHERE id = 20")
    assert (again.params, again.value) == (resume(path, cost, budget=500).params, again.value)
    assert again.value <= whole.value


@pytest.mark.parametrize("change", [0.0, 0.5], ids=["same again", "another value"])
def test_what_is_lost_after_the_last_state_is_evaluated_again(path, new, change):
    """Also where the objective then gives another value, so that other candidates follow."""
    with closing(sqlite3.connect(path)) as connection:
        state = connection.execute("SELECT run, numbers FROM snapshot").fetchone()
        run, generation = state[0], json.loads(state[1])["draws"]
        (last,) = connection.execute("SELECT max(generation) FROM evaluation WHERE run = ?", (run,)).fetchone()
    assert generation < last
    spoil(path, f"UPDATE evaluation SET value = 7.5 WHERE run = {run} AND generation = {generation} AND slot = 3")
    done = salvage(path, new)
    assert (done.lost, done.continues) == (1, True)
    called = []

    def objective(p):
        called.append(p)
        outcome = cost(p)
        return replace(outcome, value=outcome.value + change)

    result = resume(new, objective, budget=400)
    assert result.evaluations == 400
    assert len(called) == 101
    kept = {row.id: row for row in read(new).rows}
    assert sum(row.evaluated for row in kept.values()) == 400
    assert resume(new, cost, budget=420).evaluations == 420


@OF_BOTH
def test_without_the_state_the_search_begins_again_with_the_data(path, new):
    best = min((row.outcome for row in read(path).rows if row.evaluated), key=lambda outcome: outcome.order)
    saved = [row.params for row in read(path).rows if row.evaluated]
    spoil(path, "UPDATE snapshot SET numbers = '{}'")
    done = salvage(path, new)
    assert (done.lost, done.evaluations, done.continues) == (1, 300, False)
    assert {row.generation for row in read(new).rows} == {-1}
    result = resume(new, cost, budget=400)
    assert result.evaluations == 400
    assert result.value <= best.value
    assert [row.params for row in read(new).rows[:300]] == saved


@OF_BOTH
@pytest.mark.parametrize(
    "name", ["seed", "method", "popsize", "budget", "notes", "stop", "created", "cache", "stopping"]
)
def test_a_setting_that_is_lost_is_as_if_it_had_been_left_out(path, new, name):
    spoil(path, f"UPDATE setting SET value = '\"nonsense\"' WHERE name = '{name}'")
    done = salvage(path, new)
    assert done.lost == 1
    assert done.continues == (name in ("budget", "notes", "stop", "created", "cache"))
    assert resume(new, cost, budget=350).evaluations == 350


def test_without_the_space_nothing_can_be_used_and_that_is_said(path, new):
    spoil(path, "UPDATE setting SET value = '{}' WHERE name = 'space'")
    with pytest.raises(
        DamagedRunFile, match=r"evaluations in .* are intact, but the variables they belong to are lost"
    ):
        salvage(path, new)
    assert not new.exists()


def test_without_the_space_only_the_finished_evaluations_are_counted(tmp_path, new):
    path = tmp_path / "run.db"
    calls = iter(range(10))

    def interrupted(p):
        if next(calls) == 9:
            raise KeyboardInterrupt
        return p["x"]

    minimize(interrupted, SPACE, run_file=path, **OPTIONS)
    assert len(read(path).rows) > 9
    spoil(path, "UPDATE setting SET value = '{}' WHERE name = 'space'")
    with pytest.raises(DamagedRunFile, match="run_file: 9 evaluations in"):
        salvage(path, new)


def test_a_search_that_has_lost_something_has_not_ended(path, new):
    assert read(path).settings["stop"] == "budget"
    spoil(path, "UPDATE evaluation SET value = value + 1 WHERE id = 20")
    assert salvage(path, new).continues
    assert read(new).settings["stop"] is None


@BOTH
@pytest.mark.parametrize("asynchronous", [False, True])
def test_runs_that_are_lost_are_made_again(tmp_path, new, asynchronous, method):
    path = tmp_path / "run.db"
    options = {**OPTIONS, "budget": 1000, "asynchronous": asynchronous, "method": method}
    assert len(minimize(cost, SPACE, run_file=path, **options).runs) > 1
    spoil(path, "UPDATE run SET popsize = 3", "DELETE FROM generation")
    done = salvage(path, new)
    assert done.continues
    assert len(resume(new, cost, budget=1050).runs) > 1


@OF_BOTH
def test_the_same_call_goes_on_too(path, new, method):
    spoil(path, "UPDATE evaluation SET error = 'x' WHERE id = 3")
    salvage(path, new)
    options = {**OPTIONS, "budget": 320, "method": method}
    assert minimize(cost, SPACE, run_file=new, **options).evaluations == 320


@OF_BOTH
def test_a_file_without_its_first_page_is_saved_too(path, new):
    """Without the schema and the header, SQLite opens nothing."""
    expected = rows(path)
    path.write_bytes(bytes(4096) + path.read_bytes()[4096:])
    assert salvage(path, new).lost == 0
    assert rows(new) == expected


def test_pages_in_another_order_are_saved_too(path, new):
    """All but the chains of the longest rows."""
    data = path.read_bytes()
    pages = [data[at : at + 4096] for at in range(4096, len(data), 4096)]
    random.Random(1).shuffle(pages)
    path.write_bytes(data[:4096] + b"".join(pages))
    assert salvage(path, new).evaluations == 300


@pytest.mark.parametrize("content", [b"", b"text", b"SQLite format 3\0" + bytes(5000), b"x" * 100_000], ids=len)
def test_what_is_no_run_file_is_refused(path, new, content):
    path.write_bytes(content)
    with pytest.raises(DamagedRunFile, match="expected a run file of mixcma, but nothing in"):
        salvage(path, new)
    assert not new.exists()


def test_nothing_is_overwritten(path, new):
    content = path.read_bytes()
    new.write_text("precious")
    for target in (new, path):
        with pytest.raises(ValueError, match="is there already; choose another"):
            salvage(path, target)
    assert new.read_text() == "precious"
    assert path.read_bytes() == content


def test_a_missing_file_is_said_in_a_sentence(tmp_path, new):
    with pytest.raises(DamagedRunFile, match="cannot be read"):
        salvage(tmp_path / "none.db", new)


def test_a_file_in_use_is_refused(tmp_path, new):
    path = tmp_path / "run.db"

    def objective(p):
        with pytest.raises(ValueError, match="in use"):
            remains_of(path)
        return p["x"]

    minimize(objective, SPACE, budget=8, seed=1, run_file=path, on_error="raise")


def test_a_file_of_version_0_1_is_saved(tmp_path, new):
    path = Path(shutil.copy(Path(__file__).parent / "data" / "mix_0_1.db", tmp_path))
    done = salvage(path, new)
    assert (done.evaluations, done.lost) == (300, 0)
    assert [row.params for row in read(new).rows] == [row.params for row in read(path).rows if row.evaluated]
