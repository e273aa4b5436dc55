"""Where the model of the value is least among the points that the models of the constraints allow
(docs/model.md, "Constraints")."""

from __future__ import annotations

import itertools
import warnings
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from mixcma.core.coordinates import cell_centre, cell_index
from mixcma.core.model.features import FloatArray, IntArray
from mixcma.core.model.local import Local

# SLSQP: its steps at most, and its precision.
MOST_STEPS, PRECISION = 40, 1e-10
# So many integers are rounded both ways, those farthest from a value.
BOTH_WAYS = 4
# Choices are changed one at a time, if there are not more changes than this; the best of them are rounded.
MOST_CHANGES, MOST_ROUNDED = 8, 2
# For so many roundings the floats are settled anew.
MOST_SETTLED = 4
# Constraints are to be met by at least this, so that rounding does not break them.
LEAST_MARGIN = 1e-9
# A violation counts so many times as much as the value, and up to TOLERANCE a point is feasible.
PENALTY, TOLERANCE = 10.0, 1e-3
# Where constraints are broken by more than this, a slack is tried.
BROKEN = 1e-6


class Part(NamedTuple):
    """The models as functions of some features, the others being fixed: c + G u + u' H u / 2."""

    c: FloatArray  # (outputs,)
    G: FloatArray  # (outputs, free)
    H: FloatArray  # (outputs, free, free)

    def values(self, u: FloatArray) -> FloatArray:
        values: FloatArray = self.c + (self.G + (self.H @ u) / 2) @ u
        return values

    def violation(self, u: FloatArray) -> float:
        return float(np.maximum(self.values(u)[1:], 0.0).sum())

    def rank(self, u: FloatArray) -> tuple[bool, float]:
        """Smaller is better."""
        violation = self.violation(u)
        return violation > TOLERANCE, PENALTY * violation + float(self.values(u)[0])


def proposals(model: Local, margin: float) -> list[FloatArray]:
    """Latent points (N,), the best first: integers and choices at their values, floats within bounds and reach.

    Constraints are to be met by `margin` times the errors of their models.
    """
    safety = np.where(np.arange(len(model.c)) > 0, margin * model.errors + LEAST_MARGIN, 0.0)
    model = model._replace(c=model.c + safety)
    whole, features = Part(model.c, model.G, model.H), model.features
    relaxed = [_least_over(model, start, np.arange(features.numbers)) for start in _starts(model)]
    found: dict[bytes, tuple[tuple[bool, float], FloatArray]] = {}
    for row in sorted(relaxed, key=whole.rank)[:MOST_ROUNDED]:
        for rounded in sorted(_rounded(model, row), key=whole.rank)[: MOST_SETTLED if len(features.floats) else None]:
            settled = _least_over(model, rounded, features.floats)
            point = _latent(model, settled)
            found.setdefault(point.tobytes(), (whole.rank(settled), point))
    return [point for _, point in sorted(found.values(), key=lambda each: each[0])]


def _starts(model: Local) -> list[FloatArray]:
    """Rows of features: the best point, and those where one category has another choice."""
    features, starts = model.features, [np.zeros(model.features.count)]
    if features.count - features.numbers > MOST_CHANGES:
        return starts
    for category, K in enumerate(features.choices):
        first = int(features.first_indicator[category])
        for choice in range(K):
            if choice != model.centre[features.numbers + category]:
                start = starts[0].copy()
                start[first : first + K - 1] = (np.arange(1, K) == choice) - model.origin[first : first + K - 1]
                starts.append(start)
    return starts


def _least_over(model: Local, row: FloatArray, free: IntArray) -> FloatArray:
    """The row with its free features where the models are best."""
    if not len(free):
        return row
    fixed = row.copy()
    fixed[free] = 0.0
    curved = model.H @ fixed
    part = Part(model.c + (model.G + curved / 2) @ fixed, (model.G + curved)[:, free], model.H[:, free[:, None], free])
    low, high = (side[free] for side in _limits(model))
    moved = row.copy()
    moved[free] = _least(part, np.clip(row[free], low, high), low, high)
    return moved


