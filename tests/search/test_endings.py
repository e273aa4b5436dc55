"""Every search ends, and can be interrupted at any moment, even where its generations cost no evaluation."""

from __future__ import annotations

import itertools
import math
import random
import signal
import subprocess
import sys
import zlib
from dataclasses import replace

import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Outcome, Space, Stopping, minimize, resume
from mixcma.core.methods import METHODS
from mixcma.run.optimizer import Optimizer
from mixcma.search import base
from mixcma.search.base import LONGEST_IDLE
from mixcma.store import read

SPACES = {
    "ints": Space({"a": Int(0, 6), "b": Int(0, 6)}),
    "bools": Space({name: Bool() for name in "abcd"}),
    "sets": Space({"wire": Discrete([0.1, 0.5, 0.2]), "n": Int(0, 3), "on": Bool(), "fixed": Int(4, 4)}),
    "categories": Space({"kernel": Categorical(["rbf", "poly", None]), "on": Bool(), "n": Int(0, 4)}),
    "two points": Space({"on": Bool()}),
}
# Far too large to be exhausted; but near its optimum a run soon knows every point.
LARGE = Space({"a": Int(0, 999), "b": Int(0, 999)})
PATIENT = Stopping(flat_tolerance=None, min_variance=0.0, max_condition=math.inf)  # no run ends for flat values
ASYNCHRONOUS = pytest.mark.parametrize("asynchronous", [False, True], ids=["synchronous", "asynchronous"])
SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)


def points_of(space):
    """Every point of a small space."""
    values = {
        "int": lambda v: range(v.low, v.high + 1),
        "bool": lambda v: (False, True),
        "discrete": lambda v: v.values,
        "categorical": lambda v: v.choices,
    }
    listed = (values[variable.kind](variable) for variable in space.values())
    return [dict(zip(space, point)) for point in itertools.product(*listed)]


def rugged(p):
    """A value per point that is as good as random."""
    return float(zlib.crc32(repr(list(p.values())).encode()) % 1000)


def feasible_at(point):
    return lambda p: Outcome(rugged(p), [0.0 if p == point else 1.0 + rugged(p) % 7])


def bowl(p):
    return float((p["a"] - 300) ** 2 + (p["b"] - 500) ** 2)


KINDS = {
    "unconstrained": lambda space: rugged,
    "one point is feasible": lambda space: feasible_at(points_of(space)[-1]),
    "nothing is feasible": lambda space: feasible_at(None),
    "some points fail": lambda space: lambda p: rugged(p) if rugged(p) > 200 else None,
    "flat": lambda space: lambda p: 0.0,
}


class Watched:
    """Counts the generations of a run since its last evaluation; more than `most` of them are a search without end.

    `at` maps such a count to a function that is called inside that generation.
    """

    def __init__(self, objective):
        self.objective, self.calls = objective, 0
        self.run, self.idle, self.generations, self.most = 0, 0, 0, LONGEST_IDLE
        self.at = {}

    def __call__(self, p):
        self.calls += 1
        self.idle = -1  # this generation is not over
        return self.objective(p)

    def advance(self, optimizer, sample, told, original=Optimizer.advance):
        self.generations += 1
        self.idle = self.idle + 1 if optimizer.run == self.run else min(self.idle + 1, 1)
        self.run = optimizer.run
        assert self.idle <= self.most, f"{self.idle} generations in a row cost no evaluation"
        original(optimizer, sample, told)
        if self.idle in self.at:
            self.at.pop(self.idle)()


@pytest.fixture
def watched(monkeypatch):
    def watch(objective):
        watch = Watched(objective)
        monkeypatch.setattr(Optimizer, "advance", lambda *arguments: watch.advance(*arguments))
        return watch

    return watch


def same(result):
    """A result without its file."""
    return replace(result, run_file=None)


def rows(path):
    return [(row.id, row.run, row.generation, row.slot, row.params, row.status, row.outcome) for row in read(path).rows]


# It ends by itself


