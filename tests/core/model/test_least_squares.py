"""Least squares against NumPy's, which solves by singular values, and leverages against their definition."""

import numpy as np
import pytest

from mixcma.core.model.least_squares import least_squares


def table(n, columns, condition=1.0, seed=1):
    """Columns of lengths between 1e-3 and 1e3."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((n, columns)))
    V, _ = np.linalg.qr(rng.standard_normal((columns, columns)))
    A = U * np.geomspace(1.0, 1.0 / condition, columns) @ V
    return A * 10.0 ** rng.uniform(-3, 3, columns), rng.standard_normal((n, 3))


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e5, 1e8])
@pytest.mark.parametrize(("n", "columns"), [(7, 1), (30, 12), (12, 12), (300, 231)])
def test_the_coefficients_are_those_of_numpy(n, columns, condition):
    A, b = table(n, columns, condition)
    lengths = np.linalg.norm(A, axis=0)
    expected = np.linalg.lstsq(A / lengths, b, rcond=None)[0]
    c, leverage = least_squares(A, b)
    error = np.abs(c * lengths[:, None] - expected).max() / np.abs(expected).max()
    assert error < 1e-14 * columns * condition
    Q, _ = np.linalg.qr(A / lengths)
    np.testing.assert_allclose(leverage, (Q * Q).sum(axis=1), atol=1e-15 * columns * condition)


@pytest.mark.parametrize("n", [5, 40])
def test_columns_that_add_nothing_get_nothing_and_the_fit_is_the_best_all_the_same(n):
    A, b = table(40, 8)
    A, b = A[:n], b[:n]
    A = np.column_stack([A, A[:, 0], A[:, 1] + A[:, 2], np.zeros(n)])
    c, leverage = least_squares(A, b)
    rank = min(n, 8)
    assert (np.abs(c).max(axis=1) > 0).sum() == rank
    np.testing.assert_allclose(A @ c, best_fit(A, b), atol=1e-9)
    assert leverage.sum() == pytest.approx(rank)


def best_fit(A, b):
    lengths = np.where((size := np.linalg.norm(A, axis=0)) > 0, size, 1.0)
    return A / lengths @ np.linalg.lstsq(A / lengths, b, rcond=1e-12)[0]


def test_without_any_columns_that_are_not_zero_there_is_nothing_to_fit():
    c, leverage = least_squares(np.zeros((5, 2)), np.ones((5, 1)))
    assert not c.any()
    assert not leverage.any()
