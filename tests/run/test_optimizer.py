"""Ask and tell: the protocol, failures, constraints, seeds, invariance, bounds and the reasons to stop."""

from __future__ import annotations

import math
import random
import warnings

import numpy as np
import pytest

from mixcma import Bool, Discrete, Float, Int, Optimizer, Outcome, Space, Stopping
from tests.run.states import same_state

MIXED = Space(
    {
        "x": Float(-5, 5),
        "n": Int(0, 9),
        "on": Bool(),
        "wire": Discrete([0.1, 0.2, 0.5, 1.5]),
        "rate": Float(1e-4, 1.0, log=True),
    }
)
PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
FREE = Space({"x": Float(), "y": Float()})
METHODS = ["margin", "cma", "im", "im-box", "mix", "mix-without-model", "catmargin"]
WHOLE = "mix-without-model"  # its generations are whole
BOTH = pytest.mark.parametrize("method", ["mix", WHOLE])
ENDLESS = Stopping(flat_tolerance=None)


def bowl(p):
    return (p["x"] - 1.3) ** 2 + (p["n"] - 3) ** 2 + p["on"] + p["wire"] + math.log10(p["rate"] / 0.01) ** 2


def sphere(p):
    return sum(value**2 for value in p.values())


def generation(optimizer, objective):
    candidates = optimizer.ask()
    optimizer.tell(candidates, [objective(c.params) for c in candidates])
    return candidates


def run(optimizer, objective, generations=10_000):
    while optimizer.stop is None and optimizer.generation < generations:
        generation(optimizer, objective)
    return optimizer


def visited(optimizer, objective, generations):
    """The parameters asked for in the first generations."""
    return [[c.params for c in generation(optimizer, objective)] for _ in range(generations)]


def after(outcomes, *, space=MIXED, seed=1, method="mix"):
    """An optimizer that was told `outcomes` in one generation of their number."""
    optimizer = Optimizer(space, seed=seed, popsize=len(outcomes), method=method)
    optimizer.tell(optimizer.ask(), outcomes)
    return optimizer


def ranked(outcomes):
    """The same with a method that goes by their ranks alone."""
    return after(outcomes, method="margin")


# The protocol


def test_a_generation_has_popsize_candidates_numbered_in_order():
    optimizer = Optimizer(MIXED, seed=1, popsize=9, run=2, method=WHOLE)
    generation(optimizer, bowl)
    candidates = optimizer.ask()
    assert [c.index for c in candidates] == list(range(9))
    assert {(c.run, c.generation) for c in candidates} == {(2, 1)}


@pytest.mark.parametrize(("dimension", "popsize"), [(1, 4), (2, 6), (5, 8), (20, 12)])
def test_the_default_popsize_is_that_of_the_paper(dimension, popsize):
    space = Space({f"x{i}": Float(0, 1) for i in range(dimension)})
    assert Optimizer(space).popsize == popsize


@pytest.mark.parametrize("method", METHODS)
def test_telling_in_any_order_equals_telling_in_order(method):
    ordered, shuffled = (Optimizer(MIXED, method=method, seed=1) for _ in range(2))
    shuffle = random.Random(0).shuffle
    for _ in range(15):
        generation(ordered, bowl)
        candidates = shuffled.ask()
        shuffle(candidates)
        shuffled.tell(candidates, [bowl(c.params) for c in candidates])
        assert same_state(ordered.state, shuffled.state)
    assert ordered.best._replace(evaluation=0) == shuffled.best._replace(evaluation=0)  # counted as they were told


@pytest.mark.parametrize("collect", [list, tuple, iter], ids=["list", "tuple", "iterator"])
def test_values_may_come_as_any_iterable(collect):
    optimizer = Optimizer(PLANE, seed=1)
    candidates = optimizer.ask()
    optimizer.tell(tuple(candidates), collect([sphere(c.params) for c in candidates]))
    assert same_state(optimizer.state, after([sphere(c.params) for c in candidates], space=PLANE).state)


