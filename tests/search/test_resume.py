"""Searches that are stopped anywhere and go on: the same candidates, the same values, the same result."""

from __future__ import annotations

import itertools
import logging
import math
import os
import random
import shutil
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import mixcma
from mixcma import (
    Bool,
    Categorical,
    Discrete,
    Float,
    Int,
    IntegerMutation,
    Margin,
    Outcome,
    Space,
    Stopping,
    minimize,
    resume,
)
from mixcma.core.methods import METHODS, Cma, Mix
from mixcma.search.driver import RunFile
from mixcma.store import read
from tests.search.virtual_time import virtual_workers

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
MIXED = Space({"x": Float(-5, 5), "n": Int(0, 9), "on": Bool(), "wire": Discrete([0.1, 0.5, 0.2]), "c": Int(4, 4)})
GRID = Space({"n": Int(0, 9), "m": Int(-5, 4)})
TINY = Space({"n": Int(0, 2), "on": Bool()})
ONE = Space({"x": Float(1e-3, 1e3, log=True)})
POINT = {"x": 1.0, "n": 3, "on": True, "wire": 0.5, "c": 4}


def sphere(p):
    return sum(value**2 for value in p.values())


def hashed(p):
    """A number between 0 and 1 that is as good as random, and the same for the same point."""
    return math.sin(1e4 * sum((i + 1) * value for i, value in enumerate(p.values()))) / 2 + 0.5


def often_failing(p):
    if hashed(p) < 0.4:
        raise ValueError(f"no value at {hashed(p):.3f}")
    return sphere(p)


def constrained(p):
    return Outcome(sphere(p), [1.0 - p["x"], p["n"] - 4.0])


def rarely_finite(p):
    return math.inf if hashed(p) < 0.3 else sphere(p)


@dataclass(frozen=True)
class Case:
    """A search, and its budget; without a model unless `options` say otherwise."""

    space: Space = MIXED
    objective: Any = sphere
    budget: int = 40
    options: dict[str, Any] = field(default_factory=dict)

    def search(self, path=None, budget=None, **others):
        options = {"seed": 5, "method": "mix-without-model", **self.options, **others}
        return minimize(self.objective, self.space, budget=budget or self.budget, run_file=path, **options)


HISTORY = [({"x": 1.0 + i / 10, "n": i % 10, "on": i % 2 == 0, "wire": 0.1, "c": 4}, float(i)) for i in range(30)]
CASES = {
    "floats": Case(PLANE, budget=60),
    "mixed": Case(budget=60),
    "plain": Case(options={"method": "cma"}),
    "im": Case(options={"method": "im"}),
    "im-box": Case(options={"method": "im-box"}),
    "alpha": Case(options={"method": Margin(alpha=0.01)}),
    "choices": Case(options={"method": IntegerMutation(box=True, keep_inside=False)}),
    "one": Case(ONE, lambda p: (p["x"] - 3) ** 2),
    "restarts": Case(ONE, lambda p: 0.0, 250, {"popsize": 4}),
    "restarts until the last": Case(
        Space({"on": Bool()}), lambda p: 0.0, 300, {"cache": False, "restarts": 1, "popsize": 4}
    ),
    "cache": Case(GRID, budget=40, options={"popsize": 8}),
    "exhausted": Case(TINY, budget=50),
    "cached floats": Case(Space({"x": Float(0, 1)}), lambda p: p["x"], 30, {"cache": True}),
    "no cache": Case(GRID, options={"cache": False}),
    "failures": Case(objective=often_failing),
    "failures in a cache": Case(GRID, often_failing),
    "generations of failures": Case(PLANE, lambda p: None if hashed(p) < 0.8 else sphere(p), 60, {"popsize": 4}),
    "infinities": Case(objective=rarely_finite),
    "constraints": Case(objective=constrained),
    "x0": Case(options={"x0": POINT}),
    "several x0": Case(options={"x0": [{**POINT, "x": x} for x in (3.0, 0.5, -2.0, 0.5)]}),
    "x0 that fail": Case(objective=often_failing, options={"x0": [{**POINT, "x": x / 7} for x in range(6)]}),
    "x0 in a cache": Case(GRID, options={"x0": [{"n": 1, "m": 1}, {"n": 1, "m": 1}, {"n": 0, "m": 1}]}),
    "history": Case(options={"history": HISTORY}),
    "history and x0": Case(options={"history": HISTORY, "x0": POINT}),
    "large population": Case(budget=50, options={"popsize": 23}),
    "small population": Case(options={"popsize": 4}),
    "target": Case(budget=200, options={"target": 16.3}),
    "stopping": Case(PLANE, budget=60, options={"stopping": Stopping(min_variance=1.0), "popsize": 5}),
}


