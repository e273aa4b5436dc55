"""minimize(asynchronous=True): on threads, on processes, and on workers in virtual time that never vary."""

from __future__ import annotations

import itertools
import logging
import math
import os
import signal
import threading
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import pytest

from mixcma import Bool, Discrete, Float, Int, Optimizer, Outcome, Progress, Space, minimize, resume
from mixcma.core.methods import METHODS
from mixcma.run.stream import EXPLORED, Drawn, Stream
from mixcma.store import read
from tests.search.virtual_time import BOTH, WHOLE, lognormal, virtual_workers

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
MIXED = Space({"x": Float(-5, 5), "n": Int(0, 9), "on": Bool(), "wire": Discrete([0.1, 0.5, 0.2]), "c": Int(4, 4)})
GRID = Space({"n": Int(0, 9), "m": Int(-5, 4)})
TINY = Space({"n": Int(0, 2), "on": Bool()})


def sphere(p):
    return float(sum(value**2 for value in p.values()))


def portable_sphere():
    """The sphere, as a function that any process can load."""

    def objective(p):
        return float(sum(value**2 for value in p.values()))

    return objective


class Counted:
    """An objective that keeps what it was called with and what it returned, from any thread."""

    def __init__(self, objective=sphere):
        self.objective = objective
        self.points, self.returned = [], []

    def __call__(self, p):
        self.points.append(tuple(p.values()))  # appending is atomic
        value = self.objective(p)
        self.returned.append(value)
        return value

    @property
    def calls(self):
        return len(self.points)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as executor:
        yield executor


@pytest.fixture
def virtually():
    """minimize(asynchronous=True) in virtual time: the result, and the workers."""

    def search(objective, space, capacity=4, lasting=lognormal, **options):
        with virtual_workers(capacity, lasting) as made:
            result = minimize(objective, space, asynchronous=True, **options)
        return result, made[0]

    return search


# The budget


@BOTH
@pytest.mark.parametrize("budget", [1, 3, 4, 5, 50, 141])
def test_exactly_the_budget_is_spent_on_threads(pool, budget, method):
    objective = Counted()
    result = minimize(objective, PLANE, budget=budget, seed=1, workers=pool, asynchronous=True, method=method)
    assert objective.calls == result.evaluations == budget
    assert result.stop.name == "budget"
    assert result.value == min(objective.returned)


def test_exactly_the_budget_is_spent_on_processes(tmp_path):
    path = tmp_path / "calls"

    def objective(p):
        with path.open("a") as file:  # a short line is appended in one piece
            file.write("called\n")
        return float(sum(value**2 for value in p.values()))

    result = minimize(objective, MIXED, budget=57, seed=1, workers=2, asynchronous=True)
    assert result.evaluations == len(path.read_text().splitlines()) == 57
    assert result.stop.name == "budget"


@pytest.mark.parametrize("space", [PLANE, MIXED, GRID], ids=["floats", "mixed", "discrete"])
@pytest.mark.parametrize("capacity", [1, 3, 16, 200])
@pytest.mark.parametrize("budget", [1, 2, 23, 60])
def test_the_budget_is_spent_with_any_number_of_workers(virtually, space, capacity, budget):
    objective = Counted()
    result, workers = virtually(objective, space, capacity, budget=budget, seed=1)
    assert objective.calls == result.evaluations == workers.submitted == budget
    assert result.stop.name == "budget"
    assert workers.most <= capacity


@pytest.mark.parametrize(("method", "budget"), [("mix", 600), (WHOLE, 3000)])
def test_the_evaluations_of_the_runs_add_up(virtually, method, budget):
    result, _ = virtually(lambda p: 1.0 + sphere(p), PLANE, budget=budget, seed=1, method=method)
    assert len(result.runs) > 1
    assert sum(run.evaluations for run in result.runs) == result.evaluations == budget


# The target


def test_the_target_stops_on_threads(pool):
    objective = Counted()
    result = minimize(objective, PLANE, budget=5000, target=1e-3, seed=1, workers=pool, asynchronous=True)
    assert result.stop.name == "target"
    assert result.value <= 1e-3
    assert result.evaluations <= objective.calls <= result.evaluations + 4


def test_the_target_stops_on_processes():
    result = minimize(portable_sphere(), PLANE, budget=3000, target=1e-2, seed=1, workers=2, asynchronous=True)
    assert result.stop.name == "target"
    assert result.value <= 1e-2


