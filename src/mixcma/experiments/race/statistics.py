"""Statistics of runtimes: areas under runtime distributions, rates, ratios, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata

CONFIDENCE = 0.95
BOOTSTRAPS = 2000

FloatArray = NDArray[np.float64]
Interval = tuple[float, float]


def runtimes(hits: Sequence[int], targets: int) -> FloatArray:
    """The number of evaluations to each target, (targets,); infinite for targets that were not hit."""
    return np.array([*hits, *[math.inf] * (targets - len(hits))], dtype=np.float64)


def areas(times: FloatArray, dimension: int, budget: int) -> FloatArray:
    """The contribution of each runtime to the area under the runtime distribution, from 0 to 1.

    The share of targets hit is a function of u = log10(evaluations / D), from u = 0 to L = log10(budget / D). A target
    that is hit after t evaluations contributes the part of this interval that lies beyond u = max(0, log10(t / D)); the
    area is the mean contribution of the targets.
    """
    length = math.log10(budget / dimension)
    if length <= 0:
        raise ValueError(
            f"budget: expected more than one evaluation per variable, but got {budget} for {dimension}; raise it"
        )
    with np.errstate(divide="ignore"):
        u = np.log10(np.asarray(times, dtype=np.float64) / dimension)
    return np.clip((length - np.maximum(u, 0.0)) / length, 0.0, 1.0)


def rate_interval(successes: int, trials: int) -> Interval:
    """The Clopper-Pearson interval of a success rate."""
    interval = binomtest(successes, trials).proportion_ci(CONFIDENCE)
    return float(interval.low), float(interval.high)


def ratio(ours: FloatArray, theirs: FloatArray, seed: int = 0) -> tuple[float, Interval]:
    """The ratio of two means over the same cases, and its bootstrap interval over these cases."""
    if not len(ours) or np.mean(theirs) == 0:
        return math.nan, (math.nan, math.nan)
    chosen = np.random.default_rng(seed).integers(len(ours), size=(BOOTSTRAPS, len(ours)))
    below = theirs[chosen].mean(axis=1)
    ratios = ours[chosen].mean(axis=1)[below > 0] / below[below > 0]
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(np.mean(ours) / np.mean(theirs)), (float(low), float(high))


def mean_interval(numbers: FloatArray, seed: int = 0) -> tuple[float, Interval]:
    """The mean of one number per case, and its bootstrap interval over these cases."""
    chosen = np.random.default_rng(seed).integers(len(numbers), size=(BOOTSTRAPS, len(numbers)))
    low, high = np.quantile(numbers[chosen].mean(axis=1), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(np.mean(numbers)), (float(low), float(high))


def ranks(numbers: FloatArray) -> FloatArray:
    """(cases, racers) -> the rank of each racer in each case: 1 for the lowest number; those that are level share."""
    return np.asarray(rankdata(numbers, axis=1), dtype=np.float64)


def median(numbers: Sequence[float]) -> float | None:
    return float(np.median(numbers)) if len(numbers) else None
