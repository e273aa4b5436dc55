"""Section 2.2: CMA-ES-IM, the injected integer mutation and the masked step size."""

from __future__ import annotations

from typing import Literal

from mixcma.core.coordinates import Coordinates
from mixcma.core.namespace import Array, namespace, squared_norm
from mixcma.core.sampling import Noise
from mixcma.core.state import State, deviations
from mixcma.core.strategy import Strategy

Recall = Literal["auto", "floor", "round"]
RecallOn = Literal["stuck", "all"]
SignPer = Literal["coordinate", "vector"]


def mutation(
    strategy: Strategy,
    coordinates: Coordinates,
    state: State,
    noise: Noise,
    *,
    geometric_start: int,
    geometric_base: float,
    sign_per: SignPer,
    recall: Recall,
    recall_on: RecallOn,
) -> Array:
    """S^int r_i for every candidate: (..., L, N). Steps 1 to 6."""
    xp = namespace(state.m)
    stuck = _stuck(coordinates, state)  # J
    count = xp.sum(stuck, axis=-1, keepdims=True)  # |J|
    mutated = _mutated_candidates(strategy, count)  # lambda_int
    row = xp.reshape(xp.arange(strategy.popsize), (-1, 1))  # i - 1
    sign = _sign(noise, sign_per)
    geometric = _geometric(count, noise.geometric, geometric_start, geometric_base)
    size = _designated(stuck, count, noise.order, row) + geometric
    r = xp.where(stuck[..., None, :] & (row < mutated[..., None]), sign * size, 0.0)
    last = (row == strategy.popsize - 1) & (mutated[..., None] > 0) & (state.generation > 0)
    recalled = _recalled(coordinates, state, recall)
    if recall_on == "stuck":
        recalled = xp.where(stuck, recalled, 0.0)
    r = xp.where(last, sign * recalled[..., None, :], r)
    return coordinates.granularity * r


def _stuck(coordinates: Coordinates, state: State) -> Array:
    """Step 1, J: discrete coordinates with 2 sigma C_jj^(1/2) < S."""
    sd = deviations(state)
    return coordinates.discrete & (2 * sd < coordinates.granularity)


def _mutated_candidates(strategy: Strategy, count: Array) -> Array:
    """Step 2, lambda_int: how many candidates are mutated. (..., 1)."""
    xp = namespace(count)
    lam, n = strategy.popsize, strategy.dimension
    some = xp.minimum(lam // 10 + count + 1, xp.full_like(count, lam // 2 - 1))
    return xp.where(count == 0, 0, xp.where(count < n, some, lam // 2))


def _designated(stuck: Array, count: Array, order: Array, row: Array) -> Array:
    """Step 3, R': 1 where j is the ((i-1) mod |J|)-th element of the randomly ordered J."""
    xp = namespace(stuck)
    before = order[..., None, :] < order[..., :, None]  # [j, k]: k comes before j
    position = xp.sum(before & stuck[..., None, :], axis=-1)
    turn = row % xp.maximum(count, xp.ones_like(count))[..., None]  # (..., L, 1)
    return (position[..., None, :] == turn) * 1.0


def _geometric(count: Array, uniform: Array, start: int, base: float) -> Array:
    """Step 4, R'': geometric with success probability p = base^(1/|J|), on {start, start + 1, ...}."""
    xp = namespace(uniform)
    p = base ** (1.0 / xp.maximum(count, xp.ones_like(count)))
    return start + xp.floor(xp.log(uniform) / xp.log1p(-p)[..., None])


def _sign(noise: Noise, per: SignPer) -> Array:
    """Step 5: +1 or -1 with equal probability, a coordinate or a vector."""
    xp = namespace(noise.normal)
    uniform = noise.sign if per == "coordinate" else noise.sign[..., :1]
    return xp.where(uniform < 0.5, 1.0, -1.0)


def _recalled(coordinates: Coordinates, state: State, recall: Recall) -> Array:
    """Step 6 without its sign: from the mean's cell to that of the last generation's best. (..., N)."""
    xp = namespace(state.m)
    S = xp.where(coordinates.discrete, coordinates.granularity, 1.0)
    best, mean = (state.recalled - coordinates.anchor) / S, (state.m - coordinates.anchor) / S
    floor, rounded = xp.floor(best), xp.floor(best + 0.5)
    choices = {"floor": floor, "round": rounded, "auto": xp.where(coordinates.last > 1, rounded, floor)}
    return xp.where(coordinates.discrete, choices[recall] - xp.floor(mean), 0.0)


def masked_step_size(strategy: Strategy, coordinates: Coordinates, state: State, p_sigma: Array) -> Array:
    """The step size without the coordinates whose spread is far below their granularity.

    I_j = 0 where 5 sigma C_jj^(1/2) / c_sigma^(1/2) < S; sigma stays where no coordinate is left.
    """
    xp = namespace(p_sigma)
    spread = 5 * deviations(state) / strategy.c_sigma**0.5
    kept = ~(coordinates.discrete & (spread < coordinates.granularity))
    M = xp.sum(kept, axis=-1, keepdims=True) * 1.0
    M_safe = xp.maximum(M, xp.ones_like(M))
    chi_m = xp.sqrt(M_safe) * (1 - 1 / (4 * M_safe) + 1 / (21 * M_safe**2))
    norm = xp.sqrt(squared_norm(xp.where(kept, p_sigma, 0.0)))
    rate = strategy.c_sigma / strategy.d_sigma
    return state.sigma * xp.where(M > 0, xp.exp(rate * (norm / chi_m - 1)), 1.0)
