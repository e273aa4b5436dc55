"""Sandboxes: an evaluation that hangs, crashes or misbehaves takes its own process with it, and nothing more."""

from __future__ import annotations

import fractions
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import loky
import numpy as np
import psutil
import pytest

from mixcma import Float, Outcome, Space, minimize
from mixcma.evaluation import open_evaluator
from mixcma.evaluation.sandbox import LONGEST_START, PROGRAM, Sandbox, SandboxDied
from mixcma.store import read
from tests.evaluation.processes import Meeting, attend, processes

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
PRELUDE = """
import os, signal, subprocess, sys, time
from mixcma import Float, Space, minimize
PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
"""


@pytest.fixture(scope="module")
def pools():
    """Pools for many tests; loky's is made first, since loky starts a process that stays for good."""
    with loky.ProcessPoolExecutor(2) as of_loky, processes(2) as of_processes, ThreadPoolExecutor(2) as threads:
        with Meeting(2) as meeting:
            for pool in (of_loky, of_processes):
                list(pool.map(attend, [meeting.address] * 2))  # both of their processes are there from now on
        yield {"loky": of_loky, "process pool": of_processes, "threads": threads}


@pytest.fixture(autouse=True)
def nothing_is_left(pools):
    """Every test ends with the child processes and open files that it began with."""
    me = psutil.Process()
    children, files = set(me.children(recursive=True)), me.num_fds()
    yield
    assert eventually(lambda: set(me.children(recursive=True)) <= children)
    gc.collect()  # a pool that broke is in a circle of references with its thread, and its pipes with it
    assert eventually(lambda: me.num_fds() <= files)