def _limits(model: Local) -> tuple[FloatArray, FloatArray]:
    """(numbers,) each, as features: the bounds, or as far as the model is believed."""
    coordinates, n = model.features.coordinates, model.features.numbers
    low, high = np.full(n, -1.0), np.full(n, 1.0)
    if coordinates.latent_low is not None and coordinates.latent_high is not None:
        low = np.maximum(low, (coordinates.latent_low[:n] - model.origin[:n]) / model.reach[:n])
        high = np.minimum(high, (coordinates.latent_high[:n] - model.origin[:n]) / model.reach[:n])
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def _least(part: Part, start: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """By SLSQP; where that ends outside the constraints, they get a common slack, which costs."""
    u = _slsqp(part, start, low, high)
    if part.violation(u) <= BROKEN:
        return u
    slack = np.append(PENALTY, np.full(len(part.c) - 1, -1.0))
    eased = Part(part.c, np.column_stack([part.G, slack]), np.pad(part.H, ((0, 0), (0, 1), (0, 1))))
    most = max(0.0, float(part.values(start)[1:].max()))
    v = _slsqp(eased, np.append(start, most), np.append(low, 0.0), np.append(high, 2 * most + 1.0))[:-1]
    return v if part.violation(v) < part.violation(u) else u


def _slsqp(part: Part, start: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    c, g, H = float(part.c[0]), part.G[0], part.H[0]
    slacks = Part(-part.c[1:], -part.G[1:], -part.H[1:])
    with warnings.catch_warnings():  # some versions of SciPy warn that they clip a step to the bounds
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        result = minimize(  # type: ignore[call-overload]  # all constraints in one function, as SLSQP allows
            lambda u: c + float((g + (H @ u) / 2) @ u),
            start,
            jac=lambda u: g + H @ u,
            bounds=list(zip(low.tolist(), high.tolist())),
            constraints={"type": "ineq", "fun": slacks.values, "jac": lambda u: slacks.G + slacks.H @ u},
            method="SLSQP",
            options={"maxiter": MOST_STEPS, "ftol": PRECISION},
        )
    return np.clip(result.x, low, high) if np.isfinite(result.x).all() else start


def _rounded(model: Local, row: FloatArray) -> list[FloatArray]:
    """Rows with integers at values: the nearest, and those on the other side for the ones farthest from a value."""
    features, coordinates = model.features, model.features.coordinates
    n, j = features.numbers, features.integers
    latent = model.centre.copy()
    latent[:n] = model.origin[:n] + model.reach[:n] * row[:n]
    cells = cell_index(coordinates, latent)
    centres = cell_centre(coordinates, cells)
    beyond = np.clip(cells + np.sign(latent - centres), 0.0, coordinates.last)
    gap = np.abs(cell_centre(coordinates, beyond) - centres)
    fraction = np.abs(latent - centres) / np.where(gap > 0.0, gap, np.inf)
    doubtful = j[np.argsort(-fraction[j], kind="stable")[:BOTH_WAYS]]
    rows = []
    for other_side in itertools.product((False, True), repeat=len(doubtful)):
        chosen, moved = cells.copy(), doubtful[np.array(other_side, dtype=bool)]
        chosen[moved] = beyond[moved]
        rounded = row.copy()
        rounded[j] = ((cell_centre(coordinates, chosen)[:n] - model.origin[:n]) / model.reach[:n])[j]
        rows.append(rounded)
    return rows


def _latent(model: Local, row: FloatArray) -> FloatArray:
    """The latent point of a row whose integers and choices are at values."""
    features, coordinates = model.features, model.features.coordinates
    n, point = features.numbers, model.centre.copy()
    point[:n] = model.origin[:n] + model.reach[:n] * row[:n]
    if coordinates.latent_low is not None and coordinates.latent_high is not None:
        point[:n] = np.clip(point[:n], coordinates.latent_low[:n], coordinates.latent_high[:n])
    for category, K in enumerate(features.choices):
        first = int(features.first_indicator[category])
        indicators = (row + model.origin)[first : first + K - 1]
        point[n + category] = np.append(0.5, indicators).argmax()
    at_values: FloatArray = cell_centre(coordinates, cell_index(coordinates, point))
    return np.where(np.asarray(coordinates.discrete), at_values, point)
