"""Where the quadratic model is least (docs/model.md, "Descent")."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mixcma.core.coordinates import cell_centre, cell_index
from mixcma.core.model.features import FloatArray, IntArray
from mixcma.core.model.surrogate import Scaling, Surrogate

# Curvatures below this part of the largest count as this part.
LEAST_CURVATURE = 1e-9
# A model whose largest curvature is less than this is flat.
FLAT = 1e-250
# A step must gain this much, in units of the spread of the values.
LEAST_GAIN = 1e-12
MOST_STEPS = 200
# Integers go at most this many values beyond those that were seen.
BEYOND = 1.01
# Of the integers that are not yet rounded, this part is rounded at a time.
PART_ROUNDED = 0.2


class Quadratic(NamedTuple):
    """g' u + u' H u / 2, with the floats eliminated: S and s say what remains where floats are always at their best."""

    g: FloatArray  # (p,)
    H: FloatArray  # (p, p)
    floats: IntArray  # places of the floats among the features
    others: IntArray  # places of integers and indicators
    S: FloatArray  # (others, others) H_zz - H_zx H_xx^-1 H_xz
    s: FloatArray  # (others,) g_z - H_zx H_xx^-1 g_x


def proposal(surrogate: Surrogate, start: FloatArray) -> FloatArray | None:
    """A latent point (N,) where the quadratic model of the value is less than at `start`; None if there is none."""
    polynomial, output = surrogate.quadratic[0]
    if polynomial.kind == "linear":
        return None
    scaling = surrogate.scaling
    quadratic = _eliminated(scaling, *polynomial.gradient_and_hessian(output))
    if quadratic is None:
        return None
    starts = [start, *_relaxed(scaling, quadratic, start)]
    points = np.stack([start, *(_stepped(scaling, quadratic, point) for point in starts)])
    if len(quadratic.floats):
        points = np.stack([_with_floats(scaling, quadratic, point) for point in points])
    values = polynomial.predict(scaling.rows(points))[:, output]
    least = int(np.argmin(np.where(np.isfinite(values), values, np.inf)))
    at_start = polynomial.predict(scaling.rows(start[None]))[0, output]
    return points[least] if values[least] < at_start else None


def _eliminated(scaling: Scaling, g: FloatArray, H: FloatArray) -> Quadratic | None:
    """None if the model has no curvature in the floats."""
    x = scaling.features.floats
    z = np.setdiff1d(np.arange(scaling.features.count), x)
    S, s = H[np.ix_(z, z)], g[z]
    if len(x):
        curvatures, axes = np.linalg.eigh(H[np.ix_(x, x)])
        if not curvatures[-1] > FLAT:
            return None
        inverse = (axes / np.maximum(curvatures, LEAST_CURVATURE * curvatures[-1])) @ axes.T
        across = H[np.ix_(x, z)]
        S, s = S - across.T @ inverse @ across, s - across.T @ inverse @ g[x]
    return Quadratic(g, H, x, z, S, s)


def _relaxed(scaling: Scaling, quadratic: Quadratic, start: FloatArray) -> list[FloatArray]:
    """The start with its integers where the model is least if they are not whole, rounded a few at a time.

    Those nearest to a value are rounded first, and the others settle anew.
    """
    features, coordinates = scaling.features, scaling.features.coordinates
    j = features.integers
    if len(j) < 2:
        return []
    a, point = np.searchsorted(quadratic.others, j), start.copy()
    origin, spread = scaling.origin[j], scaling.spread[j]
    low, high = (side[j] for side in limits(scaling))
    free = np.ones(len(j), dtype=bool)
    while free.any():
        z = scaling.rows(point[None])[0][quadratic.others]
        z[a[free]] = 0.0
        g = quadratic.s[a[free]] + quadratic.S[a[free]] @ z
        H = quadratic.S[np.ix_(a[free], a[free])]
        u = least_within(g, H, ((low - origin) / spread)[free], ((high - origin) / spread)[free])
        point[j[free]] = origin[free] + spread[free] * u
        rounded = cell_centre(coordinates, cell_index(coordinates, point))[j]
        doubt = np.where(free, np.abs(point[j] - rounded) / coordinates.granularity[j], np.inf)
        certain = np.argsort(doubt, kind="stable")[: math.ceil(PART_ROUNDED * free.sum())]
        point[j[certain]], free[certain] = rounded[certain], False
    return [point]


def _stepped(scaling: Scaling, quadratic: Quadratic, start: FloatArray) -> FloatArray:
    """Integers and choices, one at a time, each time the change that gains most."""
    coordinates = scaling.features.coordinates
    discrete = np.asarray(coordinates.discrete)
    cells = cell_index(coordinates, start)
    if not discrete.any():
        return start.copy()
    z = scaling.rows(start[None])[0][quadratic.others]
    for _ in range(MOST_STEPS):
        slope = quadratic.s + quadratic.S @ z
        integer = _best_integer(scaling, quadratic, slope, z, cells)
        choice = _best_choice(scaling, quadratic, slope, cells)
        best = min(integer, choice, key=lambda step: step.gain)
        if not best.gain < -LEAST_GAIN:
            break
        cells[best.column] = best.cell
        z = scaling.rows(cell_centre(coordinates, cells)[None])[0][quadratic.others]
    return np.where(discrete, cell_centre(coordinates, cells), start)


class Step(NamedTuple):
    """Another value for one integer, or another choice for one category."""

    gain: float  # by how much the model changes
    column: int
    cell: float


NO_STEP = Step(0.0, 0, 0.0)


def _best_integer(scaling: Scaling, quadratic: Quadratic, slope: FloatArray, z: FloatArray, cells: FloatArray) -> Step:
    """The best change of one integer: to a neighbour, or to where the model is least along it."""
    coordinates, j = scaling.features.coordinates, scaling.features.integers
    if not len(j):
        return NO_STEP
    a = np.searchsorted(quadratic.others, j)
    curvature = quadratic.S[a, a]
    there = z[a] - np.where(curvature > 0.0, slope[a] / np.where(curvature > 0.0, curvature, 1.0), 0.0)
    latent = cell_centre(coordinates, cells)
    latent[j] = np.clip(scaling.origin[j] + there * scaling.spread[j], scaling.low[j], scaling.high[j])
    candidates = np.stack([cell_index(coordinates, latent), cells - 1.0, cells + 1.0])
    centres = cell_centre(coordinates, np.clip(candidates, 0.0, coordinates.last))[:, j]
    d = (centres - scaling.origin[j]) / scaling.spread[j] - z[a]
    gains = slope[a] * d + 0.5 * curvature * d * d
    one = BEYOND * coordinates.granularity[j]
    believed = (centres >= scaling.seen_low[j] - one) & (centres <= scaling.seen_high[j] + one)
    inside = (candidates[:, j] >= 0.0) & (candidates[:, j] <= coordinates.last[j])
    gains = np.where(believed & inside, gains, 0.0)
    which, k = np.unravel_index(gains.argmin(), gains.shape)
    return Step(float(gains[which, k]), int(j[k]), float(candidates[which, j[k]]))


def _best_choice(scaling: Scaling, quadratic: Quadratic, slope: FloatArray, cells: FloatArray) -> Step:
    """The best change of one category: its present indicator goes from one to zero, and that of another choice to one.

    Where the first choice is meant, which has no indicator, only one of the two happens.
    """
    features, S = scaling.features, quadratic.S
    if not len(features.choices):
        return NO_STEP
    category = np.repeat(np.arange(len(features.choices)), features.choices - 1)  # of each indicator
    choice = 1 + np.arange(len(category)) - (features.first_indicator - features.numbers)[category]
    a = np.arange(features.numbers, features.count) - len(features.floats)  # their places in S
    present = cells[features.numbers :].astype(np.int64)
    b = np.maximum(features.first_indicator + present - 1 - len(features.floats), 0)
    leaving = np.where(present > 0, 0.5 * S[b, b] - slope[b], 0.0)  # (categories,)
    both = np.where(present[category] > 0, S[a, b[category]], 0.0)
    entering = leaving[category] + slope[a] + 0.5 * S[a, a] - both  # (indicators,)
    gains = np.concatenate([leaving, np.where(choice == present[category], 0.0, entering)])
    k = int(gains.argmin())
    columns = features.numbers + np.concatenate([np.arange(len(features.choices)), category])
    return Step(float(gains[k]), int(columns[k]), float(np.append(np.zeros(len(features.choices)), choice)[k]))


def _with_floats(scaling: Scaling, quadratic: Quadratic, point: FloatArray) -> FloatArray:
    """The point with its floats where the model is least, within the bounds and as far as the model is believed."""
    features, x = scaling.features, quadratic.floats
    low, high = limits(scaling)
    low, high = (low[x] - scaling.origin[x]) / scaling.spread[x], (high[x] - scaling.origin[x]) / scaling.spread[x]
    u = scaling.rows(point[None])[0]
    g = quadratic.g[x] + quadratic.H[np.ix_(x, quadratic.others)] @ u[quadratic.others]
    H = quadratic.H[np.ix_(x, x)]
    t = least_within(g, H, low, high)
    moved = point.copy()
    moved[x] = scaling.origin[x] + t * scaling.spread[x]
    moved[: features.numbers] = np.where(
        np.asarray(features.coordinates.discrete)[: features.numbers],
        point[: features.numbers],
        np.clip(moved[: features.numbers], *limits(scaling)),
    )
    return moved


def least_within(g: FloatArray, H: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Where g' t + t' H t / 2 is least within bounds: what would go beyond one of them is fixed there."""
    t: FloatArray = np.clip(0.0, low, high)
    free = np.ones(len(g), dtype=bool)
    for _ in range(len(g)):
        held = H[np.ix_(free, ~free)] @ t[~free]
        curvatures, axes = np.linalg.eigh(H[np.ix_(free, free)])
        if not curvatures[-1] > FLAT:
            break
        inverse = (axes / np.maximum(curvatures, LEAST_CURVATURE * curvatures[-1])) @ axes.T
        t[free] = -inverse @ (g[free] + held)
        outside = free & ((t < low) | (t > high))
        t = np.clip(t, low, high)
        free = free & ~outside
        if not outside.any() or not free.any():
            break
    return t


def limits(scaling: Scaling) -> tuple[FloatArray, FloatArray]:
    """(numbers,) each: the bounds, or as far as the model is believed."""
    coordinates, n = scaling.features.coordinates, scaling.features.numbers
    low, high = scaling.low, scaling.high
    if coordinates.latent_low is not None and coordinates.latent_high is not None:
        low, high = np.maximum(low, coordinates.latent_low[:n]), np.minimum(high, coordinates.latent_high[:n])
        high = np.maximum(low, high)
    return low, high
