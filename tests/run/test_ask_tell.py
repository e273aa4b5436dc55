"""Laws of ask and tell: any number of candidates, in any order, points of the user's own, x0, restarts."""

from __future__ import annotations

import numpy as np
import pytest

from mixcma import Categorical, Float, Int, Optimizer, Outcome, Space
from mixcma.core.methods import METHODS
from mixcma.run.restarts import restart_popsize
from tests.run.states import same_state

SPACE = Space({"x": Float(-5, 5), "n": Int(0, 9), "kind": Categorical(list("abc"))})
NUMBERS = Space({"x": Float(-5, 5), "n": Int(0, 9)})
OPTIMUM = {"x": 1.2, "n": 3, "kind": "b"}
MIX = pytest.mark.parametrize("method", ["mix", "mix-without-model"])


def cost(p):
    return (p["x"] - 1.2) ** 2 + (p["n"] - 3) ** 2 + (p.get("kind", "b") != "b")


def tell(optimizer, candidates):
    optimizer.tell(candidates, [cost(candidate.params) for candidate in candidates])


# A generation in parts


@MIX
def test_a_generation_may_be_told_in_parts_and_in_any_order(method):
    whole, parts = (Optimizer(SPACE, seed=3, method=method) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(25):
        tell(whole, whole.ask())
        waiting = parts.ask()
        waiting = [waiting[k] for k in rng.permutation(len(waiting))]
        while waiting:
            some = int(rng.integers(1, len(waiting) + 1))
            tell(parts, waiting[:some])
            waiting = waiting[some:]
        assert same_state(whole.state, parts.state)
        assert whole.best == parts.best
    assert whole.evaluations == parts.evaluations


def test_the_next_generation_is_not_asked_for_before_all_are_told():
    optimizer = Optimizer(NUMBERS, seed=1, method="margin")
    candidates = optimizer.ask()
    tell(optimizer, candidates[:2])
    with pytest.raises(RuntimeError, match=f"ask: {len(candidates) - 2} of the {len(candidates)} candidates"):
        optimizer.ask()
    tell(optimizer, candidates[2:])
    assert optimizer.generation == 1


def test_what_cannot_be_told_is_refused_and_changes_nothing():
    optimizer, other = Optimizer(SPACE, seed=1), Optimizer(SPACE, seed=2)
    candidates = optimizer.ask()
    (alone,) = optimizer.ask(1)
    with pytest.raises(ValueError, match="wait for their values"):
        optimizer.tell([candidates[0], other.ask()[0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="given twice"):
        optimizer.tell([candidates[0], candidates[0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="given twice"):
        optimizer.tell([alone, alone], [1.0, 2.0])
    with pytest.raises(ValueError, match="-inf"):
        optimizer.tell([candidates[0], alone], [1.0, -np.inf])
    with pytest.raises(ValueError, match="'n'"):
        optimizer.tell([candidates[0], {"x": 1.0, "kind": "a"}], [1.0, 2.0])
    assert optimizer.evaluations == 0
    tell(optimizer, [candidates[0], alone])
    for told in (candidates[0], alone):
        with pytest.raises(ValueError, match=r"told|wait for their values"):
            tell(optimizer, [told])
    assert optimizer.evaluations == 1  # a generation counts once it is complete


# One at a time


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [1, 5])
def test_single_candidates_in_any_order_lead_to_the_optimum(method, workers):
    space = SPACE if METHODS[method].takes_categories else NUMBERS
    optimizer, rng, waiting = Optimizer(space, seed=1, method=method), np.random.default_rng(1), []
    while optimizer.evaluations < 400 and not optimizer.stop:
        waiting += optimizer.ask(workers - len(waiting))
        tell(optimizer, [waiting.pop(int(rng.integers(len(waiting))))])
    assert optimizer.best.value < 1e-6


@MIX
def test_as_many_as_asked_for_and_none_twice(method):
    optimizer = Optimizer(SPACE, seed=1, method=method)
    candidates = [candidate for n in (1, 3, 7, 20) for candidate in optimizer.ask(n)]
    assert len(candidates) == 31
    assert len({tuple(candidate.params.values()) for candidate in candidates}) == 31
    tell(optimizer, candidates)
    tell(optimizer, optimizer.ask())  # and a generation as well
    more = optimizer.ask(8)
    assert len({tuple(candidate.params.values()) for candidate in more}) == 8


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "3"])
def test_a_number_of_candidates_is_a_whole_number_above_zero(n):
    with pytest.raises(ValueError, match=r"^n: expected an integer of at least 1"):
        Optimizer(SPACE).ask(n)


# Points of the user's own


@MIX
def test_points_of_ones_own_count_and_may_be_the_best(method):
    optimizer = Optimizer(SPACE, seed=1, method=method)
    optimizer.tell([{"x": 3.0, "n": 4, "kind": "a"}, OPTIMUM], [cost({"x": 3.0, "n": 4, "kind": "a"}), cost(OPTIMUM)])
    assert optimizer.evaluations == 2
    assert optimizer.best.params == OPTIMUM
    assert optimizer.best.evaluation == 2


def test_the_model_learns_from_points_of_ones_own():
    """A quadratic function is known after some points: the first proposal is its minimum."""
    plane = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
    rng = np.random.default_rng(0)
    points = [{"x": float(x), "y": float(y)} for x, y in rng.uniform(-5, 5, (20, 2))]
    optimizer = Optimizer(plane, seed=1)
    optimizer.tell(points, [(p["x"] - 1) ** 2 + (p["y"] + 2) ** 2 for p in points])
    proposed = [candidate for candidate in (*optimizer.ask(1), *optimizer.ask(1)) if candidate.proposed]
    assert any(abs(c.params["x"] - 1) + abs(c.params["y"] + 2) < 1e-6 for c in proposed)


@MIX
def test_failures_and_constraints_may_be_told_alone(method):
    optimizer = Optimizer(SPACE, seed=1, method=method)
    for k in range(60):
        (candidate,) = optimizer.ask(1)
        outcome = None if k % 7 == 3 else Outcome(cost(candidate.params), [candidate.params["x"] - 1])
        optimizer.tell([candidate], [outcome])
    assert optimizer.failures == 60 // 7 + (60 % 7 > 3)
    assert optimizer.best.feasible


# x0 and restarts


@MIX
def test_x0_comes_first_and_the_best_of_it_is_the_mean(method):
    x0 = [{"x": 3.0, "n": 5, "kind": "a"}, {"x": 2.0, "n": 5, "kind": "b"}]
    optimizer = Optimizer(SPACE, seed=1, method=method, x0=x0)
    first = optimizer.ask()
    assert [candidate.params for candidate in first] == x0
    tell(optimizer, first)
    assert optimizer.encoding.decode(optimizer.state.m[None])[0] == x0[1]
    assert optimizer.evaluations == 2
    assert optimizer.generation == 0


def test_x0_comes_before_single_candidates():
    optimizer = Optimizer(NUMBERS, seed=1, x0={"x": 3.0, "n": 5})
    with pytest.raises(RuntimeError, match="the points of x0 come first"):
        optimizer.ask(1)
    tell(optimizer, optimizer.ask())
    assert len(optimizer.ask(2)) == 2


@pytest.mark.parametrize("x0", ["start", 3, [{"x": 1.0}], [{"x": 1.0, "n": 11, "kind": "a"}]])
def test_points_that_are_none_are_refused(x0):
    with pytest.raises(ValueError, match=r"^x0"):
        Optimizer(SPACE, x0=x0)


@MIX
def test_with_restarts_it_goes_on_with_the_populations_of_minimize(method):
    optimizer, seen = Optimizer(NUMBERS, seed=1, method=method, restarts=2), {}
    while not optimizer.stop:
        seen[optimizer.run] = optimizer.popsize
        tell(optimizer, optimizer.ask())
    assert seen == {run: restart_popsize(seen[0], run) for run in range(3)}
    assert optimizer.run == 2
    assert optimizer.best.value < 1e-9


def test_single_candidates_of_an_earlier_run_still_count():
    optimizer, first = Optimizer(NUMBERS, seed=1, method="margin", restarts=True), None
    while optimizer.run == 0:
        first = first or optimizer.ask(1)[0]
        tell(optimizer, optimizer.ask())
    before = optimizer.evaluations
    optimizer.tell([first], [-7.0])
    assert optimizer.evaluations == before + 1
    assert optimizer.best.value == -7.0
