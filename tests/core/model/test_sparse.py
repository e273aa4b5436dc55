"""Laws of sparse polynomials: the products that matter are found from fewer points than all would need."""

from __future__ import annotations

import numpy as np
import pytest

from mixcma import Bool, Float, Int, Space
from mixcma.core.model.features import Features
from mixcma.core.model.sparse import MOST_FEATURES, fit_sparse
from mixcma.core.model.surrogate import Evaluated, fit_surrogate
from mixcma.latent.encoding import Encoding
from tests.core.model.spaces import points_of


def features_of(floats, integers=0, bools=0):
    variables = {f"x{j}": Float() for j in range(floats)} | {f"n{j}": Int(0, 9) for j in range(integers)}
    return Features(Encoding(Space(variables | {f"b{j}": Bool() for j in range(bools)}), True).coordinates)


def coupled(features, rows):
    """Each of the first features is tied to one of the others."""
    half = features.count // 2
    return ((rows[:, :half] - 0.5 * rows[:, half : 2 * half]) ** 2).sum(axis=1) + 0.01 * (rows**2).sum(axis=1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", [(24, 0, 0), (12, 12, 0), (10, 0, 10)])
def test_a_function_with_few_products_is_found_from_few_points(counts, seed):
    features, rng = features_of(*counts), np.random.default_rng(seed)
    n = features.sizes["full"] * 3 // 4
    rows = features.rows(points_of(features, rng, n + 50))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    values = coupled(features, rows)[:, None]
    sparse = fit_sparse(features, rows[:n], values[:n], np.ones(n))
    assert sparse.kind == "sparse"
    np.testing.assert_allclose(sparse.predict(rows[n:]), values[n:], rtol=1e-6, atol=1e-6 * np.abs(values).max())
    g, H = sparse.gradient_and_hessian(0)
    np.testing.assert_allclose(rows[:5] @ g + np.einsum("ni,ij,nj->n", rows[:5], H, rows[:5]) / 2,
                               (sparse.predict(rows[:5]) - sparse.coefficients[0])[:, 0], rtol=1e-8)  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_products_that_chance_would_find_as_well_are_left_out(seed):
    features, rng = features_of(15), np.random.default_rng(seed)
    rows = rng.normal(size=(90, 15))
    values = (rows**2).sum(axis=1, keepdims=True) + rng.normal(size=(90, 1))
    sparse = fit_sparse(features, rows, values, np.ones(90))
    assert sparse is None or (sparse.coefficients != 0.0).sum() <= features.sizes["diagonal"] + 2


def test_every_coefficient_has_its_points():
    features, rng = features_of(20), np.random.default_rng(1)
    rows = rng.normal(size=(150, 20))
    root = rng.normal(size=(20, 20))
    values = ((rows @ root) ** 2).sum(axis=1, keepdims=True)
    sparse = fit_sparse(features, rows, values, np.ones(150))
    assert features.sizes["diagonal"] < (sparse.coefficients != 0.0).sum() <= 100
    assert np.isfinite(sparse.honest).mean() > 0.9


def test_many_features_are_left_alone():
    features = features_of(MOST_FEATURES + 1)
    rows = np.random.default_rng(2).normal(size=(400, MOST_FEATURES + 1))
    assert fit_sparse(features, rows, coupled(features, rows)[:, None], np.ones(400)) is None


def test_the_surrogate_believes_it_until_there_are_points_for_all_products():
    features, rng = features_of(12, 12), np.random.default_rng(3)
    kinds = []
    for n in (features.sizes["full"] - 40, features.sizes["full"] + 80):
        points = points_of(features, rng, n)
        values = coupled(features, points / 3)
        kinds.append(fit_surrogate(features, Evaluated(points, values, np.zeros((n, 0)))).kind)
    assert kinds == ["sparse", "full"]
