"""What happens when an evaluation goes wrong: a failure costs itself, a dead worker costs nothing."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import itertools
import math
import os
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import loky
import numpy as np
import pytest

import mixcma
from mixcma import Float, Outcome, Space, Stopping
from mixcma.run.outcome import LONGEST_ERROR
from mixcma.store import read
from tests.evaluation.processes import processes
from tests.search.virtual_time import virtual_workers

# The same for any number of workers.
minimize = functools.partial(mixcma.minimize, method="mix-without-model")
PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
FAILURES = {
    "an exception": "1 / 0",
    "nan": "float('nan')",
    "nothing": "None",
    "a string": "'3.0'",
    "a wrong shape": "np.zeros(2)",
    "a complex number": "1j",
    "minus infinity": "-math.inf",
    "its own word for it": "Outcome(1.0, error='no mesh')",
    "a list": "[1.0]",
    "a constraint that is no number": "Outcome(1.0, [math.nan])",
    "a value that is masked": "np.ma.masked",
    "an array whose value is masked": "np.ma.array(1.0, mask=True)",
    "a constraint that is masked": "Outcome(1.0, np.ma.array([1.0, 2.0], mask=[False, True]))",
    "a constraint that is not in a list": "Outcome(1.0, 2.0)",
    "constraints without axes": "Outcome(1.0, np.array(2.0))",
    "an exit": "sys.exit(1)",
}
ERRORS = {
    "an exception": "ZeroDivisionError: division by zero",
    "minus infinity": "expected a number, but got -inf",
    "its own word for it": "no mesh",
    "a constraint that is no number": "expected numbers as constraints",
    "a constraint that is masked": "expected numbers as constraints",
    "a constraint that is not in a list": "expected a list of constraints",
    "constraints without axes": "expected a list of constraints",
    "an exit": "SystemExit: 1",
}


def sphere():
    return lambda p: p["x"] ** 2 + p["y"] ** 2


def candidates(count):
    """The first candidates of the sphere's search with seed 1."""
    drawn = []

    def objective(p):
        drawn.append(p["x"])
        return p["x"] ** 2 + p["y"] ** 2

    minimize(objective, PLANE, budget=count, seed=1)
    return drawn


def giving(expression, where):
    """The sphere, but where x lies within: there it does what the expression says."""
    low, high = where
    code = compile(expression, "the objective", "eval")
    known = {"np": np, "math": math, "Outcome": Outcome, "sys": sys}
    names = {name: known[name] for name in code.co_names if name in known}  # what it needs, and no more, is sent

    def objective(p):
        return eval(code, names) if low <= p["x"] <= high else p["x"] ** 2 + p["y"] ** 2

    return objective


@pytest.fixture
def pool(request):
    """A number of workers, or a pool for this test alone."""
    if isinstance(request.param, int):
        yield request.param
        return
    kinds = {"threads": ThreadPoolExecutor, "process pool": processes, "loky": loky.ProcessPoolExecutor}
    with kinds[request.param](2) as executor:
        yield executor


def on(*engines):
    return pytest.mark.parametrize("pool", engines, indirect=True)


# Failed evaluations


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_is_counted_ranked_last_and_its_error_kept(kind, tmp_path):
    objective, path = giving(FAILURES[kind], (1.0, 5.0)), tmp_path / "run.db"
    result = minimize(objective, PLANE, budget=60, seed=1, run_file=path)
    failed = [row for row in read(path).rows if row.status == "failed"]
    assert 0 < len(failed) == result.failures < 60
    assert all(row.params["x"] >= 1.0 for row in failed)
    assert result.params["x"] < 1.0
    assert ERRORS.get(kind, "expected a number, but the objective returned") in result.first_error
    assert {row.outcome.error for row in failed} == {result.first_error}


