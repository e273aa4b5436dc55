"""Strategy: the constants of the paper's Table 1, one equation per line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class RankWeights(NamedTuple):
    """The weight of each rank, best first."""

    weights: NDArray[np.float64]  # (lambda,)
    sums: NDArray[np.float64]  # (lambda + 1,) 0, w_1, w_1 + w_2, ...


@dataclass(frozen=True, eq=False)
class Strategy:
    """What stays fixed during a run. `weights` are in rank order, best first."""

    dimension: int  # N, categories not counted
    popsize: int  # lambda
    weights: NDArray[np.float64]  # w: (lambda,)
    all_weights: RankWeights  # w
    positive_weights: RankWeights  # w+ = max(w, 0), whose sum is 1
    negative_weights: RankWeights  # w- = max(-w, 0), divided by their sum
    weight_sum: float
    mu_w: float
    mu_w_minus: float
    c_m: float
    c_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    d_sigma: float
    chi_n: float


def default_popsize(dimension: int) -> int:
    """lambda = 4 + floor(3 ln N)."""
    return 4 + math.floor(3 * math.log(dimension))


def expected_norm(dimension: float) -> float:
    """E||N(0, I)||, approximated."""
    n = dimension
    return math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))


@lru_cache(maxsize=64)  # the restarts of a search have few population sizes
def strategy(dimension: int, popsize: int | None = None, categories: int = 0) -> Strategy:
    """Table 1. mu_w is read as (sum w')^2 / sum w'^2, like mu_w^- (the printed form is a slip).

    `dimension` counts the numbers; the population size depends on numbers and categories.
    """
    n = max(1, dimension)
    lam = default_popsize(dimension + categories) if popsize is None else popsize
    mu = lam // 2
    raw = math.log((lam + 1) / 2) - np.log(np.arange(1, lam + 1))
    better, worse = raw[:mu], raw[mu:]
    mu_w = float(better.sum() ** 2 / (better**2).sum())
    mu_w_minus = float(worse.sum() ** 2 / (worse**2).sum())
    c_1 = 2 / ((n + 1.3) ** 2 + mu_w)
    c_mu = min(1 - c_1, 2 * (mu_w - 2 + 1 / mu_w) / ((n + 2) ** 2 + mu_w))
    c_sigma = (mu_w + 2) / (n + mu_w + 5)
    limits = [1 + 2 * mu_w_minus / (mu_w + 2)]
    if c_mu > 0:  # c_mu = 0 where a single parent is selected
        limits += [1 + c_1 / c_mu, (1 - c_1 - c_mu) / (n * c_mu)]
    negative_sum = min(limits)
    weights = np.concatenate([better / better.sum(), negative_sum * worse / abs(worse).sum()])
    return Strategy(
        dimension=dimension,
        popsize=lam,
        weights=weights,
        all_weights=_rank_weights(weights),
        positive_weights=_rank_weights(np.maximum(weights, 0.0)),
        negative_weights=_rank_weights(np.concatenate([0.0 * better, worse / worse.sum()])),
        weight_sum=float(weights.sum()),
        mu_w=mu_w,
        mu_w_minus=mu_w_minus,
        c_m=1.0,
        c_sigma=c_sigma,
        c_c=(4 + mu_w / n) / (n + 4 + 2 * mu_w / n),
        c_1=c_1,
        c_mu=c_mu,
        d_sigma=1 + c_sigma + 2 * max(0.0, math.sqrt((mu_w - 1) / (n + 1)) - 1),
        chi_n=expected_norm(n),
    )


def _rank_weights(weights: NDArray[np.float64]) -> RankWeights:
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    return RankWeights(np.diff(sums), sums)  # equal to the last bit, so that ties in one run of a batch change no other
