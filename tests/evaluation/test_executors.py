"""Whoever evaluates, the search is the same: processes, threads, pools, dask, and workers that are killed."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import socket
import sys
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace

import dask
import loky
import psutil
import pytest
from distributed import Client, LocalCluster

from mixcma import Bool, Discrete, Float, Int, Outcome, Space, minimize, resume
from mixcma.evaluation import open_evaluator
from mixcma.evaluation.sandbox import PROGRAM
from mixcma.store import read
from tests.evaluation.processes import Meeting, attend, processes
from tests.search.virtual_time import BOTH, WHOLE, in_this_process, lognormal, virtual_workers

MIXED = Space({"x": Float(-5, 5), "n": Int(0, 9), "on": Bool(), "wire": Discrete([0.1, 0.5, 0.2])})
PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
CORNERS = Space({"on": Bool(), "off": Bool()})
# Those whose workers are other processes, and all.
PROCESSES = ["2", "3", "process pool", "loky", "dask client", "dask address"]
ENGINES = [*PROCESSES, "threads"]
CAPACITIES = {"1": 1, "2": 2, "3": 3, "process pool": 2, "loky": 2, "dask client": 2, "dask address": 2, "threads": 2}
UNLOADABLE = r"^objective: expected a function that worker processes can load, .*ModuleNotFoundError: .*only_here"


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def process_pool():
    with processes(2) as pool:
        pool.submit(int).result()
        yield pool


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def loky_pool():
    pool = loky.get_reusable_executor(2)
    yield pool
    pool.shutdown(kill_workers=True)


@pytest.fixture
def engine(request):
    """What `workers=` is given, by its name."""
    name = request.param
    if name.isdigit():
        return int(name)
    if name == "dask client":
        return request.getfixturevalue("client").get_executor()
    if name == "dask address":
        return f"dask:{request.getfixturevalue('cluster').scheduler_address}"
    return request.getfixturevalue({"process pool": "process_pool", "loky": "loky_pool", "threads": "threads"}[name])


@pytest.fixture
def capacity(request):
    """How many workers `engine` has."""
    return CAPACITIES[request.node.callspec.params["engine"]]


def on(*names):
    return pytest.mark.parametrize("engine", names, indirect=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# Objectives, all made in functions, so that none can be imported by its name


def a_lambda():
    return lambda p: sum(value**2 for value in p.values())


def a_closure():
    centre = {"x": 1.25, "n": 3}

    def distance(p, names):
        return sum((p[name] - centre[name]) ** 2 for name in names)

    def objective(p):
        return distance(p, ["x", "n"]) + (0.5 if p["on"] else 0.0)

    return objective


def of_a_script():
    """As the functions of a script or notebook are: of the module __main__, with globals of their own."""
    text = """
OFFSET = 0.25

def part(value):
    return (value - OFFSET) ** 2

def objective(p):
    return sum(part(value) for value in p.values())