def test_every_kind_of_failure_gives_the_same_search():
    for method, budget in (("mix-without-model", 60), ("mix", 30)):
        objectives = [giving(expression, (1.0, 5.0)) for expression in FAILURES.values()]
        results = [minimize(objective, PLANE, budget=budget, seed=1, method=method) for objective in objectives]
        assert len({str(replace(result, first_error=None)) for result in results}) == 1


@on(2, "process pool")
def test_failures_in_workers_are_those_of_one_process(pool):
    def objective(p):
        if p["x"] < -3:
            raise ArithmeticError("too low")
        if p["x"] > 3:
            sys.exit("too high")
        return {0: math.nan, 1: None, 2: "text", 3: -math.inf}.get(int(abs(p["y"] * 100)) % 20, p["x"] ** 2)

    alone = minimize(objective, PLANE, budget=60, seed=1)
    assert alone.failures > 5
    assert minimize(objective, PLANE, budget=60, seed=1, workers=pool) == alone


@on(2, "process pool")
def test_failures_and_deaths_change_nothing_with_a_model_either(pool, tmp_path):
    """With as many workers, whoever they are."""
    x, log, options = candidates(3)[2], tmp_path / "log", {"budget": 40, "seed": 1, "method": "mix"}
    with virtual_workers(2):
        alone = minimize(giving("None", (1.0, 5.0)), PLANE, **options)
    assert alone.failures > 1

    def objective(p):
        with open(log, "a") as file:
            file.write(f"{p['x']}\n")
        with open(log) as file:
            deaths = file.read().split().count(str(x))
        if p["x"] == x and deaths <= 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return None if 1.0 <= p["x"] <= 5.0 else p["x"] ** 2 + p["y"] ** 2

    assert minimize(objective, PLANE, workers=pool, **options) == alone
    assert calls_of(log)[x] == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_plus_infinity_is_a_value_behind_all_others(workers):
    result = minimize(giving("math.inf", (1.0, 5.0)), PLANE, budget=60, seed=1, workers=workers)
    assert (result.failures, result.first_error) == (0, None)
    assert math.isfinite(result.value)
    assert result.params["x"] < 1.0


def test_where_all_is_plus_infinity_nothing_failed():
    result = minimize(lambda p: math.inf, PLANE, budget=60, seed=1)
    assert (result.failures, result.value, result.evaluations) == (0, math.inf, 60)
    assert result.stop.name != "failing"


@pytest.mark.parametrize(
    ("kind", "workers"), [*((kind, 1) for kind in FAILURES), ("an exception", 2), ("nan", 2), ("an exit", 2)]
)
def test_on_error_raise_stops_at_the_first_failure(kind, workers):
    error = {"an exception": ZeroDivisionError, "an exit": SystemExit}.get(kind, ValueError)
    text = ERRORS.get(kind, "expected a number").split(": ")[-1]
    with pytest.raises(error, match=text):
        minimize(giving(FAILURES[kind], (-5, 5)), PLANE, budget=60, seed=1, workers=workers, on_error="raise")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_that_cannot_be_shown_is_a_failed_evaluation(workers):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("cannot be shown")

    def objective(p):
        raise Mute

    result = minimize(objective, PLANE, budget=1, seed=1, workers=workers)
    assert result.failures == 1
    assert "Mute" in result.first_error


@pytest.mark.parametrize("workers", [1, 2])
def test_a_value_that_cannot_be_shown_is_a_failed_evaluation(workers):
    class Mute:
        def __repr__(self):
            raise RuntimeError("cannot be shown")

    result = minimize(lambda p: Mute(), PLANE, budget=1, seed=1, workers=workers)
    assert result.failures == 1
    assert "Mute" in result.first_error


@pytest.mark.parametrize("workers", [1, 2])
def test_constraints_that_cannot_be_read_are_a_failed_evaluation(workers):
    def constraints():
        yield 1.0
        raise KeyError("the second one")

    result = minimize(lambda p: Outcome(1.0, constraints()), PLANE, budget=1, seed=1, workers=workers)
    assert result.failures == 1


