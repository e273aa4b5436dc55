"""Law: features and columns are those of a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from mixcma.core.model.features import KINDS
from tests.core.model.spaces import SPACES, features_of, points_of


def features_by_loop(features, point):
    """The features of one point, each as (number or category, value)."""
    row = [(("number", j), point[j]) for j in range(features.numbers)]
    for category, K in enumerate(features.choices):
        for choice in range(1, K):
            row.append((("category", category), 1.0 if point[features.numbers + category] == choice else 0.0))
    return row


def columns_by_loop(row, kind):
    """1, the features, the squares of numbers, the products of two of different variables."""
    columns = [1.0, *(value for _, value in row)]
    if kind != "linear":
        columns += [value**2 for (what, _), value in row if what == "number"]
    if kind == "full":
        for k, (of, value) in enumerate(row):
            columns += [value * other for of_other, other in row[k + 1 :] if of_other != of]
    return columns


@pytest.mark.parametrize("name", SPACES)
def test_rows_are_those_of_a_loop(name):
    features = features_of(name)
    points = points_of(features, np.random.default_rng(1), 30)
    rows = features.rows(points)
    assert rows.shape == (30, features.count)
    assert rows.tolist() == [[value for _, value in features_by_loop(features, point)] for point in points]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPACES)
def test_columns_are_those_of_a_loop(name, kind):
    features = features_of(name)
    points = points_of(features, np.random.default_rng(2), 30)
    matrix = features.matrix(features.rows(points), kind)
    assert matrix.shape == (30, features.sizes[kind])
    expected = [columns_by_loop(features_by_loop(features, point), kind) for point in points]
    np.testing.assert_allclose(matrix, expected, rtol=1e-15)


@pytest.mark.parametrize("name", SPACES)
def test_every_variable_has_its_place(name):
    features, space = features_of(name), SPACES[name]
    assert len(features.choices) + features.numbers == len(space)
    assert sorted([*features.floats, *features.integers]) == list(range(features.numbers))
    for category, K in enumerate(features.choices):
        first = features.first_indicator[category]
        points = np.zeros((K, len(space)))
        points[:, features.numbers + category] = np.arange(K)
        indicators = features.rows(points)[:, first : first + K - 1]
        assert indicators.tolist() == [[0.0] * (K - 1), *np.eye(K - 1).tolist()]


@pytest.mark.parametrize("name", SPACES)
def test_products_of_choices_of_one_category_are_left_out(name):
    """They are always 0."""
    features = features_of(name)
    every = features.rows(points_of(features, np.random.default_rng(3), 2000)) != 0.0
    assert all((every[:, i] & every[:, j]).any() for i, j in zip(*features.pairs))
    left_out = set(zip(*np.triu_indices(features.count, 1))) - set(zip(*features.pairs))
    assert not any((every[:, i] & every[:, j]).any() for i, j in left_out)
