"""minimize(): budget, target, restarts, failures, the cache, seeds, the display, and real designs."""

from __future__ import annotations

import io
import itertools
import logging
import math

import numpy as np
import pytest
from rich.console import Console

from mixcma import Bool, Discrete, Float, Int, IntegerMutation, Outcome, Progress, Space, minimize
from mixcma.problems.engineering import DESIGNS
from mixcma.run.optimizer import Best
from mixcma.search.progress import progress_display
from tests.search.virtual_time import BOTH, WHOLE

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
WIRES = Discrete([0.1, 0.5, 0.2])
MIXED = Space({"x": Float(-5, 5), "n": Int(0, 9), "on": Bool(), "wire": WIRES, "c": Int(4, 4)})
GRID = Space({"n": Int(0, 9), "m": Int(-5, 4)})
TINY = Space({"n": Int(0, 2), "on": Bool()})


def with_budgets(guided, whole):
    """Both methods, and the budget of each: evaluations that a model chooses take much longer."""
    return pytest.mark.parametrize(("method", "budget"), [("mix", guided), (WHOLE, whole)])


def sphere(p):
    return sum(value**2 for value in p.values())


def rastrigin(p):
    """Rastrigin's function, off centre."""
    return sum(10 + (v - 2.2) ** 2 - 10 * math.cos(2 * math.pi * (v - 2.2)) for v in p.values())


class Counted:
    """An objective that keeps what it was called with and what it returned."""

    def __init__(self, objective=sphere):
        self.objective = objective
        self.points, self.returned = [], []

    def __call__(self, p):
        self.points.append(dict(p))
        self.returned.append(self.objective(p))
        return self.returned[-1]

    @property
    def calls(self):
        return len(self.points)


def failing_with(error, *, at):
    """The sphere, but for one call that raises."""
    calls = itertools.count(1)

    def objective(p):
        if next(calls) == at:
            raise error
        return sphere(p)

    return objective


# The budget


@pytest.mark.parametrize(
    ("method", "budget"), [*itertools.product(["mix", WHOLE], [1, 2, 5, 6, 7, 100]), ("mix", 161), (WHOLE, 1001)]
)
def test_exactly_the_budget_is_spent_also_in_the_middle_of_a_generation(method, budget):
    objective = Counted()
    result = minimize(objective, PLANE, budget=budget, seed=1, method=method)
    assert objective.calls == result.evaluations == budget
    assert result.stop.name == "budget"


@pytest.mark.parametrize("space", [GRID, MIXED], ids=["discrete", "mixed"])
@pytest.mark.parametrize("budget", [1, 17, 50])
def test_the_budget_is_never_exceeded(space, budget):
    objective = Counted()
    result = minimize(objective, space, budget=budget, seed=1)
    assert objective.calls == result.evaluations <= budget


def test_failed_evaluations_are_paid_for():
    objective = Counted(lambda p: None if p["x"] > 0 else sphere(p))
    result = minimize(objective, PLANE, budget=50, seed=1)
    assert objective.calls == result.evaluations == 50
    assert result.failures == objective.returned.count(None) > 0


def test_the_best_of_a_generation_cut_short_counts():
    values = itertools.count()
    result = minimize(lambda p: -float(next(values)), PLANE, budget=8, seed=1)
    assert result.value == -7.0


@BOTH
def test_the_value_is_the_least_one_seen_and_the_params_are_its_point(method):
    objective = Counted()
    result = minimize(objective, PLANE, budget=200, seed=1, method=method)
    assert result.value == min(objective.returned)
    assert result.params == objective.points[objective.returned.index(result.value)]


# The target


@BOTH
def test_the_target_stops_at_once(method):
    objective = Counted()
    result = minimize(objective, PLANE, budget=5000, target=1e-3, seed=2, method=method)
    assert result.stop.name == "target"
    assert [value <= 1e-3 for value in objective.returned].index(True) == objective.calls - 1
    assert objective.calls % 6 != 0 or method != WHOLE  # in the middle of a generation


def test_a_value_equal_to_the_target_reaches_it():
    result = minimize(lambda p: 3.0, PLANE, budget=50, target=3, seed=1)
    assert (result.stop.name, result.evaluations) == ("target", 1)


def test_an_infeasible_value_does_not_reach_the_target():
    result = minimize(lambda p: Outcome(-1.0, [1.0]), PLANE, budget=50, target=0.0, seed=1)
    assert result.stop.name == "budget"


def test_a_failure_does_not_reach_the_target():
    result = minimize(lambda p: Outcome(-1.0, error="broken"), PLANE, budget=50, target=0.0, seed=1)
    assert result.stop.name == "failing"


