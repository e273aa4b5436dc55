"""The run file: what is in it, what it holds exactly, who may read it meanwhile, and a disk without room."""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
import pickle
import resource
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from mixcma import Bool, Discrete, Float, Int, Margin, Optimizer, Outcome, Space, Stopping, minimize, resume
from mixcma.core.gaussian import deviations
from mixcma.run.stream import EXPLORED
from mixcma.search.driver import RunFile
from mixcma.store import read, run_file, writer
from mixcma.store.schema import APPLICATION_ID, VERSION, unpack
from mixcma.store.writer import Writer
from tests.search.virtual_time import BOTH, WHOLE

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
GRID = Space({"n": Int(0, 9), "m": Int(-5, 4)})
MIXED = Space({"x": Float(-5, 5), "n": Int(0, 9), "on": Bool(), "wire": Discrete([0.1, 0.5, 0.2]), "c": Int(4, 4)})
POINT = {"x": 1.0, "n": 3, "on": True, "wire": 0.5, "c": 4}


def sphere(p):
    return sum(value**2 for value in p.values())


def rows(path):
    """What a search did, without the times."""
    return [(r.id, r.run, r.generation, r.slot, r.params, r.status, r.outcome) for r in read(path).rows]


def finished(path):
    return [row for row in read(path).rows if row.finished]


def same(result):
    """A result without the place it was kept."""
    return replace(result, run_file=None)