def test_the_first_result_that_reaches_the_target_ends_the_search(virtually):
    objective = Counted()
    result, _ = virtually(objective, MIXED, budget=5000, target=1e-3 + 16.01, seed=1)
    assert result.stop.name == "target"
    assert [value <= 1e-3 + 16.01 for value in objective.returned].index(True) == objective.calls - 1
    assert objective.calls == result.evaluations


def test_an_infeasible_value_does_not_reach_the_target(virtually):
    result, _ = virtually(lambda p: Outcome(-1.0, [1.0]), PLANE, budget=50, target=0.0, seed=1)
    assert result.stop.name == "budget"


# The callback


@pytest.mark.parametrize(("method", "budget"), [("mix", 130), (WHOLE, 60)])
def test_the_callback_is_called_after_every_generation(pool, method, budget):
    """What comes in while a run explores is of one generation."""
    seen, options = [], {"budget": budget, "seed": 1, "method": method, "restarts": False}
    result = minimize(sphere, PLANE, workers=pool, asynchronous=True, callback=seen.append, **options)
    assert len(seen) > 2
    assert all(isinstance(progress, Progress) for progress in seen)
    assert [progress.generation for progress in seen] == list(range(1, len(seen) + 1))
    counts = [progress.evaluations for progress in seen]
    assert all(later - earlier >= 6 for earlier, later in itertools.pairwise(counts))
    assert counts[0] == 6
    assert seen[-1].best.value >= result.value


@BOTH
@pytest.mark.parametrize("generations", [1, 4])
def test_a_true_return_of_the_callback_stops_the_search(pool, generations, method):
    def callback(progress):
        return progress.generation == generations

    options = {"budget": 5000, "seed": 1, "asynchronous": True, "method": method}
    result = minimize(sphere, PLANE, workers=pool, callback=callback, **options)
    assert result.stop.name == "callback"
    assert result.evaluations >= 6 * generations


def test_an_error_in_the_callback_comes_through(pool):
    def callback(progress):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        minimize(sphere, PLANE, budget=100, seed=1, workers=pool, asynchronous=True, callback=callback)


# Failures


def test_failures_are_counted_and_the_search_goes_on(pool, caplog):
    def objective(p):
        if p["x"] > 0:
            raise RuntimeError("too far right")
        return sphere(p)

    counted = Counted(objective)
    with caplog.at_level(logging.WARNING, logger="mixcma"):
        result = minimize(counted, PLANE, budget=100, seed=1, workers=pool, asynchronous=True)
    assert counted.calls == result.evaluations == 100
    assert result.failures == 100 - len(counted.returned) > 0
    assert result.first_error == "RuntimeError: too far right"
    assert len(caplog.records) == 1
    assert result.params["x"] <= 0
    assert result.value < 0.5


def test_a_search_in_which_all_fails_is_given_up(pool):
    result = minimize(lambda p: None, PLANE, budget=5000, seed=1, workers=pool, asynchronous=True)
    assert result.stop.name == "failing"
    assert result.params is None
    assert result.evaluations == result.failures <= 3 * 6 + 4


def test_on_error_raise_lets_the_error_through(pool):
    def objective(p):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        minimize(objective, PLANE, budget=50, seed=1, workers=pool, asynchronous=True, on_error="raise")


@pytest.mark.parametrize(("method", "seeds"), [("mix", range(1)), (WHOLE, range(5))])
def test_a_run_that_contracts_below_the_spacing_of_floats_ends_in_an_orderly_way(virtually, method, seeds):
    """Points drawn there are the mean itself."""
    space, options = Space({"x": Float(mean=1e6, std=1.0)}), {"budget": 3000, "restarts": False, "method": method}
    for seed in seeds:
        result, _ = virtually(lambda p: (p["x"] - 1e6 - 0.3) ** 2, space, 1, seed=seed, **options)
        assert result.stop.name in ("flat", "variance")
        assert result.params["x"] == pytest.approx(1e6 + 0.3)


# Restarts


@pytest.mark.parametrize(("method", "budget"), [("mix", 1500), (WHOLE, 3000)])
def test_a_run_that_has_converged_is_started_again(pool, method, budget):
    options = {"budget": budget, "seed": 1, "asynchronous": True, "method": method}
    result = minimize(lambda p: 1.0 + sphere(p), PLANE, workers=pool, **options)
    assert len(result.runs) > 1
    assert [run.popsize for run in result.runs[:3]] == [6, 6, 12][: len(result.runs)]
    assert {run.stop.name for run in result.runs[:-1]} <= {"flat", "variance"}


