"""The runs of a search: the sizes of their populations, and when one is given up for an earlier one."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from mixcma import Float, Int, Optimizer, Outcome, Space, minimize
from mixcma.latent.encoding import Encoding
from mixcma.run.restarts import restart_popsize, start_mean

SPACE = Space({"x": Float(-5, 5), "y": Float(-5, 5), "n": Int(0, 20)})


def test_populations_follow_the_sequence_of_luby() -> None:
    sizes = [restart_popsize(1, run) for run in range(15)]
    assert sizes == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]


def test_as_much_is_spent_on_runs_of_every_size() -> None:
    spent = Counter[int]()
    for run in range(2**10 - 1):
        spent[restart_popsize(6, run)] += restart_popsize(6, run)
    assert set(spent) == {6 * 2**k for k in range(10)}
    assert set(spent.values()) == {6 * 2**9}


def test_every_second_restart_begins_where_the_user_expects_the_optimum() -> None:
    space = Space({"x": Float(-5, 5, mean=1, std=0.1), "n": Int(-1000, 1000, mean=7, std=2), "y": Float(0, 1)})
    encoding = Encoding(space)
    starts = [encoding.decode(start_mean(encoding, 3, run)[None])[0] for run in range(1, 41)]
    near, anywhere = starts[::2], starts[1::2]
    assert all(abs(p["x"] - 1) <= 0.2 and abs(p["n"] - 7) <= 4 for p in near)
    assert {round(p["n"], -3) for p in anywhere} == {-1000, 0, 1000}
    for which in (near, anywhere):  # where nothing is said, all of the range
        assert min(p["y"] for p in which) < 0.2 < 0.8 < max(p["y"] for p in which)


def told(optimizer: Optimizer, floor: float) -> Optimizer:
    """A run to its end on a bowl whose least value is `floor`."""
    while not optimizer.stop:
        candidates = optimizer.ask()
        values = [floor + c.params["x"] ** 2 + c.params["y"] ** 2 + (c.params["n"] - 3) ** 2 for c in candidates]
        optimizer.tell(candidates, values)
    return optimizer


def test_a_run_that_cannot_catch_up_is_outdone() -> None:
    earlier = told(Optimizer(SPACE, seed=1), 1.0)
    alone, behind = (Optimizer(SPACE, seed=2, run=1, method="mix-without-model") for _ in range(2))
    behind.follow(earlier)
    assert behind.monitor.to_beat == pytest.approx((0.0, 1.0))
    assert (told(alone, 2.0).stop.name, told(behind, 2.0).stop.name) == ("flat", "outdone")  # type: ignore[union-attr]
    assert behind.evaluations < alone.evaluations


def test_a_run_that_is_better_is_not_outdone() -> None:
    earlier, better = told(Optimizer(SPACE, seed=1), 1.0), Optimizer(SPACE, seed=2, run=1)
    better.follow(earlier)
    told(better, 0.5)
    assert better.stop is not None
    assert better.stop.name == "flat"


def hidden_hole(optimizer: Optimizer) -> Optimizer:
    """A run on a bowl with a deep narrow hole, elsewhere and of another integer, that one candidate happens to find."""
    hole: dict[str, float] | None = None
    while not optimizer.stop:
        candidates = optimizer.ask()
        if optimizer.generation == 5:
            hole = {**candidates[0].params, "n": 12}
            candidates[0].params.update(n=12, x=hole["x"] + 0.01)
        values = []
        for p in (candidate.params for candidate in candidates):
            value = 1 + p["x"] ** 2 + p["y"] ** 2 + (p["n"] - 3) ** 2
            if hole and p["n"] == 12:
                value = min(value, 0.5 + 1000 * ((p["x"] - hole["x"]) ** 2 + (p["y"] - hole["y"]) ** 2))
            values.append(value)
        candidates[0]._draw.sample.v[0] = optimizer.encoding.encode(candidates[0].params)
        optimizer.tell(candidates, values)
    return optimizer


def test_a_run_that_ends_elsewhere_than_at_its_best_point_returns_to_it() -> None:
    best = hidden_hole(Optimizer(SPACE, seed=4, method="mix-without-model")).best
    assert best is not None
    assert best.params["n"] == 12
    assert best.value == pytest.approx(0.5, abs=1e-9)
    margin = hidden_hole(Optimizer(SPACE, seed=4, method="margin")).best
    assert margin is not None
    assert margin.value > 0.55  # the value of that candidate: it was never refined


def test_what_a_run_returned_to_is_kept() -> None:
    optimizer, restored = (Optimizer(SPACE, seed=4, method="mix-without-model") for _ in range(2))
    hidden_hole(optimizer)
    restored.restore(optimizer.snapshot())
    assert restored.monitor.returned_to == optimizer.monitor.returned_to
    assert restored.monitor.returned_to[1] > 0.5


def test_what_was_to_beat_is_passed_on_and_kept() -> None:
    first, second, third = (Optimizer(SPACE, seed=1, run=run) for run in range(3))
    told(first, 1.0)
    second.follow(first)
    told(second, 2.0)
    third.follow(second)
    assert third.monitor.to_beat == second.monitor.to_beat
    restored = Optimizer(SPACE, seed=1, run=2)
    restored.restore(third.snapshot())
    assert restored.monitor.to_beat == third.monitor.to_beat


def test_an_optimum_on_the_edge_of_a_circle_is_found() -> None:
    """The least x + y in a circle of radius 2: at (-sqrt(2), -sqrt(2))."""
    space = Space({"x": Float(-5, 5), "y": Float(-5, 5)})

    def objective(p: dict[str, float]) -> Outcome:
        return Outcome(p["x"] + p["y"], [math.hypot(p["x"], p["y"]) - 2.0])

    result = minimize(objective, space, budget=6000, seed=1, method="mix-without-model")
    assert result.value == pytest.approx(-2 * math.sqrt(2), abs=1e-6)


def test_a_restart_that_begins_where_everything_fails_is_followed_by_another() -> None:
    def half(params: dict[str, float]) -> float | None:
        return None if params["x"] > -2.0 else (params["x"] + 3.0) ** 2 + params["y"] ** 2

    result = minimize(half, Space({"x": Float(-5, 5, mean=-3.0, std=0.3), "y": Float(-5, 5)}), budget=900, seed=1)
    assert result.stop.name == "budget"
    alone = [run for run in result.runs if run.best_value == math.inf]
    assert alone
    assert {run.stop.name for run in alone} == {"outdone"}


def test_two_runs_in_a_row_that_fail_end_a_search() -> None:
    calls = 0

    def until(params: dict[str, float]) -> float | None:
        nonlocal calls
        calls += 1
        return params["x"] ** 2 if calls <= 200 else None

    result = minimize(until, Space({"x": Float(-5, 5)}), budget=2000, seed=1)
    assert result.stop.name == "failing"
    assert result.evaluations < 400