def query(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def beside(path):
    """The files that begin with the name of the run file, but for itself."""
    return sorted(p.name.removeprefix(path.name) for p in path.parent.iterdir() if p.name.startswith(path.name))[1:]


def python(code, *arguments):
    """Run a program in a process of its own; what it printed."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


# What is in it


def test_the_settings_are_those_of_the_call(path, monkeypatch):
    monkeypatch.setattr("mixcma.search.driver.time.time", lambda: 1234.5)
    minimize(
        sphere,
        MIXED,
        budget=30,
        target=1e-300,
        method=Margin(alpha=0.01),
        seed=7,
        popsize=5,
        restarts=2,
        cache=True,
        stopping=Stopping(max_condition=math.inf, flat_tolerance=None),
        notes={"who": "größer", "list": [1, 2.5, None]},
        run_file=path,
    )
    record = read(path)
    assert record.space == MIXED
    settings = record.settings
    assert settings.pop("created") == 1234.5
    assert set(settings.pop("versions")) == {"mixcma", "numpy", "python"}
    assert settings == {
        "space": MIXED.to_dict(),
        "method": {"type": "Margin", **asdict(Margin(alpha=0.01))},
        "seed": 7,
        "popsize": 5,
        "budget": 30,
        "target": 1e-300,
        "restarts": 2,
        "cache": True,
        "asynchronous": False,
        "stopping": asdict(Stopping(max_condition=math.inf, flat_tolerance=None)),
        "notes": {"who": "größer", "list": [1, 2.5, None]},
        "history": [],
        "stop": "budget",
    }


def test_what_the_model_is_told_of_a_history_is_kept(path):
    history = [({**POINT, "x": -x}, Outcome(x * x, [-1.0, x])) for x in (3.0, 2.0, 0.5)]
    minimize(sphere, MIXED, budget=10, seed=7, history=history, run_file=path)
    told = [history[place] for place in (2, 0, 1)]  # the best, the worst, and so on
    assert read(path).history == told


def test_what_was_left_out_is_in_the_file_as_it_was_chosen(path):
    result = minimize(sphere, PLANE, budget=10, run_file=path)
    settings = read(path).settings
    assert (settings["seed"], settings["popsize"]) == (result.seed, 6)
    assert settings["method"]["type"] == "Mix"
    assert (settings["restarts"], settings["cache"], settings["asynchronous"]) == (True, False, False)


def test_settings_of_numpy_are_kept(path):
    stopping = Stopping(failing_generations=np.int64(2), min_variance=np.float32(1e-30))
    minimize(sphere, PLANE, budget=np.int64(10), target=np.float32(0), stopping=stopping, seed=1, run_file=path)
    assert read(path).settings["stopping"]["failing_generations"] == 2


def test_the_result_knows_its_file(path):
    assert minimize(sphere, PLANE, budget=10, run_file=str(path)).run_file == path


def slow_clock(monkeypatch, seconds):
    """A clock by which every evaluation takes that many seconds; each is evaluated in this process."""
    seconds_passed = itertools.count(0.0, seconds)
    monkeypatch.setattr("mixcma.evaluation.calling.time.perf_counter", lambda: next(seconds_passed))


# Where each evaluation belongs, with 8 in a whole generation; while a run explores, its proposals come one at a time.
PLACES = {
    WHOLE: [(0, i // 8, i % 8) for i in range(40)],
    "mix": [*((0, 0, slot) for slot in range(8)), *((0, generation, 8) for generation in range(1, 13))],
}


@BOTH
def test_every_candidate_is_there_with_what_became_of_it(path, monkeypatch, method):
    called = []
    slow_clock(monkeypatch, 0.25)
    monkeypatch.setattr("mixcma.evaluation.calling.time.time", lambda: 1000.0 + len(called))
    places, options = PLACES[method], {"seed": 1, "popsize": 8, "method": method}
    minimize(lambda p: called.append(p) or sphere(p), MIXED, budget=len(places), run_file=path, **options)
    record = read(path)
    evaluated = [row for row in record.rows if row.evaluated]
    assert [row.params for row in evaluated] == called
    assert [row.outcome for row in evaluated] == [Outcome(sphere(p)) for p in called]
    assert {row.status for row in evaluated} == {"done"}
    assert [row.id for row in record.rows] == list(range(1, len(record.rows) + 1))
    assert [(row.run, row.generation, row.slot) for row in evaluated] == places
    assert [(row.started, row.seconds) for row in evaluated] == [(1000.0 + i, 0.25) for i in range(len(places))]
    types = {"x": float, "n": int, "on": bool, "wire": float, "c": int}
    assert all({name: type(value) for name, value in row.params.items()} == types for row in record.rows)


@pytest.mark.parametrize(("method", "left"), [("mix", [9]), (WHOLE, [9, 10, 11, 12])])
def test_what_was_not_evaluated_is_pending(path, method, left):
    minimize(sphere, PLANE, budget=8, seed=1, method=method, run_file=path)
    record = read(path)
    pending = [row for row in record.rows if not row.finished]
    assert [row.id for row in pending] == left
    assert {(row.status, row.outcome, row.started, row.seconds) for row in pending} == {("pending", None, None, None)}


def test_points_given_as_x0_come_first_in_a_generation_of_their_own(path):
    minimize(sphere, MIXED, budget=20, seed=1, x0=[POINT, {**POINT, "x": 2.0}], run_file=path)
    first, second, third, *_ = read(path).rows
    assert [(row.generation, row.slot, row.params["x"]) for row in (first, second)] == [(-1, 0, 1.0), (-1, 1, 2.0)]
    assert (third.generation, third.slot) == (0, 0)


@pytest.mark.parametrize(("method", "budget"), [("mix", 130), (WHOLE, 200)])
def test_every_generation_is_there_with_its_distribution(path, method, budget):
    minimize(sphere, MIXED, budget=budget, seed=1, popsize=8, method=method, run_file=path)
    generations = read(path).generations
    optimizer = Optimizer(MIXED, seed=1, popsize=8, method=method)
    assert len(generations) == 26 or method != WHOLE  # the last was drawn and not evaluated
    for kept in generations:
        state = optimizer.state
        assert (kept.run, kept.generation, kept.step_size) == (0, optimizer.generation, optimizer.step_size)
        assert kept.id == optimizer.generation + 1
        assert kept.mean.tolist() == state.m.tolist()
        assert kept.deviation.tolist() == (deviations(state) * state.A * state.live).tolist()
        assert kept.axis_ratio == pytest.approx(math.sqrt(state.eigenvalues[-1] / state.eigenvalues[0]))
        candidates = optimizer.ask()
        optimizer.tell(candidates, [sphere(c.params) for c in candidates])


def test_the_runs_are_there_with_why_they_ended(path):
    result = minimize(lambda p: 0.0, PLANE, budget=400, seed=1, run_file=path)
    kept, counts = read(path).runs, [run.evaluations for run in result.runs]
    assert len(kept) > 2
    assert [run.popsize for run in kept] == [run.popsize for run in result.runs]
    assert [run.stop for run in kept] == ["flat"] * (len(kept) - 1) + [None]
    assert [run.evaluations_before for run in kept] == [sum(counts[:i]) for i in range(len(counts))]


def test_a_failed_evaluation_is_there_with_its_error(path):
    def objective(p):
        if p["x"] > 0:
            raise ZeroDivisionError("no radius")
        return sphere(p)

    result = minimize(objective, PLANE, budget=60, seed=1, run_file=path)
    failed = [row for row in read(path).rows if row.status == "failed"]
    assert len(failed) == result.failures > 0
    (outcome,) = {row.outcome for row in failed}
    assert outcome == Outcome(math.inf, (), "ZeroDivisionError: no radius", outcome.traceback)
    assert 'raise ZeroDivisionError("no radius")' in outcome.traceback
    assert all(row.evaluated and row.params["x"] > 0 for row in failed)


def test_an_evaluation_that_timed_out_is_there_as_such(path):
    def objective(p):
        if p["x"] > 0:
            time.sleep(60)
        return p["x"]

    points = [{"x": 1.0, "y": 0.0}, {"x": -1.0, "y": 0.0}]
    minimize(objective, PLANE, budget=2, seed=1, x0=points, timeout=0.5, run_file=path)
    late, done = finished(path)
    assert (late.status, done.status) == ("timed out", "done")
    assert late.outcome.error == "timed out after 0.5 s"
    assert late.seconds > 0


def test_a_point_that_was_known_costs_nothing(path):
    calls = []
    result = minimize(lambda p: calls.append(p) or sphere(p), GRID, budget=60, seed=1, run_file=path)
    kept = finished(path)
    known = [row for row in kept if row.status == "known"]
    assert known
    assert len(calls) == result.evaluations == len(kept) - len(known)
    assert all(row.outcome == Outcome(sphere(row.params)) for row in known)
    assert all(row.started is None and row.seconds is None for row in known)


@BOTH
def test_asynchronous_results_are_numbered_in_the_order_of_their_use(path, method):
    minimize(sphere, PLANE, budget=30, seed=1, asynchronous=True, method=method, run_file=path)
    kept = finished(path)
    assert sorted(row.counted for row in kept) == list(range(1, 31))
    assert [row.slot % EXPLORED for row in kept] == list(range(30))
    assert all(row.latent.shape[-1] == 2 for row in kept)


def test_the_file_says_what_it_is(path):
    minimize(sphere, PLANE, budget=10, seed=1, run_file=path)
    assert query(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert query(path, "PRAGMA user_version") == [(VERSION,)]
    assert query(path, "SELECT value FROM evaluation WHERE id = 1") == [(finished(path)[0].outcome.value,)]


# WAL


def test_the_file_is_in_wal_mode_and_alone_after_the_end(path):
    seen = []
    minimize(sphere, PLANE, budget=30, seed=1, run_file=path, callback=lambda _: seen.append(beside(path)) and None)
    assert seen[-1] == ["-shm", "-wal", ".lock"]
    assert beside(path) == []
    assert query(path, "PRAGMA journal_mode") == [("wal",)]


def test_the_file_is_in_wal_mode_from_its_first_moment_on(path, monkeypatch):
    """Switched later, it would have a rollback journal for a moment, and a kill then would leave it unreadable."""
    replaced, versions = os.replace, []

    def watched(source, target):
        replaced(source, target)
        versions.append(Path(target).read_bytes()[18:20])
        assert read(target).settings["seed"] == 1

    monkeypatch.setattr(os, "replace", watched)
    minimize(sphere, PLANE, budget=10, seed=1, run_file=path)
    assert versions == [b"\x02\x02"]


def test_a_file_made_where_another_was_removed_after_a_kill_has_nothing_of_it(path):
    code = """
        import os, signal, sys
        from mixcma import Float, Space, minimize
        def callback(progress):
            if progress.generation == 5:
                os.kill(os.getpid(), signal.SIGKILL)
        minimize(lambda p: p["x"], Space({"x": Float(-5, 5)}), budget=100, run_file=sys.argv[1], callback=callback)
    """
    with pytest.raises(subprocess.CalledProcessError):
        python(code, path)
    assert beside(path) == ["-shm", "-wal", ".lock"]
    path.unlink()
    result = minimize(sphere, PLANE, budget=30, seed=1, run_file=path)
    assert same(result) == minimize(sphere, PLANE, budget=30, seed=1)
    assert read(path).space == PLANE
    assert len(finished(path)) == 30


# What it holds exactly

VALUES = [1.0, -0.0, 0.0, 5e-324, -1.7976931348623157e308, math.inf, 0.1 + 0.2, 10**400, 2**63, True, np.float32(0.1)]


def test_values_come_back_as_they_were(path):
    values = itertools.cycle(VALUES)
    minimize(lambda p: next(values), PLANE, budget=len(VALUES), seed=1, run_file=path)
    expected = [math.inf if type(value) is int and value > 2**1023 else float(value) for value in VALUES]
    assert [row.outcome.value for row in finished(path)] == expected
    assert {row.status for row in finished(path)} == {"done"}


CONSTRAINTS = [[-1.0, 0.25], [], [math.inf], [-math.inf, 1], [-0.0, 5e-324], [0.1 + 0.2] * 100, [10**400]]


def test_constraints_come_back_as_they_were(path):
    returned = itertools.cycle(CONSTRAINTS)
    minimize(lambda p: Outcome(1.5, next(returned)), PLANE, budget=len(CONSTRAINTS), seed=1, run_file=path)
    expected = [[math.inf] if g == [10**400] else [float(v) for v in g] for g in CONSTRAINTS]
    kept = [list(row.outcome.constraints) for row in finished(path)]
    assert repr(kept) == repr(expected)  # -0.0 is not 0.0
    assert {row.outcome.value for row in finished(path)} == {1.5}


WIDE = Space(
    {
        "huge": Int(-(2**61), 2**61),
        "far": Int(2**62 - 40, 2**62),
        "tiny": Float(1e-300, 1e-290, log=True),
        "whole": Discrete([-(10**25), 3, 10**25]),
        "set": Discrete([-1e25, 0.5, 1e25]),
    }
)


@pytest.mark.parametrize("seed", range(3))
def test_params_of_any_size_come_back_as_they_were(path, seed):
    called = []
    minimize(lambda p: called.append(p) or float(len(called)), WIDE, budget=40, seed=seed, run_file=path)
    assert repr([row.params for row in finished(path)]) == repr(called)


def test_minus_zero_is_a_parameter_like_another(path):
    space = Space({"x": Float(-1, 1), "y": Float(-1, 1)})
    minimize(sphere, space, budget=1, seed=1, x0={"x": -0.0, "y": 1}, run_file=path)
    assert repr(finished(path)[0].params) == "{'x': -0.0, 'y': 1.0}"


@pytest.mark.parametrize("name", ["x y", "'; DROP TABLE evaluation; --", "größe", "\N{SNOWMAN}", "a\0b", "\ud800", '"'])
def test_a_variable_may_have_any_name(path, name):
    space = Space({name: Float(-5, 5), "n": Int(0, 9)})
    result = minimize(sphere, space, budget=20, seed=1, run_file=path)
    assert read(path).space == space
    assert list(finished(path)[0].params) == [name, "n"]
    assert same(resume(path, sphere)) == same(result)


ERRORS = {
    "": "ValueError: ",
    "a\0b": "ValueError: a\0b",
    "lone \ud800 surrogate": "ValueError: lone \\ud800 surrogate",
    "two\nlines\r\n\ttab": "ValueError: two\nlines\r\n\ttab",
    "\N{SNOWMAN} \U0001f600 ß": "ValueError: \N{SNOWMAN} \U0001f600 ß",
    "'; DROP TABLE evaluation; --": "ValueError: '; DROP TABLE evaluation; --",
}


def test_texts_of_errors_come_back_as_they_were(path):
    texts = itertools.cycle(ERRORS)

    def objective(p):
        raise ValueError(next(texts))

    minimize(objective, PLANE, budget=len(ERRORS), seed=1, run_file=path)
    assert [row.outcome.error for row in finished(path)] == list(ERRORS.values())


@pytest.mark.parametrize("letter", ["e", "\N{SNOWMAN}", "\ud800", "\0"], ids=ascii)
def test_a_megabyte_of_error_is_cut(path, letter, monkeypatch):
    monkeypatch.setattr(logging.getLogger("mixcma"), "disabled", True)  # its text is no text that can be shown

    def objective(p):
        raise ValueError(letter * 2**20)

    minimize(objective, PLANE, budget=6, seed=1, run_file=path)
    assert path.stat().st_size < 6 * 50_000  # a letter of the error and of its traceback has up to three bytes
    for row in finished(path):
        assert row.outcome.failed
        assert 1000 < len(row.outcome.error) <= 2000
        assert row.outcome.error.startswith("ValueError: ")


def test_an_empty_error_is_a_failure_too(path):
    minimize(lambda p: Outcome(1.0, error=""), PLANE, budget=3, seed=1, run_file=path)
    assert [(row.status, row.outcome) for row in finished(path)] == [("failed", Outcome(math.inf, (), ""))] * 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_run_that_leaves_the_range_of_floats_leaves_a_file_that_can_be_read(path, asynchronous):
    space = Space({"x": Float(), "y": Float()})
    options = {"seed": 1, "restarts": 2, "method": "margin", "asynchronous": asynchronous}
    result = minimize(lambda p: p["x"], space, budget=20_000, run_file=path, **options)
    assert "numerical" in [run.stop for run in read(path).runs]
    assert same(resume(path, lambda p: pytest.fail("it was finished"))) == same(result)


# Reading it meanwhile


def test_it_can_be_read_after_every_generation(path):
    def callback(progress):
        assert len(finished(path)) == progress.evaluations
        assert sum(each.run == progress.run for each in read(path).generations) == progress.generation

    result = minimize(sphere, PLANE, budget=120, seed=1, run_file=path, callback=callback)
    assert len(finished(path)) == result.evaluations


def test_every_evaluation_that_took_its_time_is_in_the_file_before_the_next_begins(path, monkeypatch):
    calls = itertools.count()
    slow_clock(monkeypatch, 0.005)

    def objective(p):
        assert len(finished(path)) == next(calls)
        return sphere(p)

    minimize(objective, PLANE, budget=20, seed=1, run_file=path, on_error="raise")


@BOTH
def test_fast_evaluations_are_in_the_file_before_their_generation_counts(path, method):
    calls = itertools.count()

    def objective(p):
        done = next(calls)
        counting = done - done % 6 if method == WHOLE or done < 6 else done  # a generation is 6, or 1 after the first
        assert counting <= len(finished(path)) <= done
        return sphere(p)

    budget = 60 if method == WHOLE else 20
    minimize(objective, PLANE, budget=budget, seed=1, method=method, run_file=path, on_error="raise")


@BOTH
def test_a_reader_beside_the_search_always_sees_whole_steps(path, method):
    """What is read at any moment is the beginning of what the file holds in the end."""
    done, seen, errors = threading.Event(), [], []

    def reader():
        while not done.is_set():
            try:
                seen.append([row for row in rows(path) if row[-1] is not None])
            except ValueError as error:
                if "there is none" not in str(error):
                    errors.append(error)

    thread = threading.Thread(target=reader)
    thread.start()
    try:
        minimize(sphere, PLANE, budget=600 if method == WHOLE else 130, seed=1, method=method, run_file=path)
    finally:
        done.set()
        thread.join()
    assert errors == []
    assert len(seen) > 3
    final = rows(path)
    for kept in seen:
        assert kept == final[: len(kept)]


def test_a_tool_that_opens_and_closes_the_file_does_not_disturb(path, monkeypatch):
    """A connection that believes to be the last one would take the WAL away from the search."""
    code = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1])
        print(connection.execute("SELECT count(*) FROM evaluation WHERE status = 'done'").fetchone()[0])
        connection.close()
    """
    seen, calls = [], itertools.count(1)

    def objective(p):
        if next(calls) in (10, 20, 30):
            seen.append(int(python(code, path)))
        return sphere(p)

    monkeypatch.setattr(run_file, "WORTH_A_COMMIT", 0.0)

    minimize(objective, PLANE, budget=40, seed=1, run_file=path)
    assert seen == [9, 19, 29]
    assert len(finished(path)) == 40


def test_reading_in_the_same_process_keeps_the_locks_of_the_search(path):
    """A process that closes a file loses all its locks on it (POSIX); SQLite relies on them."""
    held = []

    def callback(progress):
        read(path)
        inode = f":{path.stat().st_ino} "
        held.append(any(inode in line for line in Path("/proc/locks").read_text().splitlines()))

    if not Path("/proc/locks").exists():
        pytest.skip("needs /proc/locks")
    minimize(sphere, PLANE, budget=12, seed=1, method=WHOLE, run_file=path, callback=callback)
    assert held == [True, True]


def test_reading_leaves_nothing_beside_the_file(path):
    minimize(sphere, PLANE, budget=10, seed=1, run_file=path)
    content = path.read_bytes()
    read(path)
    assert beside(path) == []
    assert path.read_bytes() == content


# Nothing in it is run


def test_opening_a_file_unpickles_nothing(path, monkeypatch):
    minimize(sphere, MIXED, budget=30, seed=1, run_file=path)

    def refused(*arguments, **options):
        raise AssertionError("unpickled")

    for module, name in itertools.product((pickle, cloudpickle), ("load", "loads")):
        monkeypatch.setattr(module, name, refused)
    monkeypatch.setattr(pickle, "Unpickler", refused)
    assert len(finished(path)) == 30
    assert resume(path, sphere, budget=60).evaluations == 60


def test_opening_a_file_runs_nothing_from_it(path):
    minimize(sphere, MIXED, budget=30, seed=1, run_file=path)
    code = """
        import sys
        from mixcma.store import read
        read(sys.argv[1])  # what is imported late is imported now
        events = []
        sys.addaudithook(lambda name, arguments: events.append(name))
        read(sys.argv[1])
        wanted = ("pickle", "exec", "compile", "import", "marshal", "subprocess", "os.system", "os.exec", "ctypes",
                  "sqlite3.load_extension", "sqlite3.enable_load_extension")
        print(*{name for name in events if name.startswith(wanted)})
    """
    assert python(code, path).split() == []


@pytest.mark.parametrize("dtype", ["|O", "object", "O8", "<f8,|O"])
def test_an_array_of_objects_is_refused(dtype):
    with pytest.raises(ValueError, match="OBJECT"):
        unpack(json.dumps([["m", dtype, [2]]]), bytes(64))


# No room on the disk


@contextmanager
def opened_files(monkeypatch):
    """The run files that searches open, to lay hands on their connections."""
    opened = []

    class Watched(RunFile):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            opened.append(self)

    monkeypatch.setattr("mixcma.search.driver.RunFile", Watched)
    yield opened


def full_disk(connection):
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")


def room_again(connection):
    connection.execute("PRAGMA max_page_count = 1000000")


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "mixcma"]


