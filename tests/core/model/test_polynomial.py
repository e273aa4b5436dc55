"""Laws of the polynomials: those of numpy's least squares, and each point as predicted without it."""

from __future__ import annotations

import numpy as np
import pytest

from mixcma.core.model.features import KINDS
from mixcma.core.model.polynomial import fit_polynomial
from tests.core.model.spaces import SPACES, features_of, points_of


def data(name, kind, seed, spare=15):
    """Features that no polynomial fits exactly, two outputs, and weights."""
    features, rng = features_of(name), np.random.default_rng(seed)
    rows = features.rows(points_of(features, rng, features.sizes[kind] + spare))
    return features, rows, rng.normal(size=(len(rows), 2)), np.sqrt(rng.uniform(1, 20, len(rows)))


def least_squares(matrix, outputs, weights):
    return np.linalg.lstsq(matrix * weights[:, None], outputs * weights[:, None], rcond=None)[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPACES)
def test_it_is_the_least_squares_fit(name, kind):
    features, rows, outputs, weights = data(name, kind, 1)
    polynomial = fit_polynomial(features, rows, outputs, weights, kind)
    matrix = features.matrix(rows, kind)
    expected = matrix @ least_squares(matrix, outputs, weights)
    np.testing.assert_allclose(polynomial.predict(rows), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPACES)
def test_a_point_is_predicted_as_if_it_had_been_left_out(name, kind):
    features, rows, outputs, weights = data(name, kind, 2)
    polynomial = fit_polynomial(features, rows, outputs, weights, kind)
    matrix, checked = features.matrix(rows, kind), 0
    for i in range(len(rows)):
        others = np.arange(len(rows)) != i
        if np.linalg.matrix_rank(matrix[others]) < np.linalg.matrix_rank(matrix):
            assert np.isnan(polynomial.honest[i]).all()
            continue
        expected = matrix[i] @ least_squares(matrix[others], outputs[others], weights[others])
        np.testing.assert_allclose(polynomial.honest[i], expected, rtol=1e-6, atol=1e-6)
        checked += 1
    assert checked > 5


@pytest.mark.parametrize("name", SPACES)
def test_a_quadratic_function_is_found_again(name):
    """Everywhere, with its gradient and its second derivatives."""
    features, rng = features_of(name), np.random.default_rng(3)
    rows = features.rows(points_of(features, rng, 3 * features.sizes["full"] + 20))
    p = features.count
    g, H = rng.normal(size=p), np.zeros((p, p))
    H[np.arange(features.numbers), np.arange(features.numbers)] = rng.normal(size=features.numbers)
    for i, j in zip(*features.pairs):
        H[i, j] = H[j, i] = rng.normal()

    def function(rows):
        return np.array([[7.0 + g @ u + u @ H @ u / 2] for u in rows])

    polynomial = fit_polynomial(features, rows, function(rows), np.ones(len(rows)), "full")
    others = features.rows(points_of(features, rng, 50))
    np.testing.assert_allclose(polynomial.predict(others), function(others), rtol=1e-9, atol=1e-9)
    found_g, found_H = polynomial.gradient_and_hessian(0)
    np.testing.assert_allclose(found_g, g, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found_H, H, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(polynomial.honest, function(rows), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPACES)
def test_gradient_and_hessian_are_those_of_the_polynomial(name, kind):
    features, rows, outputs, weights = data(name, kind, 4)
    polynomial = fit_polynomial(features, rows, outputs, weights, kind)
    for output in range(2):
        g, H = polynomial.gradient_and_hessian(output)
        assert (H == H.T).all()
        at_zero = polynomial.coefficients[0, output]
        expected = [at_zero + g @ u + u @ H @ u / 2 for u in rows]
        np.testing.assert_allclose(polynomial.predict(rows)[:, output], expected, rtol=1e-9, atol=1e-9)


def test_what_never_varied_has_no_effect():
    features, rows, outputs, weights = data("mixed", "full", 5)
    rows[:, 1] = 0.0  # a number, always the same
    rows[:, features.first_indicator[0]] = 0.0  # a choice that was never made
    polynomial = fit_polynomial(features, rows, outputs, weights, "full")
    elsewhere = rows.copy()
    elsewhere[:, [1, features.first_indicator[0]]] = 1.0
    np.testing.assert_array_equal(polynomial.predict(elsewhere), polynomial.predict(rows))


@pytest.mark.parametrize("kind", KINDS)
def test_the_only_point_with_a_choice_is_predicted_by_no_other(kind):
    features, rows, outputs, weights = data("mixed", kind, 6)
    rows[:, features.first_indicator[0]] = 0.0
    rows[3, features.first_indicator[0]] = 1.0
    honest = fit_polynomial(features, rows, outputs, weights, kind).honest
    assert np.isnan(honest[3]).all()
    assert np.isfinite(honest).sum() > honest.size / 2


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_points_than_coefficients_are_met_exactly(kind):
    features, rng = features_of("mixed"), np.random.default_rng(7)
    rows = features.rows(points_of(features, rng, 4))
    outputs = rng.normal(size=(4, 1))
    polynomial = fit_polynomial(features, rows, outputs, np.ones(4), kind)
    np.testing.assert_allclose(polynomial.predict(rows), outputs, rtol=1e-9, atol=1e-9)
    assert np.isnan(polynomial.honest).all()


def test_outputs_do_not_disturb_each_other():
    features, rows, outputs, weights = data("mixed", "full", 8)
    both = fit_polynomial(features, rows, outputs, weights, "full")
    for k in range(2):
        alone = fit_polynomial(features, rows, outputs[:, [k]], weights, "full")
        np.testing.assert_allclose(alone.coefficients[:, 0], both.coefficients[:, k], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(alone.honest[:, 0], both.honest[:, k], rtol=1e-10, atol=1e-12)
