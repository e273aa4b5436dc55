"""Which model is believed: agreement by pairs, quadratics found again, violations, and what is far from quadratic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau

from mixcma.core.model.features import KINDS
from mixcma.core.model.surrogate import LEAST_POINTS, Evaluated, agreement, fit_surrogate, window_of
from tests.core.model.spaces import SPACES, features_of, points_of


def evaluated(points, values, constraints=None):
    constraints = np.zeros((len(points), 0)) if constraints is None else constraints
    return Evaluated(points, np.asarray(values, dtype=float), constraints)


def quadratic(features, rng):
    """A function of latent points: a random full quadratic of their features."""
    p = features.count
    g, H = rng.normal(size=p), rng.normal(size=(p, p))
    H = H @ H.T

    def function(points):
        return np.array([3.0 + g @ u + u @ H @ u / 2 for u in features.rows(points)])

    return function


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_agreement_is_kendalls_tau(n):
    rng = np.random.default_rng(n)
    for _ in range(10):
        predicted, came = rng.normal(size=(2, n))
        assert agreement(predicted, came) == pytest.approx(kendalltau(predicted, came).statistic)


def test_ties_and_what_was_not_predicted_count_for_nothing():
    rng = np.random.default_rng(1)
    for _ in range(20):
        predicted, came = rng.integers(0, 4, size=(2, 9)).astype(float)
        predicted[rng.integers(9)] = np.nan
        total = 0
        for i, j in itertools.combinations(range(9), 2):
            if not np.isnan(predicted[[i, j]]).any():
                total += int(np.sign(predicted[i] - predicted[j]) * np.sign(came[i] - came[j]))
        assert agreement(predicted, came) == pytest.approx(total / 36)


@pytest.mark.parametrize("n", [0, 1])
def test_without_pairs_there_is_no_agreement(n):
    assert agreement(np.zeros(n), np.zeros(n)) == 0.0


@pytest.mark.parametrize("n", range(LEAST_POINTS + 3))
def test_few_points_make_no_model(n):
    features, rng = features_of("mixed"), np.random.default_rng(1)
    points = points_of(features, rng, n)
    assert (fit_surrogate(features, evaluated(points, rng.normal(size=n))) is None) == (n < LEAST_POINTS)


@pytest.mark.parametrize("name", SPACES)
def test_a_quadratic_function_is_recognised(name):
    """All points, also others, are in the order of their values."""
    features, rng = features_of(name), np.random.default_rng(2)
    function = quadratic(features, rng)
    points = points_of(features, rng, 2 * features.sizes["full"] + 30)
    surrogate = fit_surrogate(features, evaluated(points, function(points)))
    others = points_of(features, rng, 40)
    value, violation = surrogate.predict(others)
    tied = name in ("integers", "categories")  # the same points come again, and equal values count for nothing
    assert surrogate.quality > (0.7 if tied else 0.95)
    assert agreement(value, function(others)) > agreement(function(others), function(others)) - 0.05
    assert not violation.any()
    polynomial, output = surrogate.quadratic[0]
    predicted = polynomial.predict(surrogate.scaling.rows(others))[:, output] * surrogate.units[0]
    expected = function(others) - function(points).min()
    if surrogate.kind == "full":
        np.testing.assert_allclose(predicted, expected, rtol=1e-5, atol=1e-5 * expected.max())


def test_of_equals_the_simplest_is_taken():
    features, rng = features_of("mixed"), np.random.default_rng(3)
    points = points_of(features, rng, 4 * features.sizes["full"])
    rows, weights = features.rows(points), rng.normal(size=features.count)
    linear, squares = rows @ weights, (rows[:, : features.numbers] ** 2).sum(axis=1)
    assert fit_surrogate(features, evaluated(points, linear)).kind == "linear"
    assert fit_surrogate(features, evaluated(points, linear + squares)).kind == "diagonal"


def test_violations_are_those_of_linear_constraints():
    features, rng = features_of("mixed"), np.random.default_rng(4)
    points, others = points_of(features, rng, 80), points_of(features, rng, 40)
    c = rng.normal(size=(features.count, 2)) * [1.0, 1000.0]

    def constraints(points):
        return features.rows(points) @ c + [0.3, -200.0]

    surrogate = fit_surrogate(features, evaluated(points, rng.normal(size=80), constraints(points)))
    expected = np.maximum(constraints(others), 0.0).sum(axis=1)
    np.testing.assert_allclose(surrogate.predict(others)[1], expected, rtol=1e-6, atol=1e-6 * expected.max())
    assert (expected == 0.0).any()


def test_features_are_counted_from_the_best_point():
    """Less violation is better, then less value."""
    features, rng = features_of("mixed"), np.random.default_rng(5)
    points, constraints = points_of(features, rng, 30), np.ones((30, 1))
    values = rng.normal(size=30)
    constraints[[7, 11]] = -1.0
    values[[7, 11]] = 100.0, 99.0
    scaling = fit_surrogate(features, evaluated(points, values, constraints)).scaling
    n = features.numbers
    assert scaling.origin.tolist() == [*points[11, :n], *[0.0] * (features.count - n)]
    assert scaling.rows(points[[11]])[0, :n].tolist() == [0.0] * n
    assert (scaling.low <= points[11, :n]).all()
    assert (scaling.high >= points[11, :n]).all()


def test_the_same_data_gives_the_same_model():
    features, rng = features_of("mixed"), np.random.default_rng(6)
    points, values, others = points_of(features, rng, 60), rng.normal(size=60), points_of(features, rng, 20)
    one, other = (fit_surrogate(features, evaluated(points.copy(), values.copy())) for _ in range(2))
    assert np.array_equal(one.predict(others), other.predict(others))


@pytest.mark.parametrize("value", [0.0, -3.0, 1e300, 5e-324])
def test_equal_values_do_no_harm(value):
    features, rng = features_of("mixed"), np.random.default_rng(7)
    points = points_of(features, rng, 60)
    surrogate = fit_surrogate(features, evaluated(points, np.full(60, value)))
    assert surrogate is None or np.isfinite(surrogate.predict(points)).all()


@pytest.mark.parametrize("largest", [1e100, 1e149])
def test_huge_values_do_no_harm(largest):
    """Without a warning."""
    features, rng = features_of("mixed"), np.random.default_rng(8)
    points = points_of(features, rng, 60)
    surrogate = fit_surrogate(features, evaluated(points, largest * rng.uniform(-1, 1, 60)))
    assert surrogate is None or np.isfinite(surrogate.predict(points)).all()


def test_the_same_point_again_and_again_does_no_harm():
    features, rng = features_of("mixed"), np.random.default_rng(9)
    points = np.repeat(points_of(features, rng, 1), 30, axis=0)
    surrogate = fit_surrogate(features, evaluated(points, rng.normal(size=30)))
    assert surrogate is None or np.isfinite(surrogate.predict(points)).all()


@pytest.mark.parametrize("name", SPACES)
def test_the_window_holds_twice_the_coefficients(name):
    features = features_of(name)
    assert window_of(features) == max(36, 2 * features.sizes["full"])
    assert list(features.sizes) == list(KINDS)