# The callback


def test_the_callback_receives_the_progress_of_every_generation():
    seen = []
    result = minimize(sphere, PLANE, budget=60, seed=1, callback=seen.append, method=WHOLE)
    assert all(isinstance(progress, Progress) for progress in seen)
    assert [p.evaluations for p in seen] == list(range(6, 61, 6))
    assert [p.generation for p in seen] == list(range(1, 11))
    assert {(p.budget, p.run, p.popsize, p.failures) for p in seen} == {(60, 0, 6, 0)}
    assert all(p.step_size > 0 for p in seen)
    assert (seen[-1].best.params, seen[-1].best.value) == (result.params, result.value)


def test_with_a_model_the_callback_receives_the_progress_of_every_generation_too():
    """The first one is whole; while the run explores, each of the others is a single candidate."""
    seen = []
    result = minimize(rastrigin, PLANE, budget=20, seed=1, callback=seen.append)
    assert [p.evaluations for p in seen] == list(range(6, 21))
    assert [p.generation for p in seen] == list(range(1, 16))
    assert {(p.budget, p.run, p.popsize, p.failures) for p in seen} == {(20, 0, 6, 0)}
    assert (seen[-1].best.params, seen[-1].best.value) == (result.params, result.value)


@with_budgets(160, 1000)
def test_the_best_in_the_progress_never_gets_worse(method, budget):
    seen = []
    minimize(sphere, PLANE, budget=budget, seed=1, callback=seen.append, method=method)
    values = [p.best.value for p in seen]
    assert values == sorted(values, reverse=True)


@BOTH
def test_a_true_return_of_the_callback_stops_the_search(method):
    options = {"callback": lambda progress: progress.evaluations >= 30, "method": method}
    result = minimize(sphere, PLANE, budget=600, seed=1, **options)
    assert (result.stop.name, result.evaluations) == ("callback", 30)
    assert result.params is not None


@pytest.mark.parametrize("returned", [None, False, 0])
def test_a_false_return_of_the_callback_does_not_stop_the_search(returned):
    result = minimize(sphere, PLANE, budget=60, seed=1, callback=lambda progress: returned)
    assert result.stop.name == "budget"


def test_an_error_in_the_callback_is_not_an_evaluation_that_failed():
    def callback(progress):
        raise LookupError("in the callback")

    with pytest.raises(LookupError, match="in the callback"):
        minimize(sphere, PLANE, budget=60, seed=1, callback=callback)


# Restarts


@with_budgets(600, 3000)
def test_restarts_come_back_to_every_size_of_the_population(method, budget):
    result = minimize(lambda p: 0.0, PLANE, budget=budget, seed=1, method=method)
    popsizes = [run.popsize for run in result.runs]
    expected = [6 * times for times in (1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8)]
    assert len(popsizes) >= (15 if method == WHOLE else 5)
    assert popsizes[:15] == expected[: len(popsizes)]
    assert {run.stop.name for run in result.runs[:-1]} == {"flat"}
    assert result.runs[-1].stop.name == result.stop.name == "budget"


def test_a_restart_goes_by_the_popsize_given():
    result = minimize(lambda p: 0.0, PLANE, budget=3000, seed=1, popsize=10, restarts=2)
    assert [run.popsize for run in result.runs] == [10, 10, 20]


@BOTH
@pytest.mark.parametrize(("restarts", "runs"), [(False, 1), (0, 1), (1, 2), (2, 3)])
def test_there_are_at_most_so_many_restarts(restarts, runs, method):
    result = minimize(lambda p: 0.0, PLANE, budget=100_000, seed=1, restarts=restarts, method=method)
    assert len(result.runs) == runs
    assert result.stop.name == "flat"


def test_a_restart_starts_from_elsewhere_near_the_mean_and_within_the_bounds_in_turn():
    objective = Counted(lambda p: 0.0)
    space = Space({"x": Float(0, 1000, mean=500, std=0.001)})
    runs = minimize(objective, space, budget=10_000, seed=1, restarts=4).runs
    begins = [sum(run.evaluations for run in runs[:i]) for i in range(len(runs))]
    starts = [objective.points[i]["x"] for i in begins]
    assert [abs(start - 500) < 1 for start in starts] == [True, True, False, True, False]
    assert len({round(start, 3) for start in starts}) == 5
    assert all(0 <= start <= 1000 for start in starts)