class Harmless(BaseException):
    """Not an Exception, as those of several libraries that cancel tasks."""


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, Harmless], ids=lambda error: error.__name__)
@on(1, 2, "threads")
def test_whatever_is_raised_is_a_failed_evaluation(pool, error):
    low = sorted(candidates(6))[3]

    def objective(p):
        if p["x"] >= low:
            raise error("stop it")
        return p["x"] ** 2

    result = minimize(objective, PLANE, budget=6, seed=1, workers=pool)
    assert (result.evaluations, result.failures) == (6, 3)
    assert result.first_error == f"{error.__name__}: stop it"


def test_a_keyboard_interrupt_of_the_objective_ends_the_search():
    def objective(p):
        raise KeyboardInterrupt

    assert minimize(objective, PLANE, budget=6, seed=1).stop.name == "interrupted"


class Impostor(KeyboardInterrupt):
    pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, Impostor], ids=lambda error: error.__name__)
@on(2, "threads")
def test_a_keyboard_interrupt_in_a_worker_that_no_ctrl_c_reaches_is_a_failed_evaluation(pool, error, tmp_path):
    calls = tmp_path / "calls"
    low = sorted(candidates(6))[3]

    def objective(p):
        with open(calls, "a") as file:
            file.write(".")
        if p["x"] >= low:
            raise error("nobody pressed a key")
        return p["x"] ** 2

    result = minimize(objective, PLANE, budget=6, seed=1, workers=pool)
    assert (result.evaluations, result.failures, len(calls.read_text())) == (6, 3, 6)
    assert result.first_error == f"{error.__name__}: nobody pressed a key"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "endless", [lambda: itertools.repeat(0.0), lambda: iter(lambda: 0.0, 1.0)], ids=["C", "Python"]
)
def test_constraints_without_an_end_are_a_failed_evaluation(endless, workers):
    result = minimize(lambda p: Outcome(1.0, endless()), PLANE, budget=1, seed=1, workers=workers)
    assert result.first_error.startswith("expected at most 1,000,000 constraints, but got more; ")


class Hostile(float):
    """A number of which nothing can be known."""

    def _refuse(self, *args):
        raise GeneratorExit

    __float__ = __repr__ = __str__ = __eq__ = __getattr__ = _refuse
    __hash__ = None


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("give", [Hostile, lambda: Outcome(1.0, [Hostile()]), lambda: Outcome(1.0, error=Hostile())])
def test_what_refuses_to_be_read_is_a_failed_evaluation(give, workers):
    result = minimize(lambda p: give(), PLANE, budget=2, seed=1, workers=workers)
    assert (result.evaluations, result.failures) == (2, 2)


def test_reading_that_hangs_counts_towards_the_timeout():
    class Slow(float):
        def __float__(self):
            signal.pause()

    result = minimize(lambda p: Slow(), PLANE, budget=1, seed=1, timeout=1.0)
    assert result.first_error == "timed out after 1 s"


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_of_a_failure_has_a_sensible_length_whatever_was_returned(workers):
    for given in ("x" * 10_000_000, ["x" * 10_000_000] * 100, dict.fromkeys(range(1_000_000))):
        result = minimize(lambda p: given, PLANE, budget=1, seed=1, workers=workers)  # noqa: B023 called at once
        assert result.first_error.startswith("expected a number, but the objective returned ")
        assert len(result.first_error) < 200
    result = minimize(lambda p: Outcome(1.0, error="x" * 10_000_000), PLANE, budget=1, seed=1, workers=workers)
    assert len(result.first_error) == LONGEST_ERROR


# Whole generations


