"""Which model is believed, and what it predicts (docs/model.md, "Which model")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.core.model.features import KINDS, Features, FloatArray, Kind
from mixcma.core.model.kriging import Kriging, fit_kriging
from mixcma.core.model.polynomial import Polynomial, fit_polynomial
from mixcma.core.model.sparse import fit_sparse

# Polynomials are fitted to so many of the newest points per coefficient of the largest, to so many per coefficient of a
# diagonal one, and at least to LEAST_WINDOW.
WINDOW, WINDOW_OF_DIAGONAL, LEAST_WINDOW = 2, 5, 36
# A polynomial needs so many points more than it has coefficients; larger ones than MOST_COEFFICIENTS are not tried.
SPARE_POINTS, MOST_COEFFICIENTS = 2, 1000
# Kriging uses at most so many of the newest points, and needs some.
MOST_FOR_KRIGING, LEAST_FOR_KRIGING = 150, 6
LEAST_POINTS = 4
# The best point weighs so many times as much as the worst.
WEIGHT_OF_BEST = 20.0
# Values above the best are compressed as log(1 + 30 y / median y) before kriging.
COMPRESSION = 30.0
# Integers count as spread at least over this part of the distance of their values.
LEAST_INTEGER_SPREAD = 0.3
LEAST_SPREAD = 1e-12
# Where features are farther out than this, the squares of a polynomial's columns are no longer floats. What is farther
# from the best value, in its unit, counts as this far.
FARTHEST = 1e75
# Rankings are compared on the better half, and on no more points than this.
LEAST_COMPARED, MOST_COMPARED = 6, 120


class Evaluated(NamedTuple):
    """What was evaluated without failure, in the order of time."""

    points: FloatArray  # (n, N) latent; integers at the centres of their cells
    values: FloatArray  # (n,)
    constraints: FloatArray  # (n, m), m may be 0

    @property
    def violations(self) -> FloatArray:
        total: FloatArray = np.maximum(self.constraints, 0.0).sum(axis=1)
        return total


class Scaling(NamedTuple):
    """Numbers are measured from the best point, in units of their spread over the better half of the points."""

    features: Features
    origin: FloatArray  # (p,)
    spread: FloatArray  # (p,)
    low: FloatArray  # (numbers,) how far the model is believed: the extent of the better half beyond it, on each side
    high: FloatArray
    seen_low: FloatArray  # (numbers,) between which values they were seen
    seen_high: FloatArray

    def rows(self, points: FloatArray) -> FloatArray:
        scaled: FloatArray = (self.features.rows(points) - self.origin) / self.spread
        return scaled


class Surrogate(NamedTuple):
    """Models of the value and of every constraint.

    `screening` has for each output the model that ranks best, `quadratic` the polynomial that does, with which the
    descent works. The output 0 is the value, on a scale of its own; then come the constraints as they are.
    """

    scaling: Scaling
    screening: list[tuple[Polynomial | Kriging, int]]
    quadratic: list[tuple[Polynomial, int]]
    quality: float  # how well the value's model ranks, -1 to 1, every point as predicted from the others
    units: FloatArray  # (outputs,)

    @property
    def kind(self) -> Kind:
        """The kind of polynomial that ranks the value best."""
        return self.quadratic[0][0].kind

    @property
    def constrained(self) -> bool:
        return len(self.units) > 1

    def predict(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Latent points (L, N) -> values that say in which order they are, and violations: (L,) each."""
        rows = self.scaling.rows(points)
        value, *constraints = (model.predict(rows)[:, output] for model, output in self.screening)
        violations = np.zeros(len(points))
        for g, unit in zip(constraints, self.units[1:]):
            violations += np.maximum(g * unit, 0.0)
        return value, violations


def window_of(features: Features) -> int:
    """How many of the newest points a surrogate is fitted to."""
    sizes = features.sizes
    largest = max((size for size in sizes.values() if size <= MOST_COEFFICIENTS), default=sizes["linear"])
    return max(WINDOW * largest, WINDOW_OF_DIAGONAL * sizes["diagonal"], LEAST_WINDOW)


