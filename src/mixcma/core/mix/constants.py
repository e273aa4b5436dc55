"""The constants of mix (docs/mix.md, "Constants"), one equation per line, for every number of live coordinates."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.core.categories import margin_of
from mixcma.core.namespace import Array
from mixcma.core.strategy import Strategy, expected_norm

# C learns with at least this rate, divided by n, unless n is so small that (1 - c_1) / 2 is less.
LEAST_LEARNT = 0.4
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
    long: Array | float  # 1 + 1 / sqrt(n), the allowance for chance: only p_sigma longer than so many chi is long
    c_1: Array | float
    c_c: Array | float
    c_mu: Array | float
    a_minus: Array | float
    eta_C: Array | float
    eta_sigma: Array | float


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
    c_mu = np.minimum(1 - c_1, 2 * (mu_w - 2 + 1 / mu_w) / ((n + 2) ** 2 + mu_w))
    eta_C = np.minimum((1 - c_1) / 2, np.maximum(LEAST_LEARNT / n, c_1 + c_mu))
    if integers == strategy.dimension:
        eta_C = np.minimum(eta_C, eta_C[-1])  # C is decomposed too seldom for more
    with np.errstate(divide="ignore"):  # c_mu = 0 where a single parent is selected
        a_minus = np.minimum(1 + c_1 / c_mu, 1 + 2 * strategy.mu_w_minus / (mu_w + 2))
    return np.stack(
        MixConstants(
            n=n,
            n_x=np.maximum(floats, 1.0),
            n_z=np.maximum(live - floats, 1.0),
            group_share=np.clip(np.minimum(floats, live - floats) / WHOLE_GROUP, 0.0, 1.0),
            c_sigma=np.minimum(1.0, (mu_w + 2) / (n + mu_w + 5) / (2 * np.log(n + 1))),
            chi=np.array([expected_norm(each) for each in n]),
            long=1 + 1 / np.sqrt(n),
            c_1=c_1,
            c_c=(4 + mu_w / n) / (n + 4 + 2 * mu_w / n),
            c_mu=c_mu,
            a_minus=np.minimum(a_minus, (1 - c_1 - eta_C) / (n * eta_C)),
            eta_C=eta_C,
            eta_sigma=np.tanh((0.024 * lam + 0.7 * n + 20) / (n + 12)),
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