@BOTH
def test_a_restart_leads_out_of_a_local_optimum(method):
    """One run ends in a hollow beside the deepest."""

    def search(seed, **options):
        return minimize(rastrigin, PLANE, budget=20_000, target=1e-6, seed=seed, method=method, **options)

    alone = (search(seed, restarts=False) for seed in range(9))
    caught = next(result for result in alone if result.stop.name == "flat")
    assert caught.value > 0.5
    result = search(caught.seed)
    assert result.stop.name == "target"
    assert len(result.runs) > 1


@with_budgets(400, 2000)
@pytest.mark.parametrize("target", [None, 0.01], ids=["budget", "target"])
@pytest.mark.parametrize("space", [PLANE, GRID], ids=["floats", "ints"])
def test_the_runs_add_up_to_the_search(space, target, method, budget):
    result = minimize(lambda p: 0.005 + sphere(p), space, budget=budget, target=target, seed=1, method=method)
    assert len(result.runs) > 1 or target is not None or space is GRID
    assert sum(run.evaluations for run in result.runs) == result.evaluations
    assert min(run.best_value for run in result.runs) == result.value


# Errors


def test_the_first_error_is_kept_and_only_it_is_logged(caplog):
    calls = itertools.count(1)

    def objective(p):
        if (call := next(calls)) % 2:
            raise ValueError(f"call {call}")
        return sphere(p)

    with caplog.at_level(logging.WARNING, logger="mixcma"):
        result = minimize(objective, PLANE, budget=60, seed=1)
    assert (result.failures, result.first_error) == (30, "ValueError: call 1")
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("mixcma", "WARNING")
    assert "ValueError: call 1" in record.getMessage()


@with_budgets(300, 1000)
def test_a_search_without_failures_logs_no_warning(method, budget, caplog):
    with caplog.at_level(logging.WARNING, logger="mixcma"):
        minimize(sphere, PLANE, budget=budget, seed=1, method=method)
    assert caplog.records == []


def test_on_error_raise_lets_the_error_through():
    error = ZeroDivisionError("no radius")
    with pytest.raises(ZeroDivisionError) as caught:
        minimize(failing_with(error, at=9), PLANE, budget=60, seed=1, on_error="raise")
    assert caught.value is error


def test_on_error_raise_stops_at_the_first_value_that_is_no_number():
    objective = Counted(lambda p: math.nan)
    with pytest.raises(ValueError, match="expected a number"):
        minimize(objective, PLANE, budget=60, seed=1, on_error="raise")
    assert objective.calls == 1


def test_an_integer_too_large_for_a_float_does_not_end_the_search():
    values = itertools.chain([10**400], itertools.repeat(1.0))
    result = minimize(lambda p: next(values), PLANE, budget=12, seed=1)
    assert (result.evaluations, result.value) == (12, 1.0)


@pytest.mark.parametrize(
    "space",
    [PLANE, MIXED, GRID, TINY, Space({"on": Bool()})],
    ids=["floats", "mixed", "ints", "tiny", "two points"],
)
def test_a_search_in_which_everything_failed_says_so(space):
    def objective(p):
        raise RuntimeError("no licence")

    result = minimize(objective, space, budget=1000, seed=1)
    assert result.stop.name == "failing"
    assert "first error" in str(result.stop)
    assert result.first_error == "RuntimeError: no licence"
    assert (result.params, result.value, result.violation, result.feasible) == (
        None,
        math.inf,
        math.inf,
        False,
    )
    assert result.failures == result.evaluations > 0
    assert len(result.runs) == 1


@with_budgets(300, 2000)
def test_a_search_goes_on_where_much_but_not_all_fails(method, budget):
    result = minimize(lambda p: None if p["x"] < 1 else sphere(p), PLANE, budget=budget, seed=1, method=method)
    assert result.value == pytest.approx(1.0, abs=1e-3)


@BOTH
@pytest.mark.parametrize("at", [1, 4, 40, 120])
def test_an_interrupt_gives_the_result_so_far(at, method):
    objective = Counted(failing_with(KeyboardInterrupt(), at=at))
    result = minimize(objective, PLANE, budget=600, seed=1, method=method)
    assert result.stop.name == "interrupted"
    assert (result.evaluations, result.failures) == (at - 1, 0)
    assert result.value == min(objective.returned, default=math.inf)
    assert (result.params is None) == (at == 1)


def test_an_interrupt_in_the_callback_gives_the_result_so_far():
    def callback(progress):
        raise KeyboardInterrupt

    result = minimize(sphere, PLANE, budget=600, seed=1, callback=callback)
    assert (result.stop.name, result.evaluations) == ("interrupted", 6)


# The cache


