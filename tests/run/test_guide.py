"""Laws of the guide: what is guessed and in which order, the same plan for the same data, no point proposed twice."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Outcome, Space, minimize
from mixcma.core.methods import Mix
from mixcma.run.guesses import guess_between
from mixcma.run.outcome import failure
from tests.run.states import same_state

SPACE = Space({"x": Float(-5, 5), "y": Float(-5, 5), "n": Int(0, 9), "on": Bool(), "kind": Categorical(list("abc"))})
PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})


def bumpy(p):
    return (p["x"] - 1.1) ** 2 + np.sin(3 * p["y"]) + p["y"] ** 2 + (p["n"] - 3) ** 2 + p["on"] + (p["kind"] == "a")


def told(optimizer, objective=bumpy, **asking):
    candidates = optimizer.ask(**asking)
    optimizer.tell(candidates, [objective(candidate.params) for candidate in candidates])
    return candidates


def after(generations, objective=bumpy, space=SPACE, exploring=True, **options):
    optimizer = Optimizer(space, **{"seed": 1, "popsize": 10, "method": Mix(model=True), **options})
    if not exploring:
        optimizer.guide.explorer.over = True
    for _ in range(generations):
        told(optimizer, objective)
    return optimizer


# Guesses


def drawn_case(rng, kind):
    """A generation of which some were evaluated: the model's order, those, values and violations."""
    L = int(rng.integers(3, 14))
    chosen = sorted(rng.choice(L, int(rng.integers(2, L)), replace=False).tolist())
    values, violations = np.full(L, np.inf), np.full(L, np.inf)
    values[chosen], violations[chosen] = np.round(rng.normal(size=len(chosen)), 1), 0.0
    if kind == "violations":
        violations[chosen] = np.maximum(0.0, np.round(rng.normal(size=len(chosen)), 1))
    if kind == "failures":
        failed = chosen[1:][:: 1 + int(rng.integers(2))]
        values[failed] = violations[failed] = np.inf
    return rng.permutation(L), chosen, values, violations


@pytest.mark.parametrize("kind", ["values", "violations", "failures"])
@pytest.mark.parametrize("seed", range(40))
def test_guesses_are_behind_the_best_and_in_the_models_order(seed, kind):
    order, chosen, values, violations = drawn_case(np.random.default_rng(seed), kind)
    evaluated = values[chosen].copy(), violations[chosen].copy()
    guess_between(order, chosen, values, violations)
    assert np.array_equal(values[chosen], evaluated[0])
    assert np.array_equal(violations[chosen], evaluated[1])
    outcomes = list(zip(violations.tolist(), values.tolist()))
    guessed = [i for i in order.tolist() if i not in chosen]
    assert np.isfinite(values[guessed]).all()
    assert np.isfinite(violations[guessed]).all()
    assert all(outcomes[i] >= min(outcomes[k] for k in chosen) for i in guessed)
    assert [outcomes[i] for i in guessed] == sorted(outcomes[i] for i in guessed)
    came = sorted(outcomes[k] for k in chosen if np.isfinite(values[k]))
    passed = 0
    for i in order.tolist():
        if i in chosen:
            passed += bool(np.isfinite(values[i]))
        else:  # behind as many of the evaluated as the model says, and before the next
            assert came[max(passed, 1) - 1] <= outcomes[i]
            assert passed >= len(came) or outcomes[i] <= came[max(passed, 1) % len(came)] or len(came) == 1


def test_infinite_violations_are_no_obstacle():
    """A constraint may be infinite, and its violation too."""
    values, violations = np.array([1.0, 2.0, np.inf, np.inf]), np.full(4, np.inf)
    guess_between(np.array([2, 0, 1, 3]), [0, 1], values, violations)
    assert not np.isnan(violations).any()
    assert not np.isnan(values).any()


def test_huge_values_are_no_obstacle():
    values, violations = np.array([-1.7e308, 1.7e308, np.inf, np.inf]), np.array([0.0, 0.0, np.inf, np.inf])
    guess_between(np.array([0, 2, 1, 3]), [0, 1], values, violations)
    assert not np.isnan(values).any()
    assert (values >= -1.7e308).all()