@BOTH
@pytest.mark.parametrize("restarts", [False, True, 0, 1, 2])
def test_there_are_at_most_so_many_restarts(virtually, restarts, method):
    budget = 2000 if method == WHOLE else 700
    result, _ = virtually(lambda p: 1.0, PLANE, budget=budget, seed=1, restarts=restarts, method=method)
    if restarts is True:
        assert result.stop.name == "budget"
        assert len(result.runs) > 3
    else:
        assert result.stop.name == "flat"
        assert len(result.runs) == 1 + int(restarts)


@pytest.mark.parametrize(("method", "seeds"), [("mix", range(1)), (WHOLE, range(4))])
def test_a_restart_leads_out_of_a_local_optimum(virtually, method, seeds):
    def bowls(p):
        return min(1 + (p["x"] - 3) ** 2 + p["y"] ** 2, 3 * ((p["x"] + 3) ** 2 + p["y"] ** 2))

    options = {"budget": 20_000, "target": 1e-6, "method": method}
    results = [virtually(bowls, PLANE, seed=seed, **options)[0] for seed in seeds]
    assert {result.stop.name for result in results} == {"target"}
    assert max(len(result.runs) for result in results) > 1 or method == "mix"  # which may see both bowls at once


@pytest.fixture
def late(virtually):
    """A search whose very first candidate, and best, comes back when the second run is under way."""
    first = Stream(Optimizer(PLANE, seed=1)).draw().params
    return virtually(
        lambda p: -1.0 if p == first else 0.0,
        PLANE, lasting=lambda number, params: 1.0 if number else 60.0, budget=300, seed=1, restarts=1,
    )  # fmt: skip


def test_a_result_that_comes_in_after_a_restart_still_counts(late):
    result, workers = late
    assert [run.popsize for run in result.runs] == [6, 6]
    assert result.runs[0].best_value == 0.0
    assert result.value == -1.0
    assert workers.submitted - 6 <= result.evaluations  # those under way at the end are not waited for


def test_the_best_value_of_a_run_is_that_of_its_own_candidates(late):
    result, _ = late
    assert result.runs[1].best_value == 0.0


# Discrete spaces


def test_no_point_of_a_discrete_space_is_evaluated_twice(pool):
    objective = Counted()
    result = minimize(objective, GRID, budget=70, seed=1, workers=pool, asynchronous=True)
    assert len(set(objective.points)) == objective.calls <= 70
    assert result.evaluations <= objective.calls


@pytest.mark.parametrize("capacity", [2, 8, 60])
@pytest.mark.parametrize("seed", range(4))
def test_no_point_is_evaluated_twice_however_many_workers_there_are(virtually, capacity, seed):
    objective = Counted()
    virtually(objective, GRID, capacity, budget=1000, seed=seed)
    assert len(set(objective.points)) == objective.calls


@pytest.mark.parametrize("seed", range(3))
def test_a_tiny_space_is_exhausted_on_threads(pool, seed):
    objective = Counted()
    result = minimize(objective, TINY, budget=1000, seed=seed, workers=pool, asynchronous=True)
    assert result.stop.name == "exhausted"
    assert len(set(objective.points)) == objective.calls <= 6


@pytest.mark.parametrize("seed", range(5))
def test_a_space_is_not_exhausted_while_evaluations_are_under_way(virtually, seed):
    """The best point takes as long as ten others; its result must not be lost."""

    def objective(p):
        return -100.0 if p == {"n": 2, "on": True} else float(p["n"] + p["on"])

    def lasting(number, params):
        return 10.0 if params == {"n": 2, "on": True} else 1.0

    result, workers = virtually(objective, TINY, lasting=lasting, budget=1000, seed=seed)
    assert result.stop.name == "exhausted"
    assert workers.submitted == result.evaluations
    assert result.value == -100.0


def test_failed_points_are_not_tried_again(virtually):
    objective = Counted(lambda p: None if p["on"] else float(p["n"]))
    result, _ = virtually(objective, TINY, budget=1000, seed=1)
    assert len(set(objective.points)) == objective.calls
    assert (result.value, result.failures) == (0.0, sum(value is None for value in objective.returned))


def test_without_the_cache_points_are_evaluated_again(pool):
    objective = Counted()
    result = minimize(objective, TINY, budget=100, seed=1, workers=pool, asynchronous=True, cache=False)
    assert objective.calls == result.evaluations == 100
    assert result.stop.name == "budget"