def test_asking_twice_is_an_error_and_loses_nothing():
    optimizer = Optimizer(PLANE, seed=1)
    candidates = optimizer.ask()
    with pytest.raises(RuntimeError, match=r"ask: .*still have no values; call tell"):
        optimizer.ask()
    optimizer.tell(candidates, [sphere(c.params) for c in candidates])
    assert optimizer.generation == 1


@BOTH
def test_telling_nothing_changes_nothing(method):
    optimizer = Optimizer(PLANE, seed=1, method=method)
    optimizer.tell([], [])
    optimizer.ask()
    optimizer.tell([], [])
    assert (optimizer.evaluations, optimizer.generation) == (0, 0)


@BOTH
def test_telling_a_generation_twice_is_an_error(method):
    optimizer = Optimizer(PLANE, seed=1, method=method)
    candidates = generation(optimizer, sphere)
    with pytest.raises(ValueError, match="expected candidates that wait for their values"):
        optimizer.tell(candidates, [1.0] * len(candidates))
    assert optimizer.evaluations == len(candidates)


REFUSED = {
    "repeated": (lambda c, other, old: [c[0], c[0], *c[2:]], "was given twice"),
    "one too many": (lambda c, other, old: [*c, c[0]], "given twice"),
    "of another optimizer": (lambda c, other, old: [*c[1:], other[0]], "expected candidates that wait"),
    "of the last generation": (lambda c, other, old: [*c[:-1], old[-1]], "expected candidates that wait"),
    "dicts of other parameters": (lambda c, other, old: [*c[1:], {"z": 1.0}], "'z'"),
    "tuples of parameters": (
        lambda c, other, old: [tuple(x.params.values()) for x in c],
        "points of your own, but got",
    ),
    "strings": (lambda c, other, old: ["a"] * len(c), "points of your own, but got"),
    "None": (lambda c, other, old: [None] * len(c), "points of your own, but got"),
}


@pytest.mark.parametrize(("wrong", "message"), REFUSED.values(), ids=REFUSED)
def test_wrong_candidates_are_refused_and_lose_nothing(wrong, message):
    optimizer, other, undisturbed = (Optimizer(PLANE, seed=1, method=WHOLE) for _ in range(3))
    old, _, _ = (generation(o, sphere) for o in (optimizer, other, undisturbed))
    candidates = optimizer.ask()
    given = wrong(candidates, other.ask(), old)
    with pytest.raises(ValueError, match=message):
        optimizer.tell(given, [1.0] * len(given))
    optimizer.tell(candidates, [sphere(c.params) for c in candidates])
    generation(undisturbed, sphere)
    assert same_state(optimizer.state, undisturbed.state)
    assert (optimizer.evaluations, optimizer.best) == (undisturbed.evaluations, undisturbed.best)


@BOTH
def test_a_generation_may_be_told_in_parts(method):
    """It is learnt from when all of it is there."""
    parts, whole = (Optimizer(PLANE, seed=1, method=method) for _ in range(2))
    for _ in range(4):
        generation(whole, sphere)
        candidates = parts.ask()
        for candidate in candidates[::-1]:
            before = parts.generation
            parts.tell([candidate], [sphere(candidate.params)])
        assert parts.generation == before + 1
        assert parts.evaluations == whole.evaluations
        assert same_state(parts.state, whole.state)
        assert parts.best._replace(evaluation=0) == whole.best._replace(evaluation=0)


@pytest.mark.parametrize("count", [0, 5, 7])
def test_a_value_for_each_candidate_is_needed(count):
    optimizer = Optimizer(PLANE, seed=1)
    candidates = optimizer.ask()
    with pytest.raises(ValueError, match=f"expected a value for each .* got 6 .* and {count} values;"):
        optimizer.tell(candidates, [1.0] * count)


def test_minus_infinity_is_refused_and_loses_nothing():
    optimizer = Optimizer(PLANE, seed=1)
    candidates = optimizer.ask()
    with pytest.raises(ValueError, match="got -inf"):
        optimizer.tell(candidates, [-math.inf] * 6)
    values = [sphere(c.params) for c in candidates]
    optimizer.tell(candidates, values)
    assert same_state(optimizer.state, after(values, space=PLANE).state)


