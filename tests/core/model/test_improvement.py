"""Laws of the expected improvement: integrals, gradients by differences, and where proposals lie."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from mixcma.core.coordinates import cell_centre, cell_index
from mixcma.core.model.features import Features
from mixcma.core.model.improvement import (
    Fit,
    box_around,
    fit_processes,
    forecast,
    log_improvement,
    most_promising,
)
from mixcma.core.model.process import expected_theta
from mixcma.core.model.surrogate import Evaluated
from mixcma.latent.encoding import Encoding
from mixcma.space import Float, Int, Space
from tests.core.model.spaces import SPACES, features_of, points_of


def improvement_by_integral(mean, sd, best):
    """log E max(0, best - y): the integrand in units of its own size where the tail begins."""
    z = (best - mean) / sd
    edge = min(z, 0.0)  # t = z - u with the density exp(-t^2/2), scaled by that at the edge

    def integrand(u):
        t = z - u
        return u * math.exp(-(t * t - edge * edge) / 2)

    width = 40.0 if z > -1 else 60.0 / -z
    found, _ = quad(integrand, 0, max(z, 0.0) + width, epsabs=0, epsrel=1e-10, limit=400, points=[max(z, 1e-12)])
    return math.log(sd) + math.log(found) - edge * edge / 2 - math.log(2 * math.pi) / 2


@pytest.mark.parametrize("sd", [1e-6, 1.0, 300.0])
@pytest.mark.parametrize("z", [-900.0, -80.0, -30.0, -6.0, -2.0, -1.001, -0.999, -0.2, 0.0, 0.7, 4.0, 30.0])
def test_the_improvement_is_that_of_an_integral(z, sd):
    found = log_improvement(np.array([2.0]), np.array([sd]), 2.0 + z * sd)
    assert found[0] == pytest.approx(improvement_by_integral(2.0, sd, 2.0 + z * sd), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("z", [-1e3, -1e5, -1e8, -1.0])
def test_the_improvement_has_no_seams_and_falls_with_the_distance(z):
    around = z * (1 + np.array([-1e-6, -1e-9, 0.0, 1e-9, 1e-6]))
    found = log_improvement(-around, np.ones(5), 0.0)
    assert np.isfinite(found).all()
    assert (np.diff(found) <= 0).all()  # the first is the nearest
    np.testing.assert_allclose(found, found[2], rtol=1e-5)


def evaluated(name, kind, seed=1, count=24):
    """Points of a space with a smooth value; kinds of constraints."""
    features, rng = features_of(name), np.random.default_rng(seed)
    points = points_of(features, rng, count)
    values = (points**2 @ np.arange(1.0, points.shape[1] + 1)) + np.sin(3 * points[:, 0])
    constraints = {
        "none": np.zeros((count, 0)),
        "some": np.stack([0.3 - points[:, 0], points[:, -1] - 1.2], axis=1),
        "nothing feasible": np.stack([5.0 + points[:, 0], 1.0 + points[:, -1] ** 2], axis=1),
    }[kind]
    return features, Evaluated(points, values, constraints)


def forecast_of(features, data):
    return forecast(features, data, fit_processes(features, data))


KINDS = ["none", "some", "nothing feasible"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["float", "floats", "numbers", "mixed"])
def test_the_gradient_of_the_score_is_that_of_differences(name, kind):
    features, data = evaluated(name, kind)
    theta = np.append(expected_theta(features.variables)[:-1], -3.0)  # with some noise, lest nothing is uncertain
    predicted = forecast(features, data, Fit([theta] * (1 + data.constraints.shape[1])))
    rng, h = np.random.default_rng(2), 1e-6
    assert (predicted.best is None) == (kind == "nothing feasible")
    points = points_of(features, rng, 12)
    scores, slopes = predicted.gradients(points)
    assert scores == pytest.approx(predicted.score(points), rel=1e-6, abs=1e-6)
    for j in range(features.numbers):
        step = h * np.eye(points.shape[1])[j]
        difference = predicted.score(points + step) - predicted.score(points - step)
        assert slopes[:, j] == pytest.approx(difference / (2 * h), rel=2e-3, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPACES)
def test_proposals_are_points_of_the_space(name, kind):
    """Inside the bounds, integers at the centres of their cells, and choices that there are."""
    features, data = evaluated(name, kind)
    coordinates, n = features.coordinates, features.numbers
    predicted = forecast_of(features, data)
    known = data.points[:8]  # of the categories all points are in the data
    points = np.array(most_promising(predicted, known, known.copy(), np.random.default_rng(3)))
    assert len(points) >= 1
    assert np.isfinite(points).all()
    assert (points[:, :n] >= predicted.box.low).all()
    assert (points[:, :n] <= predicted.box.high).all()
    if coordinates.latent_low is not None:
        assert (points >= coordinates.latent_low).all()
        assert (points <= coordinates.latent_high).all()
    at_values = cell_centre(coordinates, cell_index(coordinates, points))
    discrete = np.asarray(coordinates.discrete)
    np.testing.assert_array_equal(points[:, discrete], at_values[:, discrete])
    for category, K in enumerate(features.choices, start=n):
        assert set(points[:, category]) <= set(range(K))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPACES)
def test_the_first_proposal_scores_best_and_beats_random_points(name, kind):
    features, data = evaluated(name, kind)
    data = Evaluated(*(part[:8] for part in data))  # of the categories all points are in the data
    predicted, rng, known = forecast_of(features, data), np.random.default_rng(4), data.points
    scores = predicted.score(np.array(most_promising(predicted, known, known.copy(), rng)))
    assert scores[0] >= scores.max() - 1e-3
    anywhere = predicted.box.settled(points_of(features, rng, 300))
    anywhere = anywhere[(anywhere[:, None] != known).any(axis=2).all(axis=1)]
    assert scores[0] >= predicted.score(anywhere).max() - 1e-6


def test_the_same_random_numbers_give_the_same_proposals():
    features, data = evaluated("mixed", "some")
    one, other = (
        most_promising(forecast_of(features, data), data.points, data.points[:8].copy(), np.random.default_rng(5))
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)


def test_the_best_points_are_left_as_they_are():
    features, data = evaluated("mixed", "none")
    best = data.points[:8].copy()
    most_promising(forecast_of(features, data), data.points, best, np.random.default_rng(6))
    np.testing.assert_array_equal(best, data.points[:8])


def test_points_that_differ_in_one_category_alone_are_at_the_distance_1():
    features = features_of("mixed")
    points = points_of(features, np.random.default_rng(7), 2)
    points[1] = points[0]
    points[1, features.numbers] = (points[0, features.numbers] + 1) % features.choices[0]
    one, other = box_around(features, points).rows(points)
    assert np.linalg.norm(one - other) == pytest.approx(1.0)


def test_what_was_told_is_expected_there_in_its_own_units():
    features, data = evaluated("floats", "some")
    data = data._replace(values=1e6 + 1e3 * data.values)
    predicted = forecast_of(features, data)
    for k in range(0, len(data.values), 5):
        value, constraints = predicted.expected(data.points[[k]])
        if data.values[k] <= np.median(data.values):  # very poor values are cut off
            assert value == pytest.approx(data.values[k], abs=0.3 * data.values.std())
        np.testing.assert_allclose(constraints, data.constraints[k], atol=0.3)


@pytest.mark.parametrize("factor", [1e-200, 1e-6, 1e6, 1e140, 1e300])
def test_the_unit_of_the_values_does_not_matter(factor):
    features, data = evaluated("floats", "none")
    others = data._replace(values=factor * data.values)
    one, other = (
        most_promising(forecast_of(features, each), data.points, data.points[:8].copy(), np.random.default_rng(8))[0]
        for each in (data, others)
    )
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_a_clear_minimum_is_proposed():
    """A bowl known at a few points: the next is near its floor."""
    features = features_of("floats")
    points = np.random.default_rng(9).uniform(-2, 2, (40, 3))
    data = Evaluated(points, ((points - [0.5, -0.5, 1.0]) ** 2).sum(axis=1), np.zeros((40, 0)))
    best = points[np.argsort(data.values)[:8]]
    (first, *_) = most_promising(forecast_of(features, data), data.points, best, np.random.default_rng(10))
    np.testing.assert_allclose(first, [0.5, -0.5, 1.0], atol=0.15)


# An earlier search


def two_searches(seed, offset=0.0, count=60):
    """Eight points of a bowl, and many of an earlier search of the same bowl, perhaps with other values."""
    features, rng = features_of("floats"), np.random.default_rng(seed)
    points, before = rng.uniform(-2, 2, (8, 3)), rng.uniform(-2, 2, (count, 3))
    bowl = [((each - [0.5, -0.5, 1.0]) ** 2).sum(axis=1) for each in (points, before)]
    none = np.zeros((8, 0)), np.zeros((count, 0))
    return features, Evaluated(points, bowl[0], none[0]), Evaluated(before, bowl[1] + offset, none[1])


@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_an_earlier_search_of_a_similar_problem_is_believed(seed, offset):
    features, data, earlier = two_searches(seed, offset)
    fit = fit_processes(features, data, earlier)
    assert fit.earlier is earlier
    assert [len(theta) for theta in fit.thetas] == [5]  # three floats, the search and the nugget
    best = earlier.points[np.argsort(earlier.values)[:8]]
    (first, *_) = most_promising(forecast(features, data, fit), data.points, best, np.random.default_rng(11))
    np.testing.assert_allclose(first, [0.5, -0.5, 1.0], atol=0.3)


@pytest.mark.parametrize("seed", range(5))
def test_an_earlier_search_whose_values_say_nothing_is_not_believed(seed):
    features, data, earlier = two_searches(seed)
    shuffled = earlier._replace(values=np.random.default_rng(seed).permutation(earlier.values))
    alone = fit_processes(features, data)
    fit = fit_processes(features, data, shuffled)
    assert fit.earlier is None
    np.testing.assert_array_equal(fit.thetas, alone.thetas)


def test_a_point_of_an_earlier_search_may_be_proposed_again():
    features = features_of("categories")
    points = np.unique(points_of(features, np.random.default_rng(12), 40), axis=0)
    values = -1.0 * (points == points[-1]).sum(axis=1)
    none = np.zeros((len(points), 0))
    data = Evaluated(points[:-1][::3], values[:-1][::3] + 0.1, none[:-1][::3])
    fit = Fit([np.append(expected_theta(features.variables + 1)[:-1], -10.0)], Evaluated(points, values, none))
    predicted = forecast(features, data, fit)
    found = most_promising(predicted, data.points, points[-1:].copy(), np.random.default_rng(13))
    np.testing.assert_array_equal(found[0], points[-1])


def test_floats_are_settled_for_other_discrete_values():
    """Five floats are at least 9 - 4 n, and their sum counts: n = 2 is best, but not with the floats of n = 1.

    Climbing only from the points that score best, 25 of the 120 proposals have n = 2.
    """
    encoding = Encoding(Space({**{f"x{i}": Float(0.0, 10.0) for i in range(5)}, "n": Int(0, 2)}))
    features, proposed = Features(encoding.coordinates), []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = np.vstack([rng.uniform(0.0, 10.0, (60, 5)), np.full(5, 5.0)])
        n = np.append(rng.integers(3, size=60), 1)
        rows = [dict(zip(encoding.names, [*floats, count])) for floats, count in zip(x.tolist(), n.tolist())]
        points = np.array([encoding.encode(row) for row in rows])
        data = Evaluated(points, x.sum(axis=1) + 12.0 * n, 9.0 - 4.0 * n[:, None] - x)
        predicted = forecast(features, data, fit_processes(features, data))
        draws = [most_promising(predicted, points, points[-1:], np.random.default_rng(draw)) for draw in range(20)]
        proposed += encoding.decode(np.array([found[0] for found in draws]))
    assert sum(params["n"] == 2 for params in proposed) >= 40
