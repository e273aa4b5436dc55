"""Choices: the same values by other means, and figures that were published."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.datasets import load_diabetes

from mixcma.problems.practice import PRACTICE
from mixcma.problems.practice.choices import (
    _BUDGETS,
    _EARNINGS,
    _JOBS,
    _NEEDS,
    RULES,
    STAGES,
    TERMS,
    job_shop,
    portfolio,
    project_selection,
    regression_terms,
)


def test_the_information_criterion_is_that_of_a_regression_with_these_terms():
    x, y = load_diabetes(return_X_y=True)
    pairs = [pair for pair in itertools.combinations_with_replacement(range(10), 2) if pair != (1, 1)]
    everything = np.column_stack([x, *(x[:, i] * x[:, j] for i, j in pairs)])
    assert len(TERMS) == everything.shape[1] == 64
    chosen = np.random.default_rng(0).random(64) < 0.2
    columns = np.column_stack([np.ones(len(y)), everything[:, chosen]])
    rest = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    by_hand = len(y) * math.log(np.mean(rest**2) / y.var()) + chosen.sum() * math.log(len(y))
    assert regression_terms(dict(zip(TERMS, chosen.tolist(), strict=True))) == pytest.approx(by_hand, rel=1e-8)
    assert regression_terms(dict.fromkeys(TERMS, False)) == 0


def test_no_single_change_improves_the_best_known_regression():
    design = PRACTICE["regression_terms"]
    best = design.best_params
    single = [design({**best, name: not best[name]}) for name in TERMS]
    assert min(single) > design.best_known


def test_no_projects_earn_more_than_the_best():
    assert _NEEDS.shape == (10, 28)
    solution = milp(
        -np.array(_EARNINGS, dtype=float),
        integrality=np.ones(28),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(_NEEDS, ub=_BUDGETS),
    )
    assert solution.fun == pytest.approx(-12400)
    assert PRACTICE["project_selection"].best_known == -12400
    everything = project_selection({f"project_{k}": True for k in range(1, 29)})
    assert everything.value == -sum(_EARNINGS)
    assert sum(g > 0 for g in everything.constraints) == 9  # the seventh budget would do for all


def test_portfolio_by_hand():
    held = {"hold_1": True, "hold_2": False, "hold_3": True, "hold_4": False}
    outcome = portfolio({"weight_1": 0.2, "weight_2": 0.9, "weight_3": 0.6, "weight_4": 0.3, **held})
    assert outcome.value == pytest.approx((4 * 1 + 10 * 9 - 2 * 3) / 16)
    assert outcome.constraints == pytest.approx((1 - 1.1, -1 / 3))
    nothing = portfolio({f"weight_{i}": 0.5 for i in range(1, 5)} | {f"hold_{i}": False for i in range(1, 5)})
    assert not nothing.feasible
    assert PRACTICE["portfolio"].best_known == pytest.approx(2.925, abs=1e-6)


def test_the_jobs_are_those_of_fisher_and_thompson():
    assert all(sorted(machine for machine, _ in job) == list(range(10)) for job in _JOBS)
    assert sum(time for job in _JOBS for _, time in job) == 5109
    assert max(sum(time for _, time in job) for job in _JOBS) == 655


def test_no_schedule_takes_less_than_the_least_possible_time():
    rng = np.random.default_rng(1)
    for _ in range(20):
        rules = {f"stage_{s}": list(RULES)[rng.integers(len(RULES))] for s in range(1, STAGES + 1)}
        assert 930 <= job_shop(rules) < 5109
