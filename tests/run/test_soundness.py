"""Plain problems that the default method solves from any sensible start; `benchmarks/soundness.py` counts many more."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Outcome, Space
from tests.run.states import arrays


def solve(space, objective, *, seed, budget, target=None, **options):
    """One run, until the target is reached, the budget is spent, or the run ends."""
    optimizer = Optimizer(space, seed=seed, target=target, **options)
    while not optimizer.stop and optimizer.evaluations < budget:
        candidates = optimizer.ask()
        optimizer.tell(candidates, [objective(candidate.params) for candidate in candidates])
        if target is not None and optimizer.best.value <= target:
            break
    return optimizer


def value_of(space, objective, **options):
    return solve(space, objective, **options).best.value


def variables(count, variable):
    return Space({f"x{j}": variable for j in range(count)})


@pytest.mark.parametrize("seed", [1, 2])
def test_half_floats_half_integers(seed):
    N = 80
    kinds = [Float(mean=2.0, std=1.0), Int(-10, 10, mean=2.0, std=1.0)]
    space = Space({f"x{j}": kinds[2 * j >= N] for j in range(N)})
    found = value_of(space, lambda p: sum(x * x for x in p.values()), seed=seed, budget=100 * N, target=1e-10)
    assert found <= 1e-10


PLACES = [(10**6, place, 2000) for place in (0, 1, 2, 12_345, 10**6 - 1, 10**6)]
PLACES += [(last, place, 20_000) for last in (2, 2**40, 2**62) for place in (0, 1, last - 1, last)]


@pytest.mark.parametrize(("last", "place", "budget"), PLACES)
def test_an_integer_anywhere_in_its_range(last, place, budget):
    """Beyond 2**49 values a step is smaller than the spacing of floats: within that is close enough."""
    close = last // 2**49
    for seed in (1, 2):
        space = Space({"x": Int(0, last)})
        assert value_of(space, lambda p: abs(p["x"] - place), seed=seed, budget=budget, target=close) <= close


@pytest.mark.parametrize("beside", [3, 10])
@pytest.mark.parametrize("part", [3, 2])
def test_a_very_wide_integer_beside_floats_that_hardly_matter(beside, part):
    """The integer is searched as a float: that it has become as narrow as floats allow does not end the run."""
    last = 2**62 - 1
    space = Space({"x": Int(0, last), **{f"y{j}": Float(mean=2.0, std=1.0) for j in range(beside)}})

    def objective(p):
        return abs(p["x"] - last // part) + sum(p[f"y{j}"] ** 2 for j in range(beside))

    for seed in (1, 2, 3, 4):
        assert value_of(space, objective, seed=seed, budget=20_000, target=2.0**13) <= 2.0**13


@pytest.mark.parametrize("N", [1, 2])
@pytest.mark.parametrize("distance", [1e3, 1e6])
def test_an_optimum_far_from_the_start(distance, N):
    """To a part of 1e-13 of the distance, but not closer than 1e-5."""
    optimum, close = distance / math.sqrt(N), max(1e-10, (1e-13 * distance) ** 2 * N)

    def sphere(p):
        return sum((x - optimum) ** 2 for x in p.values())

    for seed in (1, 2, 3):
        assert value_of(variables(N, Float()), sphere, seed=seed, budget=100_000, target=close) <= close


def test_the_example_of_the_readme_does_not_end_for_its_condition():
    space = Space(
        {
            "alloy": Categorical(["steel", "brass", "bronze"]),
            "shell": Discrete([0.0625 * k for k in range(1, 100)]),
            "ribs": Int(1, 12),
            "lined": Bool(),
            "radius": Float(10, 200),
            "rate": Float(1e-5, 1e-1, log=True),
        }
    )

    def cost(p):
        price = {"steel": 0, "brass": 8, "bronze": 5}[p["alloy"]]
        return (p["radius"] - 42.5) ** 2 + (p["ribs"] - 7) ** 2 + p["lined"] + 10 * p["shell"] + p["rate"] + price

    for seed in range(1, 6):
        optimizer = solve(space, cost, seed=seed, budget=20_000)
        assert optimizer.stop is not None
        assert optimizer.stop.name != "condition"
        assert optimizer.best.value == pytest.approx(0.625 + 1e-5, rel=1e-9)


def test_an_equality_as_two_inequalities():
    """The least sum of squares where the numbers add up to 1, up to 1e-4: N numbers of 1 / N."""
    N = 2

    def objective(p):
        h = sum(p.values()) - 1
        return Outcome(sum(x * x for x in p.values()), constraints=[h - 1e-4, -h - 1e-4])

    for seed in (1, 2, 3, 4):
        best = solve(variables(N, Float(-5, 5)), objective, seed=seed, budget=2000).best
        assert best.feasible
        assert best.value == pytest.approx(1 / N, abs=1e-3)


@pytest.mark.parametrize("place", [1, 12_345, 2**48])
def test_a_wide_logarithmic_integer_leaves_no_nan_in_catmargin(place):
    space = Space({"n": Int(1, 2**48, log=True), "x": Float(-5, 5)})
    optimizer = Optimizer(space, method="catmargin", seed=1)
    for _ in range(100):
        candidates = optimizer.ask()
        optimizer.tell(candidates, [abs(math.log(c.params["n"] / place)) + c.params["x"] ** 2 for c in candidates])
        assert all(np.isfinite(part).all() for part in arrays(optimizer.state).values())


@pytest.mark.parametrize("method", ["mix", "margin", "catmargin"])
def test_a_discrete_space_with_one_feasible_point_is_left(method):
    space = Space({"n": Int(0, 20), "m": Int(0, 20), "on": Bool(), "wire": Discrete([0.1, 0.5, 2.0])})

    def objective(p):
        wrong = abs(p["n"] - 17) + abs(p["m"] - 2) + p["on"] + abs(p["wire"] - 0.5)
        return Outcome(p["n"] - p["m"], constraints=[wrong])

    for seed in (1, 2):
        optimizer = solve(space, objective, seed=seed, budget=20_000, method=method)
        assert optimizer.stop is not None
        assert optimizer.best.feasible