"""
    script = {"__name__": "__main__"}
    exec(text, script)
    return script["objective"]


def an_object():
    class Model:
        def __init__(self, weight):
            self.weight = weight

        def __call__(self, p):
            return self.weight * p["x"] ** 2 + p["n"]

    return Model(3.0)


def a_partial():
    def objective(weight, p):
        return weight * p["x"] ** 2 + p["wire"]

    return functools.partial(objective, 2.0)


def with_constraints_and_failures():
    def objective(p):
        if p["n"] == 4:
            raise ArithmeticError(f"no solution at {p['x']}")
        return Outcome(p["x"] ** 2 + p["n"], [1.0 - p["x"], p["wire"] - 0.3])

    return objective


OBJECTIVES = [a_lambda, a_closure, of_a_script, an_object, a_partial, with_constraints_and_failures]


def sometimes_failing():
    def objective(p):
        if p["x"] > 3.5:
            raise ArithmeticError(f"no solution at {p['x']}")
        return p["x"] ** 2 + p["y"] ** 2

    return objective


def logging_calls(path):
    """The sphere; every call is a line of the file."""

    def objective(p):
        with open(path, "a") as file:
            file.write(f"{p}\n")
        return float(sum(value**2 for value in p.values()))

    return objective


def calls_in(path):
    return path.read_text().splitlines() if path.exists() else []


# Equal results


def assert_equal_to_one_process(engine, capacity, make, method="mix"):
    options = {"space": MIXED, "budget": 20, "seed": 3, "method": method}
    alone = in_this_process(capacity, make(), **options)
    assert alone.evaluations == 20
    assert minimize(make(), workers=engine, **options) == alone


@pytest.mark.parametrize("make", OBJECTIVES, ids=lambda make: make.__name__)
@on("2", "process pool", "loky", "dask client", "threads")
def test_the_result_is_that_of_one_process(engine, capacity, make):
    assert_equal_to_one_process(engine, capacity, make)


@BOTH
@on("2", "3", "dask address")
def test_the_result_is_that_of_one_process_however_many_there_are_and_wherever(engine, capacity, method):
    assert_equal_to_one_process(engine, capacity, of_a_script, method)


def test_with_a_model_all_workers_are_busy_so_their_number_matters():
    one, two = (in_this_process(capacity, a_lambda(), MIXED, budget=20, seed=3) for capacity in (1, 2))
    assert one != two


@BOTH
@pytest.mark.parametrize("target", [None, 0.5], ids=["budget", "target"])
@pytest.mark.parametrize("lasting", [lambda number, params: 1000.0 - number, lognormal], ids=["reversed", "any order"])
def test_the_result_does_not_depend_on_which_evaluation_finishes_first(lasting, target, method):
    options = {"space": PLANE, "budget": 90, "seed": 5, "target": target, "method": method}
    alone = in_this_process(6, sometimes_failing(), **options)
    assert alone.failures > 1
    assert alone.stop.name == ("budget" if target is None else "target")
    with virtual_workers(6, lasting):
        assert minimize(sometimes_failing(), **options) == alone


@BOTH
@on("2", "loky", "threads")
def test_a_target_reached_in_the_middle_of_a_generation_ends_every_search_there(engine, capacity, method):
    options = {"space": PLANE, "budget": 400, "target": 0.5, "seed": 8, "method": method}
    alone = in_this_process(capacity, sometimes_failing(), **options)
    assert alone.stop.name == "target"
    assert alone.evaluations % 6 != 0 or method != WHOLE
    assert minimize(sometimes_failing(), workers=engine, **options) == alone


@BOTH
@on("2", "process pool")
def test_restarts_and_remembered_points_are_the_same(engine, capacity, method):
    options = {"space": Space({"n": Int(0, 9), "m": Int(-5, 4)}), "budget": 80, "seed": 2, "method": method}
    alone = in_this_process(capacity, lambda p: float(abs(p["n"] - 7)), **options)
    assert len(alone.runs) > 1
    assert minimize(lambda p: float(abs(p["n"] - 7)), workers=engine, **options) == alone


@BOTH
@on("2", "process pool", "threads")
def test_the_run_file_holds_the_same_candidates_and_outcomes(engine, capacity, method, tmp_path):
    options = {"space": PLANE, "budget": 30, "seed": 5, "method": method}
    in_this_process(capacity, sometimes_failing(), run_file=tmp_path / "one.db", **options)
    minimize(sometimes_failing(), run_file=tmp_path / "many.db", workers=engine, **options)
    one, many = ([(row.params, row.outcome) for row in read(tmp_path / name).rows] for name in ("one.db", "many.db"))
    assert one == many


@on("3")
def test_a_run_begun_on_one_engine_ends_the_same_on_another(engine, process_pool, tmp_path):
    whole = minimize(sometimes_failing(), PLANE, budget=30, seed=5, method=WHOLE)
    path = tmp_path / "run.db"
    minimize(sometimes_failing(), PLANE, budget=13, seed=5, method=WHOLE, run_file=path, workers=engine)
    resume(path, sometimes_failing(), budget=20, workers=process_pool)
    assert replace(resume(path, sometimes_failing(), budget=30), run_file=None) == whole


@on("2")
def test_a_run_with_a_model_begun_on_one_engine_ends_the_same_on_another_of_as_many_workers(
    engine, capacity, process_pool, threads, tmp_path
):
    whole = in_this_process(capacity, sometimes_failing(), PLANE, budget=40, seed=5)
    path = tmp_path / "run.db"
    minimize(sometimes_failing(), PLANE, budget=13, seed=5, run_file=path, workers=engine)
    resume(path, sometimes_failing(), budget=20, workers=process_pool)
    assert replace(resume(path, sometimes_failing(), budget=40, workers=threads), run_file=None) == whole


@on(*ENGINES)
def test_every_candidate_is_evaluated_once(engine, tmp_path):
    calls = tmp_path / "calls"
    result = minimize(logging_calls(calls), PLANE, budget=30, seed=1, workers=engine)
    lines = calls_in(calls)
    assert result.evaluations == len(lines) == len(set(lines)) == 30


@on("1", "2", "process pool", "loky", "dask client", "dask address", "threads")
def test_without_the_cache_a_point_drawn_again_is_evaluated_again(engine, tmp_path):
    calls = tmp_path / "calls"
    result = minimize(
        logging_calls(calls), CORNERS, budget=24, seed=1, workers=engine, cache=False, restarts=False, popsize=12
    )
    assert (result.evaluations, len(calls_in(calls))) == (24, 24)


@on("2", "process pool", "loky", "dask client", "threads")
def test_asynchronous_searches_spend_the_budget_and_evaluate_nothing_twice(engine, tmp_path):
    calls = tmp_path / "calls"
    result = minimize(logging_calls(calls), PLANE, budget=31, seed=1, workers=engine, asynchronous=True)
    lines = calls_in(calls)
    assert result.evaluations == len(lines) == len(set(lines)) == 31


@on("2", "3")
def test_so_many_evaluations_run_at_once_as_there_are_workers_and_no_more(engine, tmp_path):
    """They wait for each other; and each process evaluates one point at a time."""
    log = tmp_path / "log"
    with Meeting(engine) as meeting:
        address = meeting.address

        def objective(p):
            with open(log, "a") as file:
                file.write(f"{os.getpid()}\n")
            attend(address)
            return p["x"] ** 2

        assert minimize(objective, PLANE, budget=18, seed=1, workers=engine).evaluations == 18
    assert len(set(calls_in(log))) == engine


@pytest.mark.parametrize(("engine", "capacity"), CAPACITIES.items(), indirect=["engine"])
def test_the_number_of_workers_is_known(engine, capacity):
    evaluator = open_evaluator(a_lambda(), engine, None)
    try:
        assert evaluator.capacity == capacity
    finally:
        evaluator.close()


@on("process pool", "threads")
def test_two_searches_can_share_an_executor(engine):
    alone = [in_this_process(2, sometimes_failing(), PLANE, budget=24, seed=seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        shared = list(
            pool.map(lambda seed: minimize(sometimes_failing(), PLANE, budget=24, seed=seed, workers=engine), (1, 2))
        )
    assert shared == alone


@on("process pool", "dask client")
def test_two_searches_at_once_evaluate_twice_as_much_even_if_they_are_the_same(engine, tmp_path):
    calls = tmp_path / "calls"
    objective = logging_calls(calls)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: minimize(objective, PLANE, budget=24, seed=1, workers=engine), range(2)))
    assert len(calls_in(calls)) == 48


@on("process pool", "loky", "dask client", "threads")
def test_an_executor_of_the_users_stays_open(engine):
    minimize(a_lambda(), PLANE, budget=12, seed=1, workers=engine)
    assert engine.submit(abs, -3).result() == 3


@on("1", "2")
def test_an_objective_that_has_every_attribute_is_called_with_the_parameters_alone(engine):
    class Proxy:
        """As those of remote procedure calls: whatever name is asked for, it has it."""

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return Proxy()

        def __call__(self, p):
            return p["x"] ** 2

    result = minimize(Proxy(), PLANE, budget=12, seed=1, workers=engine)
    assert (result.failures, result.first_error) == (0, None)


@on("dask client")
def test_a_process_that_the_objective_forked_says_nothing(engine):
    def objective(p):
        child = os.fork()
        if child == 0:
            raise RuntimeError("in a forked process")
        os.waitpid(child, 0)
        return p["x"] ** 2 + p["y"] ** 2

    expected = in_this_process(2, sphere(), PLANE, budget=12, seed=1)
    assert minimize(objective, PLANE, budget=12, seed=1, workers=engine) == expected


@on("dask client")
def test_a_keyboard_interrupt_of_the_objective_is_a_failed_evaluation_and_harms_no_worker(engine, tmp_path):
    calls = tmp_path / "calls"

    def objective(p):
        with open(calls, "a") as file:
            file.write(f"{os.getpid()}\n")
        raise KeyboardInterrupt

    result = minimize(objective, PLANE, budget=6, seed=1, workers=engine)
    assert (result.evaluations, result.failures, result.first_error) == (6, 6, "KeyboardInterrupt: ")
    assert len(calls.read_text().split()) == 6


# Executors that share this process


class Inline(Executor):
    """Calls at once, in this thread."""

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def unpicklable(called):
    """An objective that holds a lock and a list of its callers."""
    lock = threading.Lock()

    def objective(p):
        with lock:
            called.append(os.getpid())
        return p["x"] ** 2

    return objective


@BOTH
@pytest.mark.parametrize(
    ("make", "capacity"), [(Inline, 6), (lambda: ThreadPoolExecutor(2), 2)], ids=["inline", "threads"]
)
def test_in_this_process_the_very_function_is_called_and_need_not_be_pickled(make, capacity, method):
    """An executor that does not say how many workers it has is given whole generations."""
    called, options = [], {"space": PLANE, "budget": 24, "seed": 1, "method": method}
    alone = in_this_process(capacity, unpicklable([]), **options)
    with make() as engine:
        assert minimize(unpicklable(called), workers=engine, **options) == alone
    assert called == [os.getpid()] * 24


# What cannot start


@pytest.mark.parametrize(
    "workers",
    [0, -1, True, False, 2.0, None, "2", "", "dask", "dask:", "tcp://127.0.0.1:8786", [2], (), object, {}],
    ids=repr,
)
def test_workers_that_are_none_are_refused(workers, tmp_path):
    calls, path = tmp_path / "calls", tmp_path / "run.db"
    with pytest.raises(ValueError, match=r"workers: expected .* but got .*; pass workers=1"):
        minimize(logging_calls(calls), PLANE, budget=12, workers=workers, run_file=path)
    assert not path.exists()
    minimize(a_lambda(), PLANE, budget=6, run_file=path)
    with pytest.raises(ValueError, match="workers: expected"):
        resume(path, logging_calls(calls), budget=12, workers=workers)
    assert calls_in(calls) == []


@on(*PROCESSES)
def test_an_objective_that_cannot_be_pickled_is_refused_before_the_start(engine):
    called = []
    with pytest.raises(ValueError, match=r"^objective: expected a function that can be sent .*cannot pickle.*lock"):
        minimize(unpicklable(called), PLANE, budget=12, workers=engine)
    assert called == []


@on("1", "threads")
def test_where_a_timeout_needs_processes_threads_are_not_given_as_the_remedy(engine):
    with pytest.raises(ValueError, match=r"^objective: expected a function that can be sent") as refused:
        minimize(unpicklable([]), PLANE, budget=12, workers=engine, timeout=5.0)
    assert "timeout" in str(refused.value) or "run it in threads" not in str(refused.value)


@pytest.fixture
def only_here(tmp_path, monkeypatch):
    """A function of a module that this process has imported, and that no other can find."""
    name = f"only_here_{os.getpid()}"
    tmp_path.joinpath(f"{name}.py").write_text(
        f"def objective(p):\n    open({str(tmp_path / 'calls')!r}, 'a').write('called')\n    return p['x']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__(name)
    monkeypatch.undo()
    yield module.objective
    del sys.modules[name]


@on(*PROCESSES)
def test_an_objective_whose_module_the_workers_cannot_import_is_refused_before_the_start(engine, only_here, tmp_path):
    with pytest.raises(ValueError, match=UNLOADABLE):
        minimize(only_here, PLANE, budget=12, workers=engine)
    assert calls_in(tmp_path / "calls") == []


@on("process pool", "loky", "dask client", "threads")
def test_so_it_is_with_a_timeout(engine, only_here, tmp_path):
    with pytest.raises(ValueError, match=UNLOADABLE):
        minimize(only_here, PLANE, budget=12, workers=engine, timeout=5.0)
    assert calls_in(tmp_path / "calls") == []


@on("2", "process pool")
def test_the_refusal_names_the_error_as_python_does(engine, only_here):
    with pytest.raises(ValueError, match=r"failed \(ModuleNotFoundError: No module named"):
        minimize(only_here, PLANE, budget=12, workers=engine)


@on("dask address")
def test_a_search_that_was_refused_leaves_no_connection_to_dask(engine, cluster, only_here):
    before = set(cluster.scheduler.clients)
    for objective, timeout in [(unpicklable([]), None), (unpicklable([]), 5.0), (only_here, None)]:
        with pytest.raises(ValueError, match="objective: "):
            minimize(objective, PLANE, budget=12, workers=engine, timeout=timeout)
    assert eventually(lambda: set(cluster.scheduler.clients) == before)


@on("dask address")
def test_a_search_on_dask_leaves_no_connection(engine, cluster):
    before = set(cluster.scheduler.clients)
    minimize(a_lambda(), PLANE, budget=12, seed=1, workers=engine)
    assert eventually(lambda: set(cluster.scheduler.clients) == before)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{port}", "127.0.0.1:{port}"])
def test_an_address_without_a_scheduler_is_refused(address, tmp_path):
    calls = tmp_path / "calls"
    address = address.format(port=free_port())
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "300ms"}),
        pytest.raises(ValueError, match=f"workers: expected a dask scheduler at {address}, but connecting failed"),
    ):
        minimize(logging_calls(calls), PLANE, budget=12, workers=f"dask:{address}")
    assert calls_in(calls) == []


def eventually(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


# Workers that are killed


def running(wanted):
    """The child processes that are wanted and have not ended."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE and wanted(child):
                found.append(child)
    return found


