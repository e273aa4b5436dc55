"""Ctrl-C and SIGTERM: a partial result, a complete run file, and a search that goes on as if nothing had been."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psutil
import pytest

from mixcma import Float, Space, minimize, resume
from mixcma.run.optimizer import Optimizer
from mixcma.store import RunFile, read
from tests.search.virtual_time import BOTH, WHOLE, virtual_workers

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
SIGNALS = [signal.SIGINT, signal.SIGTERM]
# A script that searches and says how it ended. The calls of the objective are lines of a file. After some of them,
# one call per worker tells the test through a pipe that it has begun, and never returns.
SCRIPT = """
import json, os, signal, subprocess, sys, threading
from concurrent.futures import ProcessPoolExecutor
from mixcma import Float, Space, minimize

def main(workers, log, pipe, returning, options):
    hanging, starts_others = range(returning + 1, returning + (2 if workers == 1 else 3)), workers == 2

    def objective(p):
        with open(log, "a+") as file:
            file.write(f"{p['x']}\\n")
            file.seek(0)
            calls = len(file.readlines())
        if calls in hanging:
            if starts_others:
                subprocess.Popen(["sleep", "60"])
            with open(pipe, "w") as file:
                file.write(".")
            while True:  # one endless wait could miss a signal that comes just as it begins
                threading.Event().wait(0.1)
        return p["x"] ** 2 + p["y"] ** 2

    space = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    result = minimize(objective, space, seed=1, workers=workers, **options)
    print(json.dumps({
        "stop": result.stop.name,
        "evaluations": result.evaluations,
        "value": result.value,
        "restored": handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)),
    }), flush=True)
"""


def eventually(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


class Searching:
    """A process that searches, in a session of its own, until its workers hang and it is interrupted."""

    def __init__(self, tmp_path, workers, returning=18, **options):
        self._log, pipe = tmp_path / "log", tmp_path / "pipe"
        os.mkfifo(pipe)
        self._pipe = os.open(pipe, os.O_RDWR)
        self._hanging = 1 if workers == 1 else 2
        arguments = f"{workers}, {str(self._log)!r}, {str(pipe)!r}, {returning}, { {'budget': 60, **options}!r}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{SCRIPT}\nmain({arguments})"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.started():
            process.kill()
        self.process.kill()
        self.process.communicate()
        os.close(self._pipe)

    @property
    def calls(self):
        return len(self._log.read_text().splitlines())

    def started(self):
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def hangs(self):
        """Wait until every worker hangs."""
        for _ in range(self._hanging):
            assert select.select([self._pipe], [], [], 60)[0]
            os.read(self._pipe, 1)
        return self

    def end(self, number, whole_group=False):
        """Send the signal; returns what the script said."""
        started = self.started()
        if whole_group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        output, self.errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        assert eventually(lambda: not any(process.is_running() for process in started))
        return json.loads(output)


def sphere():
    return lambda p: p["x"] ** 2 + p["y"] ** 2


# In a process of its own


@BOTH
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_an_interrupted_search_returns_what_it_has_and_goes_on_to_the_same_result(number, workers, method, tmp_path):
    path = tmp_path / "run.db"
    with Searching(tmp_path, workers, run_file=str(path), method=method) as search:
        said = search.hangs().end(number)
    assert said["stop"] == "interrupted"
    assert said["restored"]
    done = [row for row in read(path).rows if row.evaluated]
    assert said["evaluations"] == len(done)
    assert workers <= search.calls - len(done) <= 2 * workers  # what was under way is lost, and no more
    assert said["value"] == min(row.outcome.value for row in done)
    assert read(path).settings["stop"] == "interrupted"
    assert "to continue, make the same call again" in search.errors
    with virtual_workers(workers):
        whole = minimize(sphere(), PLANE, budget=60, seed=1, method=method)
        assert replace(resume(path, sphere()), run_file=None) == whole


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_without_a_run_file_the_partial_result_is_returned_too(number, tmp_path):
    with Searching(tmp_path, 2) as search:
        said = search.hangs().end(number)
    assert (said["stop"], said["restored"]) == ("interrupted", True)
    assert 0 < said["evaluations"] < search.calls


@pytest.mark.parametrize("workers", [1, 2, "ProcessPoolExecutor(2)"])
def test_ctrl_c_in_a_terminal_reaches_every_process_and_the_partial_result_is_returned(workers, tmp_path):
    with Searching(tmp_path, workers) as search:
        said = search.hangs().end(signal.SIGINT, whole_group=True)
    assert said["stop"] == "interrupted"
    assert said["evaluations"] >= 12


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_does_not_wait_for_the_first_evaluations(workers, tmp_path):
    with Searching(tmp_path, workers, returning=0) as search:
        said = search.hangs().end(signal.SIGINT)
    assert (said["stop"], said["evaluations"]) == ("interrupted", 0)


def test_an_asynchronous_search_that_was_interrupted_goes_on_to_the_whole_budget(tmp_path):
    path = tmp_path / "run.db"
    with Searching(tmp_path, 2, run_file=str(path), asynchronous=True) as search:
        said = search.hangs().end(signal.SIGINT)
    done = [row.params for row in read(path).rows if row.evaluated]
    assert (said["stop"], said["evaluations"]) == ("interrupted", len(done))
    result = resume(path, sphere())
    assert (result.stop.name, result.evaluations) == ("budget", 60)
    after = [row.params for row in read(path).rows if row.evaluated]
    assert len(after) == 60
    assert all(params in after for params in done)


def test_a_search_that_waits_for_workers_can_be_interrupted(tmp_path):
    """A scheduler of dask without workers: whoever waits for them must be able to give up."""
    program = """
