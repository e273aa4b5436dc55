"""The practice problems: their best known points are right, and everything in their spaces can be evaluated."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from mixcma.problems import DESIGNS
from mixcma.problems.practice import PRACTICE
from mixcma.run.outcome import Outcome
from mixcma.space import Bool, Categorical, Discrete, Float, Int

PROBLEM = pytest.mark.parametrize("design", PRACTICE.values(), ids=lambda design: design.name)
POINTS = 60


def outcome_of(design, params) -> Outcome:
    given = design(params)
    return given if isinstance(given, Outcome) else Outcome(given)


def drawn(variable, rng):
    """A value of a variable; the ends of its range are as likely as all that is between."""
    if isinstance(variable, Bool):
        return bool(rng.integers(2))
    if isinstance(variable, Discrete | Categorical):
        values = variable.values if isinstance(variable, Discrete) else variable.choices
        return values[rng.integers(len(values))]
    assert isinstance(variable, Float | Int)
    end = rng.integers(4)
    if end < 2:
        return (variable.low, variable.high)[end]
    if isinstance(variable, Int):
        return int(rng.integers(variable.low, variable.high + 1))
    if variable.log:
        return min(math.exp(rng.uniform(math.log(variable.low), math.log(variable.high))), variable.high)
    return float(rng.uniform(variable.low, variable.high))


def test_there_are_problems_of_each_kind_and_no_name_is_used_twice():
    assert len(PRACTICE) == 20
    assert not set(PRACTICE) & set(DESIGNS)
    assert all(name == design.name for name, design in PRACTICE.items())


@PROBLEM
def test_the_best_known_point_is_feasible_and_has_the_best_known_value(design):
    assert design.space.check_params(design.best_params) == design.best_params
    outcome = outcome_of(design, design.best_params)
    assert outcome.feasible
    assert outcome.value == pytest.approx(design.best_known, rel=1e-10)
    assert outcome.value <= design.target


@PROBLEM
def test_chance_finds_less_than_the_best(design):
    assert design.typical > design.best_known + 1e-3 * abs(design.best_known)


@PROBLEM
def test_everything_in_the_space_can_be_evaluated_and_nothing_beats_the_best(design):
    rng = np.random.default_rng(5)
    constraints = len(outcome_of(design, design.best_params).constraints)
    for _ in range(POINTS):
        params = {name: drawn(variable, rng) for name, variable in design.space.items()}
        first, again = outcome_of(design, params), outcome_of(design, params)
        assert first == again
        assert np.all(np.isfinite([first.value, *first.constraints]))
        assert len(first.constraints) == constraints
        assert not first.feasible or first.value >= design.best_known * (1 - math.copysign(1e-12, design.best_known))


@PROBLEM
def test_constraints_are_of_moderate_size(design):
    """So that none of them outweighs all others where violations are added up."""
    rng = np.random.default_rng(6)
    for _ in range(POINTS):
        outcome = outcome_of(design, {name: drawn(variable, rng) for name, variable in design.space.items()})
        assert np.all(np.abs(outcome.constraints) < 1e3)


@PROBLEM
def test_a_problem_survives_pickling(design):
    assert pickle.loads(pickle.dumps(design)) == design