# Plans


EXPLORING = pytest.mark.parametrize("exploring", [True, False], ids=["exploring", "explored"])


@EXPLORING
def test_the_same_data_gives_the_same_plan(exploring):
    one, other = after(0, exploring=exploring), after(0, exploring=exploring)
    for _ in range(30):
        first, second = told(one), told(other)
        assert [(c.slot, c.params) for c in first] == [(c.slot, c.params) for c in second]
        assert same_state(one.state, other.state)
    assert json.dumps(one.snapshot().numbers) == json.dumps(other.snapshot().numbers)


@EXPLORING
@pytest.mark.parametrize("at_least", [1, 4, 7, 10])
def test_including_those_that_were_chosen_chooses_the_same(at_least, exploring):
    """However many workers there are now."""
    for generations in (1, 3, 8, 20):
        chosen = [(c.slot, c.params) for c in after(generations, exploring=exploring).ask(at_least=at_least)]
        assert len(chosen) >= at_least
        again = after(generations, exploring=exploring).ask(including=[slot for slot, _ in chosen])
        assert [(c.slot, c.params) for c in again] == chosen


@EXPLORING
def test_including_one_includes_it(exploring):
    for slot in range(8):  # the last ones may have made way for points of the model's own
        assert slot in {c.slot for c in after(4, exploring=exploring).ask(including=[slot])}


def test_the_first_generation_is_whole_and_later_ones_have_two_or_more():
    optimizer = after(0, exploring=False)
    sizes = [len(told(optimizer)) for _ in range(40)]
    assert sizes[0] == 10
    assert min(sizes) >= 2
    assert min(sizes) < 10


def test_while_exploring_there_is_one_at_a_time_and_the_state_stays():
    """It is one of the model's own. Then the search begins at the best of them, and mix draws again."""
    optimizer = after(1)
    begun = optimizer.state
    for generation in range(1, 25):
        assert [c.proposed for c in told(optimizer)] == [True]
        assert optimizer.generation == generation + 1
        assert optimizer.evaluations == 10 + generation
        assert optimizer.state is begun
    while not optimizer.guide.explorer.over:
        told(optimizer)
    assert optimizer.state is not begun
    np.testing.assert_allclose(optimizer.state.m[:1], optimizer.guide.best_point[:1])
    assert optimizer.encoding.decode(optimizer.guide.best_point[None])[0] == optimizer.best.params
    assert any(not c.proposed for c in told(optimizer))


@pytest.mark.parametrize("at_least", [2, 6, 10])
def test_while_exploring_as_many_are_proposed_together_as_there_are_workers(at_least):
    optimizer, seen = after(1), []
    for _ in range(4):
        candidates = told(optimizer, at_least=at_least)
        assert len(candidates) == at_least
        seen += [tuple(c.params.values()) for c in candidates if c.proposed]
    assert len(set(seen)) == len(seen) >= 8


def test_no_point_is_proposed_that_was_evaluated_lately():
    for seed in range(6):
        optimizer, seen = Optimizer(PLANE, method=Mix(model=True), seed=seed), []
        for _ in range(15):
            candidates = told(optimizer, lambda p: p["x"] ** 2 + p["y"] ** 2)
            assert not [c for c in candidates if c.proposed and c.params in seen]
            seen += [c.params for c in candidates]


# Failures, constraints, and numbers of any size


@pytest.mark.parametrize("every", [2, 3, 5])
def test_a_search_with_failures_goes_on(every):
    calls = []

    def failing(p):
        calls.append(p)
        return failure("broken") if len(calls) % every == 0 else bumpy(p)

    optimizer = after(40, failing)
    assert optimizer.stop is None
    assert optimizer.failures == len(calls) // every
    assert optimizer.evaluations == len(calls)


def test_after_a_part_of_a_generation_failed_all_are_evaluated():
    optimizer = after(6, exploring=False)
    asked = told(optimizer, lambda p: failure("broken"))
    assert len(asked) < 10
    assert optimizer.stop is None
    assert len(optimizer.ask()) == 10