def rough(p):
    """With so many hollows that exploring pays to its end."""
    return sphere(p) + 30 * hashed(p)


# The default, which explores for 100 evaluations, or less if nothing better is found for long.
MODEL = {"method": "mix"}
WITH_MODEL = {
    "explored": Case(budget=125, options=MODEL),
    "explored to the end": Case(PLANE, rough, 130, MODEL),
    "choices explored": Case(
        Space({"kind": Categorical(["a", "b", "c"]), "x": Float(-5, 5)}), lambda p: p["x"] ** 2 + (p["kind"] != "b"),
        120, MODEL,
    ),
    "failures explored": Case(objective=often_failing, options=MODEL),
    "constraints explored": Case(objective=constrained, budget=70, options=MODEL),
    "infinities explored": Case(objective=rarely_finite, options=MODEL),
    "x0 explored": Case(options={**MODEL, "x0": [{**POINT, "x": x} for x in (3.0, 0.5, -2.0, 0.5)]}),
    "history explored": Case(options={**MODEL, "history": [(params, sphere(params)) for params, _ in HISTORY]}),
    "cache explored": Case(GRID, budget=95, options=MODEL),
    "restarts explored": Case(ONE, lambda p: 0.0, 200, {**MODEL, "popsize": 4}),
    "target explored": Case(PLANE, rough, 200, {**MODEL, "target": 3.0}),
    "large population explored": Case(options={**MODEL, "popsize": 23}),
}  # fmt: skip
CASES |= WITH_MODEL


def rows(path):
    """What a search did, without the times, and without tracebacks: other code calls the objective in some tests."""
    return [
        (r.id, r.run, r.generation, r.slot, r.params, r.status, r.outcome and replace(r.outcome, traceback=None))
        for r in read(path).rows
    ]


def distributions(path):
    """What each generation was drawn from."""
    return [(*g[:5], g.mean.tobytes(), g.deviation.tobytes()) for g in read(path).generations]


def same(result):
    """A result without the place it was kept."""
    return replace(result, run_file=None)


def equal(path, result, whole_path, whole):
    """Nothing tells the two searches apart."""
    __tracebackhide__ = True
    assert same(result) == same(whole)
    assert rows(path) == rows(whole_path)
    assert distributions(path) == distributions(whole_path)
    assert read(path).runs == read(whole_path).runs


