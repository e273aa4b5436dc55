"""Laws of ask and tell: any number of candidates, in any order, points of the user's own, x0, restarts."""

from __future__ import annotations

import copy
import math
import pickle

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
        assert whole.best._replace(evaluation=0) == parts.best._replace(evaluation=0)  # they were told in other orders
    assert whole.evaluations == parts.evaluations


def test_the_next_generation_is_not_asked_for_before_all_are_told():
    optimizer = Optimizer(NUMBERS, seed=1, method="margin")
    candidates = optimizer.ask()
    tell(optimizer, candidates[:2])
    with pytest.raises(RuntimeError, match=f"ask: {len(candidates) - 2} of {len(candidates)} candidates"):
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
    assert optimizer.evaluations == 2


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


def ellipsoid(params):
    return sum((x - 1.3) ** 2 * 10 ** (0.75 * i) for i, x in enumerate(params.values()))


@pytest.mark.parametrize("method", ["mix", "mix-without-model", "catmargin", "margin"])
@pytest.mark.parametrize("seed", range(2))
def test_a_generation_may_wait_while_single_candidates_are_learnt_from(method, seed):
    """Its candidates are then expressed in the state that these have led to."""
    optimizer = Optimizer(Space({f"x{i}": Float(-5, 5) for i in range(5)}), method=method, seed=seed)
    while not optimizer.stop and optimizer.evaluations < 3000 and not (optimizer.best and optimizer.best.value < 1e-8):
        generation = optimizer.ask()
        for _ in range(40):
            if not optimizer.stop:
                (single,) = optimizer.ask(1)
                optimizer.tell([single], [ellipsoid(single.params)])
        optimizer.tell(generation, [ellipsoid(candidate.params) for candidate in generation])
    assert optimizer.best.value < 1e-8


def test_what_was_told_counts_at_once():
    optimizer = Optimizer(SPACE, seed=1)
    candidates = optimizer.ask()
    optimizer.tell(candidates[2:4], [5.0, 4.0])
    assert (optimizer.evaluations, optimizer.best.value, optimizer.best.evaluation) == (2, 4.0, 2)
    optimizer.tell(candidates[:1], [None])
    assert (optimizer.evaluations, optimizer.failures) == (3, 1)
    rest = [candidates[1], *candidates[4:]]
    optimizer.tell(rest, [6.0] * len(rest))
    assert (optimizer.evaluations, optimizer.failures, optimizer.generation) == (len(candidates), 1, 1)
    assert optimizer.best.params == candidates[3].params


@pytest.mark.parametrize("method", ["mix", "mix-without-model"])
def test_a_generation_whose_run_has_ended_meanwhile_still_counts(method):
    optimizer = Optimizer(Space({"x": Float(0, 1)}), seed=1, method=method, restarts=True)
    candidates = optimizer.ask()
    optimizer.tell(candidates[:1], [-7.0])
    while optimizer.run == 0:
        optimizer.tell(optimizer.ask(1), [1.0])
    assert optimizer.best.value == -7.0
    before = optimizer.evaluations
    optimizer.tell(candidates[1:], [-8.0] * (len(candidates) - 1))
    assert (optimizer.best.value, optimizer.evaluations) == (-8.0, before + len(candidates) - 1)
    with pytest.raises(ValueError, match="expected candidates that wait"):
        optimizer.tell(candidates[1:2], [1.0])


@pytest.mark.parametrize(
    ("candidates", "values", "message"),
    [
        (lambda asked: asked, 1.0, "expected a list of candidates and a list of values, but got 1.0 as values"),
        (lambda asked: asked[0], [1.0], "but got Candidate.* as candidates; write tell"),
        (lambda asked: dict(asked[0].params), [1.0], "but got {.* as candidates; write tell"),
        (lambda asked: [None], [1.0], "tell: expected candidates, and dicts of parameters .* but got None"),
    ],
)
def test_what_is_no_list_of_candidates_is_refused(candidates, values, message):
    optimizer = Optimizer(SPACE, seed=1)
    asked = optimizer.ask(1)
    with pytest.raises(ValueError, match=message):
        optimizer.tell(candidates(asked), values)
    optimizer.tell(asked, [1.0])


def test_the_points_of_x0_are_told_before_others_are_asked_for():
    optimizer = Optimizer(SPACE, seed=1, x0=Optimizer(SPACE, seed=2).ask(1)[0].params)
    with pytest.raises(RuntimeError, match="without a number, and tell their values"):
        optimizer.ask(1)
    points = optimizer.ask()
    with pytest.raises(RuntimeError, match="they have been given out: tell their values"):
        optimizer.ask(1)
    optimizer.tell(points, [1.0])
    assert len(optimizer.ask(1)) == 1


@pytest.mark.parametrize("target", ["1", True, math.nan])
def test_a_target_that_is_no_number_is_refused(target):
    with pytest.raises(ValueError, match="target: expected a number or None"):
        Optimizer(SPACE, target=target)


def test_a_history_that_is_no_list_is_refused_and_none_is_none():
    with pytest.raises(ValueError, match="history: expected pairs of parameters and value, but got"):
        Optimizer(SPACE, history="run.db")
    assert Optimizer(SPACE, seed=1, history=None).ask()[0].params == Optimizer(SPACE, seed=1).ask()[0].params


@pytest.mark.parametrize("size", [1e-310, 1e-300, 1e-160, 1e160])
def test_a_history_of_quite_another_size_does_no_harm(size):
    history = [({"x": -1 + i / 10, "y": -3 + i / 5}, size * (i % 7)) for i in range(30)]
    optimizer = Optimizer(Space({"x": Float(-1, 2), "y": Float(-3, 3)}), seed=3, history=history)
    while optimizer.evaluations < 40:
        candidates = optimizer.ask()
        optimizer.tell(candidates, [1.0 + c.params["x"] ** 2 + c.params["y"] ** 2 for c in candidates])
    assert optimizer.best.value < 1.0001


@pytest.mark.parametrize("copied", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy], ids=["pickle", "copy"])
@pytest.mark.parametrize("restarted", [False, True])
def test_candidates_that_wait_are_known_to_a_copy(copied, restarted):
    optimizer = Optimizer(Space({"x": Float(0, 1)}), seed=1, restarts=True)
    whole, alone = optimizer.ask(), optimizer.ask(3)
    while restarted and optimizer.run == 0:
        optimizer.tell(optimizer.ask(1), [1.0])
    optimizer, whole, alone = copied((optimizer, whole, alone))
    before = optimizer.evaluations
    for value, candidate in enumerate([*alone, *whole]):
        optimizer.tell([candidate], [-float(value)])
        assert optimizer.best.params == candidate.params or value == 0
    assert optimizer.evaluations == before + len(whole) + 3
