"""Laws of kriging: a plain loop over correlations, and each point as predicted without it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mixcma.core.model.kriging import LENGTH, NUGGET, correlations, fit_kriging


def correlation(a, b):
    """Matern 5/2."""
    distance = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / len(a)) / LENGTH
    r = math.sqrt(5) * distance
    return (1 + r + r**2 / 3) * math.exp(-r)


def predicted_by_loop(rows, outputs, at):
    """The constant and the weights of correlations that meet all outputs, the weights adding up to 0."""
    n = len(rows)
    system = [[correlation(a, b) + NUGGET * (i == j) for j, b in enumerate(rows)] + [1.0] for i, a in enumerate(rows)]
    solution = np.linalg.solve([*system, [1.0] * n + [0.0]], np.concatenate([outputs, np.zeros((1, outputs.shape[1]))]))
    return np.array([[correlation(a, b) for b in rows] + [1.0] for a in at]) @ solution


def data(seed, n=25, p=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.normal(size=(n, 2)), rng.normal(size=(8, p))


def test_correlations_are_those_of_a_loop():
    rows, _, others = data(1)
    expected = [[correlation(a, b) for b in rows] for a in others]
    np.testing.assert_allclose(correlations(others, rows), expected, rtol=1e-12)
    np.testing.assert_allclose(correlations(rows, rows).diagonal(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("p", [1, 3, 10])
def test_predictions_are_those_of_a_loop(p):
    rows, outputs, others = data(2, p=p)
    kriging = fit_kriging(rows, outputs)
    np.testing.assert_allclose(kriging.predict(others), predicted_by_loop(rows, outputs, others), rtol=1e-5, atol=1e-5)


def test_what_is_known_is_met():
    rows, outputs, _ = data(3)
    np.testing.assert_allclose(fit_kriging(rows, outputs).predict(rows), outputs, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("p", [1, 3, 10])
def test_a_point_is_predicted_as_if_it_had_been_left_out(p):
    rows, outputs, _ = data(4, p=p)
    kriging = fit_kriging(rows, outputs)
    for i in range(len(rows)):
        others = np.arange(len(rows)) != i
        expected = predicted_by_loop(rows[others], outputs[others], rows[[i]])[0]
        np.testing.assert_allclose(kriging.honest[i], expected, rtol=1e-5, atol=1e-5)


def test_far_away_it_is_constant():
    rows, outputs, _ = data(5)
    kriging = fit_kriging(rows, outputs)
    far = kriging.predict(np.array([[1e4, 0.0, 0.0], [0.0, -1e4, 0.0]]))
    np.testing.assert_allclose(far, np.stack([kriging.coefficients[-1]] * 2), rtol=1e-12)


def test_a_constant_is_a_constant():
    rows, _, others = data(6)
    kriging = fit_kriging(rows, np.full((len(rows), 1), 3.0))
    np.testing.assert_allclose(kriging.predict(others), 3.0, rtol=1e-6)
    np.testing.assert_allclose(kriging.honest, 3.0, rtol=1e-6)


def test_the_same_point_twice_is_no_obstacle():
    """Its two values are averaged."""
    rows, outputs, _ = data(7)
    rows[1] = rows[0]
    outputs[:2] = [[0.0, 1.0], [1.0, 1.0]]
    kriging = fit_kriging(rows, outputs)
    np.testing.assert_allclose(kriging.predict(rows[:1]), [[0.5, 1.0]], atol=1e-2)
    assert np.isfinite(kriging.honest).all()