def eventually(condition, seconds=3.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def points(count):
    """The first candidates of the search with seed 1, as the search would draw them."""
    drawn = []

    def objective(p):
        drawn.append(p)
        return p["x"] ** 2 + p["y"] ** 2

    minimize(objective, PLANE, budget=count, seed=1)
    return drawn


def gone(path):
    """Whether the processes have ended whose numbers the file holds."""
    pids = [int(line) for line in path.read_text().split()]
    assert pids
    return eventually(lambda: not any(alive(pid) for pid in pids))


def assert_gone(path):
    """As `gone`; but processes that have not ended are ended here."""
    try:
        assert gone(path)
    finally:
        for pid in map(int, path.read_text().split()):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def sandboxes():
    return [child for child in psutil.Process().children() if PROGRAM.name in " ".join(child.cmdline())]


def python(program, **options):
    """A script of its own, with the folder of this one nowhere on its path."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


# Timeouts


def hanging_at(x, started=None):
    """The sphere; but at one point it starts another process, and both hang for a minute."""

    def objective(p):
        if p["x"] == x:
            if started is not None:
                child = subprocess.Popen(["sleep", "60"])
                with open(started, "a") as file:
                    file.write(f"{child.pid}\n{os.getpid()}\n")
            time.sleep(60)
        return p["x"] ** 2 + p["y"] ** 2

    return objective


KINDS = {"threads": ThreadPoolExecutor, "process pool": processes, "loky": loky.ProcessPoolExecutor}


@pytest.fixture
def fresh(request):
    """A number of workers, or a pool for this test alone."""
    if isinstance(request.param, int):
        yield request.param
        return
    with KINDS[request.param](2) as pool:
        yield pool


@pytest.fixture
def shared(request, pools):
    """A number of workers, or a pool that other tests use too."""
    return pools.get(request.param, request.param)


@pytest.mark.parametrize("fresh", [1, 2, "threads", "process pool", "loky"], indirect=True)
def test_a_timeout_ends_the_processes_the_objective_started_and_fails_that_evaluation_alone(fresh, tmp_path):
    started, run = tmp_path / "started", tmp_path / "run.db"
    x = points(3)[2]["x"]
    result = minimize(hanging_at(x, started), PLANE, budget=12, seed=1, workers=fresh, timeout=0.5, run_file=run)
    assert (result.evaluations, result.failures, result.first_error) == (12, 1, "timed out after 0.5 s")
    assert [row.slot for row in read(run).rows if row.status == "timed out"] == [2]
    assert gone(started)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they cannot be found")
@pytest.mark.parametrize("kind", ["a session of its own", "a daemon"])
def test_a_timeout_ends_processes_that_left_the_group(kind, tmp_path):
    started, ready = tmp_path / "started", tmp_path / "ready"
    daemon = f"setsid sh -c 'echo $$ > {started}; echo > {ready}; exec sleep 60' &"
    os.mkfifo(ready)

    def objective(p):
        if kind == "a daemon":
            subprocess.run(["sh", "-c", daemon], check=True)  # its parent has ended
            ready.read_text()
        else:
            started.write_text(str(subprocess.Popen(["sleep", "60"], start_new_session=True).pid))
        time.sleep(60)

    result = minimize(objective, PLANE, budget=1, seed=1, timeout=1.0)
    assert result.first_error == "timed out after 1 s"
    assert_gone(started)


def test_the_search_with_a_timeout_is_the_search_in_which_that_point_fails():
    """Without the model, whose search depends on the number of workers."""
    x, method = points(3)[2]["x"], "mix-without-model"

    def failing(p):
        return None if p["x"] == x else p["x"] ** 2 + p["y"] ** 2

    expected = minimize(failing, PLANE, budget=24, seed=1, method=method)
    for workers in (1, 2):
        result = minimize(hanging_at(x), PLANE, budget=24, seed=1, method=method, workers=workers, timeout=0.3)
        assert (result.params, result.value, result.failures) == (expected.params, expected.value, 1)


def test_a_timeout_ends_a_process_that_ignores_every_request_to_end():
    def objective(p):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)

    result = minimize(objective, PLANE, budget=2, seed=1, timeout=0.3)
    assert (result.failures, result.first_error) == (2, "timed out after 0.3 s")


def test_where_everything_hangs_the_search_stops_after_three_generations():
    def objective(p):
        time.sleep(60)

    result = minimize(objective, PLANE, budget=100, seed=1, popsize=4, workers=2, timeout=0.1)
    assert (result.stop.name, result.failures, result.first_error) == ("failing", 12, "timed out after 0.1 s")


def test_on_error_raise_stops_at_a_timeout():
    def objective(p):
        time.sleep(60)

    with pytest.raises(ValueError, match=r"the objective: timed out after 0\.2 s"):
        minimize(objective, PLANE, budget=10, seed=1, workers=2, timeout=0.2, on_error="raise")


def test_a_timeout_does_not_count_the_start_of_the_process(monkeypatch):
    waited, original = [], Sandbox._answers_within

    def answers_within(self, seconds):
        waited.append(seconds)
        return original(self, seconds)

    monkeypatch.setattr(Sandbox, "_answers_within", answers_within)
    assert minimize(lambda p: p["x"] ** 2, PLANE, budget=3, seed=1, timeout=25.0).failures == 0
    assert waited == [LONGEST_START, 25.0, 25.0, 25.0]


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "1", True, 1j], ids=repr)
def test_a_timeout_that_is_no_time_is_refused(timeout):
    with pytest.raises(ValueError, match="timeout: expected a number of seconds above 0"):
        minimize(lambda p: 1.0, PLANE, budget=6, timeout=timeout)


@pytest.mark.parametrize("timeout", [5, np.float32(5), fractions.Fraction(1, 2), float("inf"), 1e300], ids=repr)
def test_any_positive_number_is_a_timeout(timeout):
    assert minimize(lambda p: p["x"] ** 2, PLANE, budget=4, seed=1, timeout=timeout).failures == 0


def test_a_timeout_that_is_a_fraction_fails_what_hangs():
    result = minimize(hanging_at(points(1)[0]["x"]), PLANE, budget=2, seed=1, timeout=fractions.Fraction(1, 4))
    assert (result.failures, result.first_error) == (1, "timed out after 0.25 s")


# Nothing is left behind


def test_idle_sandboxes_are_used_again(tmp_path):
    used = tmp_path / "used"

    def objective(p):
        with open(used, "a") as file:
            file.write(f"{os.getpid()}\n")
        return p["x"] ** 2

    minimize(objective, PLANE, budget=40, seed=1, workers=2)
    pids = used.read_text().split()
    assert (len(pids), len(set(pids))) == (40, 2)


def ending_while_another_hangs(address, started, last):
    """Two evaluations: when the second has started another process and hangs, the first calls `last`."""
    first = points(1)[0]["x"]

    def objective(p):
        if p["x"] == first:
            attend(address)
            return last()
        child = subprocess.Popen(["sleep", "60"])
        with open(started, "a") as file:
            file.write(f"{child.pid}\n{os.getpid()}\n")
        attend(address)
        return time.sleep(60)

    return objective


def test_a_search_that_ends_while_others_are_evaluated_ends_them(tmp_path):
    with Meeting(2) as meeting:
        objective = ending_while_another_hangs(meeting.address, tmp_path / "started", lambda: -1.0)
        result = minimize(objective, PLANE, budget=12, seed=1, workers=2, target=0.0)
    assert (result.stop.name, result.evaluations) == ("target", 1)
    assert gone(tmp_path / "started")


def test_an_error_that_is_let_through_ends_all_processes(tmp_path):
    last = raising(lambda: LookupError("no such thing"))
    with Meeting(2) as meeting:
        objective = ending_while_another_hangs(meeting.address, tmp_path / "started", last)
        with pytest.raises(LookupError):
            minimize(objective, PLANE, budget=12, seed=1, workers=2, on_error="raise")
    assert gone(tmp_path / "started")


def test_an_error_in_the_callback_ends_all_processes():
    def callback(progress):
        raise LookupError("in the callback")

    with pytest.raises(LookupError):
        minimize(lambda p: p["x"], PLANE, budget=12, seed=1, workers=2, callback=callback)
    assert sandboxes() == []


def test_when_the_searching_process_is_killed_its_sandboxes_and_what_they_started_end(tmp_path):
    started = tmp_path / "started"
    program = f"""
def objective(p):
    child = subprocess.Popen(["sleep", "60"])
    with open({str(started)!r}, "a") as file:
        file.write(f"{{child.pid}}\\n{{os.getpid()}}\\n")
    time.sleep(60)
minimize(objective, PLANE, budget=12, seed=1, workers=2)
"""
    with python(program) as owner:
        assert eventually(lambda: started.exists() and len(started.read_text().split()) == 4, 20)
        owner.kill()
    assert gone(started)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a worker in C code is not interrupted")
def test_when_the_searching_process_is_killed_workers_in_c_code_that_holds_the_lock_of_python_end_too(tmp_path):
    started = tmp_path / "started"
    program = f"""
import re
def objective(p):
    child = subprocess.Popen(["sleep", "60"])
    with open({str(started)!r}, "a") as file:
        file.write(f"{{child.pid}}\\n{{os.getpid()}}\\n")
    return re.match("(a+)+$", "a" * 64 + "b")  # it takes years
minimize(objective, PLANE, budget=12, seed=1, workers=2)
"""
    with python(program) as owner:
        assert eventually(lambda: started.exists() and len(started.read_text().split()) == 4, 20)
        owner.kill()
    assert_gone(started)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they cannot be found")
@pytest.mark.parametrize("pool", [2, "process pool"])
def test_when_the_searching_process_is_killed_daemons_end_too(pool, tmp_path):
    started, ready = tmp_path / "started", tmp_path / "ready"
    os.mkfifo(ready)
    workers = "ProcessPoolExecutor(2)" if pool == "process pool" else pool
    program = f"""
from concurrent.futures import ProcessPoolExecutor
def objective(p):
    subprocess.run(["sh", "-c", "setsid sh -c 'echo $$ > {started}; exec sleep 60' &"], check=True)
    with open({str(ready)!r}, "w") as file:
        file.write(".")
    time.sleep(60)
minimize(objective, PLANE, budget=1, seed=1, workers={workers}, timeout=60.0)
"""
    with python(program, start_new_session=True) as owner:
        assert ready.read_text() == "."
        assert eventually(lambda: started.exists() and started.read_text().endswith("\n"))
        os.killpg(owner.pid, signal.SIGKILL)  # the workers of a pool are in its group, and sandboxes are not
    assert_gone(started)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they cannot be found")
@pytest.mark.parametrize(
    "end",
    [
        lambda: None,
        lambda: os._exit(3),
        lambda: os.killpg(0, signal.SIGKILL),
        lambda: (os.kill(os.getppid(), signal.SIGTERM), time.sleep(60)),
    ],
    ids=["lives on", "exits", "kills its group", "ends its keeper"],
)
def test_daemons_end_with_the_sandbox_they_come_from(end, tmp_path):
    started, ready = tmp_path / "started", tmp_path / "ready"
    os.mkfifo(ready)

    def objective(p):
        daemon = f"setsid sh -c 'echo $$ >> {started}; echo > {ready}; exec sleep 60' &"
        subprocess.run(["sh", "-c", daemon], check=True)
        ready.read_text()
        end()
        return p["x"] ** 2

    minimize(objective, PLANE, budget=1, seed=1, workers=2)
    assert_gone(started)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they cannot be found")
def test_a_pool_worker_that_exits_ends_what_its_sandboxes_left(tmp_path):
    started, ready = tmp_path / "started", tmp_path / "ready"
    os.mkfifo(ready)

    def objective(p):
        daemon = f"setsid sh -c 'echo $$ >> {started}; echo > {ready}; exec sleep 60' &"
        subprocess.run(["sh", "-c", daemon], check=True)
        ready.read_text()
        return p["x"] ** 2

    with processes(1) as pool:
        minimize(objective, PLANE, budget=1, seed=1, workers=pool, timeout=60.0)
    assert_gone(started)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux sees to it")
def test_a_worker_ends_if_its_keeper_is_killed(tmp_path):
    started = tmp_path / "started"

    def objective(p):
        if not os.path.exists(started):
            child = subprocess.Popen(["sleep", "60"])
            with open(started, "w") as file:
                file.write(f"{child.pid}\n{os.getpid()}\n")
            os.kill(os.getppid(), signal.SIGKILL)
            re.match("(a+)+$", "a" * 64 + "b")  # it takes years
        return p["x"] ** 2

    assert minimize(objective, PLANE, budget=2, seed=1, workers=2).failures == 0
    assert_gone(started)


def test_a_keeper_that_does_not_end_the_sandbox_is_killed(monkeypatch):
    monkeypatch.setattr("mixcma.evaluation.sandbox.LONGEST_END", 0.1)

    def objective(p):
        os.kill(os.getppid(), signal.SIGSTOP)
        return p["x"] ** 2

    assert minimize(objective, PLANE, budget=2, seed=1, workers=2).failures == 0
    # the fixture finds what is left


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere orphans are not adopted")
def test_orphans_that_have_ended_keep_no_numbers():
    def objective(p):
        subprocess.run(["sh", "-c", "true & true &"], check=True)
        keeper = psutil.Process(os.getppid())
        return float(eventually(lambda: len(keeper.children(recursive=True)) == 1))

    result = minimize(objective, PLANE, budget=4, seed=1, timeout=60.0)
    assert (result.failures, result.value) == (0, 1.0)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they cannot be found")
def test_a_sandbox_that_holds_too_many_ended_processes_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr("mixcma.evaluation.sandbox.LOOK_FOR_ENDED_EVERY", 1)
    monkeypatch.setattr("mixcma.evaluation.sandbox.MOST_ENDED", 1)
    used = tmp_path / "used"

    def objective(p):
        if not (child := os.fork()):
            os._exit(0)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # until it has ended
        with open(used, "a") as file:
            file.write(f"{os.getpid()}\n")
        return p["x"] ** 2

    assert minimize(objective, PLANE, budget=4, seed=1, timeout=60.0).failures == 0
    assert len(set(used.read_text().split())) == 4


def test_the_death_of_a_pool_worker_ends_the_sandbox_it_held(tmp_path):
    started = tmp_path / "started"

    def objective(p):
        if not os.path.exists(started):
            with open(started, "w") as file:
                file.write(f"{os.getpid()}\n")
            _, pool_worker, *_ = psutil.Process().parents()  # behind the keeper of this sandbox
            pool_worker.kill()
            time.sleep(60)
        return p["x"] ** 2

    with processes(1) as pool:
        pool.submit(int).result()
        assert minimize(objective, PLANE, budget=12, seed=1, workers=pool, timeout=30.0).failures == 0
    assert gone(started)


@pytest.fixture
def blocked(request):
    """Signals that are blocked during a test."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, request.param)
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize("blocked", [[], [signal.SIGCHLD]], indirect=True, ids=["no signal", "SIGCHLD"])
def test_a_process_that_ends_while_a_fork_of_it_holds_the_connection_is_noticed_and_the_fork_ended(blocked, tmp_path):
    started = tmp_path / "started"

    def objective(p):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        with open(started, "a") as file:
            file.write(f"{child}\n")
        os._exit(3)

    result = minimize(objective, PLANE, budget=1, seed=1, workers=2)
    assert result.failures == 1
    assert "exit status 3" in result.first_error
    assert_gone(started)


def test_what_an_idle_process_left_running_ends_when_that_process_is_killed(tmp_path):
    started = tmp_path / "started"

    def objective(p):
        if not os.path.exists(started):
            child = subprocess.Popen(["sleep", "60"])
            with open(started, "w") as file:
                file.write(f"{child.pid}\n")
        return p["x"] ** 2

    def kill_idle(progress):
        for sandbox in sandboxes():
            sandbox.kill()
            assert eventually(lambda: not alive(sandbox.pid))  # noqa: B023 called at once

    minimize(objective, PLANE, budget=12, seed=1, popsize=4, workers=2, callback=kill_idle)
    assert_gone(started)


# What the objective says and returns


@pytest.mark.parametrize("workers", [1, 2])
def test_what_the_objective_prints_does_not_disturb_and_is_not_lost(workers):
    program = f"""
def objective(p):
    sys.stdout.write("x" * 100_000 + "\\n")
    os.write(1, b"written\\n")
    os.write(2, b"raw\\n")
    print("to stderr", file=sys.stderr)
    print("printed", p["x"])
    return p["x"] ** 2
if __name__ == "__main__":
    result = minimize(objective, PLANE, budget=6, seed=1, workers={workers})
    print("failures", result.failures, result.evaluations)
"""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with python(program, env=buffered) as script:
        output, errors = script.communicate(timeout=60)
    assert "failures 0 6" in output
    assert (output.count("written"), errors.count("to stderr"), errors.count("raw")) == (6, 6, 6)
    assert (output.count("printed"), output.count("x" * 100_000)) == (6, 6)


def test_the_objective_finds_no_input_to_read():
    result = minimize(lambda p: float(input()), PLANE, budget=2, seed=1, workers=2)
    assert result.first_error == "EOFError: EOF when reading a line"


def test_a_huge_answer_arrives_whole():
    result = minimize(lambda p: Outcome(1.0, [0.0] * 300_000 + [2.0]), PLANE, budget=2, seed=1, workers=2)
    assert (result.value, result.violation) == (1.0, 2.0)


def odd_values():
    class Local:
        pass

    class LocalFloat(float):
        pass

    class LocalOutcome(Outcome):
        pass

    class WithItem:
        shape = ()

        def item(self):
            return 7.0

    return {
        "a float of numpy": lambda: np.float64(1.5),
        "a small float of numpy": lambda: np.float32(1.5),
        "an array without axes": lambda: np.array(2.5),
        "an array of one": lambda: np.array([2.5]),
        "an int": lambda: 3,
        "a bool": lambda: True,
        "a fraction": lambda: fractions.Fraction(1, 3),
        "an int beyond floats": lambda: 10**400,
        "an outcome": lambda: Outcome(1.0, [-1.0, 0.5]),
        "an outcome with arrays": lambda: Outcome(np.float64(1.0), np.array([0.25, -1.0])),
        "an outcome that failed": lambda: Outcome(1.0, error="by itself"),
        "an outcome with a generator": lambda: Outcome(1.0, (g for g in [0.5])),
        "nothing": lambda: None,
        "nan": lambda: float("nan"),
        "a complex number": lambda: 1j,
        "a huge string": lambda: "x" * 5_000_000,
        "bytes": lambda: b"1.0",
        "a dict": lambda: {"value": 1.0},
        "a function": lambda: lambda: 1.0,
        "a lock": threading.Lock,
        "an object of a local class": Local,
        "a float of a local class": lambda: LocalFloat(1.5),
        "an outcome of a local class": lambda: LocalOutcome(1.5),
        "something like an array": WithItem,
    }


def reports(functions, timeout):
    """What calling each of them reports, in this process or, with a timeout, in a sandbox."""
    evaluator = open_evaluator(lambda p: functions[p["name"]](), 1, timeout)
    try:
        for ticket, name in enumerate(functions):
            evaluator.submit(ticket, {"name": name})
        finished = dict(evaluator.next() for _ in functions)
    finally:
        evaluator.close()
    return {name: finished[ticket] for ticket, name in enumerate(functions)}


@pytest.fixture(scope="module")
def returned(pools):
    return reports(odd_values(), None), reports(odd_values(), 60.0)


@pytest.mark.parametrize("name", odd_values())
def test_what_counts_as_a_value_here_does_so_in_a_sandbox_and_what_does_not_fails_there(name, returned):
    here, there = (outcomes[name].outcome for outcomes in returned)
    assert (there.value, there.constraints, there.failed) == (here.value, here.constraints, here.failed)
    assert (there.error or "").split(", but")[0] == (here.error or "").split(", but")[0]
    assert len(there.error or "") < 300


# Ways to end


@pytest.mark.parametrize("status", [0, 1, "a message", None], ids=repr)
@pytest.mark.parametrize("workers", [1, 2])
def test_an_objective_that_exits_has_failed(workers, status):
    result = minimize(lambda p: sys.exit(status), PLANE, budget=2, seed=1, workers=workers)
    assert (result.failures, result.first_error) == (2, f"SystemExit: {'' if status is None else status}")


@pytest.mark.parametrize(
    ("crash", "said"),
    [
        (lambda: os._exit(7), "exit status 7"),
        (os.abort, "signal SIGABRT"),
        (lambda: signal.raise_signal(signal.SIGSEGV), "signal SIGSEGV"),
        (lambda: os.closerange(3, 200), "died"),
        (lambda: os.execvp("sleep", ["sleep", "60"]), "died"),
    ],
    ids=["exits", "aborts", "crashes", "closes every file", "becomes another program"],
)
def test_a_crash_is_a_failed_evaluation_that_says_how_the_process_ended(crash, said):
    result = minimize(lambda p: crash(), PLANE, budget=1, seed=1, timeout=20.0)
    assert (result.evaluations, result.failures) == (1, 1)
    assert "died 3 times" in result.first_error
    assert said in result.first_error


def replacing_every_file():
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3, 64):
        os.dup2(null, number)
    return 1.0