# Arguments belong to the caller


def test_telling_changes_neither_the_lists_nor_the_parameters_nor_the_constraints():
    optimizer = Optimizer(MIXED, seed=1)
    candidates = optimizer.ask()[::-1]
    constraints = [[2.0, -1.0] for _ in candidates]
    outcomes = [Outcome(bowl(c.params), g) for c, g in zip(candidates, constraints)]
    kept, params, told = list(candidates), [dict(c.params) for c in candidates], list(outcomes)
    optimizer.tell(candidates, outcomes)
    assert candidates == kept
    assert [c.params for c in candidates] == params
    assert all(a is b for a, b in zip(outcomes, told))
    assert constraints == [[2.0, -1.0]] * len(candidates)


def test_the_list_that_ask_returns_belongs_to_the_caller():
    optimizer = Optimizer(PLANE, seed=1)
    candidates = optimizer.ask()
    kept = list(candidates)
    candidates.clear()
    optimizer.tell(kept, [sphere(c.params) for c in kept])
    assert optimizer.generation == 1


def test_an_initial_mean_belongs_to_the_caller():
    by_array, by_name = np.array([1.0, 2.0]), {"x": 3.0}
    one, other = Optimizer(PLANE, seed=1, mean=by_array), Optimizer(PLANE, seed=1, mean=by_name)
    run(one, sphere, 3)
    run(other, sphere, 3)
    assert by_array.tolist() == [1.0, 2.0]
    assert by_name == {"x": 3.0}
    again = Optimizer(PLANE, seed=1, mean=by_array)
    by_array[:] = 0.0
    assert again.state.m.tolist() == [1.0, 2.0]


def test_a_run_leaves_its_space_as_it_was():
    before = MIXED.to_json()
    run(Optimizer(MIXED, seed=1), bowl, 5)
    assert MIXED.to_json() == before


# Failures: candidate 2 of 8 fails

VALUES = [5.0, 3.0, 9.0, 1.0, 7.0, 2.0, 8.0, 4.0]


def with_(changes):
    return [changes.get(i, value) for i, value in enumerate(VALUES)]


@pytest.mark.parametrize(
    "failed",
    [
        None,
        math.nan,
        np.float64("nan"),
        "3.0",
        1j,
        [1.0],
        np.ones(1),
        {},
        Outcome(1.0, error="broken"),
        Outcome(math.nan),
        Outcome(None),
        Outcome(0.0, [math.nan]),
        Outcome(0.0, ["1"]),
        Outcome(0.0, 3.0),
        Outcome(0.0, np.array(3.0)),
        Outcome(0.0, None),
        Outcome(0.0, "12"),
    ],
    ids=repr,
)
def test_what_is_not_a_number_is_a_failure_ranked_last(failed):
    optimizer = ranked(with_({2: failed}))
    assert optimizer.failures == 1
    assert optimizer.evaluations == 8
    assert same_state(optimizer.state, ranked(with_({2: 1e300})).state)


@pytest.mark.parametrize(
    "value", [5, np.float32(5), np.int64(5), np.array(5.0), Outcome(5), Outcome(5.0, []), True], ids=repr
)
def test_any_real_number_is_a_value(value):
    optimizer = after([value, 3.0, 9.0, 7.0])
    assert optimizer.failures == 0
    assert same_state(optimizer.state, after([float(getattr(value, "value", value)), 3.0, 9.0, 7.0]).state)


def test_an_integer_too_large_for_a_float_does_not_end_the_run():
    optimizer = ranked(with_({2: 10**400}))
    assert same_state(optimizer.state, ranked(with_({2: 1e300})).state)


def test_failures_are_equals():
    assert same_state(ranked(with_({2: None, 6: math.nan})).state, ranked(with_({2: 1e300, 6: 1e300})).state)


