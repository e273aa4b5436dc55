"""With a target, a run is not given up as flat while it still approaches it."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from mixcma import Float, Int, Space, Stopping, minimize
from mixcma.core.stopping import Window

TOLERANCE = Stopping().flat_tolerance
LENGTH = 10


def window(*values, start=1e6):
    """The last values of a run that began at `start`."""
    made = Window(LENGTH)
    for value in (start, *values):
        made.add(value)
    return made


def falling(first, factor=0.9, count=LENGTH):
    return [first * factor**i for i in range(count)]


# The window


@pytest.mark.parametrize("value", [5e-10, 1e-10, 5e-11])
def test_values_that_fall_toward_a_target_are_not_flat(value):
    values = [1e3 + above for above in falling(value)]
    assert window(*values).is_flat(TOLERANCE)
    assert not window(*values).is_flat(TOLERANCE, target=1e3)


def test_values_that_fall_toward_zero_are_not_flat():
    assert not window(*falling(1e-100)).is_flat(TOLERANCE)


@pytest.mark.parametrize("target", [None, -1.0, 0.0, 1e-10])
def test_values_far_above_a_target_are_as_flat_as_without_one(target):
    """They differ by 1e-12 of themselves, and the improvement so far is a million."""
    assert window(*np.linspace(5 + 4e-12, 5, LENGTH)).is_flat(TOLERANCE, target)
    assert not window(*np.linspace(5 + 5e-11, 5, LENGTH)).is_flat(TOLERANCE, target)


@pytest.mark.parametrize("value", [0.0, 1e-9, 3.0, 1e6, math.inf])
def test_equal_values_are_flat_however_close_the_target(value):
    assert window(*[value] * LENGTH).is_flat(TOLERANCE, target=value - 1e-12 if value < 1e3 else 0.0)


def test_values_stuck_close_to_a_target_are_flat():
    """Differences far below what separates them from it: they will not get there."""
    stuck = [1e-7 * (1 + 1e-13 * math.sin(i)) for i in range(LENGTH)]
    assert window(*stuck).is_flat(TOLERANCE, target=1e-10)


@pytest.mark.parametrize("shift", [1e3, -7e3])
def test_what_counts_is_the_distance_from_the_target(shift):
    values = [shift + value for value in falling(1e-10)]
    assert not window(*values, start=1e6 + shift).is_flat(TOLERANCE, target=shift)
    assert window(*values, start=1e6 + shift).is_flat(TOLERANCE, target=shift - 1.0)


def test_differences_of_rounding_alone_are_flat_also_at_the_target():
    values = [1.0 + i % 2 * math.ulp(1.0) for i in range(LENGTH)]
    assert window(*values).is_flat(TOLERANCE, target=1.0 - 1e-15)


def test_a_window_that_is_not_full_is_not_flat():
    assert not window(*[1.0] * (LENGTH - 2)).is_flat(TOLERANCE, target=0.0)


@pytest.mark.parametrize("target", [-math.inf, math.inf, -1e308])
def test_a_target_out_of_reach_changes_nothing(target):
    assert window(*np.linspace(5 + 4e-12, 5, LENGTH)).is_flat(TOLERANCE, target)
    assert not window(*np.linspace(6, 5, LENGTH)).is_flat(TOLERANCE, target)


def test_infinite_values_that_became_finite_are_not_flat():
    assert not window(*[math.inf] * (LENGTH - 1), 1.0).is_flat(TOLERANCE, target=0.0)


def test_a_larger_tolerance_does_not_give_up_an_approach_either():
    values = [1e3 + above for above in falling(1e-3, 0.99)]
    assert window(*values).is_flat(1e-6)
    assert not window(*values).is_flat(1e-6, target=1e3)


def test_a_shorter_window_looks_at_the_last_values_alone():
    values = window(*falling(1.0, 0.5, 5), 5.0, 5.0, 5.0)
    assert values.is_flat(TOLERANCE, length=3)
    assert not values.is_flat(TOLERANCE, length=4)


# Runs

SPACE = Space(
    {f"x{i}": Float(mean=3.0 + i / 7, std=1.0) for i in range(4)}
    | {f"n{i}": Int(-10, 10, mean=2.5, std=1.0) for i in range(2)}
)


def ellipsoid(p):
    """From about a million down to zero."""
    return float(np.geomspace(1, 1e5, 6) @ np.array(list(p.values())) ** 2)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_one_run_leads_from_large_values_to_a_tiny_target(seed, asynchronous):
    seen = []
    result = minimize(
        lambda p: seen.append(ellipsoid(p)) or seen[-1],
        SPACE, budget=20_000, target=1e-10, seed=seed, asynchronous=asynchronous,
    )  # fmt: skip
    assert statistics.median(seen[:20]) > 3e5
    assert (result.stop.name, len(result.runs)) == ("target", 1)
    assert result.value <= 1e-10


def test_a_run_toward_zero_goes_on_without_a_target():
    result = minimize(ellipsoid, SPACE, budget=20_000, seed=1, restarts=False)
    assert result.value < 1e-20


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("floor", [5.0, 1e-3])
def test_a_run_stuck_above_the_target_is_given_up(floor, asynchronous):
    result = minimize(
        lambda p: floor + ellipsoid(p),
        SPACE, budget=30_000, target=1e-10, seed=1, restarts=False, asynchronous=asynchronous,
    )  # fmt: skip
    assert result.stop.name == "flat"
    assert result.value == pytest.approx(floor)


def test_a_run_on_a_plateau_above_the_target_is_given_up():
    result = minimize(
        lambda p: math.floor(ellipsoid(p)) + 1.0, SPACE, budget=30_000, target=0.5, seed=1, restarts=False
    )
    assert result.stop.name == "flat"
    assert 1.0 <= result.value < 10.0


def test_a_run_stuck_in_a_local_optimum_is_restarted_and_the_target_reached():
    """Two bowls, the better one narrower: some runs end in the other."""
    space = Space({"x": Float(-5, 5), "y": Float(-5, 5)})

    def bowls(p):
        wide = 1 + (p["x"] - 3) ** 2 + p["y"] ** 2
        return min(wide, 3 * ((p["x"] + 3) ** 2 + p["y"] ** 2))

    results = [minimize(bowls, space, budget=30_000, target=1e-10, seed=seed) for seed in range(5)]
    assert {result.stop.name for result in results} == {"target"}
    stops = {run.stop.name for result in results for run in result.runs[:-1]}
    assert stops == {"flat"}
