"""Section 2.1: mean, evolution paths, covariance and step size."""

from __future__ import annotations

from mixcma.core.namespace import SMALLEST_NORM_SQ, Array, namespace, squared_norm
from mixcma.core.strategy import Strategy


def combine(w: Array, vectors: Array) -> Array:
    """sum_i w_i vectors_i: (..., L), (..., L, N) -> (..., N). Weights may be each coordinate's own, (..., L, N)."""
    if w.ndim == vectors.ndim:
        return (w * vectors).sum(axis=-2)
    return w.dot(vectors) if w.ndim == 1 else namespace(w).vecmat(w, vectors)  # in a single run twice as fast


def step_size_path(strategy: Strategy, p_sigma: Array, inverse_root: Array, mean_y: Array) -> Array:
    """p_sigma <- (1 - c_sigma) p_sigma + sqrt(c_sigma (2 - c_sigma) mu_w) C^(-1/2) sum w_i y_i."""
    c = strategy.c_sigma
    whitened = combine(mean_y, inverse_root)  # inverse_root is symmetric
    return (1 - c) * p_sigma + (c * (2 - c) * strategy.mu_w) ** 0.5 * whitened


def heaviside(strategy: Strategy, p_sigma_norm: Array, generation: Array | int) -> Array:
    """h_sigma: 1 while ||p_sigma|| is ordinary, 0 while it is so long that p_c should wait. (..., 1)."""
    fading = (1 - (1 - strategy.c_sigma) ** (2 * (generation + 1))) ** 0.5
    limit = fading * (1.4 + 2 / (strategy.dimension + 1)) * strategy.chi_n
    return (p_sigma_norm < limit) * 1.0


def covariance_path(strategy: Strategy, p_c: Array, h_sigma: Array, mean_y: Array) -> Array:
    """p_c <- (1 - c_c) p_c + h_sigma sqrt(c_c (2 - c_c) mu_w) sum w_i y_i."""
    c = strategy.c_c
    return (1 - c) * p_c + (c * (2 - c) * strategy.mu_w) ** 0.5 * h_sigma * mean_y


def covariance(strategy: Strategy, C: Array, w: Array, y: Array, z: Array, p_c: Array, h_sigma: Array) -> Array:
    """C <- (1 - c_1 - c_mu sum w + (1 - h) c_1 c_c (2 - c_c)) C + c_1 p_c p_c^T + c_mu sum w° y y^T.

    w° is w, times N / ||C^(-1/2) y||^2 = N / ||z||^2 where w is negative.
    """
    xp = namespace(C)
    s = strategy
    norm_sq = xp.maximum(squared_norm(z)[..., 0], SMALLEST_NORM_SQ)
    scaled = s.c_mu * xp.where(w < 0, s.dimension * w / norm_sq, w)
    waiting = s.c_1 * s.c_c * (2 - s.c_c)
    kept = 1 - s.c_1 - s.c_mu * s.weight_sum + waiting
    rank_one = (s.c_1 * p_c)[..., :, None] * p_c[..., None, :]
    rank_mu = (scaled[..., None] * y).mT @ y
    return (kept - waiting * h_sigma)[..., None] * C + rank_one + rank_mu


def step_size(strategy: Strategy, sigma: Array, p_sigma_norm: Array) -> Array:
    """sigma <- sigma exp(c_sigma / d_sigma (||p_sigma|| / E||N(0, I)|| - 1))."""
    rate = strategy.c_sigma / strategy.d_sigma
    return sigma * namespace(sigma).exp(rate * (p_sigma_norm / strategy.chi_n - 1))