@pytest.mark.parametrize("seed", range(3))
def test_a_discrete_optimum_is_found_at_a_similar_cost(virtually, seed):
    space = Space({f"n{i}": Int(-10, 10) for i in range(4)})

    def objective(p):
        return float(sum((i + 1) * (value - 3) ** 2 for i, value in enumerate(p.values())))

    usual = minimize(objective, space, budget=5000, target=0.0, seed=seed)
    found, _ = virtually(objective, space, 4, budget=5000, target=0.0, seed=seed)
    assert usual.stop.name == found.stop.name == "target"
    assert found.evaluations <= 2.5 * usual.evaluations


# Interrupts


def test_an_interrupt_in_this_process_gives_the_result_so_far():
    calls = []

    def objective(p):
        calls.append(p)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return sphere(p)

    result = minimize(objective, PLANE, budget=100, seed=1, asynchronous=True)
    assert (result.stop.name, result.evaluations) == ("interrupted", 19)
    assert result.value == min(map(sphere, calls[:19]))


def test_an_interrupt_raised_in_a_thread_is_a_failed_evaluation(pool):
    """It is not Ctrl-C, which goes to the main thread: the objective raised it."""
    numbers = itertools.count(1)

    def objective(p):
        if next(numbers) == 20:
            raise KeyboardInterrupt
        return sphere(p)

    result = minimize(objective, PLANE, budget=60, seed=1, workers=pool, asynchronous=True)
    assert (result.stop.name, result.evaluations, result.failures) == ("budget", 60, 1)
    assert next(numbers) == 61


def test_an_interrupt_raised_in_a_thread_again_and_again_is_a_failure(pool):
    def objective(p):
        if p["x"] > 0:
            raise KeyboardInterrupt
        return sphere(p)

    result = minimize(objective, PLANE, budget=60, seed=1, workers=pool, asynchronous=True)
    assert (result.stop.name, result.evaluations) == ("budget", 60)
    assert result.failures > 0
    assert "KeyboardInterrupt" in result.first_error