@pytest.mark.parametrize("workers", [1, 2])
def test_after_three_generations_that_failed_as_a_whole_the_search_stops_with_the_first_error(workers, tmp_path):
    def objective(p):
        raise RuntimeError(f"no licence at {p['x']}")

    path = tmp_path / "run.db"
    result = minimize(objective, PLANE, budget=600, seed=1, workers=workers, run_file=path)
    rows = [row for row in read(path).rows if row.evaluated]
    assert (result.stop.name, result.evaluations, result.failures) == ("failing", 18, 18)
    assert result.first_error == rows[0].outcome.error == f"RuntimeError: no licence at {rows[0].params['x']}"
    assert (result.params, result.value) == (None, math.inf)


def failing_first(count, log):
    """Fails as often as it says; the calls are counted in a file, for the processes together."""

    def objective(p):
        with open(log, "a") as file:
            file.write(".")
        if os.path.getsize(log) <= count:
            raise RuntimeError("not yet")
        return p["x"] ** 2 + p["y"] ** 2

    return objective


@pytest.mark.parametrize("workers", [1, 2])
def test_two_failed_generations_do_not_stop_the_search(workers, tmp_path):
    result = minimize(failing_first(12, tmp_path / "log"), PLANE, budget=60, seed=1, workers=workers)
    assert (result.stop.name, result.evaluations, result.failures) == ("budget", 60, 12)


def test_a_failed_generation_leaves_the_distribution_alone_and_the_next_is_a_new_sample(tmp_path):
    path = tmp_path / "run.db"
    minimize(failing_first(12, tmp_path / "log"), PLANE, budget=24, seed=1, run_file=path)
    record = read(path)
    means, deviations = ([getattr(row, name).tolist() for row in record.generations] for name in ("mean", "deviation"))
    assert means[0] == means[1] == means[2] != means[3]
    assert deviations[0] == deviations[1] == deviations[2] != deviations[3]
    points = [row.params["x"] for row in record.rows if row.evaluated]
    assert len(set(points)) == len(points) == 24


def test_the_number_of_failed_generations_can_be_chosen():
    result = minimize(lambda p: None, PLANE, budget=600, seed=1, stopping=Stopping(failing_generations=5))
    assert (result.stop.name, result.evaluations) == ("failing", 30)


# Workers that die


def deadly(x, times, log):
    """The sphere; but the first calls with that x kill their process. Every call is a line of the log."""

    def objective(p):
        with open(log, "a") as file:
            file.write(f"{p['x']}\n")
        with open(log) as file:
            calls = file.read().split().count(str(p["x"]))
        if p["x"] == x and calls <= times:
            os.kill(os.getpid(), signal.SIGKILL)
        return p["x"] ** 2 + p["y"] ** 2

    return objective


def calls_of(log):
    return collections.Counter(map(float, log.read_text().split()))


@pytest.mark.parametrize(
    ("pool", "slot", "times"),
    [(2, 2, 1), (2, 7, 2), ("process pool", 2, 1), ("process pool", 7, 2), ("loky", 7, 1)],
    indirect=["pool"],
)
def test_a_worker_that_died_changes_nothing(pool, slot, times, tmp_path):
    log = tmp_path / "log"
    xs = candidates(18)
    result = minimize(deadly(xs[slot], times, log), PLANE, budget=18, seed=1, workers=pool)
    assert result == minimize(sphere(), PLANE, budget=18, seed=1)
    calls = calls_of(log)
    assert calls.keys() == set(xs)
    assert calls[xs[slot]] == times + 1


def test_the_others_lose_nothing_when_a_sandbox_dies(tmp_path):
    log = tmp_path / "log"
    xs = candidates(18)
    minimize(deadly(xs[2], 2, log), PLANE, budget=18, seed=1, workers=2)
    assert calls_of(log) == {x: 3 if x == xs[2] else 1 for x in xs}