def test_no_point_of_a_discrete_space_is_evaluated_twice():
    objective = Counted()
    result = minimize(objective, GRID, budget=1000, seed=1)
    points = [tuple(p.items()) for p in objective.points]
    assert len(points) == len(set(points)) == result.evaluations
    assert result.params == {"n": 0, "m": 0}


def test_a_tiny_space_is_exhausted():
    objective = Counted(lambda p: (p["n"] - 1) ** 2 + p["on"])
    result = minimize(objective, TINY, budget=1000, seed=1)
    assert result.stop.name == "exhausted"
    assert objective.calls == result.evaluations == TINY.size
    assert result.params == {"n": 1, "on": False}


def test_a_failed_point_is_not_tried_again():
    objective = Counted(lambda p: None if p["n"] == 0 else float(p["n"]))
    result = minimize(objective, TINY, budget=1000, seed=1)
    assert objective.returned.count(None) == result.failures <= 2
    assert result.value == 1.0


def test_the_cache_changes_the_cost_and_not_the_search():
    """A model, though, asks for more where some of it costs nothing."""
    cached, plain = Counted(), Counted()
    minimize(cached, GRID, budget=60, seed=1, method=WHOLE)
    minimize(plain, GRID, budget=60, seed=1, method=WHOLE, cache=False)
    first_seen = list(dict.fromkeys(tuple(p.items()) for p in plain.points))
    assert len(first_seen) < 60
    assert [tuple(p.items()) for p in cached.points][: len(first_seen)] == first_seen


def test_without_the_cache_points_are_evaluated_again():
    objective = Counted()
    result = minimize(objective, TINY, budget=100, seed=1, cache=False)
    assert (objective.calls, result.evaluations, result.stop.name) == (100, 100, "budget")


def test_without_the_cache_a_space_is_never_exhausted():
    """The first run is flat after 72 evaluations, which happens to be the number of points."""
    space = Space({"n": Int(0, 71)})
    result = minimize(lambda p: 0.0, space, budget=500, seed=1, method=WHOLE, cache=False)
    assert result.runs[0].evaluations == space.size
    assert (result.evaluations, result.stop.name) == (500, "budget")


def test_floats_are_not_cached_unless_asked_for():
    corner = Space({"x": Float(0, 1)})
    plain, cached = Counted(lambda p: p["x"]), Counted(lambda p: p["x"])
    minimize(plain, corner, budget=60, seed=1)
    minimize(cached, corner, budget=60, seed=1, cache=True)
    assert len({p["x"] for p in plain.points}) < 60
    assert len({p["x"] for p in cached.points}) == 60


# Seeds


@with_budgets(110, 700)
@pytest.mark.parametrize("space", [PLANE, MIXED, GRID], ids=["floats", "mixed", "ints"])
def test_the_same_seed_gives_the_same_search_and_another_seed_another(space, method, budget):
    def search(seed):
        objective = Counted()
        return minimize(objective, space, budget=budget, seed=seed, method=method), objective.points

    assert search(1) == search(1)
    assert search(1)[1] != search(2)[1]


@with_budgets(160, 700)
def test_the_seed_of_a_result_repeats_the_search(method, budget):
    drawn = minimize(sphere, MIXED, budget=budget, method=method)
    assert minimize(sphere, MIXED, budget=budget, method=method, seed=drawn.seed) == drawn


def test_the_seed_of_a_result_is_the_seed_given():
    assert minimize(sphere, PLANE, budget=10, seed=123).seed == 123


def test_a_numpy_integer_is_as_good_a_seed():
    result = minimize(lambda p: 0.0, PLANE, budget=200, seed=np.int64(7))
    assert len(result.runs) > 1
    assert result == minimize(lambda p: 0.0, PLANE, budget=200, seed=7)
    assert type(result.seed) is int


@with_budgets(160, 700)
def test_the_global_random_state_does_not_matter(method, budget):
    np.random.seed(1)
    one = minimize(sphere, MIXED, budget=budget, seed=1, method=method)
    np.random.seed(2)
    assert minimize(sphere, MIXED, budget=budget, seed=1, method=method) == one


# What the objective receives, and what it may do to it


def test_the_objective_receives_true_python_types_in_the_order_of_the_space():
    objective = Counted()
    minimize(objective, MIXED, budget=60, seed=1)
    expected = {"x": float, "n": int, "on": bool, "wire": float, "c": int}
    for p in objective.points:
        assert list(p) == list(MIXED)
        assert {name: type(value) for name, value in p.items()} == expected