def fit_surrogate(features: Features, evaluated: Evaluated) -> Surrogate | None:
    """Fit to the newest points; None if there are too few."""
    n = len(evaluated.values)
    if n < LEAST_POINTS:
        return None
    order = np.lexsort((evaluated.values, evaluated.violations))
    points, values, constraints = (part[order] for part in evaluated)
    scaling = scaling_of(features, points)
    rows = scaling.rows(points)
    if np.abs(rows).max() > FARTHEST:
        return None
    value, unit = above_best(values)
    units = np.array([unit, *(_typical(np.abs(g)) for g in constraints.T)])
    outputs = np.column_stack([value, np.clip(constraints / units[1:], -FARTHEST, FARTHEST)])
    compared = min(max(LEAST_COMPARED, n // 2), MOST_COMPARED)
    polynomials = _polynomials(features, rows, outputs)
    if not polynomials:
        return None
    best = [_best(polynomials, outputs, k, compared) for k in range(outputs.shape[1])]
    screening: list[tuple[Polynomial | Kriging, int]] = [(model, k) for k, (_, model) in enumerate(best)]
    quality = best[0][0]
    kriging = _kriging(rows, outputs, n - 1 - order)
    if kriging is not None:
        model, smooth = kriging
        for k, (polynomial, _) in enumerate(best):
            compared_here = min(max(LEAST_COMPARED, len(smooth) // 2), MOST_COMPARED)
            rank = agreement(model.honest[:compared_here, k], smooth[:compared_here, k])
            if rank > polynomial:
                screening[k] = model, k
                quality = rank if k == 0 else quality
    return Surrogate(scaling, screening, [(model, k) for k, (_, model) in enumerate(best)], quality, units)


def scaling_of(features: Features, points: FloatArray) -> Scaling:
    """From points in the order of their outcomes, the best first."""
    n = features.numbers
    better = points[: max(LEAST_POINTS, len(points) // 2), :n]
    spread = np.maximum(better.std(axis=0), LEAST_SPREAD)
    granularity = np.asarray(features.coordinates.granularity)[:n]
    spread = np.maximum(spread, LEAST_INTEGER_SPREAD * granularity)
    indicators = features.count - n
    extent = np.ptp(better, axis=0)
    return Scaling(
        features,
        origin=np.concatenate([points[0, :n], np.zeros(indicators)]),
        spread=np.concatenate([spread, np.ones(indicators)]),
        low=better.min(axis=0) - extent,
        high=better.max(axis=0) + extent,
        seen_low=points[:, :n].min(axis=0),
        seen_high=points[:, :n].max(axis=0),
    )


def above_best(values: FloatArray) -> tuple[FloatArray, float]:
    above = values - values.min()
    unit = _typical(above)
    return np.minimum(above / unit, FARTHEST), unit


def _typical(sizes: FloatArray) -> float:
    """The median, if it is positive, or what else there is."""
    for typical in (float(np.median(sizes)), float(sizes.max())):
        if 1e-150 < typical < np.inf:
            return typical
    return 1.0


def _polynomials(features: Features, rows: FloatArray, outputs: FloatArray) -> list[Polynomial]:
    n = len(rows)
    weights = np.sqrt(np.linspace(WEIGHT_OF_BEST, 1.0, n))
    sizes = features.sizes
    affordable = {kind: size <= min(MOST_COEFFICIENTS, n - SPARE_POINTS) for kind, size in sizes.items()}
    kinds = [kind for kind, yes in affordable.items() if yes] or [KINDS[0]]
    fitted = [fit_polynomial(features, rows, outputs, weights, kind) for kind in kinds]
    if affordable["diagonal"] and not affordable["full"]:
        fitted.insert(2, fit_sparse(features, rows, outputs, weights))
    return [polynomial for polynomial in fitted if polynomial is not None]


def _best(polynomials: list[Polynomial], outputs: FloatArray, output: int, compared: int) -> tuple[float, Polynomial]:
    """The polynomial that ranks an output best; of equals the simplest."""
    ranked = [
        (agreement(polynomial.honest[:compared, output], outputs[:compared, output]), polynomial)
        for polynomial in polynomials
    ]
    return max(ranked, key=lambda pair: pair[0])


def _kriging(rows: FloatArray, outputs: FloatArray, age: NDArray[np.int64]) -> tuple[Kriging, FloatArray] | None:
    """Kriging of the newest points, with values compressed: the model, and their outputs."""
    kept = age < MOST_FOR_KRIGING
    if kept.sum() < LEAST_FOR_KRIGING:
        return None
    smooth = outputs[kept].copy()
    smooth[:, 0] = np.log1p(COMPRESSION * smooth[:, 0])
    model = fit_kriging(rows[kept], smooth)
    return None if model is None else (model, smooth)


def agreement(predicted: FloatArray, came: FloatArray) -> float:
    """Kendall's tau: the pairs in the same order less those in the other, as a share of all pairs; a NaN agrees with
    nothing."""
    n = len(came)
    if n < 2:
        return 0.0
    product = np.sign(predicted[:, None] - predicted) * np.sign(came[:, None] - came)
    return float(np.nansum(product)) / (n * (n - 1))