def test_where_all_fails_the_run_is_given_up():
    optimizer = after(6, exploring=False)
    for _ in range(4):
        assert optimizer.stop is None
        told(optimizer, lambda p: failure("broken"))
    assert optimizer.stop.name == "failing"


@pytest.mark.parametrize("bound", [np.inf, 1e308])
def test_infinite_and_huge_violations(bound):
    after(30, lambda p: Outcome(bumpy(p), [bound if p["n"] > 1 or p["on"] else 0.0]))


@pytest.mark.parametrize("size", [1e154, 1e300, 1.7e308])
def test_huge_values(size):
    after(30, lambda p: size * np.sin(bumpy(p)))


def test_integers_beyond_the_floats():
    wide = Space({"whole": Discrete([-(10**25), 3, 10**25]), "x": Float(-5, 5)})
    after(10, lambda p: float(p["whole"]) / 1e24 + p["x"] ** 2, wide)


def test_constraints_may_change_their_number():
    after(20, lambda p: Outcome(bumpy(p), [p["x"]] * (1 + p["on"])))


# The end of a run


def valley(params):
    """Convex and quadratic in the floats, whatever the integer is worth."""
    x = np.array([value for name, value in params.items() if name != "n"])
    return float(x @ (10.0 ** np.linspace(0, 4, len(x)) * x)) + (7 * params["n"]) % 5


@pytest.mark.parametrize("seed", range(3))
def test_a_run_ends_soon_after_the_model_has_found_the_best_floats(seed):
    space = Space({**{f"x{i}": Float(-5, 4) for i in range(12)}, "n": Int(0, 9)})
    optimizer, better = Optimizer(space, seed=seed), 0
    optimizer.guide.explorer.over = True
    while not optimizer.stop:
        before = optimizer.best
        told(optimizer, valley)
        better = optimizer.evaluations if optimizer.best != before else better
    assert optimizer.stop.name == "flat"
    assert optimizer.best.value < 1e-12
    assert optimizer.evaluations - better < optimizer.monitor.patience + 4 * optimizer.popsize


def test_no_run_has_converged_where_the_model_finds_better_floats_or_has_none():
    optimizer = after(30, lambda p: np.abs(np.sin(9 * p["x"])) + np.abs(np.sin(7 * p["y"])), PLANE, exploring=False)
    assert not optimizer.guide.has_converged(0)
    integers = after(8, lambda p: p["n"], Space({"n": Int(0, 9), "m": Int(0, 9)}), exploring=False)
    assert not integers.guide.has_converged(0)


# Failures


@pytest.mark.parametrize("failing", [None, np.inf, 1e150])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_point_that_has_failed_is_not_proposed_again(failing, asynchronous):
    """The model would have it where a simulation crashes near the optimum."""
    evaluated = []

    def crashing(params):
        evaluated.append(tuple(params.values()))
        value = sum((x - 0.3) ** 2 for x in params.values())
        return failing if value < 1.0 else value

    minimize(crashing, Space({name: Float(-5, 5) for name in "xyz"}), budget=120, seed=4, asynchronous=asynchronous)
    assert len(set(evaluated)) == len(evaluated) == 120


@pytest.mark.parametrize("limit", [-np.inf, -1e200, -1e150])
def test_a_constraint_without_a_limit_is_one_that_is_met(limit):
    def bowl(constraint):
        return lambda p: Outcome((p["x"] - 0.3) ** 2 + (p["y"] - 0.3) ** 2, [constraint, p["x"] - 1])

    never, met = (minimize(bowl(each), PLANE, budget=60, seed=1) for each in (limit, -1.0))
    assert never.value < 1e-6
    assert met.value < 1e-6


def test_values_of_any_size_cause_no_warning():
    rng = np.random.default_rng(0)
    space = Space({"x": Float(0, 1), "y": Float(0, 1), "n": Int(0, 9), "on": Bool()})
    minimize(lambda p: 10 ** rng.uniform(-300, 149), space, budget=150, seed=0)