@contextmanager
def in_memory():
    """A folder in memory, where there is such a place: these are thousands of files, and a disk takes its time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path():
    with in_memory() as folder:
        yield folder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


@pytest.fixture
def whole_path(tmp_path):
    return tmp_path / "whole.db"


# Stopped by the budget


@pytest.mark.parametrize("name", CASES)
def test_a_search_keeps_its_course_in_a_file(name, path):
    """The unbroken search is the same with a file and without."""
    case = CASES[name]
    assert same(case.search(path)) == case.search()


@pytest.mark.parametrize("name", CASES)
def test_a_search_that_is_stopped_once_goes_on_as_if_nothing_had_been(name, tmp_path, whole_path):
    """After every possible number of evaluations, or after some of them."""
    case = CASES[name]
    whole = case.search(whole_path)
    last = whole.evaluations
    every = 1 if name in ("floats", "mixed") else 5 + last // (2 if name in WITH_MODEL else 8)
    for stop in range(1, last + 1, every):
        path = tmp_path / f"{stop}.db"
        broken = case.search(path, stop)
        assert broken.evaluations == stop
        equal(path, case.search(path), whole_path, whole)


@pytest.mark.parametrize("name", CASES)
def test_a_search_that_is_stopped_after_every_evaluation_goes_on_as_if_nothing_had_been(name, path, whole_path):
    case = CASES[name]
    whole = case.search(whole_path)
    calls = []

    def objective(p):
        calls.append(p)
        return case.objective(p)

    every = 3 if whole.evaluations > 60 else 1
    for stop in range(1, whole.evaluations + 1, 13 if name in WITH_MODEL else every):
        assert replace(case, objective=objective).search(path, stop).evaluations == stop
        assert len(calls) == stop  # none was evaluated twice
    equal(path, replace(case, objective=objective).search(path), whole_path, whole)
    assert len(calls) == whole.evaluations


def test_the_cases_are_what_they_are_called():
    said = ("restarts", "exhausted", "target", "stopping", "fail")
    ended = {name: CASES[name].search() for name in CASES if any(word in name for word in said)}
    assert len(ended["restarts"].runs) == 4
    assert (len(ended["restarts until the last"].runs), ended["restarts until the last"].stop.name) == (2, "flat")
    assert ended["exhausted"].stop.name == "exhausted"
    assert ended["target"].stop.name == "target"
    assert len(ended["stopping"].runs) > 1
    assert all(ended[name].failures > 3 for name in ended if "fail" in name)
    assert len(ended["restarts explored"].runs) > 1
    assert ended["target explored"].stop.name == "target"
    assert ended["target explored"].evaluations > 10


@pytest.mark.parametrize(
    "name", ["mixed", "restarts", "cache", "exhausted", "failures", "several x0", "target", "explored", "x0 explored"]
)
def test_a_search_that_is_finished_is_finished(name, path):
    case = CASES[name]
    whole = case.search(path)
    before = rows(path)
    again = replace(case, objective=lambda p: pytest.fail("it was finished"))
    assert again.search(path) == whole
    assert resume(path, again.objective) == whole
    assert rows(path) == before


def test_less_budget_than_was_spent_changes_nothing(path):
    case = CASES["mixed"]
    case.search(path)
    result = replace(case, objective=lambda p: pytest.fail("it was spent")).search(path, 20)
    assert (result.evaluations, result.stop.name) == (60, "budget")


# resume()


@pytest.mark.parametrize("name", CASES)
def test_resume_needs_only_the_file_and_the_objective(name, path, whole_path):
    case = CASES[name]
    whole = case.search(whole_path)
    case.search(path, max(1, whole.evaluations // 2))
    equal(path, resume(path, case.objective, budget=case.budget), whole_path, whole)


def test_resume_keeps_the_budget_and_target_unless_told_otherwise(path, whole_path):
    case = Case(options={"target": 16.05}, budget=2000)
    whole = case.search(whole_path)
    assert whole.stop.name == "target"
    stopped = case.search(path, callback=lambda progress: progress.generation == 3)
    assert stopped.stop.name == "callback"
    equal(path, resume(path, sphere), whole_path, whole)
    assert read(path).settings["target"] == 16.05


def test_settings_that_change_are_those_of_the_file_from_then_on(path):
    case = CASES["mixed"]
    case.search(path, 20)
    resume(path, sphere, budget=30, target=-1.0)
    settings = read(path).settings
    assert (settings["budget"], settings["target"], settings["stop"]) == (30, -1.0, "budget")
    assert resume(path, sphere).evaluations == 30


def test_a_search_can_go_on_elsewhere(tmp_path, whole_path):
    """The file may be moved, and is named by any kind of path."""
    case = CASES["mixed"]
    whole = case.search(whole_path)
    case.search(tmp_path / "here.db", 25)
    shutil.move(tmp_path / "here.db", tmp_path / "there.db")
    equal(tmp_path / "there.db", resume(str(tmp_path / "there.db"), sphere, budget=60), whole_path, whole)


def test_resume_is_what_the_package_offers():
    assert mixcma.resume is resume


# The target


@pytest.mark.parametrize("first", [40.0, 25.0, 18.0, 16.5])
def test_a_search_that_reached_its_target_goes_on_to_a_lower_one(first, path, whole_path):
    case = Case(budget=2000)
    whole = case.search(whole_path, target=16.02)
    assert case.search(path, target=first).stop.name == "target"
    result = case.search(path, target=16.02)
    assert result.stop.name == "target"
    equal(path, result, whole_path, whole)


def test_a_search_that_reached_its_target_goes_on_without_one(path, whole_path):
    case = Case(budget=100)
    whole = case.search(whole_path)
    assert case.search(path, target=20.0).stop.name == "target"
    equal(path, case.search(path), whole_path, whole)


@pytest.mark.parametrize("budget", [48, 50, 60])
def test_a_target_that_was_reached_already_costs_no_evaluation(path, budget):
    case = CASES["mixed"]
    found = case.search(path, budget).value
    result = resume(path, lambda p: pytest.fail("it was reached"), budget=200, target=found + 1, on_error="raise")
    assert result.stop.name == "target"


# Workers


@pytest.mark.parametrize("stops", [[1, 9, 21], [17]], ids=str)
@pytest.mark.parametrize("name", ["mixed", "cache", "failures", "several x0"])
def test_in_whatever_order_evaluations_finish_it_goes_on_as_if_nothing_had_been(name, stops, path, whole_path):
    case = CASES[name]
    whole = case.search(whole_path)
    with virtual_workers(3):
        for stop in stops:
            assert case.search(path, stop).evaluations == stop
        equal(path, case.search(path), whole_path, whole)


def test_with_threads_it_goes_on_as_if_nothing_had_been(path, whole_path):
    case = CASES["failures"]
    whole = case.search(whole_path)
    with ThreadPoolExecutor(3) as workers:
        assert case.search(path, 17, workers=workers).evaluations == 17
        equal(path, case.search(path, workers=workers), whole_path, whole)


@pytest.mark.parametrize("name", ["mixed", "failures"])
def test_with_processes_it_goes_on_as_if_nothing_had_been(name, path, whole_path):
    case = CASES[name]
    whole = case.search(whole_path)
    kind = case.objective.__name__

    def objective(p):  # a closure travels by value
        import math

        number = math.sin(1e4 * sum((i + 1) * value for i, value in enumerate(p.values()))) / 2 + 0.5
        if kind == "often_failing" and number < 0.4:
            raise ValueError(f"no value at {number:.3f}")
        return sum(value**2 for value in p.values())

    parallel = replace(case, objective=objective)
    for stop in (10, 23):
        assert parallel.search(path, stop, workers=2).evaluations == stop
    equal(path, parallel.search(path, workers=2), whole_path, whole)


def test_evaluations_behind_the_target_are_used_when_it_is_lowered(path, whole_path):
    """With workers, more than was needed may be finished when the target is reached."""
    case = Case(budget=2000, options={"popsize": 12})
    whole = case.search(whole_path, target=16.02)
    objective = Recorded()
    with virtual_workers(4, lambda number, p: 9.0 if sphere(p) <= 25 else 1.0):  # what reaches the target comes last
        replace(case, objective=objective).search(path, target=25.0)
        begun = dict(objective.begun)
        beyond = [row for row in read(path).rows if row.finished][-1]
        assert beyond.outcome.value > 25
        result = replace(case, objective=objective).search(path, target=16.02)
    assert all(objective.begun[point] == begun[point] == 1 for point in begun)
    superfluous = [row for row in rows(path) if row[-1] is not None][whole.evaluations :]
    assert len(superfluous) < 12
    assert same(result) == same(whole)


# What would make it another run


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"seed": 6}, "seed was 5 and is now 6"),
        ({"popsize": 9}, "popsize was 8 and is now 9"),
        ({"method": "mix-without-model"}, "method was 'mix' and is now 'mix-without-model'"),
        ({"method": "cma"}, "method was 'mix' and is now 'cma'"),
        ({"method": "im-box"}, "method was 'mix' and is now 'im-box'"),
        ({"method": Margin(alpha=0.01)}, "method was 'mix' and is now .*0.01.*"),
        ({"asynchronous": True}, "asynchronous was False and is now True"),
        ({"seed": 6, "popsize": 9}, "seed was 5 and is now 6; popsize was 8 and is now 9"),
    ],
    ids=str,
)
def test_other_settings_are_refused_with_the_difference(path, change, match):
    case = Case(options={"popsize": 8, **MODEL})
    case.search(path, 20)
    before = rows(path)
    with pytest.raises(ValueError, match=f"run_file: .*run.db holds another run: {match}; repeat the original"):
        case.search(path, **change)
    assert rows(path) == before
    assert case.search(path).evaluations == 40


@pytest.mark.parametrize(
    ("space", "match"),
    [
        ({**MIXED, "x": Float(-5, 6)}, r"x was Float\(.*5.*\) and is now Float\(.*6.*\)"),
        ({**MIXED, "x": Float(-5, 5, mean=1.0)}, "x was Float"),
        ({**MIXED, "wire": Discrete([0.1, 0.5])}, "wire was Discrete"),
        ({**MIXED, "on": Int(0, 1)}, "on was Bool.* and is now Int"),
        ({**MIXED, "more": Bool()}, "more was not in the space and is now"),
        ({name: MIXED[name] for name in ("x", "n", "on", "wire")}, "c was in the space and is not now"),
        ({name: MIXED[name] for name in ("n", "x", "on", "wire", "c")}, "order"),
    ],
    ids=str,
)
def test_another_space_is_refused_with_the_difference(path, space, match):
    """The order of the variables is part of it: the file has the values of a candidate in that order."""
    Case().search(path, 20)
    with pytest.raises(ValueError, match=f"holds another run: .*{match}"):
        Case(Space(space)).search(path)


def test_the_same_settings_in_other_words_are_the_same(path):
    """A default may be written out, and what was left out stays left out."""
    drawn = minimize(sphere, MIXED, budget=20, run_file=path)
    for options in ({"seed": drawn.seed}, {"popsize": 8}, {"method": "mix"}, {"method": Mix()}, {}):
        result = minimize(sphere, MIXED, budget=20, run_file=path, **options)
        assert (result.evaluations, result.seed) == (20, drawn.seed)
    without = path.with_name("without.db")
    minimize(sphere, MIXED, budget=20, run_file=without, method="mix-without-model")
    assert minimize(sphere, MIXED, budget=20, run_file=without, method=Mix(model=False)).evaluations == 20


class Own(Cma):
    """A method of the user's."""