def sandboxes():
    return running(lambda child: PROGRAM.name in " ".join(child.cmdline()))


def assert_kills_change_nothing(workers, find, kills, method="mix"):
    """One of two idle workers is killed after each of the first odd generations."""
    options = {"space": PLANE, "budget": 42, "seed": 1, "method": method}
    expected = in_this_process(2, sphere(), **options)
    killed = []

    def kill(progress):
        if progress.generation % 2 and len(killed) < kills:
            assert eventually(find, 20)
            victim = random.Random(progress.generation).choice(find())
            victim.kill()
            killed.append(victim)

    result = minimize(sphere(), workers=workers, callback=kill, **options)
    assert len(killed) == kills
    assert result == expected


def sphere():
    return lambda p: p["x"] ** 2 + p["y"] ** 2


@BOTH
def test_killed_sandboxes_change_nothing(method):
    assert_kills_change_nothing(2, sandboxes, kills=3, method=method)


def test_killed_workers_of_a_process_pool_change_nothing():
    others = set(psutil.Process().children(recursive=True))
    with processes(2) as pool:
        pool.submit(int).result()
        assert_kills_change_nothing(pool, lambda: running(lambda child: child not in others), kills=3)


def test_killed_workers_of_loky_change_nothing():
    others = set(psutil.Process().children(recursive=True))

    def is_worker(child):
        return child not in others and "tracker" not in " ".join(child.cmdline())

    with loky.ProcessPoolExecutor(2) as pool:
        pool.submit(int).result()
        assert_kills_change_nothing(pool, lambda: running(is_worker), kills=2)


def test_killed_workers_of_dask_change_nothing(cluster, client):
    def workers():
        pids = {worker.pid for worker in cluster.workers.values()}
        return running(lambda child: child.pid in pids)

    assert_kills_change_nothing(client.get_executor(), workers, kills=2)


def test_a_worker_of_dask_that_dies_while_it_evaluates_changes_nothing(client, tmp_path):
    mark = tmp_path / "mark"

    def objective(p):
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return p["x"] ** 2 + p["y"] ** 2
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    expected = in_this_process(2, sphere(), PLANE, budget=18, seed=1)
    assert minimize(objective, PLANE, budget=18, seed=1, workers=client.get_executor()) == expected


@pytest.mark.parametrize(("method", "budget"), [("mix", 12), (WHOLE, 24)])
def test_a_generation_outlives_the_death_of_every_sandbox_at_once(method, budget):
    options = {"space": PLANE, "budget": budget, "seed": 1, "method": method}
    expected = in_this_process(2, sphere(), **options)

    def kill_all(progress):
        for sandbox in sandboxes():
            sandbox.kill()

    assert minimize(sphere(), workers=2, callback=kill_all, **options) == expected