@ASYNCHRONOUS
@pytest.mark.parametrize("stopping", [Stopping(), PATIENT], ids=["usual", "patient"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPACES)
def test_a_search_of_a_small_space_ends_long_before_its_budget(name, kind, stopping, asynchronous, watched):
    space = SPACES[name]
    objective = watched(KINDS[kind](space))
    result = minimize(objective, space, budget=10**6, seed=1, stopping=stopping, asynchronous=asynchronous)
    assert result.stop.name == "exhausted"
    assert result.evaluations == objective.calls <= space.size
    if result.evaluations == space.size:
        assert objective.idle <= 0  # -1 where it was evaluated while exploring, which is no generation of mix


@ASYNCHRONOUS
@pytest.mark.parametrize("seed", range(5))
def test_a_search_with_one_feasible_point_among_49_ends(seed, asynchronous, watched):
    """It once went on for ever: all points were known, and no generation was like the one before."""
    space = SPACES["ints"]
    objective = watched(feasible_at({"a": 3, "b": 5}))
    result = minimize(objective, space, budget=10**6, seed=seed, asynchronous=asynchronous)
    assert result.stop.name == "exhausted"
    assert result.feasible == (result.params == {"a": 3, "b": 5})


@ASYNCHRONOUS
@pytest.mark.parametrize("name", SPACES)
def test_when_every_point_is_known_nothing_more_is_drawn(name, asynchronous, watched, tmp_path):
    space, path = SPACES[name], tmp_path / "run.db"
    objective = watched(rugged)
    options = {"budget": 10**6, "asynchronous": asynchronous, "seed": 1, "run_file": path}
    result = minimize(objective, space, x0=points_of(space), **options)
    assert (result.stop.name, result.evaluations, objective.generations) == ("exhausted", space.size, 0)
    before = rows(path)
    assert minimize(objective, space, **options) == result
    assert rows(path) == before


@ASYNCHRONOUS
def test_a_budget_of_just_every_point_is_an_exhausted_space(asynchronous, watched):
    space = SPACES["two points"]
    result = minimize(watched(rugged), space, budget=space.size, seed=1, asynchronous=asynchronous, stopping=PATIENT)
    assert (result.evaluations, result.stop.name) == (space.size, "exhausted")


@ASYNCHRONOUS
def test_without_the_cache_known_points_are_paid_for_until_the_budget_ends(asynchronous, watched):
    objective = watched(rugged)
    options = {"seed": 1, "cache": False, "asynchronous": asynchronous, "stopping": PATIENT}
    result = minimize(objective, SPACES["bools"], budget=200, **options)
    assert (result.stop.name, result.evaluations) == ("budget", 200)


@ASYNCHRONOUS
@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_proposes_nothing_new_ends_and_the_next_begins(method, asynchronous, watched, monkeypatch):
    objective = watched(bowl)
    objective.most = 20
    monkeypatch.setattr(base, "LONGEST_IDLE", 20)
    options = {"seed": 1, "restarts": 1, "stopping": PATIENT, "asynchronous": asynchronous, "method": method}
    result = minimize(objective, LARGE, budget=10**6, **options)
    assert [run.stop.name for run in result.runs] == ["exhausted"] * 2
    assert objective.calls == result.evaluations == sum(run.evaluations for run in result.runs)
    assert result.params == {"a": 300, "b": 500}


def test_remembered_floats_end_a_run_too(watched, monkeypatch):
    """A run that lies outside the bounds draws the bound again and again."""
    objective = watched(lambda p: p["x"])
    objective.most = 20
    monkeypatch.setattr(base, "LONGEST_IDLE", 5)
    options = {"seed": 1, "cache": True, "restarts": False, "stopping": PATIENT}
    result = minimize(objective, Space({"x": Float(0, 1)}), budget=10**6, **options)
    assert (result.stop.name, result.value) == ("exhausted", 0.0)


# It ends where the unbroken one does


@ASYNCHRONOUS
@pytest.mark.parametrize("idle", [1, LONGEST_IDLE // 2, LONGEST_IDLE - 1])
def test_a_search_that_is_stopped_between_generations_that_cost_nothing_ends_as_if_it_had_not_been(
    idle, asynchronous, watched, tmp_path
):
    path, whole_path = tmp_path / "run.db", tmp_path / "whole.db"
    options = {"budget": 10**6, "seed": 1, "restarts": 1, "stopping": PATIENT, "asynchronous": asynchronous}
    options |= {"method": "cma"}  # it is idle soon
    whole = minimize(bowl, LARGE, run_file=whole_path, **options)
    objective, asked = watched(bowl), []
    objective.at[idle] = lambda: asked.append(True)
    stopped = minimize(objective, LARGE, run_file=path, callback=lambda progress: bool(asked), **options)
    assert (stopped.stop.name, objective.idle) == ("callback", idle)
    objective.most = math.inf  # generations since the last snapshot are counted once more
    assert same(resume(path, objective)) == same(whole)
    assert rows(path) == rows(whole_path)


# It can be interrupted


@pytest.fixture
def endless(monkeypatch):
    """No search ends because its generations cost nothing."""
    monkeypatch.setattr(base, "LONGEST_IDLE", math.inf)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@ASYNCHRONOUS
@SIGNALS
@pytest.mark.parametrize("stopped_before", [False, True], ids=["new", "resumed"])
def test_a_signal_in_a_generation_that_costs_nothing_ends_the_search_with_it(
    stopped_before, number, asynchronous, watched, endless, tmp_path
):
    objective = watched(bowl)
    objective.most = 1000
    options = {"budget": 10**6, "seed": 1, "asynchronous": asynchronous, "stopping": PATIENT, "method": "cma"}
    options |= {"run_file": tmp_path / "run.db"}
    if stopped_before:
        assert minimize(objective, LARGE, callback=lambda _: objective.idle == 20, **options).stop.name == "callback"
    evaluations = objective.calls
    objective.at[30] = lambda: signal.raise_signal(number)
    result = minimize(objective, LARGE, **options)
    assert (result.stop.name, objective.idle) == ("interrupted", 30)
    assert result.evaluations == objective.calls >= evaluations > 0 or not stopped_before


SCRIPT = """
import signal; signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
import math
import random
from concurrent.futures import ThreadPoolExecutor
from mixcma import Int, Space, Stopping, minimize
from mixcma.run.optimizer import Optimizer
from mixcma.search import base

idle = 0

def objective(p):
    global idle
    idle = 0
    return float((p["a"] - 300) ** 2 + (p["b"] - 500) ** 2)

def advance(self, sample, told, original=Optimizer.advance):
    global idle
    idle += 1
    if idle < 30:
        original(self, sample, told)
    elif idle == 30:  # from here on the state stays as it is, and every candidate is known
        print("idle", flush=True)

Optimizer.advance = advance
base.LONGEST_IDLE = math.inf
space = Space({"a": Int(0, 999), "b": Int(0, 999)})
stopping = Stopping(flat_tolerance=None, min_variance=0.0, max_condition=math.inf)
options = {"seed": 1, "method": "cma", "stopping": stopping, "workers": WORKERS, "asynchronous": ASYNC}
print(minimize(objective, space, budget=10**6, **options).stop.name)
"""


@pytest.mark.parametrize("workers", ["1", "ThreadPoolExecutor(2)"])
@ASYNCHRONOUS
@SIGNALS
def test_a_process_whose_search_costs_nothing_ends_when_it_is_told_to(number, asynchronous, workers):
    program = SCRIPT.replace("WORKERS", workers).replace("ASYNC", str(asynchronous))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "idle\n"
            process.send_signal(number)
            assert process.communicate(timeout=60)[0] == "interrupted\n"
        finally:
            process.kill()


@pytest.mark.parametrize("method", ["mix", "mix-without-model"])
def test_failures_that_are_remembered_do_not_end_a_search(method):
    """Half of the points of a space without floats fail; generations of known failures alone come again and again."""
    for seed in range(8):
        drawn = random.Random(seed)

        def sometimes(params, drawn=drawn):
            return None if drawn.random() < 0.5 else float(params["n"] ** 2 + params["m"] ** 2 + params["b"])

        space = Space({"n": Int(0, 20), "m": Int(0, 30), "b": Bool()})
        result = minimize(sometimes, space, budget=150, seed=seed, method=method)
        assert (result.evaluations, result.stop.name) == (150, "budget")