@pytest.mark.parametrize("space", [MIXED, GRID], ids=["mixed", "cached"])
def test_the_objective_may_do_what_it_likes_to_its_params(space):
    def careless(p):
        value = sphere(p)
        p.update(n="spoilt", extra=1)
        p.pop("x", None)
        return value

    assert minimize(careless, space, budget=150, seed=1) == minimize(sphere, space, budget=150, seed=1)


def test_the_params_of_a_result_are_a_point_of_the_space():
    result = minimize(sphere, MIXED, budget=150, seed=1)
    assert MIXED.check_params(result.params) == result.params
    assert sphere(result.params) == result.value


# Constraints


@with_budgets(200, 2000)
def test_a_feasible_point_is_preferred_to_a_better_infeasible_one(method, budget):
    objective = Counted(lambda p: Outcome(p["x"], [1.0 - p["x"]]))
    result = minimize(objective, PLANE, budget=budget, seed=1, method=method)
    assert result.feasible
    assert result.violation == 0.0
    assert result.value == pytest.approx(1.0, abs=1e-6)
    assert result.value == min(o.value for o in objective.returned if o.feasible)
    assert any(o.value < result.value for o in objective.returned)


@with_budgets(200, 2000)
def test_where_nothing_is_feasible_the_least_violation_is_reported(method, budget):
    objective = Counted(lambda p: Outcome(0.0, [2.0 + p["x"] ** 2, -5.0, p["y"] ** 2]))
    result = minimize(objective, PLANE, budget=budget, seed=1, method=method)
    assert not result.feasible
    assert result.violation == min(o.violation for o in objective.returned)
    assert result.violation == pytest.approx(2.0, abs=1e-3)


# The display


def test_the_display_shows_the_best_value_and_the_budget(capsys):
    result = minimize(sphere, PLANE, budget=300, seed=1, method=WHOLE, progress=True)
    shown = capsys.readouterr().out
    assert "best" in shown
    assert "300" in shown
    assert result.evaluations == 300


def test_without_a_display_nothing_is_printed(capsys):
    minimize(sphere, PLANE, budget=150, seed=1)
    assert capsys.readouterr() == ("", "")


@with_budgets(150, 300)
def test_the_display_changes_nothing(method, budget):
    seen, alone, options = [], [], {"budget": budget, "seed": 1, "method": method}
    shown = minimize(sphere, PLANE, progress=True, callback=seen.append, **options)
    assert shown == minimize(sphere, PLANE, **options) == minimize(sphere, PLANE, callback=alone.append, **options)
    assert seen == alone
    assert len(seen) == 50 or method != WHOLE
    assert seen[-1].evaluations == budget or method != WHOLE  # the last generation may not be whole


def test_the_callback_stops_a_search_with_a_display():
    result = minimize(sphere, PLANE, budget=300, seed=1, progress=True, callback=lambda progress: True)
    assert result.stop.name == "callback"


@pytest.mark.parametrize(
    ("best", "text"),
    [
        (Best({"x": 1.0}, 0.125, 0.0, 3), "best 0.125"),
        (Best({"x": 1.0}, 0.125, 2.5, 3), "nothing feasible yet, violation 2.5"),
        (None, "no evaluation has succeeded yet"),
    ],
    ids=["feasible", "infeasible", "failed"],
)
def test_the_display_says_how_good_the_best_is(best, text):
    console = Console(file=io.StringIO(), width=150)
    with progress_display(100, console) as show:
        show(Progress(42, 100, 1, 7, 12, 0.5, 0, best))
    shown = console.file.getvalue()
    assert text in shown
    assert "42/100" in shown
    assert "run 2, generation 7, population 12" in shown


# Real designs


@pytest.mark.parametrize(("method", "seed"), [("mix", 1), (WHOLE, 1), (WHOLE, 2)])
@pytest.mark.parametrize("name", ["pressure_vessel", "gear_train"])
def test_the_best_known_design_is_found(name, method, seed):
    design = DESIGNS[name]
    result = minimize(design, design.space, budget=30_000, target=design.target, seed=seed, method=method)
    assert result.stop.name == "target"
    assert result.feasible
    assert result.value == pytest.approx(design.best_known, rel=1e-6)


@pytest.mark.parametrize(
    "choice",
    [{"recall": "foo"}, {"recall_on": "none"}, {"sign_per": "x"}, {"geometric_start": 2}, {"geometric_base": 5.0}],
    ids=str,
)
def test_choices_of_integer_mutation_are_checked_by_name(choice):
    (name,) = choice
    with pytest.raises(ValueError, match=f"{name} of IntegerMutation: expected"):
        IntegerMutation(**choice)
