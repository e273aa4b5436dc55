"""Laws of Gaussian processes: a plain loop over covariances, gradients by differences, the most probable theta."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from mixcma.core.model.improvement import box_around
from mixcma.core.model.process import (
    EXPECTED_LOG_NUGGET,
    LOG_NUGGET,
    LOG_WEIGHTS,
    SPREAD_OF_LOG_NUGGET,
    SPREAD_OF_LOG_WEIGHTS,
    expected_theta,
    fit_theta,
    processes,
)
from tests.core.model.spaces import features_of, points_of

VARIABLE = np.array([0, 1, 1, 2])  # of four features


def data(seed, n=20):
    """Rows, two smooth outputs and other rows."""
    rng = np.random.default_rng(seed)
    rows, others = rng.random((n, 4)), rng.random((7, 4))
    return rows, [np.sin(3 * rows[:, 0]) + rows[:, 1] ** 2, rows @ [1.0, -2.0, 0.5, 0.0]], others


def covariance(a, b, theta):
    """Matern 5/2 of the weighted distance."""
    r = math.sqrt(5 * sum(math.exp(theta[g]) * (x - y) ** 2 for x, y, g in zip(a, b, VARIABLE)))
    return (1 + r + r**2 / 3) * math.exp(-r)


def covariances(rows, theta):
    K = np.array([[covariance(a, b, theta) for b in rows] for a in rows])
    return K + math.exp(theta[-1]) * np.eye(len(rows))


def predicted_by_loop(rows, y, theta, at):
    """The expected value and standard deviation at a row, with the likeliest mean and variance."""
    K, ones = covariances(rows, theta), np.ones(len(rows))
    mean = ones @ np.linalg.solve(K, y) / (ones @ np.linalg.solve(K, ones))
    variance = (y - mean) @ np.linalg.solve(K, y - mean) / len(y)
    k = np.array([covariance(at, b, theta) for b in rows])
    return mean + k @ np.linalg.solve(K, y - mean), math.sqrt(variance * (1 - k @ np.linalg.solve(K, k)))


def improbability(rows, y, theta):
    """-log of the probability of theta, up to a constant."""
    K, ones, n = covariances(rows, theta), np.ones(len(rows)), len(rows)
    mean = ones @ np.linalg.solve(K, y) / (ones @ np.linalg.solve(K, ones))
    variance = (y - mean) @ np.linalg.solve(K, y - mean) / n
    off = np.append(theta[:-1] - math.log(4 / (len(theta) - 1)), theta[-1] - EXPECTED_LOG_NUGGET)
    spread = np.append(np.full(len(theta) - 1, SPREAD_OF_LOG_WEIGHTS), SPREAD_OF_LOG_NUGGET)
    return n / 2 * math.log(variance) + np.linalg.slogdet(K)[1] / 2 + ((off / spread) ** 2).sum() / 2


THETAS = [np.array([0.3, -1.0, 1.5, -8.0]), np.array([2.0, 0.0, -3.0, -5.0])]


def test_predictions_are_those_of_a_loop():
    rows, outputs, others = data(1)
    means, deviations = processes(rows, VARIABLE, outputs, THETAS).predict(others)
    for k, (y, theta) in enumerate(zip(outputs, THETAS)):
        expected = np.array([predicted_by_loop(rows, y, theta, at) for at in others])
        np.testing.assert_allclose(means[k], expected[:, 0], rtol=1e-8)
        np.testing.assert_allclose(deviations[k], expected[:, 1], rtol=1e-6)


def test_each_value_is_as_probable_as_the_others_say():
    """The process of all but one point, with the mean and variance of all."""
    rows, outputs, _ = data(7, n=9)
    fitted = processes(rows, VARIABLE, outputs, THETAS)
    for output, (y, theta) in enumerate(zip(outputs, THETAS)):
        K, mean, variance, expected = covariances(rows, theta), fitted.mean[output], fitted.variance[output], 0.0
        for i in range(4):
            others = np.arange(len(y)) != i
            solved = np.linalg.solve(K[np.ix_(others, others)], np.stack([y[others] - mean, K[others, i]], axis=1))
            predicted = mean + K[i, others] @ solved[:, 0]
            expected += norm.logpdf(y[i], predicted, math.sqrt(variance * (K[i, i] - K[i, others] @ solved[:, 1])))
        assert fitted.log_probability(output, 4) == pytest.approx(expected, rel=1e-8)


def test_gradients_are_those_of_differences():
    rows, outputs, others = data(2)
    fitted, h = processes(rows, VARIABLE, outputs, THETAS), 1e-6
    means, deviations, d_means, d_deviations = fitted.gradients(others)
    np.testing.assert_allclose(means, fitted.predict(others)[0], rtol=1e-10)
    np.testing.assert_allclose(deviations, fitted.predict(others)[1], rtol=1e-8)
    for j, step in enumerate(h * np.eye(others.shape[1])):
        (m1, s1), (m0, s0) = fitted.predict(others + step), fitted.predict(others - step)
        np.testing.assert_allclose(d_means[..., j], (m1 - m0) / (2 * h), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(d_deviations[..., j], (s1 - s0) / (2 * h), rtol=1e-3, atol=1e-5)


def test_what_is_known_is_met_and_certain():
    rows, outputs, others = data(3)
    theta = np.array([0.0, 0.0, 0.0, -16.0])
    fitted = processes(rows, VARIABLE, outputs, [theta] * 2)
    means, deviations = fitted.predict(rows)
    np.testing.assert_allclose(means, outputs, atol=1e-3)
    assert (deviations < 0.01 * np.sqrt(fitted.variance)[:, None]).all()
    assert (deviations.max(axis=1) < fitted.predict(others)[1].min(axis=1)).all()


def test_far_away_it_goes_to_the_mean_and_knows_nothing():
    rows, outputs, _ = data(4)
    fitted = processes(rows, VARIABLE, outputs, THETAS)
    means, deviations = fitted.predict(np.array([[1e4, 0, 0, 0], [0, -1e4, 0, 0]], dtype=float))
    np.testing.assert_allclose(means, np.stack([fitted.mean] * 2, axis=1), rtol=1e-12)
    np.testing.assert_allclose(deviations, np.sqrt(np.stack([fitted.variance] * 2, axis=1)), rtol=1e-12)


def test_a_constant_is_a_constant():
    rows, _, others = data(5)
    means, deviations = processes(rows, VARIABLE, [np.full(len(rows), 3.0)], THETAS[:1]).predict(others)
    np.testing.assert_allclose(means, 3.0, rtol=1e-9)
    assert np.isfinite(deviations).all()
    assert np.isfinite(fit_theta(rows, VARIABLE, np.full(len(rows), 3.0))).all()


def test_the_same_point_twice_is_no_obstacle():
    """Its two values are averaged."""
    rows, (y, _), _ = data(6)
    rows[1], y[:2] = rows[0], (0.0, 1.0)
    theta = fit_theta(rows, VARIABLE, y)
    fitted = processes(rows, VARIABLE, [y], [np.append(theta[:-1], -8.0)])
    assert fitted.predict(rows[:1])[0][0, 0] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("output", [0, 1, "noise"])
def test_no_theta_nearby_is_more_probable(seed, output):
    rows, outputs, _ = data(seed, n=12)
    y = np.random.default_rng(seed).normal(size=12) if output == "noise" else outputs[output]
    y = (y - y.mean()) / y.std()
    found = fit_theta(rows, VARIABLE, y)
    low, high = np.array([LOG_WEIGHTS] * 3 + [LOG_NUGGET]).T
    assert ((low <= found) & (found <= high)).all()
    least = improbability(rows, y, found)
    assert least <= improbability(rows, y, expected_theta(3))
    rng = np.random.default_rng(seed)
    for size in (0.1, 0.5, 2.0):
        for _ in range(8):
            other = np.clip(found + size * rng.normal(size=4), low, high)
            assert least <= improbability(rows, y, other) + 1e-3


def test_what_does_not_matter_gets_little_weight():
    rng = np.random.default_rng(1)
    rows = rng.random((40, 3))
    theta = fit_theta(rows, np.arange(3), np.sin(6 * rows[:, 1]))
    assert theta[1] > max(theta[0], theta[2]) + 2


def test_another_order_of_the_points_changes_nothing():
    rows, outputs, others = data(7)
    order = np.random.default_rng(1).permutation(len(rows))
    theta, turned = fit_theta(rows, VARIABLE, outputs[0]), fit_theta(rows[order], VARIABLE, outputs[0][order])
    np.testing.assert_allclose(theta, turned, atol=1e-2)
    one = processes(rows, VARIABLE, outputs, THETAS).predict(others)
    other = processes(rows[order], VARIABLE, [y[order] for y in outputs], THETAS).predict(others)
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_other_labels_of_the_choices_change_nothing():
    features, rng = features_of("mixed"), np.random.default_rng(2)
    points, n = points_of(features, rng, 25), features.numbers
    others = points_of(features, rng, 6)
    relabelled, others_relabelled = points.copy(), others.copy()
    for category, K in enumerate(features.choices, start=n):
        places = rng.permutation(K)
        for these in (relabelled, others_relabelled):
            these[:, category] = places[these[:, category].astype(int)]
    y = points[:, 0] ** 2 + 2.0 * (points[:, n] == 1)
    found = []
    for known, asked in ((points, others), (relabelled, others_relabelled)):
        box = box_around(features, known)
        theta = fit_theta(box.rows(known), box.variable, y)
        found.append([theta, *processes(box.rows(known), box.variable, [y], [theta]).predict(box.rows(asked))])
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