from distributed import LocalCluster
from mixcma import Float, Space, minimize
from mixcma.evaluation.workers import Engine
def check(self, original=Engine.check):
    print("waits", flush=True)
    original(self)
Engine.check = check
with LocalCluster(n_workers=0, dashboard_address=":0", silence_logs="CRITICAL") as cluster:
    try:
        minimize(lambda p: 1.0, Space({"x": Float(0, 1)}), budget=10, workers=f"dask:{cluster.scheduler_address}")
    except KeyboardInterrupt:
        pass
    print("went on", flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as search:
        try:
            assert search.stdout.readline() == "waits\n"
            search.send_signal(signal.SIGINT)
            output, _ = search.communicate(timeout=60)
        finally:
            search.kill()
    assert output == "went on\n"


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_after_the_last_evaluation_is_not_lost(number):
    """Whether the search says that it was interrupted or lets the signal through: somebody must learn of it."""
    program = f"""
import signal
from mixcma import Float, Space, minimize
from mixcma.search import Account

def interrupted(self, params, outcome, take=Account.take):
    take(self, params, outcome)
    if self.evaluations == 24:
        signal.raise_signal({int(number)})

Account.take = interrupted
print(minimize(lambda p: p["x"] ** 2, Space({{"x": Float(-5, 5)}}), budget=24, seed=1).stop.name)
"""
    search = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert search.stdout == "interrupted\n" or search.returncode == -number


# In this process


@pytest.fixture(autouse=True)
def ordinary_handlers():
    """The handlers a program begins with, and a check that every search restores them."""
    before = [signal.getsignal(number) for number in SIGNALS]
    ordinary = [signal.default_int_handler, signal.SIG_DFL]
    for number, handler in zip(SIGNALS, ordinary):
        signal.signal(number, handler)
    yield
    after = [signal.getsignal(number) for number in SIGNALS]
    for number, handler in zip(SIGNALS, before):
        signal.signal(number, handler)
    assert after == ordinary


def signalling(number, at):
    """The sphere, but for one call in which the process receives a signal."""
    calls = []

    def objective(p):
        calls.append(p)
        if len(calls) == at:
            signal.raise_signal(number)
        return p["x"] ** 2 + p["y"] ** 2

    return objective


@BOTH
@pytest.mark.parametrize("at", [1, 3, 6, 7, 24, 105])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_during_an_evaluation_loses_that_evaluation_alone(number, at, method, tmp_path):
    path, options = tmp_path / "run.db", {"budget": max(24, at + 9), "seed": 1, "method": method}
    result = minimize(signalling(number, at), PLANE, run_file=path, **options)
    assert (result.stop.name, result.evaluations) == ("interrupted", at - 1)
    assert result.runs[-1].stop.name == "interrupted"
    assert replace(resume(path, sphere()), run_file=None) == minimize(sphere(), PLANE, **options)


# A generation is whole, or the first one is and the others are single candidates.
TWO_GENERATIONS = pytest.mark.parametrize(("method", "evaluations"), [("mix", 7), (WHOLE, 12)])


@TWO_GENERATIONS
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_during_a_callback_ends_the_search(number, method, evaluations, tmp_path):
    path, options = tmp_path / "run.db", {"budget": 60, "seed": 1, "method": method}

    def callback(progress):
        if progress.generation == 2:
            signal.raise_signal(number)

    result = minimize(sphere(), PLANE, callback=callback, run_file=path, **options)
    assert (result.stop.name, result.evaluations) == ("interrupted", evaluations)
    assert replace(resume(path, sphere()), run_file=None) == minimize(sphere(), PLANE, **options)


def test_a_signal_that_the_objective_swallows_ends_the_search_before_the_next_evaluation():
    calls = []

    def objective(p):
        calls.append(p)
        if len(calls) == 8:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                return 1.0
        return p["x"] ** 2

    result = minimize(objective, PLANE, budget=60, seed=1)
    assert (result.stop.name, result.evaluations, len(calls)) == ("interrupted", 8, 8)


@TWO_GENERATIONS
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_between_two_evaluations_waits_until_the_next_and_loses_nothing(
    number, method, evaluations, tmp_path, monkeypatch
):
    """While the distribution is updated, where a halt would tear the state apart."""
    tell, path, options = Optimizer.tell, tmp_path / "run.db", {"budget": 60, "seed": 1, "method": method}

    def interrupted(self, candidates, outcomes):
        if self.generation == 1:
            signal.raise_signal(number)
        tell(self, candidates, outcomes)

    with monkeypatch.context() as patched:
        patched.setattr(Optimizer, "tell", interrupted)
        result = minimize(sphere(), PLANE, run_file=path, **options)
    assert (result.stop.name, result.evaluations) == ("interrupted", evaluations)
    assert replace(resume(path, sphere()), run_file=None) == minimize(sphere(), PLANE, **options)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_second_signal_while_the_search_cleans_up_does_not_disturb_it(number, tmp_path, monkeypatch):
    path, close = tmp_path / "run.db", RunFile.close

    def interrupted(self):
        signal.raise_signal(number)
        close(self)

    with monkeypatch.context() as patched:
        patched.setattr(RunFile, "close", interrupted)
        result = minimize(signalling(signal.SIGINT, 8), PLANE, budget=24, seed=1, run_file=path)
    assert (result.stop.name, result.evaluations) == ("interrupted", 7)
    assert replace(resume(path, sphere()), run_file=None) == minimize(sphere(), PLANE, budget=24, seed=1)


def test_a_signal_during_the_points_given_to_start_from_loses_nothing(tmp_path):
    path = tmp_path / "run.db"
    x0 = [{"x": float(i), "y": 1.0} for i in range(4)]
    result = minimize(signalling(signal.SIGINT, 3), PLANE, budget=30, seed=1, x0=x0, run_file=path)
    assert (result.stop.name, result.evaluations, result.value) == ("interrupted", 2, 1.0)
    whole = minimize(sphere(), PLANE, budget=30, seed=1, x0=x0)
    assert replace(resume(path, sphere()), run_file=None) == whole


@pytest.mark.parametrize(("method", "budget"), [("mix", 120), (WHOLE, 40)])
def test_a_search_can_be_interrupted_again_and_again(method, budget, tmp_path):
    path, options = tmp_path / "run.db", {"budget": budget, "seed": 1, "method": method}
    result = minimize(signalling(signal.SIGINT, 5), PLANE, run_file=path, **options)
    interruptions = 1
    while result.stop.name == "interrupted":
        result = resume(path, signalling(signal.SIGINT, 8))
        interruptions += 1
    assert interruptions > 4
    assert replace(result, run_file=None) == minimize(sphere(), PLANE, **options)


def test_what_to_do_next_is_said(tmp_path, caplog):
    path = tmp_path / "run.db"
    with caplog.at_level(logging.WARNING, logger="mixcma"):
        minimize(signalling(signal.SIGINT, 9), PLANE, budget=24, seed=1, run_file=path)
    (record,) = caplog.records
    assert "interrupted after 8 evaluations" in record.getMessage()
    assert f"mixcma.resume('{path}', objective)" in record.getMessage()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_handlers_are_restored_whatever_ends_the_search(workers):
    def broken(p):
        raise LookupError("broken")

    minimize(sphere(), PLANE, budget=12, seed=1, workers=workers)
    with pytest.raises(LookupError):
        minimize(broken, PLANE, budget=12, seed=1, workers=workers, on_error="raise")
    with pytest.raises(ValueError, match="objective"):
        minimize(threading.Lock().acquire, PLANE, budget=12, seed=1, workers=2)
    # the fixture compares them


def test_handlers_that_the_program_set_itself_are_left_alone():
    received = []

    def handler(number, frame):
        received.append(number)

    for number in SIGNALS:
        signal.signal(number, handler)
    calls = []

    def objective(p):
        calls.append(p)
        if len(calls) in (3, 4):
            signal.raise_signal(SIGNALS[len(calls) - 3])
        return p["x"] ** 2 + p["y"] ** 2

    result = minimize(objective, PLANE, budget=24, seed=1)
    assert [signal.getsignal(number) for number in SIGNALS] == [handler, handler]
    for number, ordinary in zip(SIGNALS, (signal.default_int_handler, signal.SIG_DFL)):
        signal.signal(number, ordinary)
    assert received == SIGNALS
    assert result == minimize(sphere(), PLANE, budget=24, seed=1)


def test_a_search_inside_an_objective_leaves_the_outer_one_interruptible():
    def objective(p):
        inner = minimize(lambda q: (q["x"] - p["x"]) ** 2, Space({"x": Float(-5, 5)}), budget=10, seed=1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        calls.append(p)
        return inner.value

    calls = []
    result = minimize(objective, PLANE, budget=24, seed=1)
    assert (result.stop.name, result.evaluations) == ("interrupted", 3)


# Other threads


@BOTH
@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_outside_the_main_thread_is_the_same_and_leaves_signals_alone(workers, method):
    options, inside, outside = {"budget": 24, "seed": 1, "workers": workers, "method": method}, [], []

    def callback(progress):
        outside.append([signal.getsignal(number) for number in SIGNALS])

    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(minimize, sphere(), PLANE, callback=callback, **options).result()
    assert result == minimize(sphere(), PLANE, callback=inside.append, **options)
    assert len(outside) == len(inside) >= 4
    assert outside == [[signal.default_int_handler, signal.SIG_DFL]] * len(outside)