def test_plus_infinity_is_no_failure_and_ranked_behind_every_finite_value():
    optimizer = ranked(with_({2: math.inf}))
    assert optimizer.failures == 0
    assert same_state(optimizer.state, ranked(with_({2: 1e300})).state)


def test_plus_infinity_is_ranked_before_a_failure():
    assert same_state(ranked(with_({2: math.inf, 6: None})).state, ranked(with_({2: 1e299, 6: 1e300})).state)


def test_a_failure_is_ranked_behind_every_violation():
    outcomes = with_({1: Outcome(0.0, [1e300]), 2: None})
    assert same_state(ranked(outcomes).state, ranked(with_({1: 1e299, 2: 1e300})).state)


def test_a_failure_is_never_the_best():
    optimizer = after([Outcome(-9.0, error="broken"), 3.0, None, 4.0])
    assert (optimizer.best.value, optimizer.best.evaluation) == (3.0, 2)
    assert after([None] * 4).best is None


def test_a_generation_that_failed_altogether_changes_nothing_but_the_next_sample():
    optimizer = Optimizer(MIXED, seed=1)
    run(optimizer, bowl, 3)
    before = optimizer.state
    failed = generation(optimizer, lambda p: None)
    assert same_state(optimizer.state, before)
    assert optimizer.stop is None
    again = optimizer.ask()
    assert [c.params["x"] for c in again] != [c.params["x"] for c in failed]
    assert optimizer.failures == len(failed)


def test_three_failed_generations_in_a_row_stop_a_run():
    optimizer = Optimizer(MIXED, seed=1)
    stops = []
    for _ in range(3):
        generation(optimizer, lambda p: math.nan)
        stops.append(optimizer.stop and optimizer.stop.name)
    assert stops == [None, None, "failing"]


def test_a_success_in_between_starts_the_count_of_failed_generations_again():
    optimizer = Optimizer(MIXED, seed=1)
    for objective in [lambda p: None, lambda p: None, bowl, lambda p: None, lambda p: None]:
        generation(optimizer, objective)
    assert optimizer.stop is None


def test_a_generation_of_plus_infinity_has_not_failed():
    optimizer = Optimizer(MIXED, seed=1)
    run(optimizer, lambda p: math.inf, 4)
    assert optimizer.stop is None
    assert optimizer.failures == 0
    assert optimizer.best.value == math.inf


# Constraints


def test_the_best_is_feasible_before_infeasible_then_least_violation_then_least_value():
    optimizer = Optimizer(PLANE, seed=1, popsize=4, method=WHOLE)
    seen = []
    for outcomes in (
        [Outcome(0.0, [3.0]), Outcome(9.0, [2.0]), Outcome(8.0, [2.0]), Outcome(-9.0, [5.0])],
        [Outcome(-9.0, [2.5]), Outcome(50.0, [1.0, 0.5]), Outcome(0.0, [1.0, 0.75]), None],
        [Outcome(99.0, [0.0]), Outcome(-9.0, [1e-9]), None, Outcome(100.0)],
        [Outcome(98.0, [-1.0]), Outcome(-9.0, [1e-9]), 99.5, Outcome(97.0, [-1.0, 1e-9])],
        [97.0, Outcome(0.0, [1e-300]), math.inf, None],
    ):
        optimizer.tell(optimizer.ask(), outcomes)
        best = optimizer.best
        seen.append((best.value, best.violation, best.feasible, best.evaluation))
    assert seen == [
        (8.0, 2.0, False, 3),
        (50.0, 1.5, False, 6),
        (99.0, 0.0, True, 9),
        (98.0, 0.0, True, 13),
        (97.0, 0.0, True, 17),
    ]


def test_the_best_params_are_those_of_the_best_candidate():
    optimizer = Optimizer(MIXED, seed=1, popsize=4)
    candidates = optimizer.ask()
    optimizer.tell(candidates, [Outcome(0.0, [1.0]), 7.0, 6.0, 8.0])
    assert optimizer.best.params == candidates[2].params


