"""Strategy: the constants of the paper's Table 1, one equation a line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw

from mixcma.core.namespace import Array

# C is decomposed anew when the updates since the last time have replaced this part of it: at N = 20, 40 and
# 60 every 3, 11 and 23 generations. Against every generation that costs one or two percent more evaluations.
LARGEST_CHANGE = 0.05


class Weighing(NamedTuple):
    """The weights of ranks, best first."""

    weights: NDArray[np.float64]  # (lambda,)
    sums: NDArray[np.float64]  # (lambda + 1,) 0, w_1, w_1 + w_2, ...


@dataclass(frozen=True, eq=False)
class Strategy:
    """What stays fixed during a run. `weights` are in rank order, best first."""

    dimension: int  # N, categories not counted
    popsize: int  # lambda
    weights: NDArray[np.float64]  # (lambda,)
    weighing: Mapping[str, Weighing]  # by "all", and by the positive ones of the "better half"
    weight_sum: float
    mu_w: float
    c_m: float
    c_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    d_sigma: float
    chi_n: float
    eigen_interval: int  # generations between eigendecompositions


def default_popsize(dimension: int) -> int:
    """lambda = 4 + floor(3 ln N)."""
    return 4 + math.floor(3 * math.log(dimension))


def expected_norm(dimension: float) -> float:
    """E||N(0, I)||, approximated."""
    n = dimension
    return math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))


@lru_cache(maxsize=64)  # the restarts of a search have few population sizes
def strategy(
    dimension: int, popsize: int | None = None, eigen_interval: int | None = None, categories: int = 0
) -> Strategy:
    """Table 1. mu_w is read as (sum w')^2 / sum w'^2, like mu_w^- (the printed form is a slip).

    `dimension` counts the numbers; the population size goes by numbers and categories.
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
        weighing={"all": _weighing(weights), "better half": _weighing(np.maximum(weights, 0.0))},
        weight_sum=float(weights.sum()),
        mu_w=mu_w,
        c_m=1.0,
        c_sigma=c_sigma,
        c_c=(4 + mu_w / n) / (n + 4 + 2 * mu_w / n),
        c_1=c_1,
        c_mu=c_mu,
        d_sigma=1 + c_sigma + 2 * max(0.0, math.sqrt((mu_w - 1) / (n + 1)) - 1),
        chi_n=expected_norm(n),
        eigen_interval=eigen_interval or max(1, int(LARGEST_CHANGE / (c_1 + c_mu))),
    )


def _weighing(weights: NDArray[np.float64]) -> Weighing:
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    return Weighing(np.diff(sums), sums)  # equal to the last bit, so that ties elsewhere in a batch change nothing


class Pace(NamedTuple):
    """What mix goes by while n coordinates are live (docs/mix.md): arrays (...), or floats for a single run."""

    live: Array | float  # n, at least 1
    keeps_sigma: Array | float  # 1 - c_sigma
    adds_sigma: Array | float  # sqrt(c_sigma (2 - c_sigma) mu_w)
    chi: Array | float
    twice_chi: Array | float
    eta_sigma: Array | float
    distance: Array | float  # a: how much more the far candidates count while the search moves
    floats: Array | float  # n_x, at least 1
    integers: Array | float  # n_z, live, at least 1
    apart: Array | float  # min(1, min(n_x, n_z) / 5): how far the groups have step sizes of their own
    keeps_c: Array | float  # 1 - c_c
    adds_c: Array | float  # sqrt(c_c (2 - c_c) mu_w)
    c_1: Array | float
    keeps_C: Array | float  # 1 - c_1
    eta_C: Array | float


class MutationPace(NamedTuple):
    """How n_F frozen coordinates are mutated: arrays (...), or floats for a single run."""

    frozen: Array | float  # n_F, at least 1
    root_frozen: Array | float  # sqrt(n_F)
    mutates: Array | float  # q0, the part of the candidates that are mutated at first
    lasting: Array | float  # T, the generations after which it has halved
    mutates_always: Array | float  # and what it does not fall below


