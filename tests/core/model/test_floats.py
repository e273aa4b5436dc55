"""Laws of the model of the floats alone: quadratic functions are solved whatever the discrete values are worth."""

from __future__ import annotations

import numpy as np
import pytest

from mixcma import Bool, Float, Int, Space
from mixcma.core.coordinates import cell_centre
from mixcma.core.model.features import Features
from mixcma.core.model.floats import proposal_of_floats
from mixcma.core.model.surrogate import Evaluated
from mixcma.latent.encoding import Encoding
from tests.core.model.spaces import points_of

BESIDE = {"a": Float(), "n": Int(0, 9), "b": Float(), "on": Bool(), "c": Float()}
SPACES = {"floats beside others": Space(BESIDE), "floats": Space({"a": Float(), "b": Float(), "c": Float()})}


def features_of(name):
    return Features(Encoding(SPACES[name], True).coordinates)


class Bowl:
    """A convex quadratic function of the floats, and any number for each combination of discrete values."""

    def __init__(self, features, seed, products=True):
        rng, n = np.random.default_rng(seed), len(features.floats)
        root = np.diag(rng.uniform(0.5, 2.0, n)) + (0.5 * rng.normal(size=(n, n)) if products else 0.0)
        self.H, self.centre, self.features = root @ root.T, 0.4 * rng.normal(size=n), features

    def __call__(self, points):
        x = points[:, self.features.floats] - self.centre
        discrete = points[:, np.asarray(self.features.coordinates.discrete)]
        worth = np.array([hash(tuple(row)) % 1000 for row in np.round(10 * discrete).astype(int).tolist()])
        return np.einsum("ni,ij,nj->n", x, self.H, x) / 2 + worth


def shared(features, rng, groups, members):
    """Points in groups that share their discrete values."""
    points = np.repeat(points_of(features, rng, groups), members, axis=0)
    points[:, features.floats] = rng.normal(size=(len(points), len(features.floats)))
    return points


def evaluated(points, values):
    return Evaluated(points, values, np.zeros((len(points), 0)))


@pytest.mark.parametrize(("groups", "members"), [(1, 14), (3, 14), (12, 2)])
@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_floats_of_a_quadratic_function_are_solved(seed, products, groups, members):
    """Also where no group alone has enough points."""
    features, rng = features_of("floats beside others"), np.random.default_rng(seed)
    bowl, points = Bowl(features, seed, products), shared(features, rng, groups, members)
    values = bowl(points)
    point, best = proposal_of_floats(features, evaluated(points, values)), points[values.argmin()]
    np.testing.assert_allclose(point[features.floats], bowl.centre, atol=1e-6)
    discrete = np.asarray(features.coordinates.discrete)
    assert (point[discrete] == best[discrete]).all()


def test_what_the_groups_are_worth_and_in_which_order_they_came_changes_nothing():
    features, rng = features_of("floats beside others"), np.random.default_rng(5)
    bowl, points = Bowl(features, 5), shared(features, rng, 6, 5)
    values = bowl(points) + 0.1 * rng.normal(size=len(points))
    proposed = proposal_of_floats(features, evaluated(points, values))
    order = rng.permutation(len(points))
    again = proposal_of_floats(features, evaluated(points[order], values[order]))
    np.testing.assert_allclose(again, proposed, rtol=1e-9)
    discrete = points[:, np.asarray(features.coordinates.discrete)]
    best = (discrete == discrete[values.argmin()]).all(axis=1)
    shifted = proposal_of_floats(features, evaluated(points, np.where(best, values - 500.0, values)))
    np.testing.assert_allclose(shifted[features.floats], bowl.centre, atol=0.5)


def test_a_space_of_floats_is_one_group():
    features, rng = features_of("floats"), np.random.default_rng(6)
    bowl = Bowl(features, 6)
    points = rng.normal(size=(20, 3))
    point = proposal_of_floats(features, evaluated(points, bowl(points)))
    np.testing.assert_allclose(point, bowl.centre, atol=1e-6)


def test_bounds_hold():
    space = Space({"x": Float(-1, 1, mean=0, std=0.5), "y": Float(-1, 1, mean=0, std=0.5), "n": Int(0, 3)})
    encoding = Encoding(space, True)
    features, rng = Features(encoding.coordinates), np.random.default_rng(7)
    points = shared(features, rng, 2, 12)
    high = features.coordinates.latent_high[0]
    points[:, :2] = rng.uniform(high - 1.5, high, (len(points), 2))
    values = ((points[:, :2] - [high + 0.5, high - 0.3]) ** 2).sum(axis=1)
    point = proposal_of_floats(features, evaluated(points, values))
    assert point[:2] == pytest.approx([high, high - 0.3], abs=1e-6)


def test_without_enough_points_nothing_is_proposed():
    features, rng = features_of("floats beside others"), np.random.default_rng(8)
    points = shared(features, rng, 1, 5)
    assert proposal_of_floats(features, evaluated(points, rng.normal(size=5))) is None


def test_a_best_point_that_is_alone_has_no_proposal():
    features, rng = features_of("floats beside others"), np.random.default_rng(9)
    points = shared(features, rng, 2, 20)
    alone = cell_centre(features.coordinates, np.full((1, 5), 1.0))
    points = np.concatenate([points[(points[:, 1] != alone[0, 1])], alone])
    values = Bowl(features, 9)(points)
    values[-1] = values.min() - 1.0
    assert proposal_of_floats(features, evaluated(points, values)) is None


def test_without_floats_nothing_is_proposed():
    features = Features(Encoding(Space({"n": Int(0, 9), "on": Bool()}), True).coordinates)
    points = points_of(features, np.random.default_rng(9), 10)
    assert proposal_of_floats(features, evaluated(points, np.arange(10.0))) is None


def test_values_without_an_end_or_all_alike_are_no_model():
    features, rng = features_of("floats beside others"), np.random.default_rng(10)
    points = shared(features, rng, 2, 14)
    assert proposal_of_floats(features, evaluated(points, np.zeros(len(points)))) is None