@pytest.mark.parametrize(
    ("method", "budget", "outages"),
    [
        (WHOLE, 800, [(3, 40)]),
        (WHOLE, 800, [(0, 20), (30, 45)]),
        ("mix", 200, [(3, 50)]),
        ("mix", 200, [(0, 40), (45, 75)]),
    ],
    ids=str,
)
def test_a_search_goes_on_without_room_and_completes_the_file_when_there_is_room(
    path, tmp_path, monkeypatch, caplog, method, budget, outages
):
    monkeypatch.setattr(writer, "RETRY_EVERY", 0.0)
    options = {"budget": budget, "seed": 1, "popsize": 8, "restarts": False, "method": method}
    whole = minimize(sphere, MIXED, run_file=tmp_path / "whole.db", **options)

    def callback(progress):
        connection = opened[0]._writer.connection
        for begin, end in outages:
            if progress.generation == begin + 1:
                full_disk(connection)
            elif progress.generation == end - 1:
                assert len(finished(path)) < progress.evaluations  # it truly was full
            elif progress.generation == end:
                room_again(connection)

    with caplog.at_level(logging.WARNING, logger="mixcma"), opened_files(monkeypatch) as opened:
        result = minimize(sphere, MIXED, run_file=path, callback=callback, **options)
    assert same(result) == same(whole)
    assert rows(path) == rows(tmp_path / "whole.db")
    said = warnings_of(caplog)
    full, again = said[::2], said[1::2]
    assert len(full) == len(again) == len(outages)
    assert all("cannot be written (database or disk is full)" in text and str(path) in text for text in full)
    assert all("can be written again and is complete" in text for text in again)