@on(2, "process pool", "loky")
def test_a_candidate_that_always_kills_its_worker_alone_has_failed_after_three_deaths(pool, tmp_path):
    log, path = tmp_path / "log", tmp_path / "run.db"
    xs = candidates(6)
    result = minimize(deadly(xs[3], math.inf, log), PLANE, budget=12, seed=1, workers=pool, run_file=path)
    assert "its worker died 3 times" in result.first_error
    assert [row.params["x"] for row in read(path).rows if row.status == "failed"] == [xs[3]]
    failing = minimize(giving("None", (xs[3], xs[3])), PLANE, budget=12, seed=1)
    assert replace(result, first_error=None, run_file=None) == replace(failing, first_error=None)
    calls = calls_of(log)
    assert len(calls) == 12
    assert calls.pop(xs[3]) == 3
    most = 1 if pool == 2 else 2  # those that were in a broken pool are sent once more
    assert all(1 <= count <= most for count in calls.values())


@on("process pool")
def test_two_that_always_kill_their_worker_take_nobody_with_them(pool, tmp_path):
    log = tmp_path / "log"
    xs = candidates(6)
    first, second = deadly(xs[1], math.inf, log), deadly(xs[4], math.inf, log)

    def objective(p):
        return first(p) if p["x"] == xs[1] else second(p)

    result = minimize(objective, PLANE, budget=6, seed=1, workers=pool)
    assert result.failures == 2
    assert result.value == minimize(giving("None", (xs[1], xs[1])), PLANE, budget=6, seed=1).value


@on(2, "process pool")
def test_on_error_raise_stops_at_a_candidate_that_always_kills_its_worker(pool, tmp_path):
    with pytest.raises(ValueError, match="the objective: its worker died 3 times"):
        minimize(
            deadly(candidates(1)[0], math.inf, tmp_path / "log"),
            PLANE, budget=6, seed=1, workers=pool, on_error="raise",
        )  # fmt: skip


@on(2, "process pool")
def test_deaths_cost_an_asynchronous_search_nothing(pool, tmp_path):
    log = tmp_path / "log"
    result = minimize(deadly(candidates(3)[2], 2, log), PLANE, budget=20, seed=1, workers=pool, asynchronous=True)
    assert (result.evaluations, result.failures, len(calls_of(log))) == (20, 0, 20)


@on(2, "process pool")
def test_a_worker_that_died_while_it_loaded_the_objective_is_replaced(pool, tmp_path):
    def load(mark):
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return lambda p: p["x"] ** 2 + p["y"] ** 2
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    class Deadly:
        def __call__(self, p):
            return p["x"] ** 2 + p["y"] ** 2

        def __reduce__(self):
            return load, (str(tmp_path / "mark"),)

    result = minimize(Deadly(), PLANE, budget=12, seed=1, workers=pool)
    assert result == minimize(sphere(), PLANE, budget=12, seed=1)


# Pools that break


def test_a_pool_that_was_broken_before_is_made_again():
    with processes(2) as pool:
        with pytest.raises(BrokenProcessPool):
            pool.submit(os._exit, 1).result()
        result = minimize(sphere(), PLANE, budget=12, seed=1, workers=pool)
    assert result == minimize(sphere(), PLANE, budget=12, seed=1)


@pytest.mark.parametrize("kind", [processes, loky.ProcessPoolExecutor], ids=["process pool", "loky"])
def test_a_pool_that_is_made_again_is_initialised_like_the_first(kind, tmp_path):
    kill = deadly(candidates(3)[2], 1, tmp_path / "log")

    def objective(p):
        return kill(p) + float(subprocess.check_output(["printenv", "MIXCMA_OFFSET"]))

    # a function that every process can import
    with kind(2, initializer=os.putenv, initargs=("MIXCMA_OFFSET", "2")) as pool:
        result = minimize(objective, PLANE, budget=18, seed=1, workers=pool)
    assert result.failures == 0
    assert result.value == minimize(lambda p: p["x"] ** 2 + p["y"] ** 2 + 2.0, PLANE, budget=18, seed=1).value


