"""Properties of ranking: only order counts, equal candidates share, feasible comes first."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mixcma.core.bounds import distance_outside
from mixcma.core.ranking import penalised_ranks, weights_by_rank
from mixcma.core.strategy import strategy
from tests.reference import bounds

L = 10
STRATEGY = strategy(6, L)
ALL = STRATEGY.all_weights
values = st.lists(st.integers(-3, 3).map(float), min_size=L, max_size=L).map(np.array)
distinct = st.permutations(range(L)).map(lambda p: np.array(p, dtype=float))


@given(distinct)
def test_without_ties_the_weights_follow_the_order(v: np.ndarray) -> None:
    np.testing.assert_allclose(weights_by_rank(ALL, v)[np.argsort(v)], STRATEGY.weights, atol=1e-15)


@given(values)
def test_equal_candidates_share_the_mean_of_their_weights(v: np.ndarray) -> None:
    w = weights_by_rank(ALL, v)
    sorted_weights = STRATEGY.weights
    order = np.argsort(v, kind="stable")
    for value in np.unique(v):
        ranks = [r for r, i in enumerate(order) if v[i] == value]
        np.testing.assert_allclose(w[v == value], sorted_weights[ranks].mean(), atol=1e-15)


@given(distinct, values)
def test_ties_in_another_run_change_nothing(v: np.ndarray, other: np.ndarray) -> None:
    assert np.array_equal(weights_by_rank(ALL, np.stack([v, other]))[0], weights_by_rank(ALL, v))


@given(values, st.permutations(range(L)))
def test_the_order_of_the_candidates_does_not_matter(v: np.ndarray, order: list[int]) -> None:
    assert np.array_equal(weights_by_rank(ALL, v)[order], weights_by_rank(ALL, v[order]))


@given(values)
def test_a_monotone_transformation_does_not_matter(v: np.ndarray) -> None:
    assert np.array_equal(weights_by_rank(ALL, v), weights_by_rank(ALL, np.exp(v) - 1e3))


@given(values, values)
def test_violation_counts_before_value(v: np.ndarray, g: np.ndarray) -> None:
    violation = np.maximum(g, 0)
    rank = {key: r for r, key in enumerate(sorted(set(zip(violation, v))))}
    expected = weights_by_rank(ALL, np.array([float(rank[key]) for key in zip(violation, v)]))
    assert np.array_equal(weights_by_rank(ALL, v, violation), expected)


def test_failures_rank_behind_everything() -> None:
    v = np.array([5.0, np.inf, 1.0, np.inf, *range(6, 12)])
    violation = np.where(np.isinf(v), np.inf, 0.0)
    w = weights_by_rank(ALL, v, violation)
    assert w[1] == w[3] == w.min()


@given(values)
def test_inside_the_bounds_the_penalty_changes_nothing(v: np.ndarray) -> None:
    inside = penalised_ranks(v, None, np.zeros(L))
    assert np.array_equal(weights_by_rank(ALL, inside), weights_by_rank(ALL, v))


def test_the_penalty_grows_with_the_distance() -> None:
    v = np.arange(L, dtype=float)
    outside = np.zeros(L)
    outside[0] = 2.0
    w = weights_by_rank(ALL, penalised_ranks(v, None, outside))
    assert w[0] == w.min()


@given(st.integers(0, 10**6), st.sampled_from([0.0, 2.0]), st.booleans())
def test_the_penalised_ranks_are_the_literal_ones(seed: int, slack: float, violated: bool) -> None:
    rng = np.random.default_rng(seed)
    v, sd = 5 * rng.standard_normal((L, 4)), rng.random(4) + 0.1
    low, high = np.array([-1.0, -np.inf, -4.0, -np.inf]), np.array([1.0, 3.0, np.inf, np.inf])
    f, g = rng.integers(0, 5, L).astype(float), rng.integers(0, 2, L) * 1.0 if violated else None
    fast = penalised_ranks(f, g, distance_outside(v, low, high, sd, slack))
    outcomes = list(zip(np.zeros(L) if g is None else g, f))
    literal = bounds.penalised(outcomes, v.tolist(), list(zip(low, high)), sd.tolist(), slack)
    np.testing.assert_allclose(fast, [rank for _, rank in literal], rtol=1e-12)