def closing_every_file_beside_a_thread():
    threading.Thread(target=time.sleep, args=(60,)).start()
    os.closerange(3, 64)
    return 1.0


@pytest.mark.parametrize("harm", [replacing_every_file, closing_every_file_beside_a_thread])
def test_a_worker_that_has_lost_its_connection_ends_and_its_evaluation_is_repeated(harm, tmp_path):
    done = tmp_path / "done"

    def objective(p):
        if not done.exists():
            done.touch()
            return harm()
        return p["x"] ** 2

    result = minimize(objective, PLANE, budget=2, seed=1, workers=2)
    assert (result.evaluations, result.failures) == (2, 0)
    assert result.value == min(p["x"] ** 2 for p in points(2))


# Exceptions


def raising(make):
    def objective(p=None):
        raise make()

    return objective


def holding_a_lock():
    error = RuntimeError("holds a lock")
    error.lock = threading.Lock()
    return error


def of_two_arguments():
    class Needy(Exception):
        def __init__(self, code, text):
            super().__init__(f"{text} ({code})")

    return Needy(7, "needs two")


def of_a_local_class():
    class NotConverged(Exception):
        pass

    return NotConverged("no root")


EXCEPTIONS = {
    "ZeroDivisionError: no radius": lambda: ZeroDivisionError("no radius"),
    "JSONDecodeError: bad: line 1 column 2 (char 1)": lambda: json.JSONDecodeError("bad", "{", 1),
    "UnicodeDecodeError: 'utf-8' codec": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    "RuntimeError: holds a lock": holding_a_lock,
    "Needy: needs two (7)": of_two_arguments,
    "NotConverged: no root": of_a_local_class,
    "ValueError: \\udcff": lambda: ValueError("\\udcff"),
    "KeyError: 'wire'": lambda: KeyError("wire"),
    "MemoryError: xxx": lambda: MemoryError("x" * 100_000),
    "SystemExit: 3": lambda: SystemExit(3),
    "ExceptionGroup: several (2 sub": lambda: ExceptionGroup("several", [KeyError("a"), KeyError("b")]),
}