def test_a_method_of_ones_own_goes_on_with_minimize(path, whole_path):
    case = Case(options={"method": Own()})
    whole = case.search(whole_path)
    case.search(path, 17)
    with pytest.raises(ValueError, match=r"method: expected .* made with Own; continue .*minimize\(\.\.\., method="):
        resume(path, sphere)
    with pytest.raises(ValueError, match="method"):
        Case().search(path)
    equal(path, case.search(path), whole_path, whole)


def test_x0_and_history_are_those_of_the_first_time(path, whole_path):
    case = CASES["history and x0"]
    whole = case.search(whole_path)
    case.search(path, 15)
    equal(path, case.search(path, x0={**POINT, "x": -4.0}, history=[(POINT, 1.0)]), whole_path, whole)


def test_more_restarts_than_the_first_time(path, whole_path):
    case = Case(ONE, lambda p: 0.0, 250, {"popsize": 4})
    whole = case.search(whole_path, restarts=2)
    assert case.search(path, restarts=False).stop.name == "flat"
    result = case.search(path, restarts=2)
    equal(path, result, whole_path, whole)


# Interrupted in other ways


@pytest.mark.parametrize("at", [1, 2, 8, 9, 20])
@pytest.mark.parametrize("error", [ZeroDivisionError("broken"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("name", ["mixed", "cache", "several x0", "x0 explored"])
def test_an_error_or_an_interrupt_in_the_objective(name, error, at, path, whole_path):
    case = CASES[name]
    whole = case.search(whole_path)
    calls = itertools.count(1)

    def objective(p):
        if next(calls) == at:
            raise error
        return case.objective(p)

    broken = replace(case, objective=objective)
    if isinstance(error, Exception):
        with pytest.raises(type(error)):
            broken.search(path, on_error="raise")
    else:
        assert broken.search(path).stop.name == "interrupted"
    assert len([row for row in read(path).rows if row.evaluated]) == at - 1
    equal(path, broken.search(path), whole_path, whole)
    assert next(calls) == whole.evaluations + 2  # one more than without the error, and this one


@pytest.mark.parametrize("at", [1, 2, 5])
def test_a_callback_that_stops_or_breaks(at, path, whole_path):
    case = CASES["mixed"]
    whole = case.search(whole_path)
    assert case.search(path, callback=lambda progress: progress.generation >= at).stop.name == "callback"

    def callback(progress):
        if progress.generation == at + 1:
            raise LookupError("in the callback")

    with pytest.raises(LookupError):
        case.search(path, callback=callback)
    assert len([row for row in read(path).rows if row.evaluated]) == 8 * (at + 1)
    equal(path, case.search(path), whole_path, whole)


def test_an_interrupt_says_how_to_go_on(path, caplog):
    def objective(p):
        raise KeyboardInterrupt

    with caplog.at_level(logging.WARNING, logger="mixcma"):
        minimize(objective, PLANE, budget=10, run_file=path)
    (message,) = [record.getMessage() for record in caplog.records]
    assert f"mixcma.resume({str(path)!r}, objective)" in message


@pytest.mark.parametrize(
    "name",
    ["mixed", "restarts", "cache", "failures", "several x0", "target", "im-box", "explored", "cache explored"],
)
@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
def test_a_search_goes_on_from_what_the_disk_had_at_any_moment(
    name, fast, tmp_path, path, whole_path, monkeypatch, caplog
):
    """As after a kill: the files are copied while an evaluation runs, and the copy goes on.

    Slow evaluations are in the file at once, fast ones together.
    """
    case = CASES[name]
    whole = case.search(whole_path)
    every = 1 if name == "mixed" else 5 + whole.evaluations // (4 if name in WITH_MODEL else 20)
    calls = itertools.count()
    if not fast:
        monkeypatch.setattr("mixcma.store.run_file.WORTH_A_COMMIT", 0.0)

    def copy(done):
        return tmp_path / f"copy{done}.db"

    def objective(p):
        done = next(calls)
        if done % every == 0:
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{copy(done)}{end}")
        return case.objective(p)

    replace(case, objective=objective).search(path)
    assert next(calls) == whole.evaluations
    assert "cannot be written" not in caplog.text
    for done in range(0, whole.evaluations, every):
        kept = len([row for row in read(copy(done)).rows if row.evaluated])
        if fast:
            assert kept <= done
        else:
            assert kept == done
        equal(copy(done), case.search(copy(done)), whole_path, whole)


# Failing runs


@pytest.mark.parametrize("space", [PLANE, MIXED, GRID], ids=["floats", "mixed", "ints"])
def test_a_run_in_which_everything_failed_gets_another_chance(space, path):
    def objective(p):
        raise RuntimeError("no licence")

    failed = minimize(objective, space, budget=500, seed=1, run_file=path)
    assert failed.stop.name == "failing"
    failed_again = minimize(objective, space, budget=500, seed=1, run_file=path)
    assert failed_again.stop.name == "failing"
    assert failed_again.evaluations > failed.evaluations
    result = minimize(sphere, space, budget=500, seed=1, run_file=path)
    assert result.failures == failed_again.failures == failed_again.evaluations
    assert result.params is not None
    assert result.first_error == "RuntimeError: no licence"
    assert result.stop.name in ("budget", "exhausted")
    statuses = [row.status for row in read(path).rows if row.evaluated]
    assert statuses[: result.failures] == ["failed"] * result.failures
    assert set(statuses[result.failures :]) == {"done"}


def test_a_failing_run_goes_on_the_same_when_it_is_stopped_again(path, tmp_path, whole_path):
    def objective(p):
        raise RuntimeError("no licence")

    minimize(objective, PLANE, budget=500, seed=1, run_file=path)
    shutil.copy(path, whole_path)
    whole = minimize(sphere, PLANE, budget=60, seed=1, run_file=whole_path)
    for stop in range(whole.failures + 1, 60):
        assert minimize(sphere, PLANE, budget=stop, seed=1, run_file=path).evaluations == stop
    equal(path, minimize(sphere, PLANE, budget=60, seed=1, run_file=path), whole_path, whole)


# Any search, stopped anywhere


@st.composite
def searches(draw):
    variables = st.one_of(
        st.just(Float(-5, 5)),
        st.just(Float(1e-3, 1e3, log=True)),
        st.just(Bool()),
        st.sampled_from([Int(0, 3), Int(-50, 50), Int(0, 2**60)]),
        st.just(Discrete([0.1, 2, 30])),
    )
    space = Space({f"v{i}": v for i, v in enumerate(draw(st.lists(variables, min_size=1, max_size=4)))})
    method = draw(st.sampled_from([*METHODS, Margin(alpha=0.05)]))
    kind = draw(st.sampled_from(["values", "plateaus", "failures", "constraints", "infinities"]))
    number = draw(st.integers(0, 10**6))

    def objective(p):
        value = abs(math.sin(number + sum((i + 1) * math.tanh(value) for i, value in enumerate(p.values()))))
        if kind == "plateaus":
            return round(value, 1)
        if kind == "failures" and value < 0.5:
            raise ValueError("below a half")
        if kind == "infinities" and value < 0.5:
            return math.inf
        return Outcome(value, [value - 0.5, 0.2 - value]) if kind == "constraints" else value

    budget = draw(st.integers(2, 120))
    stops = sorted(draw(st.sets(st.integers(1, budget), max_size=4)))
    options = {
        "method": method,
        "seed": draw(st.integers(0, 10**6)),
        "popsize": draw(st.sampled_from([None, 4, 5, 11])),
        "cache": draw(st.sampled_from([None, True, False])),
        "restarts": draw(st.sampled_from([True, False, 1])),
        "target": draw(st.sampled_from([None, 0.05])),
        "stopping": draw(st.sampled_from([Stopping(), Stopping(min_variance=0.3), Stopping(failing_generations=1)])),
    }
    return Case(space, objective, budget, options), stops


@hypothesis_settings(max_examples=max(40, hypothesis_settings().max_examples // 3))
@given(searches())
def test_any_search_that_is_stopped_anywhere_goes_on_as_if_nothing_had_been(search):
    case, stops = search
    with in_memory() as folder:
        stop_and_go_on(case, stops, folder / "run.db", folder / "whole.db")


def stop_and_go_on(case, stops, path, whole_path):
    whole = case.search(whole_path)
    assert same(whole) == case.search()
    failing = False
    for stop in stops:
        failing |= case.search(path, stop).stop.name == "failing"
    if not failing and whole.stop.name != "failing":  # else it got another chance
        equal(path, case.search(path), whole_path, whole)


# Asynchronous


# Points of it differ, as none is cut off at the bounds.
WIDE = Space({"x": Float(-1000, 1000, mean=2, std=2), "n": Int(0, 9), "on": Bool()})
IN_WIDE = [{"x": 1.0, "n": 3, "on": True}, {"x": 2.0, "n": 3, "on": False}]


class Recorded:
    """An objective that knows how often each point was begun."""

    def __init__(self, objective=sphere):
        self.objective, self.begun = objective, Counter()

    def __call__(self, p):
        self.begun[tuple(p.values())] += 1
        return self.objective(p)


def finished(path):
    """The points that the file knows the values of."""
    return {tuple(row.params.values()): row.outcome for row in read(path).rows if row.evaluated}


def stopped(how, objective, path, **options):
    """A search that is stopped in one way or another."""
    if how == "budget":
        return minimize(objective, budget=23, run_file=path, **options)
    if how == "callback":
        return minimize(objective, budget=60, run_file=path, callback=lambda p: p.evaluations > 20, **options)
    if how == "target":
        return minimize(objective, budget=60, run_file=path, target=2.0, **options)
    calls = itertools.count(1)

    def breaking(p):
        if next(calls) == 23:
            raise LookupError
        return objective(p)

    with pytest.raises(LookupError):
        minimize(breaking, budget=60, run_file=path, on_error="raise", **options)
    return None


@pytest.mark.parametrize("how", ["budget", "callback", "target", "error"])
@pytest.mark.parametrize("given", [{}, {"x0": IN_WIDE}, {"popsize": 5}], ids=str)
def test_asynchronously_nothing_is_lost_or_repeated(how, given, path):
    options = {"space": WIDE, "seed": 1, "asynchronous": True, **given}
    first, second = Recorded(), Recorded()
    with virtual_workers(3):
        stopped(how, first, path, **options)
        before = finished(path)
        pending = [tuple(row.params.values()) for row in read(path).rows if not row.finished]
        result = minimize(second, budget=60, run_file=path, **options)
    after = finished(path)
    assert result.evaluations == len(after) == 60
    assert not before.keys() & second.begun.keys()  # none is repeated
    assert before.items() <= after.items()  # none is lost
    assert set(pending) <= second.begun.keys()  # what was under way is evaluated
    assert set(second.begun.values()) == {1}
    assert len(second.begun) == 60 - len(before)
    assert all(outcome == Outcome(sphere(dict(zip(WIDE, point)))) for point, outcome in after.items())
    assert result.value == min(outcome.value for outcome in after.values())
    assert not [row for row in read(path).rows if not row.finished]
    counted = sorted(row.counted for row in read(path).rows if row.counted is not None)
    assert counted == list(range(1, len(counted) + 1))


@pytest.mark.parametrize("method", ["cma", "im", "im-box", "margin", "mix-without-model", "mix"])
def test_asynchronously_with_one_worker_it_goes_on_as_if_nothing_had_been(method, path, whole_path):
    """One worker evaluates in order, so the course does not depend on time."""
    case = Case(options={"asynchronous": True, "method": method})
    whole = case.search(whole_path)
    for stop in range(1, 41, 4 if method == "mix" else 1):
        assert case.search(path, stop).evaluations == stop
    result = case.search(path)
    assert same(result) == same(whole)
    assert rows(path) == rows(whole_path)
    assert distributions(path) == distributions(whole_path)


@pytest.mark.parametrize("name", ["restarts", "cache", "failures", "several x0", "constraints", "history", *WITH_MODEL])
def test_asynchronously_with_one_worker_every_kind_goes_on(name, path, whole_path):
    case = replace(CASES[name], options={**CASES[name].options, "asynchronous": True})
    whole = case.search(whole_path)
    every = 9 if whole.evaluations > 60 else 1
    for stop in range(1, whole.evaluations, 13 if name in WITH_MODEL else every):
        assert case.search(path, stop).evaluations == stop
    result = case.search(path)
    assert same(result) == same(whole)
    assert rows(path) == rows(whole_path)


@pytest.mark.parametrize("method", ["mix", "mix-without-model"])
def test_asynchronously_an_earlier_runs_last_evaluations_are_counted(path, method):
    """A restart begins while evaluations of the run before it are under way."""
    objective = Recorded(lambda p: 0.0)
    options = {"space": WIDE, "seed": 1, "asynchronous": True, "popsize": 4, "method": method}
    with virtual_workers(4):
        for budget in (70, 90, 150, 300):
            result = minimize(objective, budget=budget, run_file=path, **options)
            evaluated = [(row.run, *row.params.values()) for row in read(path).rows if row.evaluated]
            assert result.evaluations == len(evaluated) == len(set(evaluated)) == budget
            assert sum(run.evaluations for run in result.runs) == budget
    assert len(result.runs) > 1
    assert sum(objective.begun.values()) == 300
    assert method == "mix" or set(objective.begun.values()) == {1}  # a model may propose the same in another run


def test_asynchronously_a_known_point_is_not_evaluated_again(tmp_path, path, monkeypatch):
    """Not even after a kill before the file knew that a candidate is the same point as a finished one."""
    copies = []

    class Copied(RunFile):
        def finished(self, *arguments, **options):
            counted = super().finished(*arguments, **options)
            copy = tmp_path / f"copy{len(copies)}.db"
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{copy}{end}")
            copies.append(copy)
            return counted

    def knows_a_pending_point(copy):
        return any(tuple(row.params.values()) in finished(copy) for row in read(copy).rows if not row.finished)

    options = {"space": Space({"n": Int(0, 3), "m": Int(0, 3)}), "budget": 12, "seed": 2, "asynchronous": True}
    options["method"] = "mix-without-model"  # the model never proposes a point that is under evaluation
    with virtual_workers(4):
        with monkeypatch.context() as patched:
            patched.setattr("mixcma.search.driver.RunFile", Copied)
            patched.setattr("mixcma.store.run_file.WORTH_A_COMMIT", 0.0)
            minimize(Recorded(), run_file=path, **options)
        copies = [copy for copy in copies if knows_a_pending_point(copy)]
        assert copies
        for copy in copies:
            before, again = finished(copy), Recorded()
            result = minimize(again, run_file=copy, **options)
            assert not before.keys() & again.begun.keys()
            assert set(again.begun.values()) <= {1}
            assert result.evaluations == len(finished(copy)) <= 12


def test_asynchronously_it_goes_on_from_what_the_disk_had_at_any_moment(tmp_path, path):
    """As after a kill, with several evaluations under way."""
    copies = []

    def objective(p):
        copy = tmp_path / f"copy{len(copies)}.db"
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
        copies.append(copy)
        return sphere(p)

    options = {"space": GRID, "budget": 40, "seed": 1, "asynchronous": True, "popsize": 6}
    with virtual_workers(3):
        minimize(objective, run_file=path, **options)
        assert len(copies) == 40
        for copy in copies[::2]:
            before, again = finished(copy), Recorded()
            result = minimize(again, run_file=copy, **options)
            assert not before.keys() & again.begun.keys()
            assert set(again.begun.values()) == {1}
            assert result.evaluations == len(finished(copy)) == 40


@pytest.mark.parametrize("method", ["mix", "mix-without-model"])
@pytest.mark.parametrize("seed", [5, 16])
def test_x0_moves_the_start_that_a_history_gave_only_once(tmp_path, method, seed):
    """Interrupted behind x0 and within the first generation; moved twice, the start differs in its last digits."""
    rng = random.Random(seed)
    space = Space({f"x{i}": Float(-3, 3) for i in range(6)})

    def drawn():
        return {name: rng.uniform(-3, 3) for name in space}

    def value(params):
        return sum((x - 0.3) ** 2 for x in params.values())

    x0, points = drawn(), [drawn() for _ in range(20)]
    given = {"x0": x0, "history": [(point, value(point)) for point in points]}

    def evaluated(most, **more):
        seen = []

        def objective(params):
            if len(seen) == most:
                raise KeyboardInterrupt
            seen.append(tuple(params.values()))
            return value(params)

        minimize(objective, space, budget=33, seed=seed, method=method, **given, **more)
        return seen

    path = tmp_path / "run.db"
    assert evaluated(3, run_file=path) + evaluated(99, run_file=path) == evaluated(99)
