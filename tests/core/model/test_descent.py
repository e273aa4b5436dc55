"""Laws of the descent: brute force over integers and choices, with floats at their best; bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mixcma import Bool, Categorical, Float, Int, Space
from mixcma.core.coordinates import cell_centre
from mixcma.core.model.descent import limits, proposal
from mixcma.core.model.features import Features
from mixcma.core.model.surrogate import Evaluated, fit_surrogate
from mixcma.latent.encoding import Encoding
from tests.core.model.spaces import points_of

SPACES = {
    "floats": Space({"x": Float(), "y": Float()}),
    "integers": Space({"n": Int(0, 5), "m": Int(-2, 3), "k": Int(0, 3)}),
    "choices": Space({"on": Bool(), "kind": Categorical(list("abcd")), "c": Categorical(list("pqr"))}),
    "mixed": Space(
        {"x": Float(), "n": Int(0, 5), "y": Float(), "m": Int(-2, 3), "on": Bool(), "kind": Categorical(list("abc"))}
    ),
}


class Convex:
    """A convex quadratic function of features; `across` says how much they have to do with each other."""

    def __init__(self, name, seed, across):
        self.features = Features(Encoding(SPACES[name], True).coordinates)
        rng, p = np.random.default_rng(seed), self.features.count
        root = across * rng.normal(size=(p, p)) / np.sqrt(p) + np.diag(rng.uniform(0.7, 2.0, p))
        self.H = root @ root.T
        self.centre = self.features.rows(points_of(self.features, rng, 1))[0] * 0.5
        self.points = points_of(self.features, rng, 4 * self.features.sizes["full"] + 40)
        self.surrogate = fit_surrogate(
            self.features, Evaluated(self.points, self(self.points), np.zeros((len(self.points), 0)))
        )

    def __call__(self, points):
        u = self.features.rows(np.atleast_2d(points)) - self.centre
        return np.einsum("ni,ij,nj->n", u, self.H, u) / 2

    def with_best_floats(self, point):
        """The point with its floats where the function is least."""
        x, u = self.features.floats, self.features.rows(point[None])[0] - self.centre
        others = np.setdiff1d(np.arange(self.features.count), x)
        point = point.copy()
        if len(x):
            pull = self.H[np.ix_(x, others)] @ u[others]
            point[x] = self.centre[x] - np.linalg.solve(self.H[np.ix_(x, x)], pull)
        return point

    def best_value(self, point):
        return self(self.with_best_floats(point))[0]

    def all_points(self):
        """One for every combination of integers and choices, with the floats at their best."""
        coordinates = self.features.coordinates
        for cells in itertools.product(*(range(int(last) + 1) for last in coordinates.last)):
            point = np.where(coordinates.discrete, cell_centre(coordinates, np.array(cells, dtype=float)), 0.0)
            yield self.with_best_floats(point)

    def neighbours(self, point):
        """All points that differ in one integer or choice."""
        coordinates = self.features.coordinates
        for j in np.flatnonzero(coordinates.discrete):
            for cell in range(int(coordinates.last[j]) + 1):
                changed = point.copy()
                changed[j] = cell_centre(coordinates, np.full(len(point), float(cell)))[j]
                yield changed


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["integers", "floats"])
def test_where_the_features_have_nothing_to_do_with_each_other_the_least_is_found(name, seed):
    convex = Convex(name, seed, across=0.0)
    least = min(convex(point)[0] for point in convex.all_points())
    start = convex.points[convex(convex.points).argmin()]
    found = proposal(convex.surrogate, start)
    value = convex(start if found is None else found)[0]
    assert value == pytest.approx(least, abs=1e-8)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SPACES)
def test_no_other_integer_or_choice_would_be_better(name, seed):
    """With the floats at their best for each."""
    convex = Convex(name, seed, across=0.4)
    assert convex.surrogate.kind == "full"
    start = convex.points[convex(convex.points).argmin()]
    found = proposal(convex.surrogate, start)
    point = start if found is None else found
    value, scale = convex(point)[0], np.ptp(convex(convex.points))
    assert value <= convex(start)[0]
    assert value == pytest.approx(convex.best_value(point), abs=1e-7 * scale)
    for neighbour in convex.neighbours(point):
        assert convex.best_value(neighbour) >= value - 1e-7 * scale


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", SPACES)
def test_from_the_least_there_is_nowhere_to_go(name, seed):
    convex = Convex(name, seed, across=0.4)
    least = min(convex.all_points(), key=lambda point: convex(point)[0])
    found = proposal(convex.surrogate, least)
    assert found is None or convex(found)[0] == pytest.approx(convex(least)[0], abs=1e-8)


def test_a_linear_model_proposes_nothing():
    features, rng = Features(Encoding(SPACES["mixed"], True).coordinates), np.random.default_rng(1)
    points = points_of(features, rng, 100)
    values = features.rows(points) @ rng.normal(size=features.count)
    surrogate = fit_surrogate(features, Evaluated(points, values, np.zeros((100, 0))))
    assert surrogate.kind == "linear"
    assert proposal(surrogate, points[0]) is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("seed", range(8))
def test_the_bounds_are_kept(seed, sign):
    """Convex or not, with the least far outside."""
    space = Space({"x": Float(-1, 2), "y": Float(0, 1), "n": Int(0, 4), "on": Bool(), "free": Float()})
    features, rng = Features(Encoding(space, True).coordinates), np.random.default_rng(seed)
    coordinates, p = features.coordinates, features.count
    points = points_of(features, rng, 120)
    points = np.where(coordinates.discrete, points, np.clip(points, coordinates.latent_low, coordinates.latent_high))
    root = rng.normal(size=(p, p))
    u = features.rows(points) - rng.normal(size=p) * 20
    values = sign * np.einsum("ni,ij,nj->n", u, root @ root.T, u)
    surrogate = fit_surrogate(features, Evaluated(points, values, np.zeros((120, 0))))
    found = proposal(surrogate, points[values.argmin()])
    if found is not None:
        numbers = features.numbers
        low, high = limits(surrogate.scaling)
        floats = features.floats
        assert (found[floats] >= low[floats]).all()
        assert (found[floats] <= high[floats]).all()
        assert (found[floats] >= coordinates.latent_low[floats]).all()
        assert (found[floats] <= coordinates.latent_high[floats]).all()
        cells = (found / np.asarray(coordinates.width))[features.integers]
        assert np.allclose(cells, np.round(cells))
        assert ((np.round(cells) >= 0) & (np.round(cells) <= np.asarray(coordinates.last)[features.integers])).all()
        assert all(choice in range(K) for choice, K in zip(found[numbers:], features.choices))