@pytest.fixture(scope="module")
def raised(pools):
    functions = {text: raising(make) for text, make in EXCEPTIONS.items()}
    return reports(functions, None), reports(functions, 60.0)


@pytest.mark.parametrize("text", EXCEPTIONS, ids=ascii)
def test_the_error_of_a_failed_evaluation_is_the_exception_that_was_raised(text, raised):
    here, there = (outcomes[text].outcome.error for outcomes in raised)
    assert here == there
    assert here.startswith(text)


@pytest.mark.parametrize("shared", [1, 2, "threads", "process pool", "loky"], indirect=True)
def test_on_error_raise_gives_the_exception_that_was_raised(shared):
    def objective(p):
        return 1 / 0

    with pytest.raises(ZeroDivisionError, match="division by zero"):
        minimize(objective, PLANE, budget=6, seed=1, workers=shared, on_error="raise")


@pytest.mark.parametrize("shared", [2, "process pool"], indirect=True)
def test_an_exception_from_a_worker_says_where_it_was_raised(shared):
    def innermost():
        return 1 / 0

    with pytest.raises(ZeroDivisionError) as caught:
        minimize(lambda p: innermost(), PLANE, budget=6, seed=1, workers=shared, on_error="raise")
    assert "innermost" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("shared", [1, 2, "threads", "process pool", "loky"], indirect=True)
def test_on_error_raise_gives_an_exception_of_the_programs_own_class(shared):
    class NotConverged(Exception):
        pass

    def objective(p):
        raise NotConverged("no root")

    with pytest.raises(NotConverged, match="no root"):
        minimize(objective, PLANE, budget=6, seed=1, workers=shared, on_error="raise")


@pytest.mark.parametrize("shared", [2, "process pool"], indirect=True)
@pytest.mark.parametrize("make", [holding_a_lock, of_two_arguments], ids=lambda make: make.__name__)
def test_on_error_raise_gives_the_text_of_an_exception_that_cannot_travel(shared, make):
    with pytest.raises(Exception, match=r"holds a lock|needs two \(7\)"):
        minimize(raising(make), PLANE, budget=6, seed=1, workers=shared, on_error="raise")


# One sandbox by itself


def test_a_sandbox_that_cannot_start_says_so(monkeypatch):
    monkeypatch.setattr("mixcma.evaluation.sandbox.PROGRAM", "no such program.py")
    with pytest.raises(SandboxDied, match="ended while it started"):
        Sandbox(b"")
