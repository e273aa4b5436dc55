"""Where the Gaussian processes expect the largest improvement (docs/model.md, "Expected improvement")."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import erfcx, log_ndtr, ndtr

from mixcma.core.conditions import existing, without_absent
from mixcma.core.coordinates import cell_centre, cell_index
from mixcma.core.model.features import Features, FloatArray, IntArray
from mixcma.core.model.plateau import exhausted, on_plateau
from mixcma.core.model.process import Processes, fit_theta, processes
from mixcma.core.model.surrogate import Evaluated

# Points that are looked at first: half of them anywhere, half around the best few; then the best are climbed from.
LOOKED_AT, AROUND, CLIMBED = 400, 5, 3
# Under constraints so many more climbs begin at the best point with one or two discrete variables changed: an integer
# of more than a few values by at most FARTHEST_STEP.
OTHER_VALUES, FARTHEST_STEP = 3, 2
# How far around, as a part of the box: 10 to the power of these.
NEAREST, FARTHEST = -3.0, -0.5
# A point around one of the best has another choice in each category with this probability.
OTHER_CHOICE = 0.3
# Climbing takes floats and discrete variables in turn, so often, until less is gained than this.
TURNS, LEAST_GAIN = 3, 1e-2
# Floats take at most so many steps, until one gains less than this part of the score.
STEPS, LEAST_PART = 18, 1e-4
# Integers with so many values are tried at all of them, others at their neighbours and a few more.
FEW_VALUES, MORE_VALUES = 12, 4
# Values farther above the median than this many times the distance from it to the best count as that far.
CAP = 5.0
# Constraints count as no larger than so many times their typical size.
CONSTRAINT_CAP = 8.0
# Where nothing feasible is known, feasibility counts, and the value only so much.
VALUE_COUNTS = 0.01
LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
LARGEST_RATIO = 50.0
# Rows of features this close are the same point.
SAME = 1e-7


class Box(NamedTuple):
    """Where points are proposed: within the bounds, and not too far beyond what was seen."""

    features: Features
    low: FloatArray  # (numbers,)
    high: FloatArray
    variable: IntArray  # (p,) the variable of each column of `rows`
    two_searches: bool  # whether there are points of an earlier search too: the last column says which they are
    choice: tuple[int, int] | None = None  # the column of a category, and the choice that all points are to have

    def rows(self, points: FloatArray, earlier: bool = False) -> FloatArray:
        """Latent points (n, N) -> (n, p): numbers in units of the box, and 1 / sqrt(2) for the choice of a category.

        So points that differ in a category alone are at the distance 1; and so are those of another search. What does
        not exist at a point is the same everywhere, and no choice of its category.
        """
        points = without_absent(self.features.coordinates, points)
        n = self.features.numbers
        parts = [points[:, :n] / (self.high - self.low)]
        for category, K in enumerate(self.features.choices, start=n):
            parts.append((points[:, [category]] == np.arange(K)) / math.sqrt(2.0))
        if self.two_searches:
            parts.append(np.full((len(points), 1), float(earlier)))
        return np.concatenate(parts, axis=1)

    @property
    def held(self) -> list[int]:
        """The columns that stay as they are: that of the choice, and those that it exists with."""
        return [] if self.choice is None else [self.choice[0], *(parent for parent, _ in self._parents())]

    def _parents(self) -> list[tuple[int, tuple[float, ...]]]:
        conditions = self.features.coordinates.conditions
        return [(parent, cells) for child, parent, cells in conditions if self.choice and child == self.choice[0]]

    def settled(self, points: FloatArray) -> FloatArray:
        """The points inside, with integers at their values, and with the choice that all are to have."""
        coordinates, n = self.features.coordinates, self.features.numbers
        inside = np.concatenate([np.clip(points[:, :n], self.low, self.high), points[:, n:]], axis=1)
        if self.choice is not None:
            inside[:, self.choice[0]] = self.choice[1]
            for parent, allowed in self._parents():
                cells = cell_index(coordinates, inside)
                cells[:, parent] = np.where(np.isin(cells[:, parent], allowed), cells[:, parent], allowed[0])
                inside[:, parent] = cell_centre(coordinates, cells)[:, parent]
        at_values = cell_centre(coordinates, cell_index(coordinates, inside))
        return np.where(np.asarray(coordinates.discrete), at_values, inside)


def box_around(features: Features, points: FloatArray, two_searches: bool = False) -> Box:
    coordinates, n = features.coordinates, features.numbers
    low, high = points[:, :n].min(axis=0), points[:, :n].max(axis=0)
    beyond = np.maximum(high - low, 1.0)
    low, high = low - beyond, high + beyond
    if coordinates.latent_low is not None and coordinates.latent_high is not None:
        low, high = np.maximum(low, coordinates.latent_low[:n]), np.minimum(high, coordinates.latent_high[:n])
    of_categories = np.repeat(n + np.arange(len(features.choices)), features.choices)
    of_search = [features.variables] if two_searches else []
    variable = np.concatenate([np.arange(n), of_categories, of_search]).astype(np.int64)
    return Box(features, low, high, variable, two_searches)


class Forecast(NamedTuple):
    """Processes for the value and for each constraint, each in units of its own."""

    box: Box
    processes: Processes  # the value comes first
    best: float | None  # the best feasible value; None if there is none
    limits: FloatArray  # (constraints,) the scaled value of each constraint up to which it is met
    scales: FloatArray  # (outputs, 2) the offset and the unit of each output

    def expected(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The value and the constraints that are expected at one point (1, N)."""
        means, _ = self.processes.predict(self.box.rows(point))
        value, *constraints = self.scales[:, 0] + self.scales[:, 1] * means[:, 0]
        return float(value), np.array(constraints)

    def score(self, points: FloatArray) -> FloatArray:
        """The logarithm of the expected feasible improvement: (m, N) -> (m,)."""
        mean, sd = self.processes.predict(self.box.rows(points))
        value = -VALUE_COUNTS * mean[0] if self.best is None else log_improvement(mean[0], sd[0], self.best)
        score: FloatArray = value + log_ndtr((self.limits[:, None] - mean[1:]) / sd[1:]).sum(axis=0)
        return score

    def gradients(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The scores of points (m, N), and their gradients by the numbers (m, numbers)."""
        mean, sd, d_mean, d_sd = self.processes.gradients(self.box.rows(points))
        if self.best is None:
            score, slope = -VALUE_COUNTS * mean[0], -VALUE_COUNTS * d_mean[0]
        else:
            z = (self.best - mean[0]) / sd[0]
            score = log_improvement(mean[0], sd[0], self.best)
            by_sd, by_mean = _ratio(log_density(z), score), _ratio(log_ndtr(z), score)
            slope = by_sd[:, None] * d_sd[0] - by_mean[:, None] * d_mean[0]
        if len(self.limits):
            z = (self.limits[:, None] - mean[1:]) / sd[1:]
            chance = log_ndtr(z)
            rate = _ratio(log_density(z), chance) / sd[1:]
            score = score + chance.sum(axis=0)
            slope = slope - (rate[..., None] * d_mean[1:] + (rate * z)[..., None] * d_sd[1:]).sum(axis=0)
        n, coordinates = self.box.features.numbers, self.box.features.coordinates
        slope = slope[:, :n] / (self.box.high - self.box.low)
        if coordinates.conditions:
            slope = np.where(existing(coordinates, cell_index(coordinates, points))[:, :n], slope, 0.0)
        return score, slope


def _ratio(log_a: FloatArray, log_b: FloatArray | float) -> FloatArray:
    ratio: FloatArray = np.exp(np.minimum(log_a - log_b, LARGEST_RATIO))
    return ratio


def log_density(z: FloatArray) -> FloatArray:
    return -z * z / 2.0 - LOG_ROOT_2PI


def log_improvement(mean: FloatArray, sd: FloatArray, best: float) -> FloatArray:
    """log E max(0, best - y) for y ~ N(mean, sd^2), which stays exact far from the best: log sd (phi(z) + z Phi(z)).

    For z below -1 that is log phi(z) + log(1 - |z| sqrt(pi / 2) erfcx(|z| / sqrt(2))).
    """
    z = (best - mean) / sd
    near = np.maximum(z, -1.0)
    far = np.maximum(-z, 1.0)
    density = np.exp(-near * near / 2.0) / math.sqrt(2.0 * math.pi)
    tail = 1.0 - far * math.sqrt(math.pi / 2.0) * erfcx(far / math.sqrt(2.0))
    # the difference loses its digits far out, where it is 1 / z^2
    tail = np.where(far > 1e3, 1.0 / (far * far), np.maximum(tail, 1e-300))
    log_far = -far * far / 2.0 - LOG_ROOT_2PI + np.log(tail)
    return np.log(sd) + np.where(z > -1.0, np.log(density + near * ndtr(near)), log_far)


class Fit(NamedTuple):
    """The parameters of the processes, one theta for the value and one for each constraint."""

    thetas: list[FloatArray]
    earlier: Evaluated | None = None  # what is believed of an earlier search
    choice: tuple[int, int] | None = None  # the column of a category, and the choice that all points are to have


def forecast(features: Features, evaluated: Evaluated, fit: Fit) -> Forecast | None:
    """Processes with these parameters, one for the value and one for each constraint; None if one cannot be made."""
    box, rows, scaled = _data(features, evaluated, fit.earlier)
    fitted = processes(rows, box.variable, [y for y, _, _ in scaled], fit.thetas)
    if fitted is None:
        return None
    scales = np.array([(shift, unit) for _, shift, unit in scaled])
    zero = -scales[:, 0] / scales[:, 1]
    feasible = evaluated.violations == 0.0
    best = zero[0] + float(evaluated.values[feasible].min()) / scales[0, 1] if feasible.any() else None
    return Forecast(box._replace(choice=fit.choice), fitted, best, zero[1:], scales)


def fit_processes(features: Features, evaluated: Evaluated, earlier: Evaluated | None = None) -> Fit:
    """The most probable parameters of the processes.

    Points of an `earlier` search, which may have been of a similar problem only, have a variable that tells them from
    the others. They are believed if the values that were evaluated, each predicted from all others, are the more
    probable with them.
    """
    alone = _fit(features, evaluated, None)
    if earlier is None:
        return alone
    together = _fit(features, evaluated, earlier)
    return max(together, alone, key=lambda fit: _plausibility(features, evaluated, fit))


def _fit(features: Features, evaluated: Evaluated, earlier: Evaluated | None) -> Fit:
    box, rows, scaled = _data(features, evaluated, earlier)
    return Fit([fit_theta(rows, box.variable, y) for y, _, _ in scaled], earlier)


def _plausibility(features: Features, evaluated: Evaluated, fit: Fit) -> float:
    """The logarithm of the probability of the values, each of them predicted from all others."""
    predicted = forecast(features, evaluated, fit)
    if predicted is None:
        return -math.inf
    n = len(evaluated.values)
    return predicted.processes.log_probability(0, n) - n * math.log(predicted.scales[0, 1])


def _data(
    features: Features, evaluated: Evaluated, earlier: Evaluated | None
) -> tuple[Box, FloatArray, list[tuple[FloatArray, float, float]]]:
    """The box, the rows of all points (those of the earlier search come last), and the outputs in their units."""
    if earlier is None:
        box = box_around(features, evaluated.points)
        return box, box.rows(evaluated.points), [_standard(y) for y in _outputs(evaluated)]
    together = Evaluated._make(np.concatenate(parts) for parts in zip(evaluated, earlier))
    box = box_around(features, together.points, two_searches=True)
    rows = np.concatenate([box.rows(evaluated.points), box.rows(earlier.points, earlier=True)])
    return box, rows, [_standard(y) for y in _outputs(together)]


def _outputs(evaluated: Evaluated) -> list[FloatArray]:
    values, constraints = evaluated.values, evaluated.constraints
    least, median = values.min(), np.median(values)
    with np.errstate(over="ignore"):  # what is infinite caps nothing
        outputs = [np.minimum(values, median + CAP * (median - least)) if median > least else values]
    for g in constraints.T:
        typical = float(np.median(np.abs(g)))
        outputs.append(np.clip(g, -CONSTRAINT_CAP * typical, CONSTRAINT_CAP * typical) if typical > 0.0 else g)
    return outputs


def _standard(y: FloatArray) -> tuple[FloatArray, float, float]:
    """In units of the standard deviation from the mean: the values, the mean and the unit."""
    size = float(np.abs(y).max()) or 1.0  # squares of numbers of any size would not be floats
    mean, unit = float((y / size).mean()), float((y / size).std())
    unit = unit if unit > 0.0 else 1.0
    return (y / size - mean) / unit, size * mean, size * unit


def most_promising(
    forecast: Forecast,
    known: FloatArray,
    best: FloatArray,
    rng: np.random.Generator,
    outcomes: FloatArray | None = None,
) -> list[FloatArray]:
    """New points (N,) where improvement is expected, the most promising first.

    `known` (n, N) are all points so far, and `best` (k, N) the best of them. With the `outcomes` (n, outputs) of the
    known ones, the first of which counts most, points on a plateau and in exhausted places come last.
    """
    box, seen = forecast.box, forecast.box.rows(known)
    points = box.settled(np.concatenate([_around(box, best[:AROUND], rng), _anywhere(box, rng), best[:AROUND]]))
    if not len(box.features.floats):
        points = points[_is_new(box, points, seen)]
    scores = forecast.score(points)
    order = np.argsort(-scores, kind="stable")
    starts = points[order[:CLIMBED]]
    if len(forecast.limits) and len(box.features.floats):
        starts = np.concatenate([starts, _with_other_values(box, best[0], rng)])
    found = _climbed(forecast, seen, starts, forecast.score(starts), rng)
    found = found[np.argsort(-forecast.score(found), kind="stable")] if len(found) else found
    fresh, flat = _sorted_out(box, found, seen, outcomes)
    if flat and not fresh:
        fresh, _ = _sorted_out(box, points[order], seen, outcomes)
    return fresh + flat


def _sorted_out(
    box: Box, points: FloatArray, seen: FloatArray, outcomes: FloatArray | None
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Those of the points (m, N) that are new, and those of them that are on a plateau or in an exhausted place."""
    points = points[_is_new(box, points, seen)] if len(points) else points
    if outcomes is None or not len(points):
        return list(points), []
    rows, cost = box.rows(points), np.argsort(np.lexsort(outcomes.T[::-1])).astype(np.float64)
    flat = on_plateau(rows, seen, outcomes) | exhausted(rows, seen, cost)
    return list(points[~flat]), list(points[flat])


def anywhere_with(
    features: Features, known: FloatArray, choice: tuple[int, int], rng: np.random.Generator
) -> FloatArray | None:
    """A random new point (N,) with this choice; None if none is found."""
    box = box_around(features, known)._replace(choice=choice)
    points = box.settled(_anywhere(box, rng))
    return next(iter(points[_is_new(box, points, box.rows(known))]), None)


def _is_new(box: Box, points: FloatArray, seen: FloatArray) -> NDArray[np.bool_]:
    """Which of the points (m, N) are not among those that were seen, as rows (n, p)."""
    new: NDArray[np.bool_] = cdist(box.rows(points), seen, "chebyshev").min(axis=1) > SAME
    return new


def _anywhere(box: Box, rng: np.random.Generator) -> FloatArray:
    shape = LOOKED_AT // 2, box.features.numbers
    numbers = box.low + rng.random(shape) * (box.high - box.low)
    return np.concatenate([numbers, _choices(box, shape[0], rng)], axis=1)


def _around(box: Box, best: FloatArray, rng: np.random.Generator) -> FloatArray:
    m, n = LOOKED_AT // 2, box.features.numbers
    points = best[rng.integers(len(best), size=m)]
    scale = 10.0 ** rng.uniform(NEAREST, FARTHEST, (m, 1))
    points[:, :n] += scale * rng.standard_normal((m, n)) * (box.high - box.low)
    other = rng.random((m, len(box.features.choices))) < OTHER_CHOICE
    points[:, n:] = np.where(other, _choices(box, m, rng), points[:, n:])
    return points


def _with_other_values(box: Box, best: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The best point (N,) with one or two discrete variables changed: (m, N).

    What the constraints allow the floats is another matter there, so no step from the best point leads to it.
    """
    coordinates = box.features.coordinates
    discrete = np.flatnonzero(np.asarray(coordinates.discrete))
    discrete = discrete[~np.isin(discrete, box.held)]
    points = np.repeat(best[None], OTHER_VALUES if len(discrete) else 0, axis=0)
    cells, last = cell_index(coordinates, points), np.asarray(coordinates.last)
    for row in cells:
        for j in rng.choice(discrete, size=min(len(discrete), int(rng.integers(1, 3))), replace=False):
            if j >= box.features.numbers or last[j] < FEW_VALUES:
                row[j] = (row[j] + rng.integers(1, int(last[j]) + 1)) % (last[j] + 1.0)
            else:
                step = rng.integers(1, FARTHEST_STEP + 1) * rng.choice([-1, 1])
                row[j] = np.clip(row[j] + step, 0.0, last[j])
    return np.where(np.asarray(coordinates.discrete), cell_centre(coordinates, cells), points)


def _choices(box: Box, m: int, rng: np.random.Generator) -> FloatArray:
    choices = box.features.choices
    drawn: FloatArray = np.floor(rng.random((m, len(choices))) * choices)
    return drawn


def _climbed(
    forecast: Forecast, seen: FloatArray, points: FloatArray, scores: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Upwards from points (m, N): floats by their gradient, discrete variables one at a time."""
    has_floats = len(forecast.box.features.floats) > 0
    rising = np.arange(len(points))
    for _ in range(TURNS):
        if not len(rising):
            break
        before = scores[rising]
        if has_floats:
            points[rising], scores[rising] = _with_floats(forecast, points[rising], scores[rising])
        of, steps = _steps(forecast.box, points[rising], rng)
        if not has_floats:
            new = _is_new(forecast.box, steps, seen)
            of, steps = of[new], steps[new]
        after = forecast.score(steps) if len(steps) else np.zeros(0)
        stepped = np.zeros(len(rising), dtype=bool)
        for k, i in enumerate(rising):
            highest = int(np.where(of == k, after, -math.inf).argmax()) if len(after) else 0
            if (of == k).any() and after[highest] > scores[i]:
                points[i], scores[i], stepped[k] = steps[highest], after[highest], True
        rising = rising[stepped & (scores[rising] - before >= LEAST_GAIN)]
    return points


def _with_floats(forecast: Forecast, points: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The points (m, N) with better floats, and their scores: all are climbed from together."""
    box, x = forecast.box, forecast.box.features.floats

    def falling(floats: FloatArray) -> tuple[float, FloatArray]:
        moved = points.copy()
        moved[:, x] = floats.reshape(len(points), -1)
        values, slopes = forecast.gradients(moved)
        return -float(values.sum()), -slopes[:, x].ravel()

    result = minimize(
        falling, points[:, x].ravel(), jac=True, method="L-BFGS-B",
        bounds=list(zip(box.low[x], box.high[x])) * len(points), options={"maxiter": STEPS, "ftol": LEAST_PART},
    )  # fmt: skip
    moved = points.copy()
    moved[:, x] = np.clip(result.x.reshape(len(points), -1), box.low[x], box.high[x])
    after = forecast.score(moved)
    better = after > scores
    return np.where(better[:, None], moved, points), np.where(better, after, scores)


def _steps(box: Box, points: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """All points that differ from one of these (m, N) in one discrete variable: the index of the point that each
    differs from, and the points."""
    coordinates, discrete = box.features.coordinates, np.flatnonzero(np.asarray(box.features.coordinates.discrete))
    discrete = discrete[~np.isin(discrete, box.held)]
    cells, last = cell_index(coordinates, points), np.asarray(coordinates.last)
    has_few = (discrete >= box.features.numbers) | (last[discrete] < FEW_VALUES)
    few, many = discrete[has_few], discrete[~has_few]
    counts = last[few].astype(np.int64) + 1
    parts = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))]
    for row, own in enumerate(cells):
        everywhere = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        drawn = np.floor(rng.random((len(many), MORE_VALUES)) * (last[many, None] + 1.0))
        neighbours = own[many, None] + np.array([-1.0, 1.0])
        others = np.clip(np.concatenate([drawn, neighbours], axis=1), 0.0, last[many, None])
        j = np.concatenate([np.repeat(few, counts), np.repeat(many, others.shape[1])])
        cell = np.concatenate([everywhere, others.ravel()])
        new = cell != own[j]
        parts.append((np.full(new.sum(), row), j[new], cell[new]))
    of, j, cell = (np.concatenate(part) for part in zip(*parts))
    changed = np.arange(len(of)), j
    moved, steps = cells[of], points[of]
    moved[changed] = cell
    steps[changed] = cell_centre(coordinates, moved)[changed]
    return of, steps