# mix: the covariance learns so many times as fast as in CMA-ES, or as fast as in DX-NES if that is faster;
COVARIANCE_PACE = 1.5
# and so many where it relates floats alone.
COVARIANCE_PACE_OF_FLOATS = 2.0
# mix: of the candidates, at least so many are mutated, however long nothing has come of it.
LEAST_MUTATED = 0.05
# mix: a group of fewer live coordinates has its own step size only in part.
WHOLE_GROUP = 5
# mix: mutations are made at the full rate for as long as each frozen coordinate takes to be tried so often.
TRIES = 4.0


def margin_of(settling: int) -> float:
    """alpha of mix: 1 - 0.73^(1 / D), for D integers and categories."""
    return float(1 - 0.73 ** (1 / max(1, settling)))


@lru_cache(maxsize=64)
def paces(strategy: Strategy, integers: int) -> NDArray[np.float64]:
    """A column for each n from 0 to N, in the order of `Pace`; `integers` is D."""
    live, lam, mu_w = np.arange(strategy.dimension + 1.0), strategy.popsize, strategy.mu_w
    n = np.maximum(live, 1.0)
    floats = np.full_like(live, strategy.dimension - integers)  # which are always live
    c_sigma = np.minimum(1.0, (mu_w + 2) / (n + mu_w + 5) / (2 * np.log(n + 1)))
    chi = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
    c_c = (4 + mu_w / n) / (n + 4 + 2 * mu_w / n)
    c_1 = 2 / ((n + 1.3) ** 2 + mu_w)
    c_mu = 2 * (mu_w - 2 + 1 / mu_w) / ((n + 2) ** 2 + mu_w)
    natural = 168 * n / (47 * n**2 + 6400) * np.tanh(0.02 * lam)
    faster = np.where(live > floats, COVARIANCE_PACE, COVARIANCE_PACE_OF_FLOATS)
    # (1 + h^2) exp(h^2 / 2) = 0.24 (10 + n), solved for h by Lambert's W
    lambert = lambertw(0.12 * math.exp(0.5) * (10 + np.maximum(n, 2))).real
    return np.stack(
        Pace(
            live=n,
            keeps_sigma=1 - c_sigma,
            adds_sigma=np.sqrt(c_sigma * (2 - c_sigma) * mu_w),
            chi=chi,
            twice_chi=2 * chi,
            eta_sigma=np.tanh((0.024 * lam + 0.7 * n + 20) / (n + 12)),
            distance=np.minimum(1.0, np.sqrt(lam / n)) * np.sqrt(2 * lambert - 1),
            floats=np.maximum(floats, 1.0),
            integers=np.maximum(live - floats, 1.0),
            apart=np.clip(np.minimum(floats, live - floats) / WHOLE_GROUP, 0.0, 1.0),
            keeps_c=1 - c_c,
            adds_c=np.sqrt(c_c * (2 - c_c) * mu_w),
            c_1=c_1,
            keeps_C=1 - c_1,
            eta_C=np.minimum(1.0, np.maximum(natural, faster * (c_1 + c_mu))),
        )
    )


@lru_cache(maxsize=64)
def mutation_paces(settling: int, popsize: int) -> NDArray[np.float64]:
    """A column for each n_F from 0 to D, the number of coordinates that can freeze, in the order of `MutationPace`."""
    frozen = np.maximum(np.arange(settling + 1.0), 1.0)
    mutates = 1 - (1 - margin_of(settling)) ** frozen
    return np.stack(
        MutationPace(
            frozen=frozen,
            root_frozen=np.sqrt(frozen),
            mutates=mutates,
            lasting=TRIES * frozen / (popsize * mutates),
            mutates_always=np.minimum(mutates, LEAST_MUTATED),
        )
    )
