"""Starting from what is known: histories of points with values, and points given as x0."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from mixcma import Bool, Discrete, Float, Int, Optimizer, Outcome, Space, minimize
from mixcma.core.gaussian import deviations, start_at
from mixcma.core.methods import METHODS, Cma
from mixcma.latent.encoding import Encoding
from mixcma.run.outcome import failure
from mixcma.run.warm_start import MOST_TOLD, promising, telling, warm_start
from mixcma.store import read
from tests.reference import injection
from tests.run.states import assert_close, same_state

MIXED = Space(
    {
        "n": Int(0, 9),
        "x": Float(-5, 5),
        "on": Bool(),
        "rate": Float(1e-4, 1.0, log=True),
        "wire": Discrete([0.1, 0.2, 0.5, 1.5]),
        "c": Int(4, 4),
    }
)
ENCODING = Encoding(MIXED)
PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
RTOL = 1e-9
NEIGHBOURHOOD = 0.4  # a tenth of the range, where a latent unit is a quarter of it


def sphere(p):
    return float(sum(value**2 for value in p.values()))


def some_points(space, count, seed=0):
    """Random points of a space."""
    encoding = Encoding(space)
    low, high = encoding.start_box
    return encoding.decode(np.random.default_rng(seed).uniform(low, high, (count, encoding.dimension)))


def plane_points(*coordinates):
    return [{"x": float(x), "y": float(y)} for x, y in coordinates]


def begun(start):
    """The state of a run that starts so: m, sigma and C are the same for all methods."""
    return Cma().initial_state(None, start)


def assert_starts_literally(start, latent, values, **options):
    m, sigma, C = injection.start(latent, values, NEIGHBOURHOOD, **options)
    state = begun(start)
    np.testing.assert_allclose(state.m, m, rtol=RTOL, atol=RTOL)
    np.testing.assert_allclose(state.sigma, [sigma], rtol=RTOL)
    np.testing.assert_allclose(state.C, C, rtol=RTOL, atol=RTOL * np.abs(C).max())


# The start that a history gives


@pytest.mark.parametrize("count", [1, 7, 10, 20, 70, 200])
def test_a_history_gives_the_literal_start(count):
    points = some_points(MIXED, count)
    values = np.random.default_rng(1).permutation(count).astype(float).tolist()
    latent = [ENCODING.encode(params).tolist() for params in points]
    assert_starts_literally(warm_start(ENCODING, list(zip(points, values))), latent, values)


def test_a_history_of_one_variable_gives_the_literal_start():
    space = Space({"x": Float(0, 1)})
    history = [({"x": i / 50}, float((i - 20) ** 2)) for i in range(50)]
    latent = [[4 * params["x"]] for params, _ in history]
    assert_starts_literally(warm_start(Encoding(space), history), latent, [value for _, value in history])


def test_the_optimizer_takes_a_history():
    history = [(params, sphere(params)) for params in some_points(MIXED, 60)]
    assert same_state(Optimizer(MIXED, method="cma", history=history).state, begun(warm_start(ENCODING, history)))


def test_without_points_the_start_is_the_spaces_own():
    for history in ([], (), iter([])):
        assert same_state(warm_start(ENCODING, history), start_at(ENCODING.initial_mean))
    assert same_state(Optimizer(MIXED).state, Optimizer(MIXED, history=[]).state)


def test_one_point_is_the_mean_with_its_neighbourhood():
    (point,) = some_points(MIXED, 1)
    start = warm_start(ENCODING, [(point, 3.0)])
    np.testing.assert_allclose(start.m, ENCODING.encode(point))
    np.testing.assert_allclose(start.covariance, NEIGHBOURHOOD**2 * np.eye(ENCODING.dimension), atol=1e-12)


def test_one_point_many_times_is_one_point():
    (point,) = some_points(MIXED, 1)
    once, often = (warm_start(ENCODING, [(point, 3.0)] * count) for count in (1, 200))
    assert_close(once, often, rtol=1e-12)


def test_the_neighbourhood_is_a_tenth_of_the_range_in_units_of_the_variable():
    state = begun(warm_start(Encoding(PLANE), [({"x": 1.0, "y": 2.0}, 0.0)]))
    optimizer = Optimizer(PLANE)
    low, high = optimizer.encoding.decode(np.array([state.m - deviations(state), state.m + deviations(state)]))
    assert (low["x"], high["x"]) == pytest.approx((0.0, 2.0))
    assert (low["y"], high["y"]) == pytest.approx((1.0, 3.0))


def test_only_the_best_tenth_matters():
    points = some_points(MIXED, 100)
    history = [(params, float(rank)) for rank, params in enumerate(points)]
    others = [(params, value + 1e6 * (value >= 10)) for params, value in history]
    assert promising(ENCODING, history) == points[:10]
    assert same_state(warm_start(ENCODING, history), warm_start(ENCODING, others))
    latent = [ENCODING.encode(params).tolist() for params in points[:10]]
    assert_starts_literally(warm_start(ENCODING, history), latent, [0.0] * 10, gamma=1.0)


def test_the_order_of_the_entries_does_not_matter():
    history = [(params, float(rank)) for rank, params in enumerate(some_points(MIXED, 60))]
    shuffled = [history[i] for i in np.random.default_rng(2).permutation(60)]
    assert same_state(warm_start(ENCODING, history), warm_start(ENCODING, shuffled))


def test_a_history_may_be_an_iterator_of_tuples_or_lists():
    history = [(params, sphere(params)) for params in some_points(MIXED, 40)]
    expected = warm_start(ENCODING, history)
    assert same_state(warm_start(ENCODING, iter(history)), expected)
    assert same_state(warm_start(ENCODING, [list(entry) for entry in history]), expected)
    assert same_state(warm_start(ENCODING, tuple(history)), expected)


def test_a_history_is_left_as_it_was():
    history = [(params, sphere(params)) for params in some_points(MIXED, 40)]
    before = [(dict(params), value) for params, value in history]
    minimize(sphere, MIXED, budget=30, seed=1, history=history)
    assert history == before


# What a model is told


def test_a_model_is_told_the_best_points_and_some_of_every_rank():
    points = some_points(MIXED, 1000)
    history = [(params, float(rank)) for rank, params in enumerate(points)]
    told = [int(outcome.value) for _, outcome in telling(ENCODING, history[::-1])]
    assert told[:6] == [0, 999, 1, 979, 2, 958]
    assert len([rank for rank in told if 100 < rank < 500]) > 15
    assert len(set(told)) == len(told) == MOST_TOLD
    for few in (told[:20], told[:50], told):
        assert set(range(len(few) // 2)) <= set(few)
        assert sum(rank > 700 for rank in few) > len(few) / 10


@pytest.mark.parametrize("count", [0, 1, 2, 7, MOST_TOLD - 1])
def test_a_model_is_told_all_of_a_short_history_but_failures(count):
    history = [(params, float(rank)) for rank, params in enumerate(some_points(MIXED, count + 2))]
    history[0] = (history[0][0], math.nan)
    history[-1] = (history[-1][0], math.inf)
    told = sorted(outcome.value for _, outcome in telling(ENCODING, history))
    assert told == [float(rank) for rank in range(1, count + 1)]


def test_a_method_without_a_model_is_told_nothing():
    history = [(params, sphere(params)) for params in some_points(MIXED, 20)]
    assert len(Optimizer(MIXED, history=history).told_before) == 20
    assert not Optimizer(MIXED, history=history, method="mix-without-model").told_before


# What the values say


def test_infeasible_points_are_ranked_behind_feasible_ones():
    points = some_points(MIXED, 30)
    outcomes = [
        *(Outcome(-100.0 + i, [0.5 + i / 100]) for i in range(20)),
        *(Outcome(5.0 + i, [-1.0, 0.0]) for i in range(10)),
    ]
    assert promising(ENCODING, list(zip(points, outcomes))) == points[20:23]


def test_where_nothing_is_feasible_the_least_violation_is_promising():
    points = some_points(MIXED, 20)
    outcomes = [Outcome(float(i), [1.0, 20.0 - i]) for i in range(20)]
    assert promising(ENCODING, list(zip(points, outcomes))) == [points[19], points[18]]


@pytest.mark.parametrize(
    "failed", [None, math.nan, Outcome(math.nan), failure("broken"), Outcome(-9.0, error="broken"), "text"], ids=str
)
def test_failures_are_left_out(failed):
    points = some_points(MIXED, 40)
    history = [(params, failed if rank < 20 else float(rank)) for rank, params in enumerate(points)]
    assert promising(ENCODING, history) == points[20:22]
    assert same_state(warm_start(ENCODING, history), warm_start(ENCODING, history[20:]))


def test_a_history_of_failures_is_as_good_as_none():
    history = [(params, None) for params in some_points(MIXED, 40)]
    assert same_state(warm_start(ENCODING, history), start_at(ENCODING.initial_mean))


def test_an_infinite_value_is_behind_every_finite_one():
    points = some_points(MIXED, 10)
    history = [(params, math.inf) for params in points[:9]] + [(points[9], 1e300)]
    assert promising(ENCODING, history) == [points[9]]


# What is refused

GOOD = {"n": 3, "x": 1.0, "on": True, "rate": 0.1, "wire": 0.5, "c": 4}
BAD_PARAMS = {
    "out of bounds": ({"x": 9.0}, "'x'"),
    "between two integers": ({"n": 3.5}, "'n'"),
    "not of the set": ({"wire": 0.3}, "'wire'"),
    "another constant": ({"c": 5}, "'c'"),
    "NaN": ({"x": math.nan}, "'x'"),
    "not a number": ({"x": "a"}, "'x'"),
    "a wrong name": ({"length": 1.0}, "'length'"),
}


@pytest.mark.parametrize(("change", "named"), BAD_PARAMS.values(), ids=BAD_PARAMS)
def test_points_that_are_not_of_the_space_are_refused_by_their_number(change, named):
    history = [(GOOD, 1.0), (GOOD, 2.0), ({**GOOD, **change}, 3.0)]
    with pytest.raises(ValueError, match=rf"history, entry 2: variable {named}: expected .*; "):
        Optimizer(MIXED, history=history)
    with pytest.raises(ValueError, match="history, entry 2"):
        minimize(sphere, MIXED, budget=10, history=history)


def test_a_missing_variable_is_refused_by_the_number_of_its_entry():
    history = [(GOOD, 1.0), ({name: value for name, value in GOOD.items() if name != "on"}, 2.0)]
    with pytest.raises(ValueError, match="history, entry 1: variable 'on': expected a value"):
        Optimizer(MIXED, history=history)


def test_minus_infinity_is_refused():
    with pytest.raises(ValueError, match=r"history, entry 1: .*-inf"):
        Optimizer(MIXED, history=[(GOOD, 1.0), (GOOD, -math.inf)])


@pytest.mark.parametrize("entry", [GOOD, (GOOD,), (GOOD, 1.0, 2.0), 3.0, "ab", None], ids=repr)
def test_an_entry_that_is_no_pair_is_refused_by_its_number(entry):
    with pytest.raises(ValueError, match="entry 1"):
        Optimizer(MIXED, history=[(GOOD, 1.0), entry])


@pytest.mark.parametrize("history", [5, GOOD, {"a": 1.0}], ids=repr)
def test_what_is_no_history_is_refused_with_a_sentence(history):
    with pytest.raises(ValueError, match="history: expected"):
        Optimizer(MIXED, history=history)
    with pytest.raises(ValueError, match="history: expected"):
        minimize(sphere, MIXED, budget=10, history=history)


def test_a_bad_history_is_refused_before_the_objective_is_called():
    def never(p):
        raise AssertionError("called")

    with pytest.raises(ValueError, match="history, entry 0"):
        minimize(never, MIXED, budget=10, history=[({}, 1.0)], on_error="raise")


# The history of a run file


def test_a_run_file_is_the_history_of_what_was_evaluated_in_it(tmp_path):
    path = tmp_path / "earlier.db"

    def sometimes(p):
        return Outcome(p["x"] ** 2 + p["y"], [p["y"] - 1]) if p["x"] < 2 else None

    minimize(sometimes, PLANE, budget=200, seed=3, run_file=path, x0={"x": 0.5, "y": 0.5})
    rows = [row for row in read(path).rows if row.status != "pending"]
    listed = [(row.params, row.outcome) for row in rows]
    assert len(listed) == 200
    assert any(row.outcome.failed for row in rows)
    assert any(row.outcome.violation > 0 for row in rows)
    by_path, by_list = (minimize(sphere, PLANE, budget=60, seed=1, history=history) for history in (path, listed))
    as_text = minimize(sphere, PLANE, budget=60, seed=1, history=str(path))
    without = minimize(sphere, PLANE, budget=60, seed=1)
    assert by_path == by_list == as_text
    assert by_path != without


def test_points_answered_from_memory_are_one_entry_of_the_history(tmp_path):
    grid = Space({"n": Int(0, 9), "m": Int(-5, 4)})
    path = tmp_path / "earlier.db"
    minimize(sphere, grid, budget=40, seed=1, run_file=path)
    rows = read(path).rows
    assert any(row.status == "known" for row in rows)
    points = [row.params for row in rows if row.status == "done"]
    assert len(points) == 40
    by_path = minimize(sphere, grid, budget=20, seed=2, history=path)
    assert by_path == minimize(sphere, grid, budget=20, seed=2, history=[(p, sphere(p)) for p in points])


def test_a_run_file_of_another_space_is_refused_by_the_number_of_an_entry(tmp_path):
    path = tmp_path / "earlier.db"
    minimize(sphere, PLANE, budget=20, seed=1, run_file=path)
    with pytest.raises(ValueError, match="history, entry 0: variable 'y'"):
        minimize(sphere, Space({"x": Float(-5, 5), "z": Float(-5, 5)}), budget=20, history=path)


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is none"):
        minimize(sphere, PLANE, budget=20, history=tmp_path / "nothing.db")
    (tmp_path / "text.db").write_text("no run")
    with pytest.raises(ValueError, match="expected a run file"):
        minimize(sphere, PLANE, budget=20, history=tmp_path / "text.db")


# What a history is good for

SHIFTED = Space({f"x{i}": Float(-10, 10) for i in range(3)} | {f"n{i}": Int(-10, 10) for i in range(3)})
OPTIMUM = np.array([6.3, -5.2, 7.7, 5.0, -6.0, 7.0])


def shifted_ellipsoid(p, shift=0.0):
    """Ill-conditioned, with its optimum far from the middle."""
    distance = np.array(list(p.values())) - OPTIMUM - shift
    return float(np.geomspace(1, 100, 6) @ distance**2)


def median_evaluations(**options):
    options = {"budget": 5000, "target": 1e-6, "method": "mix-without-model", **options}
    found = [minimize(shifted_ellipsoid, SHIFTED, seed=seed, **options) for seed in range(7)]
    assert all(result.stop.name == "target" for result in found)
    return statistics.median(result.evaluations for result in found)


def test_a_good_history_saves_evaluations():
    """Random points, and an earlier run, of an objective whose optimum is close."""
    earlier = []

    def recorded(p):
        earlier.append((p, shifted_ellipsoid(p, shift=0.4)))
        return earlier[-1][1]

    minimize(recorded, SHIFTED, budget=400, seed=99)
    random = [(params, shifted_ellipsoid(params, shift=0.4)) for params in some_points(SHIFTED, 300)]
    without = median_evaluations()
    assert median_evaluations(history=earlier) < 0.9 * without
    assert median_evaluations(history=random) < 0.95 * without


def test_a_history_concerns_the_first_run_alone():
    history = [({"x": 4.0, "y": 4.0}, 0.0)]

    def runs(**options):
        points = []
        result = minimize(
            lambda p: points.append(p) or math.floor(sphere(p)), PLANE, budget=2000, seed=1, restarts=1, **options
        )
        return points, result

    points, result = runs(history=history)
    others, other = runs()
    first, other_first = result.runs[0].evaluations, other.runs[0].evaluations
    assert points[0] != others[0]
    assert points[first : first + 12] == others[other_first : other_first + 12]


def test_the_values_of_a_history_are_not_results_of_this_objective():
    result = minimize(sphere, PLANE, budget=20, seed=1, target=-1.0, history=[({"x": 0.0, "y": 0.0}, -5.0)])
    assert (result.evaluations, result.stop.name) == (20, "budget")
    assert result.value >= 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_a_history(method):
    history = [(params, sphere(params)) for params in some_points(PLANE, 100)]
    result = minimize(sphere, PLANE, budget=2000, target=1e-8, seed=1, method=method, history=history)
    assert result.stop.name == "target"


def test_a_mean_takes_the_place_of_that_of_the_history():
    history = [(params, sphere(params)) for params in some_points(PLANE, 100)]
    optimizer = Optimizer(PLANE, history=history, mean={"x": -1.0, "y": 4.0})
    state = begun(warm_start(optimizer.encoding, history))
    np.testing.assert_allclose(optimizer.state.m, optimizer.encoding.encode({"x": -1.0, "y": 4.0}))
    assert np.array_equal(optimizer.state.C, state.C)
    assert np.array_equal(optimizer.state.sigma, state.sigma)


# x0


class Recorded:
    """An objective that keeps the points it was called with."""

    def __init__(self, objective=sphere):
        self.objective = objective
        self.points = []

    def __call__(self, p):
        self.points.append(dict(p))
        return self.objective(p)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("x0", [plane_points((4, -3)), plane_points((4, -3), (1, 1), (-5, 5))], ids=["one", "several"])
def test_the_points_given_are_evaluated_first_and_in_their_order(x0, asynchronous):
    objective = Recorded()
    minimize(objective, PLANE, budget=30, seed=1, x0=x0, asynchronous=asynchronous)
    assert objective.points[: len(x0)] == x0
    assert len(objective.points) == 30


def test_one_point_may_be_given_without_a_list():
    results = [minimize(sphere, PLANE, budget=30, seed=1, x0=x0) for x0 in ({"x": 4, "y": -3}, [{"x": 4, "y": -3}])]
    assert results[0] == results[1]


@pytest.mark.parametrize("nothing", [None, [], ()], ids=repr)
def test_no_points_change_nothing(nothing):
    assert minimize(sphere, PLANE, budget=30, seed=1, x0=nothing) == minimize(sphere, PLANE, budget=30, seed=1)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_best_of_them_is_the_first_mean(asynchronous):
    x0 = plane_points((4, -3), (3, 3), (-5, 5))
    objective = Recorded()
    method = "mix-without-model" if asynchronous else "mix"  # there six results are enough for proposals
    minimize(objective, PLANE, budget=9, seed=1, x0=x0, asynchronous=asynchronous, method=method)
    optimizer = Optimizer(PLANE, seed=1)
    optimizer.move_to(x0[1])
    np.testing.assert_allclose(optimizer.state.m, optimizer.encoding.encode(x0[1]))
    assert objective.points[3:] == [candidate.params for candidate in optimizer.ask()]


def test_the_best_of_them_is_feasible_before_infeasible_and_not_a_failure():
    x0 = plane_points((1, 1), (2, 2), (3, 3), (4, 4))
    outcomes = iter([None, Outcome(-5.0, [0.1]), Outcome(7.0), Outcome(8.0)])
    objective = Recorded(lambda p: next(outcomes, Outcome(0.0)))
    minimize(objective, PLANE, budget=10, seed=1, x0=x0)
    optimizer = Optimizer(PLANE, seed=1)
    optimizer.move_to(x0[2])
    assert objective.points[4:] == [candidate.params for candidate in optimizer.ask()]


def test_where_all_of_them_failed_the_start_is_the_spaces_own():
    objective = Recorded(lambda p: None if abs(p["x"]) > 3 else sphere(p))
    minimize(objective, PLANE, budget=8, seed=1, x0=plane_points((4, 4), (-4, 4)))
    assert objective.points[2:] == [candidate.params for candidate in Optimizer(PLANE, seed=1).ask()]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_starts_from_a_point(method):
    start = {"n": 7, "x": 3.0, "on": True, "rate": 0.5, "wire": 1.5, "c": 4}
    result = minimize(sphere, MIXED, budget=200, seed=1, method=method, x0=start)
    assert result.value < sphere(start)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_result_is_never_worse_than_the_points_given(seed, asynchronous):
    """The optimum itself is given, in a landscape that leads away from it."""

    def deceptive(p):
        return -1.0 if p["n"] == 3 and p["x"] == 0.25 else (p["x"] - 4) ** 2 + p["n"]

    needle = {"n": 3, "x": 0.25, "on": False, "rate": 1e-4, "wire": 0.1, "c": 4}
    result = minimize(deceptive, MIXED, budget=100, seed=seed, x0=[GOOD, needle], asynchronous=asynchronous)
    assert (result.value, result.params) == (-1.0, needle)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("budget", [1, 2, 3, 4])
def test_they_count_against_the_budget(budget, asynchronous):
    objective = Recorded()
    x0 = plane_points((4, -3), (3, 3), (-5, 5))
    result = minimize(objective, PLANE, budget=budget, seed=1, x0=x0, asynchronous=asynchronous)
    assert len(objective.points) == result.evaluations == budget
    assert objective.points[:3] == x0[:budget]
    assert result.stop.name == "budget"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_they_may_reach_the_target(asynchronous):
    x0 = plane_points((4, -3), (0.5, 0.5), (0, 0))
    result = minimize(sphere, PLANE, budget=100, seed=1, target=0.5, x0=x0, asynchronous=asynchronous)
    assert (result.stop.name, result.evaluations, result.params) == ("target", 2, x0[1])


def test_their_failures_are_counted():
    x0 = plane_points((4, 4), (1, 1))
    result = minimize(lambda p: None if p == x0[0] else sphere(p), PLANE, budget=20, seed=1, x0=x0)
    assert (result.evaluations, result.failures) == (20, 1)


def test_a_point_given_twice_is_evaluated_once_where_points_are_remembered():
    grid = Space({"n": Int(0, 9), "m": Int(-5, 4)})
    objective = Recorded()
    result = minimize(objective, grid, budget=20, seed=1, x0=[{"n": 5, "m": 1}, {"n": 5, "m": 1}])
    assert objective.points.count({"n": 5, "m": 1}) == 1
    assert result.evaluations == len(objective.points) == 20


@pytest.mark.parametrize(("change", "named"), BAD_PARAMS.values(), ids=BAD_PARAMS)
def test_bad_points_are_refused_by_their_number(change, named):
    with pytest.raises(ValueError, match=rf"x0, point 1: variable {named}: expected .*; "):
        minimize(sphere, MIXED, budget=10, x0=[GOOD, {**GOOD, **change}])


@pytest.mark.parametrize("x0", ["a", 5, [3], [[1.0, 2.0]], np.array([1.0, 2.0])], ids=str)
def test_what_is_no_point_is_refused_with_a_sentence(x0):
    with pytest.raises(ValueError, match=r"x0.*: expected .*; pass a dict"):
        minimize(sphere, PLANE, budget=10, x0=x0)


def test_points_and_a_history_go_together():
    """The covariance is that of the history, the mean the point."""
    history = [(params, sphere(params)) for params in some_points(PLANE, 100)]
    objective = Recorded()
    minimize(objective, PLANE, budget=7, seed=1, x0={"x": 2.0, "y": -2.0}, history=history)
    optimizer = Optimizer(PLANE, seed=1, history=history)
    optimizer.move_to({"x": 2.0, "y": -2.0})
    assert objective.points[1:] == [candidate.params for candidate in optimizer.ask()]


@pytest.mark.parametrize("method", METHODS)
def test_a_restored_run_moves_to_a_point_with_the_covariance_of_its_history(method):
    history = [(params, sphere(params)) for params in some_points(MIXED, 100)]
    begun, restored = Optimizer(MIXED, method=method, history=history), Optimizer(MIXED, method=method)
    restored.restore(begun.snapshot())
    for optimizer in (begun, restored):
        optimizer.move_to(GOOD)
    assert same_state(restored.state, begun.state)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_run_file_keeps_them_before_the_first_generation(tmp_path, asynchronous):
    path = tmp_path / "run.db"
    x0 = plane_points((4, -3), (3, 3))
    minimize(sphere, PLANE, budget=20, seed=1, x0=x0, run_file=path, asynchronous=asynchronous)
    first, second, third = read(path).rows[:3]
    assert [(row.generation, row.slot, row.params) for row in (first, second)] == [(-1, 0, x0[0]), (-1, 1, x0[1])]
    assert [row.outcome.value for row in (first, second)] == [25.0, 18.0]
    assert (third.generation, third.slot) == (0, 0)