@pytest.mark.parametrize("method", METHODS[:3])
@pytest.mark.parametrize("space", [PLANE, FREE], ids=["bounded", "unbounded"])
def test_the_update_ranks_feasible_first_then_by_violation_then_by_value(space, method):
    outcomes = [
        (Outcome(0.0, [2.0]), 6),
        (Outcome(5.0, [-3.0]), 2),
        (Outcome(1.0, [2.0]), 7),
        (Outcome(-9.0, [1.5, 1.0]), 8),
        (4.0, 1),
        (Outcome(9.0, [1.0, -5.0]), 5),
        (None, 9),
        (Outcome(6.0, [0.0]), 3),
    ]
    told, ranked = (Optimizer(space, method=method, seed=1, popsize=8) for _ in range(2))
    told.tell(told.ask(), [outcome for outcome, _ in outcomes])
    ranked.tell(ranked.ask(), [float(rank) for _, rank in outcomes])
    assert same_state(told.state, ranked.state)


def test_violations_that_add_up_beyond_floats_are_ranked_behind_the_others():
    outcomes = with_({1: Outcome(0.0, [1e308, 1e308]), 2: Outcome(0.0, [1e308])})
    assert same_state(ranked(outcomes).state, ranked(with_({1: 1e300, 2: 1e299})).state)


def test_a_run_is_not_flat_while_the_violation_falls():
    """A search for any feasible point: the value says nothing."""

    def objective(p):
        return Outcome(0.0, [abs(p["x"] - 3.3) + abs(p["y"] + 1) - 1e-6])

    assert run(Optimizer(PLANE, seed=1), objective, 400).best.feasible


def test_a_constrained_optimum_is_found():
    """The least x + y in a circle of radius 2: at (-sqrt(2), -sqrt(2))."""

    def objective(p):
        return Outcome(p["x"] + p["y"], [math.hypot(p["x"], p["y"]) - 2.0])

    best = run(Optimizer(PLANE, seed=1), objective).best
    assert best.feasible
    assert best.value == pytest.approx(-2 * math.sqrt(2), abs=1e-6)


# The same seed


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(method):
    def path(seed):
        return visited(Optimizer(MIXED, method=method, seed=seed), bowl, 20)

    assert path(1) == path(1)
    assert path(1) != path(2)


def test_runs_of_the_same_seed_differ():
    first, second = (Optimizer(MIXED, seed=1, run=run_).ask() for run_ in (0, 1))
    assert not {c.params["x"] for c in first} & {c.params["x"] for c in second}


@pytest.mark.parametrize("method", METHODS)
def test_a_run_neither_uses_nor_changes_the_global_random_state(method):
    np.random.seed(1)
    random.seed(1)
    one = visited(Optimizer(MIXED, method=method, seed=1), bowl, 5)
    after_run = np.random.random(), random.random()
    np.random.seed(2)
    random.seed(2)
    assert visited(Optimizer(MIXED, method=method, seed=1), bowl, 5) == one
    np.random.seed(1)
    random.seed(1)
    assert (np.random.random(), random.random()) == after_run


def test_a_seed_that_was_drawn_is_kept_and_repeats_the_run():
    drawn = Optimizer(MIXED)
    path = visited(drawn, bowl, 5)
    assert visited(Optimizer(MIXED, seed=drawn.seed), bowl, 5) == path
    assert len({Optimizer(MIXED).seed for _ in range(5)}) > 1


def test_a_numpy_integer_is_as_good_a_seed():
    assert visited(Optimizer(MIXED, seed=np.int64(7)), bowl, 2) == visited(Optimizer(MIXED, seed=7), bowl, 2)


# Only ranks count


@pytest.mark.parametrize("method", METHODS[:3])  # the box adds its penalty to the value
@pytest.mark.parametrize(
    "transform",
    [lambda v: 1024 * v, lambda v: v**3 + v, lambda v: -1 / (1 + v), math.expm1],
    ids=["scaled", "cubic", "reciprocal", "exponential"],
)
def test_a_strictly_monotone_transformation_of_the_objective_changes_nothing(method, transform):
    plain, other = (Optimizer(MIXED, method=method, seed=3, stopping=ENDLESS) for _ in range(2))
    for _ in range(40):
        one = generation(plain, bowl)
        two = generation(other, lambda p: transform(bowl(p)))
        assert [c.params for c in one] == [c.params for c in two]
        assert same_state(plain.state, other.state)