@pytest.fixture
def ctrl_c():
    """Send SIGINT to this process, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals go to the main thread")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_results_are_awaited_ends_the_search_and_the_file_goes_on(pool, ctrl_c, tmp_path):
    path = tmp_path / "run.db"
    numbers, released = itertools.count(1), threading.Event()

    def objective(p):
        number = next(numbers)
        if number == 30:
            ctrl_c()
        if number >= 30:
            released.wait(20.0)
        return sphere(p)

    result = minimize(objective, PLANE, budget=80, seed=1, workers=pool, asynchronous=True, run_file=path)
    released.set()
    assert result.stop.name == "interrupted"
    assert 26 <= result.evaluations < 30
    rows = read(path).rows
    assert sum(row.status == "done" for row in rows) == result.evaluations
    assert 1 <= sum(row.status == "pending" for row in rows) <= 4
    whole = resume(path, sphere, workers=pool)
    assert (whole.stop.name, whole.evaluations) == ("budget", 80)
    assert {row.status for row in read(path).rows} == {"done"}


# The run file


@BOTH
@pytest.mark.parametrize("space", [MIXED, GRID], ids=["mixed", "discrete"])
def test_the_rows_of_a_run_file_carry_latents_and_the_order_of_the_results(pool, tmp_path, space, method):
    path = tmp_path / "run.db"
    options = {"budget": 140, "seed": 1, "restarts": False, "method": method}
    result = minimize(sphere, space, workers=pool, asynchronous=True, run_file=path, **options)
    rows = read(path).rows
    finished = [row for row in rows if row.finished]
    assert sum(row.status == "done" for row in rows) == result.evaluations
    assert [row.slot % EXPLORED for row in rows] == list(range(len(rows)))
    assert any(row.slot >= EXPLORED for row in rows) == (method == "mix")
    assert sorted(row.counted for row in finished) == list(range(1, len(finished) + 1))
    decode = Optimizer(space, seed=1).encoding.decode
    for row in rows:
        assert decode(row.latent) == [row.params]
    generations = [row.generation for row in rows]
    assert generations == sorted(generations)


@pytest.mark.parametrize(("method", "budget"), [("mix", 140), (WHOLE, 60)])
@pytest.mark.parametrize("space", [MIXED, GRID], ids=["mixed", "discrete"])
def test_the_results_in_their_order_lead_to_the_state_in_the_file(virtually, tmp_path, space, method, budget):
    path = tmp_path / "run.db"
    virtually(sphere, space, 4, budget=budget, seed=1, run_file=path, restarts=False, method=method)
    record = read(path)
    stream = Stream(Optimizer(space, seed=1, method=method))
    counted = sorted((row for row in record.rows if row.counted), key=lambda row: row.counted)
    assert [row.slot for row in counted] != sorted(row.slot for row in counted)
    for row in counted[: record.snapshot.numbers["counted"]]:
        foreign = row.slot >= EXPLORED
        stream.take(Drawn(row.params, row.latent, row.run, row.generation, row.slot, foreign), row.outcome)
    assert stream.optimizer.generation == record.snapshot.numbers["draws"] > (5 if method == WHOLE else 2)
    arrays = stream.optimizer.snapshot().arrays
    assert arrays.keys() == record.snapshot.arrays.keys()
    for name, kept in record.snapshot.arrays.items():
        assert np.array_equal(kept, arrays[name]), name


@BOTH
def test_draws_do_not_depend_on_when_a_search_was_cut(virtually, tmp_path, method):
    """In virtual time the results of a search in two parts come in another order, but no draw is lost or made twice."""
    path = tmp_path / "run.db"
    virtually(sphere, MIXED, budget=37, seed=1, run_file=path, method=method)
    result, _ = virtually(sphere, MIXED, budget=90, seed=1, run_file=path, method=method)
    rows = read(path).rows
    assert result.evaluations == len(rows) == 90
    assert [row.slot % EXPLORED for row in rows] == list(range(90))
    assert {row.status for row in rows} == {"done"}


@pytest.mark.parametrize("more", [0, 1, 2])
def test_a_search_that_goes_on_does_not_exceed_its_budget(virtually, tmp_path, more):
    """Four evaluations were under way when it ended: they are affordable no more."""
    path = tmp_path / "run.db"
    options = {"seed": 3, "run_file": path}
    first, _ = virtually(sphere, PLANE, budget=1000, target=1.0, **options)
    budget = first.evaluations + more
    result, _ = virtually(sphere, PLANE, budget=budget, target=-1.0, **options)
    assert (result.stop.name, result.evaluations) == ("budget", budget)


# Workers


class Unknown(Executor):
    """An executor that does not say how many evaluations it can run at once."""

    def __init__(self):
        self._pool, self._lock = ThreadPoolExecutor(32), threading.Lock()
        self.under_way = self.most = 0

    def submit(self, task, /, *args, **options):
        with self._lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        future = self._pool.submit(task, *args, **options)
        future.add_done_callback(self._done)
        return future

    def _done(self, future):
        with self._lock:
            self.under_way -= 1

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def together(count):
    """The sphere, but the first evaluations wait until so many are under way."""
    numbers, barrier = itertools.count(1), threading.Barrier(count)

    def objective(p):
        if next(numbers) <= count:
            barrier.wait(10.0)
        return sphere(p)

    return objective


@pytest.mark.parametrize("popsize", [4, 9])
def test_on_an_executor_of_unknown_capacity_a_population_is_under_way(popsize):
    with Unknown() as executor:
        result = minimize(
            together(popsize), PLANE, budget=100, seed=1, popsize=popsize, workers=executor, asynchronous=True
        )
    assert (result.evaluations, result.failures) == (100, 0)
    assert executor.most == popsize


def test_on_an_executor_of_known_capacity_every_worker_is_busy():
    with Unknown() as executor:
        executor._max_workers = 13
        result = minimize(together(13), PLANE, budget=100, seed=1, workers=executor, asynchronous=True)
    assert (result.evaluations, result.failures) == (100, 0)
    assert executor.most == 13


@pytest.mark.parametrize(("method", "budget"), [("mix", 130), (WHOLE, 300)])
def test_the_same_results_in_the_same_order_give_the_same_search(virtually, method, budget):
    options = {"budget": budget, "seed": 4, "method": method}
    one, other = (virtually(sphere, MIXED, 5, **options)[0] for _ in range(2))
    assert one == other
    assert one != virtually(sphere, MIXED, 5, lambda number, params: 1.0, **options)[0]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_solves_a_mixed_problem(virtually, method):
    space = Space({"x": Float(-5, 5), "y": Float(-5, 5), "n": Int(-10, 10), "m": Int(-10, 10)})

    def objective(p):
        return (p["x"] - 1.3) ** 2 + (p["y"] + 2) ** 2 + (p["n"] - 3) ** 2 + (p["m"] + 4) ** 2

    result, _ = virtually(objective, space, 6, budget=8000, target=1e-8, seed=1, method=method)
    assert result.stop.name == "target"
    assert math.isclose(result.params["x"], 1.3, abs_tol=1e-3)