def test_room_that_returns_just_before_the_end_is_used(path, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(writer, "RETRY_EVERY", 1000.0)
    options = {"budget": 400, "seed": 1, "popsize": 8, "method": WHOLE}
    whole = minimize(sphere, MIXED, run_file=tmp_path / "whole.db", **options)

    def callback(progress):
        if progress.generation in (2, 49):
            (full_disk if progress.generation == 2 else room_again)(opened[0]._writer.connection)
        if progress.generation == 50:
            assert len(finished(path)) < 100

    with caplog.at_level(logging.WARNING, logger="mixcma"), opened_files(monkeypatch) as opened:
        result = minimize(sphere, MIXED, run_file=path, callback=callback, **options)
    assert same(result) == same(whole)
    assert rows(path) == rows(tmp_path / "whole.db")
    assert ["cannot be written" in text for text in warnings_of(caplog)] == [True, False]


@pytest.mark.parametrize(("method", "budget", "before"), [("mix", 140, 12), (WHOLE, 400, 40)])
def test_without_room_until_the_end_the_result_is_right_and_the_file_an_earlier_moment(
    path, tmp_path, monkeypatch, caplog, method, budget, before
):
    monkeypatch.setattr(writer, "RETRY_EVERY", 0.0)
    options = {"budget": budget, "seed": 1, "popsize": 8, "method": method}
    whole = minimize(sphere, MIXED, run_file=tmp_path / "whole.db", **options)

    def callback(progress):
        if progress.generation == 5:
            full_disk(opened[0]._writer.connection)

    with caplog.at_level(logging.WARNING, logger="mixcma"), opened_files(monkeypatch) as opened:
        result = minimize(sphere, MIXED, run_file=path, callback=callback, **options)
    assert same(result) == same(whole)
    assert "cannot be written" in warnings_of(caplog)[0]
    kept = [row for row in rows(path) if row[-1] is not None]
    assert before <= len(kept) < budget
    assert kept == rows(tmp_path / "whole.db")[: len(kept)]
    assert same(resume(path, sphere)) == same(whole)
    assert rows(path) == rows(tmp_path / "whole.db")


def test_while_there_is_no_room_writing_is_not_tried_all_the_time(path, monkeypatch, caplog):
    attempts = []
    failed = Writer._failed

    def counted(self, *arguments):
        attempts.append(arguments)
        failed(self, *arguments)

    monkeypatch.setattr(Writer, "_failed", counted)
    monkeypatch.setattr(writer, "RETRY_EVERY", math.inf)

    def callback(progress):
        if progress.generation == 2:
            full_disk(opened[0]._writer.connection)

    with caplog.at_level(logging.WARNING, logger="mixcma"), opened_files(monkeypatch) as opened:
        minimize(sphere, MIXED, budget=1000, seed=1, popsize=8, method=WHOLE, run_file=path, callback=callback)
    assert len(attempts) == 2  # and once more at the end
    full, incomplete = warnings_of(caplog)
    assert "disk is full" in full
    assert "could not be completed" in incomplete


@contextmanager
def largest_file(size):
    """Writing beyond `size` bytes of any file fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_system_that_refuses_to_write_does_not_end_the_search(path, tmp_path, monkeypatch, caplog):
    """Not SQLite's own limit, but the operating system's: writing to the WAL fails."""
    monkeypatch.setattr(writer, "RETRY_EVERY", 0.0)
    options = {"budget": 400, "seed": 1, "popsize": 8, "method": WHOLE}
    whole = minimize(sphere, MIXED, run_file=tmp_path / "whole.db", **options)
    limits = []

    def callback(progress):
        if progress.generation == 5:
            limits.append(largest_file(path.with_name("run.db-wal").stat().st_size + 5000))
            limits[0].__enter__()
        elif progress.generation == 20:
            limits.pop().__exit__(None, None, None)

    try:
        with caplog.at_level(logging.WARNING, logger="mixcma"):
            result = minimize(sphere, MIXED, run_file=path, callback=callback, **options)
    finally:
        for limit in limits:
            limit.__exit__(None, None, None)
    assert same(result) == same(whole)
    assert rows(path) == rows(tmp_path / "whole.db")
    first, second = warnings_of(caplog)
    assert "cannot be written" in first
    assert "is complete" in second


def sentence(caught, path):
    """The message names the argument and the path, and is one sentence."""
    text = str(caught.value)
    assert text.startswith("run_file: ")
    assert str(path) in text
    assert "\n" not in text
    assert "; " in text  # what to do
    return text


def test_no_room_for_a_new_file_is_said_in_a_sentence(path):
    with largest_file(10_000), pytest.raises(ValueError, match="cannot be written") as caught:
        minimize(sphere, PLANE, budget=10, seed=1, run_file=path)
    sentence(caught, path)
    assert list(path.parent.iterdir()) == []
    assert minimize(sphere, PLANE, budget=10, seed=1, run_file=path).evaluations == 10


# No place to write


@pytest.mark.parametrize("call", [lambda path: minimize(sphere, PLANE, budget=10, run_file=path), None])
def test_a_missing_folder_is_said_in_a_sentence(tmp_path, call):
    path = tmp_path / "none" / "run.db"
    with pytest.raises(ValueError, match="expected a folder") as caught:
        (call or (lambda path: resume(path, sphere)))(path)
    sentence(caught, path.parent)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_as_path_is_said_in_a_sentence(path):
    path.mkdir()
    for call in (lambda: minimize(sphere, PLANE, budget=10, run_file=path), lambda: resume(path, sphere)):
        with pytest.raises(ValueError, match=r"Is a directory|is a folder") as caught:
            call()
        sentence(caught, path)
    assert [p.name for p in path.parent.iterdir()] == ["run.db"]


def test_a_file_as_folder_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="expected a folder") as caught:
        minimize(sphere, PLANE, budget=10, run_file=tmp_path / "file" / "run.db")
    sentence(caught, tmp_path / "file")


def test_a_file_to_go_on_with_that_is_missing_is_said_in_a_sentence(path):
    with pytest.raises(ValueError, match="there is none") as caught:
        resume(path, sphere)
    sentence(caught, path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("given", [b"run.db", 3, ["run.db"], True], ids=repr)
def test_what_is_no_path_is_said_in_a_sentence(given):
    with pytest.raises(ValueError, match="run_file: expected a path"):
        minimize(sphere, PLANE, budget=10, run_file=given)


@pytest.mark.parametrize(
    "given", ["/", "", ".", "a\0b", "x" * 300, "x" * 248, "é" * 124, ":memory:", "file:run.db", "\ud800"], ids=ascii
)
def test_an_impossible_path_is_said_in_a_sentence(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"run_file: .*; "):
        minimize(sphere, PLANE, budget=10, run_file=given)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def ordinary_user():
    """A folder and a user who owns it; the administrator may write anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        administrator = os.geteuid() == 0
        if administrator:
            os.chown(folder, 65534, -1)
            os.setresuid(65534, 65534, 0)
        try:
            yield Path(folder)
        finally:
            if administrator:
                os.setresuid(0, 0, 0)
            Path(folder).chmod(0o755)


def test_a_read_only_file_is_said_in_a_sentence(ordinary_user):
    path = ordinary_user / "run.db"
    minimize(sphere, PLANE, budget=10, seed=1, run_file=path)
    path.chmod(0o444)
    with pytest.raises(ValueError, match=r"cannot be written .*; make it writable") as caught:
        minimize(sphere, PLANE, budget=20, seed=1, run_file=path)
    sentence(caught, path)
    assert ".lock" not in beside(path)
    assert len(finished(path)) == 10
    path.chmod(0o644)
    assert minimize(sphere, PLANE, budget=20, seed=1, run_file=path).evaluations == 20


def test_a_read_only_folder_is_said_in_a_sentence(ordinary_user):
    path = ordinary_user / "run.db"
    ordinary_user.chmod(0o555)
    with pytest.raises(ValueError, match=r"cannot be written \(Permission denied\)") as caught:
        minimize(sphere, PLANE, budget=10, seed=1, run_file=path)
    sentence(caught, path)


def test_a_file_in_a_read_only_folder_can_be_read(ordinary_user):
    """An archive, or another user's runs: as a history, for instance."""
    path = ordinary_user / "run.db"
    minimize(sphere, PLANE, budget=10, seed=1, run_file=path)
    ordinary_user.chmod(0o555)
    assert len(finished(path)) == 10
    assert minimize(sphere, PLANE, budget=10, seed=1, history=path).evaluations == 10


def test_a_file_that_may_not_be_read_is_said_in_a_sentence(ordinary_user):
    path = ordinary_user / "run.db"
    minimize(sphere, PLANE, budget=10, seed=1, run_file=path)
    path.chmod(0)
    with pytest.raises(ValueError, match=r"cannot be (read|written) \(Permission denied\)") as caught:
        minimize(sphere, PLANE, budget=20, seed=1, run_file=path)
    sentence(caught, path)


def test_a_file_that_becomes_read_only_does_not_end_the_search(path, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(writer, "RETRY_EVERY", 0.0)
    whole = minimize(sphere, MIXED, budget=200, seed=1, run_file=tmp_path / "whole.db")

    def callback(progress):
        if progress.generation in (3, 9):
            opened[0]._writer.connection.execute(f"PRAGMA query_only = {int(progress.generation == 3)}")

    with caplog.at_level(logging.WARNING, logger="mixcma"), opened_files(monkeypatch) as opened:
        result = minimize(sphere, MIXED, budget=200, seed=1, run_file=path, callback=callback)
    assert same(result) == same(whole)
    assert rows(path) == rows(tmp_path / "whole.db")
    assert ["cannot be written" in text for text in warnings_of(caplog)] == [True, False]