def test_an_executor_that_is_broken_for_good_ends_the_search_with_a_sentence():
    class Broken(Executor):
        def submit(self, function, /, *args, **kwargs):
            future = Future()
            future.set_exception(BrokenProcessPool("it fell apart"))
            return future

    with pytest.raises(RuntimeError, match="workers: the Broken is broken, and mixcma cannot replace it; start"):
        minimize(sphere(), PLANE, budget=12, seed=1, workers=Broken())


def test_an_executor_that_loses_evaluations_is_asked_again_twice():
    class Forgetful(Executor):
        """Every call is lost twice."""

        def __init__(self):
            self.lost = collections.Counter()

        def submit(self, function, /, *args, **kwargs):
            future = Future()
            call = str(args)
            self.lost[call] += 1
            if self.lost[call] < 3 and "'x'" in call:
                future.set_exception(ConnectionResetError("gone"))
            else:
                future.set_result(function(*args, **kwargs))
            return future

    executor = Forgetful()
    assert minimize(sphere(), PLANE, budget=12, seed=1, workers=executor) == minimize(
        sphere(), PLANE, budget=12, seed=1
    )
    assert max(executor.lost.values()) == 3


SCRIPT = """
import math, os, signal, sys, threading
from concurrent.futures import ProcessPoolExecutor
import loky
from mixcma import Float, Space, minimize
PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
def first(mark):
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
"""


def run_script(program, *arguments):
    """Its output, or None if it hangs; where it hangs, its threads are in the test's error output."""
    command = [sys.executable, "-X", "faulthandler", "-c", SCRIPT + program, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as script:
        try:
            return script.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            script.send_signal(signal.SIGABRT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                script.wait(timeout=10)
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGKILL)


def test_when_an_idle_worker_of_a_pool_is_killed_the_busy_ones_end_with_the_broken_pool(tmp_path):
    """An idle worker dies with the lock of the queue: those that do not end at once never do."""
    program = """
mark, begun, killed = sys.argv[1:]
def objective(p):
    if first(mark):
        with open(begun, "w") as file:
            file.write(str(os.getpid()))
        os.read(os.open(killed, os.O_RDONLY), 1)
    return p["x"] ** 2
pool = ProcessPoolExecutor(2)
def kill():
    with open(begun) as file:
        busy = int(file.read())
    waiting = pool._call_queue._rlock  # a worker that waits for work holds this lock
    while waiting.acquire(block=False):
        waiting.release()
    os.kill(next(pid for pid in pool._processes if pid != busy), signal.SIGKILL)
    os.write(os.open(killed, os.O_RDWR), b"!")
threading.Thread(target=kill).start()
result = minimize(objective, PLANE, budget=12, seed=1, workers=pool)
print("failures", result.failures, flush=True)
pool.shutdown()
print("closed", flush=True)
"""
    pipes = tmp_path / "begun", tmp_path / "killed"
    for pipe in pipes:
        os.mkfifo(pipe)
    assert run_script(program, tmp_path / "mark", *pipes) == "failures 0\nclosed\n"


@pytest.mark.parametrize("kind", ["ProcessPoolExecutor", "loky.ProcessPoolExecutor"])
def test_a_search_does_not_wait_for_evaluations_it_needs_no_more_also_after_a_pool_broke(kind, tmp_path):
    """One evaluation of the second generation hangs, another reaches the target."""
    program = f"""
died, hung = sys.argv[1:3]
xs = set(map(float, sys.argv[3:]))
def objective(p):
    if p["x"] in xs:
        if first(died):
            os.kill(os.getpid(), signal.SIGKILL)
        return p["x"] ** 2
    if first(hung):
        signal.pause()
    return -1.0
with {kind}(2) as pool:
    result = minimize(objective, PLANE, budget=60, seed=1, workers=pool, target=-0.5, asynchronous=True)
print(result.stop.name, flush=True)
"""
    assert run_script(program, tmp_path / "died", tmp_path / "hung", *candidates(6)) == "target\n"
