"""Every answer belongs to its question: what anybody else says is never believed, and the candidate is sent again."""

from __future__ import annotations

import functools
import gc
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from multiprocessing.connection import Connection

import loky
import pytest

import mixcma
from mixcma import Float, Space
from mixcma.evaluation import open_evaluator
from mixcma.evaluation.sandbox import Sandbox
from mixcma.store import read
from tests.evaluation.processes import processes
from tests.search.virtual_time import BOTH, in_this_process

# The same for any number of workers.
minimize = functools.partial(mixcma.minimize, method="mix-without-model")
PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
ENDINGS = {"raises": 1, "returns": 0, "exits": 3}


def sphere():
    return lambda p: p["x"] ** 2 + p["y"] ** 2


@pytest.fixture
def pool(request):
    """A number of workers, or a pool for this test alone."""
    if isinstance(request.param, int):
        yield request.param
        return
    with {"process pool": processes, "loky": loky.ProcessPoolExecutor}[request.param](2) as executor:
        yield executor


# Processes that the objective forks


def forking(ending, log):
    """The sphere; each call forks a process that ends in the harness, and waits for its end before it returns."""

    def objective(p):
        child = os.fork()
        if child == 0:
            if ending == "raises":
                raise RuntimeError("in a forked process")
            return sys.exit(3) if ending == "exits" else -1.0
        _, status = os.waitpid(child, 0)
        with open(log, "a") as file:
            file.write(f"{os.waitstatus_to_exitcode(status)}\n")
        return p["x"] ** 2 + p["y"] ** 2

    return objective


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("pool", [2, "process pool", "loky"], indirect=True)
def test_a_process_that_the_objective_forked_says_nothing_and_ends_quietly(pool, ending, tmp_path):
    log, path = tmp_path / "log", tmp_path / "run.db"
    result = minimize(forking(ending, log), PLANE, budget=12, seed=1, workers=pool, run_file=path)
    assert result.failures == 0
    rows = [row for row in read(path).rows if row.evaluated]
    assert len(rows) == 12
    for row in rows:
        assert row.outcome.value == row.params["x"] ** 2 + row.params["y"] ** 2
    assert log.read_text().split() == [str(ENDINGS[ending])] * 12


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_that_the_objective_forked_does_not_go_on_with_the_search(ending, tmp_path):
    program = f"""
import os
from tests.evaluation.test_answers import PLANE, forking
from mixcma import minimize
result = minimize(forking({ending!r}, {str(tmp_path / "log")!r}), PLANE, budget=6, seed=1)
print(os.getpid(), result.failures)
"""
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=root) as search:
        output = search.communicate(timeout=60)[0]
    assert output.split() == [str(search.pid), "0"]
    assert (tmp_path / "log").read_text().split() == [str(ENDINGS[ending])] * 6


def test_a_process_forked_from_the_owner_leaves_its_sandboxes_alone():
    program = """
import os
from mixcma.evaluation.sandbox import Sandboxes
sandboxes = Sandboxes(lambda p: os.getpid(), None)
first = sandboxes({}, 1).outcome.value
child = os.fork()
if child == 0:
    sandboxes.close()
    os._exit(0)
os.waitpid(child, 0)
print(sandboxes({}, 2).outcome.value == first)
sandboxes.close()
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert output.stdout == "True\n"


# Answers to other questions


def lying(message, times, log):
    """The sphere; but the first calls put a message on the connection of their sandbox first."""

    def objective(p):
        with open(log, "a") as file:
            file.write(".")
        if os.path.getsize(log) <= times:
            (connection,) = (thing for thing in gc.get_objects() if isinstance(thing, Connection))
            connection.send_bytes(message)
        return p["x"] ** 2 + p["y"] ** 2

    return objective


MESSAGES = {
    "an answer without its name": pickle.dumps((0.0, 0.0, -1.0, None, None, None)),
    "an answer to another question": pickle.dumps(("0" * 32, 0.0, 0.0, -1.0, None, None, None)),
    "rubbish": b"rubbish",
    "nothing": b"",
}


@BOTH
@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_what_is_not_the_answer_costs_another_attempt_and_no_more(message, method, tmp_path):
    objective, options = lying(message, 2, tmp_path / "log"), {"budget": 12, "seed": 1, "method": method}
    assert minimize(objective, PLANE, workers=2, **options) == in_this_process(2, sphere(), PLANE, **options)


def test_a_candidate_that_never_gets_an_answer_of_its_own_has_failed(tmp_path):
    objective = lying(MESSAGES["an answer to another question"], 3, tmp_path / "log")
    result = minimize(objective, PLANE, budget=1, seed=1, timeout=60.0)
    assert result.failures == 1
    assert "its worker gave an answer that is not its own 3 times" in result.first_error


def test_no_two_requests_have_the_same_name():
    sandbox = Sandbox(pickle.dumps(abs))
    try:
        names = {sandbox._ask({}, 1) for _ in range(3)}
        assert len(names) == 3
        assert {len(name) for name in names} == {32}
    finally:
        sandbox.end()


# Executors that mix things up


class Mixing(Executor):
    """Calls at once; but as often as it says, an evaluation gets something else for its result."""

    def __init__(self, instead, times):
        self.instead, self.times, self.last = instead, times, None

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        result = function(*args, **kwargs)
        if "'x'" in str(args):
            given, self.last = self.last if self.instead == "another's" else self.instead, result
            if self.times and given is not None:
                self.times, result = self.times - 1, given
        future.set_result(result)
        return future


@BOTH
@pytest.mark.parametrize("instead", ["another's", 0.0, (), "text"], ids=repr)
def test_an_executor_that_returns_something_else_is_asked_again(instead, method):
    """It does not say how many workers it has, so all six candidates of a generation are under way at once."""
    options = {"space": PLANE, "budget": 12, "seed": 1, "method": method}
    assert minimize(sphere(), workers=Mixing(instead, 2), **options) == in_this_process(6, sphere(), **options)


def test_an_executor_that_always_returns_something_else_fails_every_evaluation():
    result = minimize(sphere(), PLANE, budget=6, seed=1, workers=Mixing(-1.0, 1000))
    assert result.failures == 6
    assert "the executor returned a float" in result.first_error


def test_an_answer_to_the_same_ticket_of_another_search_is_not_believed():
    other = open_evaluator(lambda p: -1.0, ThreadPoolExecutor(1), None)
    other.submit(0, {"x": 1.0})
    foreign = other.next().call
    other.close()
    evaluator = open_evaluator(lambda p: p["x"], Mixing(foreign, 1), None)
    evaluator.submit(0, {"x": 7.0})
    assert evaluator.next().call.outcome.value == 7.0


def test_answers_are_plain_so_the_owner_runs_no_code_of_what_was_returned(tmp_path):
    """An object whose pickle would run code where it is loaded."""
    log = tmp_path / "log"

    class Odd(float):
        def __reduce__(self):
            return eval, (f"open({str(log)!r}, 'a').write(str(__import__('os').getpid()) + ' ') and 1.5",)

    result = minimize(lambda p: Odd(2.5), PLANE, budget=2, seed=1, workers=2)
    assert (result.value, result.failures) == (2.5, 0)
    assert str(os.getpid()) not in (json.dumps(log.read_text().split()) if log.exists() else "")