# Bounds

BOUNDED = Space(
    {
        "a": Float(-1, 2),
        "low": Float(low=0.1),
        "high": Float(high=-0.3),
        "log": Float(1e-3, 0.7, log=True),
        "n": Int(-2, 5),
        "half": Float(low=1e-2, log=True),
    }
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_objective_never_sees_a_value_out_of_bounds(method, sign):
    """It falls toward, and beyond, a corner."""

    def objective(p):
        BOUNDED.check_params(p)
        saturating = math.tanh(p["low"]) + math.tanh(p["high"]) + 1 / p["half"]
        return sign * (p["a"] + p["log"] + p["n"] + saturating)

    optimizer = Optimizer(BOUNDED, method=method, seed=1, stopping=ENDLESS)
    run(optimizer, objective, 80)
    assert optimizer.generation >= 40


@pytest.mark.parametrize("method", ["margin", "cma"])
@pytest.mark.parametrize(
    ("space", "objective", "optimum"),
    [
        (
            Space({"x": Float(0, 1), "y": Float(-5, 5)}),
            lambda p: (p["x"] - 2) ** 2 + (p["y"] - 0.3) ** 2,
            (1.0, 0.3),
        ),
        (Space({"x": Float(0, 1), "y": Float(-5, 5)}), lambda p: p["x"] - p["y"], (0.0, 5.0)),
        (Space({"x": Float(0, 1), "y": Float(0, 1)}), lambda p: p["x"] + 1e6 * p["y"], (0.0, 0.0)),
        (
            Space({"x": Float(1e-6, 1, log=True), "y": Float(0, 1)}),
            lambda p: math.log(p["x"]) + p["y"],
            (1e-6, 0.0),
        ),
        (Space({"x": Float(low=2), "y": Float(high=-2)}), lambda p: p["x"] - p["y"], (2.0, -2.0)),
        (Space({"x": Float(0, 1), "n": Int(0, 20)}), lambda p: -p["x"] - p["n"], (1.0, 20)),
        (Space({"x": Float(0, 1), "y": Float(0, 1)}), lambda p: (p["x"] + p["y"]) ** 2 - p["x"], (0.5, 0.0)),
    ],
    ids=["side", "corner", "scaled corner", "log corner", "open corner", "mixed corner", "slanted side"],
)
def test_an_optimum_on_the_boundary_is_found(space, objective, optimum, method):
    optimizer = run(Optimizer(space, method=method, seed=1), objective)
    assert tuple(optimizer.best.params.values()) == pytest.approx(optimum, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_an_optimum_inside_is_found(method):
    space = Space({"x": Float(-5, 5), "y": Float(), "z": Float(1e-4, 1, log=True)})

    def objective(p):
        return (p["x"] - 1) ** 2 + 10 * (p["y"] + 2) ** 2 + math.log(p["z"] / 0.01) ** 2

    best = run(Optimizer(space, method=method, seed=1), objective).best
    assert tuple(best.params.values()) == pytest.approx((1.0, -2.0, 0.01), rel=1e-4)


def test_an_initial_mean_moves_the_first_sample():
    space = Space({"x": Float(0, 100, std=0.01), "n": Int(0, 100)})
    for candidate in Optimizer(space, seed=1, mean={"x": 90.0}).ask():
        assert candidate.params["x"] == pytest.approx(90.0, abs=0.1)


# Reasons to stop


DISCRETE = Space({"n": Int(0, 9), "m": Int(-5, 5), "on": Bool(), "wire": Discrete([0.1, 0.4, 0.2])})


@pytest.mark.parametrize("method", METHODS)
def test_a_run_over_discrete_values_alone_stops_when_it_is_flat(method):
    assert run(Optimizer(DISCRETE, method=method, seed=1), sphere, 2000).stop.name == "flat"


def test_the_margin_finds_an_optimum_of_discrete_values_before_it_is_flat():
    best = run(Optimizer(DISCRETE, seed=1), sphere).best
    assert best.params == {"n": 0, "m": 0, "on": False, "wire": 0.1}


@pytest.mark.parametrize("value", [0.0, 1e300, math.inf])
def test_a_constant_objective_is_flat_after_the_window(value):
    optimizer = run(Optimizer(PLANE, seed=1, method=WHOLE), lambda p: value, 500)
    assert optimizer.stop.name == "flat"
    assert optimizer.generation == 10 + 15 * 2 // 6


def test_without_a_tolerance_a_run_is_never_flat():
    optimizer = run(
        Optimizer(PLANE, seed=1, stopping=Stopping(flat_tolerance=None, min_variance=0.0)), lambda p: 0.0, 60
    )
    assert optimizer.stop is None


def test_a_run_that_has_contracted_stops_for_its_variance():
    optimizer = run(Optimizer(PLANE, seed=1, stopping=ENDLESS), sphere)
    assert optimizer.stop.name == "variance"
    assert optimizer.best.value < 1e-25


def test_an_ill_conditioned_covariance_stops_a_run():
    """Along the diagonals: scales of the variables themselves are no part of C."""
    stopping = Stopping(flat_tolerance=None, max_condition=1e6)
    optimizer = Optimizer(FREE, seed=1, stopping=stopping)
    run(optimizer, lambda p: (p["x"] + p["y"]) ** 2 + 1e12 * (p["x"] - p["y"]) ** 2)
    assert optimizer.stop.name == "condition"


UNBOUNDED = {
    "one float": (Space({"x": Float()}), lambda p: -p["x"]),
    "half bounded": (Space({"x": Float(low=0)}), lambda p: -p["x"]),
    "upwards": (Space({"x": Float(high=0)}), lambda p: p["x"]),
    "beside an int": (Space({"x": Float(), "n": Int(0, 9)}), lambda p: p["n"] - p["x"]),
    "beside all kinds": (
        Space(
            {
                "x": Float(),
                "n": Int(1, 999, log=True),
                "on": Bool(),
                "wire": Discrete([1, 3, 9]),
                "y": Float(0, 1),
            }
        ),
        lambda p: p["n"] - p["x"],
    ),
}


@pytest.mark.parametrize("method", ["margin", "cma"])
@pytest.mark.parametrize(("space", "objective"), UNBOUNDED.values(), ids=UNBOUNDED)
def test_a_run_that_falls_without_bound_stops_as_numerical_and_without_a_warning(space, objective, method):
    optimizer = Optimizer(space, method=method, seed=1, stopping=Stopping(max_condition=math.inf))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(optimizer, objective, 5000)
    assert optimizer.stop.name == "numerical"
    assert math.isfinite(optimizer.best.value)
    assert all(math.isfinite(value) for value in optimizer.best.params.values())


@pytest.mark.parametrize("method", METHODS)
def test_an_objective_that_falls_without_bound_in_one_direction_stops_a_run(method):
    """The covariance stretches along the slope until its condition, or the step size, is out of range."""
    optimizer = run(Optimizer(FREE, method=method, seed=1), lambda p: p["x"] - p["y"])
    assert optimizer.stop.name in ("condition", "numerical")


def test_the_objective_never_sees_an_infinite_float():
    """With a large std the value leaves the range of floats long before the step size does."""
    optimizer, seen = Optimizer(Space({"x": Float(std=1e200)}), seed=1), []

    def objective(p):
        seen.append(p["x"])
        return -p["x"] if math.isfinite(p["x"]) else math.inf

    with np.errstate(all="ignore"):
        run(optimizer, objective, 5000)
    assert optimizer.stop is not None
    assert all(map(math.isfinite, seen))


def test_a_reason_to_stop_gives_advice():
    stop = run(Optimizer(PLANE, seed=1), lambda p: 0.0).stop
    assert stop.message in str(stop)
    assert stop.advice in str(stop)
