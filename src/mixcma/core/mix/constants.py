"""The constants of mix (docs/mix.md, "Constants"), one equation per line, for every number of live coordinates."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw

from mixcma.core.categories import margin_of
from mixcma.core.namespace import Array
from mixcma.core.strategy import Strategy, expected_norm

# f: C learns this many times as fast as in CMA-ES (or as fast as in DX-NES, if that is faster) ...
COVARIANCE_PACE = 1.5
# ... and this many while floats alone are live.
COVARIANCE_PACE_OF_FLOATS = 2.0
# A group of fewer live coordinates has a step size of its own only in part.
WHOLE_GROUP = 5
# At least this share of the candidates is mutated, however long nothing has come of it.
LEAST_MUTATED = 0.05
# Mutations are made at the full rate until each frozen coordinate has been tried this often.
TRIES = 4.0


class MixConstants(NamedTuple):
    """The constants while n coordinates are live: arrays (...), or floats in a single run."""

    n: Array | float  # at least 1
    n_x: Array | float  # live floats, at least 1
    n_z: Array | float  # live integers, at least 1
    group_share: Array | float  # min(1, min(n_x, n_z) / 5)
    c_sigma: Array | float
    chi: Array | float
    c_1: Array | float
    c_c: Array | float
    eta_C: Array | float
    eta_sigma: Array | float
    a: Array | float


class MutationConstants(NamedTuple):
    """The constants while n_F coordinates are frozen: arrays (...), or floats in a single run."""

    n_F: Array | float  # at least 1
    q0: Array | float
    T: Array | float
    least: Array | float  # min(q0, 0.05)


@lru_cache(maxsize=64)
def mix_constants(strategy: Strategy, integers: int) -> NDArray[np.float64]:
    """A table with a column for each n from 0 to N, rows in the order of `MixConstants`."""
    live, lam, mu_w = np.arange(strategy.dimension + 1.0), strategy.popsize, strategy.mu_w
    n = np.maximum(live, 1.0)
    floats = np.full_like(live, strategy.dimension - integers)  # which are always live
    c_1 = 2 / ((n + 1.3) ** 2 + mu_w)
    c_mu = 2 * (mu_w - 2 + 1 / mu_w) / ((n + 2) ** 2 + mu_w)
    f = np.where(live > floats, COVARIANCE_PACE, COVARIANCE_PACE_OF_FLOATS)
    eta_C = np.maximum(168 * n / (47 * n**2 + 6400) * np.tanh(0.02 * lam), f * (c_1 + c_mu))
    # (1 + h^2) exp(h^2 / 2) = 0.24 (10 + max(n, 2)), solved for h by Lambert's W
    h = np.sqrt(2 * lambertw(0.12 * math.exp(0.5) * (10 + np.maximum(n, 2))).real - 1)
    return np.stack(
        MixConstants(
            n=n,
            n_x=np.maximum(floats, 1.0),
            n_z=np.maximum(live - floats, 1.0),
            group_share=np.clip(np.minimum(floats, live - floats) / WHOLE_GROUP, 0.0, 1.0),
            c_sigma=np.minimum(1.0, (mu_w + 2) / (n + mu_w + 5) / (2 * np.log(n + 1))),
            chi=np.array([expected_norm(each) for each in n]),
            c_1=c_1,
            c_c=(4 + mu_w / n) / (n + 4 + 2 * mu_w / n),
            eta_C=np.minimum(1.0, eta_C),
            eta_sigma=np.tanh((0.024 * lam + 0.7 * n + 20) / (n + 12)),
            a=np.minimum(1.0, np.sqrt(lam / n)) * h,
        )
    )


@lru_cache(maxsize=64)
def mutation_constants(D: int, popsize: int) -> NDArray[np.float64]:
    """A table with a column for each n_F from 0 to D, rows in the order of `MutationConstants`."""
    n_F = np.maximum(np.arange(D + 1.0), 1.0)
    q0 = 1 - (1 - margin_of(D)) ** n_F
    return np.stack(
        MutationConstants(n_F=n_F, q0=q0, T=TRIES * n_F / (popsize * q0), least=np.minimum(q0, LEAST_MUTATED))
    )
