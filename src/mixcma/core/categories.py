"""Categories: a probability for each choice, drawn from, learnt, and kept above a margin (docs/catmargin.md).

Probabilities are (..., N_cat, K) arrays, K the largest number of choices; entries beyond a category's own are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixcma.core.coordinates import Coordinates
from mixcma.core.namespace import Array, namespace

# Directions of a shorter gradient are rounding.
SHORTEST_GRADIENT = 1e-12
# Added to the length of the gradient, as in the authors' package.
SAFE = 1e-8
# ASNG: the signal-to-noise ratio that the rate is held at, and the largest rate of accumulation.
SIGNAL_TO_NOISE = 1.5
LARGEST_BETA = 1.9


class Categories(NamedTuple):
    """What stays fixed of N_cat categories."""

    exists: Array  # (N_cat, K) 1 for the choices there are
    pole: Array  # (N_cat, K) the square roots of equal probabilities
    ends: Array  # (N_cat,) the place of the last choice
    least: Array  # (N_cat, 1) q: the margin of each choice
    parameters: int  # n_theta = sum of K_c - 1


def categories(coordinates: Coordinates, alpha: float) -> Categories | None:
    """q_c = alpha / (K_c - 1). None where there is no category."""
    choices = coordinates.choices
    if not len(choices):
        return None
    exists = (np.arange(choices.max()) < choices[:, None]) * 1.0
    return Categories(
        exists=exists,
        pole=exists / choices[:, None] ** 0.5,
        ends=choices - 1.0,
        least=alpha / (choices[:, None] - 1.0),
        parameters=int((choices - 1).sum()),
    )


def drawn(categories: Categories, theta: Array, uniform: Array) -> Array:
    """The first choice k with u <= theta_1 + ... + theta_k: (..., N_cat, K), (..., L, N_cat) -> (..., L, N_cat)."""
    xp = namespace(theta)
    upto = xp.cumulative_sum(theta, axis=-1)[..., None, :, :]  # (..., 1, N_cat, K)
    return xp.minimum(xp.sum((uniform[..., None] > upto) * 1.0, axis=-1), categories.ends)


def frequencies(choices: int, chosen: Array, w_plus: Array) -> Array:
    """sum_i w+_i [c_i = k]: (..., L, N_cat), (..., L) -> (..., N_cat, K)."""
    xp = namespace(chosen)
    taken = (chosen[..., None] == xp.arange(choices)) * 1.0  # (..., L, N_cat, K)
    return xp.sum(w_plus[..., None, None] * taken, axis=-3)


def with_margin(categories: Categories, theta: Array) -> Array:
    """Every choice keeps at least q; the others give what that takes, in proportion to what they have beyond it."""
    xp, least, exists = namespace(theta), categories.least, categories.exists
    theta = exists * xp.maximum(theta, least)
    total, count = xp.sum(theta, axis=-1, keepdims=True), exists.sum(axis=-1, keepdims=True)
    theta = theta - (total - 1.0) * exists * (theta - least) / (total - least * count)
    return theta / xp.sum(theta, axis=-1, keepdims=True)


class Learning(NamedTuple):
    """What is learnt of the categories, and the state of the rate."""

    theta: Array  # (..., N_cat, K)
    signal: Array  # (..., N_cat, K) s
    rate: Array  # (..., 3) gamma, Delta, delta


def learning(categories: Categories, before: Learning, wanted: Array) -> Learning:
    """Steps 10 to 12: a step of the natural gradient, at a rate that adapts (ASNG), and the margin.

    `wanted` (..., N_cat, K) are the weighted frequencies of the choices.
    """
    xp, theta = namespace(wanted), before.theta
    gradient = wanted - theta
    whitened = _fisher_root(categories, gradient, theta)
    length = xp.sqrt(xp.sum(whitened * whitened, axis=(-2, -1), keepdims=True))  # (..., 1, 1)
    gamma, Delta, delta = (before.rate[..., i, None, None] for i in range(3))
    step = xp.where(length < SHORTEST_GRADIENT, 0.0, delta / (length + SAFE))
    theta = with_margin(categories, theta + step * gradient)
    delta = 1.0 / Delta
    beta = xp.minimum(delta / categories.parameters**0.5, LARGEST_BETA)
    gain = beta * (2.0 - beta)
    direction = xp.where(length < SHORTEST_GRADIENT, 0.0, whitened / xp.maximum(length, SHORTEST_GRADIENT))
    signal = (1.0 - beta) * before.signal + xp.sqrt(gain) * direction
    gamma = (1.0 - beta) ** 2 * gamma + gain
    strength = xp.sum(signal * signal, axis=(-2, -1), keepdims=True)
    Delta = Delta * xp.exp(beta * (gamma - strength / SIGNAL_TO_NOISE))
    return Learning(theta, signal, xp.concat([gamma, Delta, delta], axis=-1)[..., 0, :])


def _fisher_root(categories: Categories, gradient: Array, theta: Array) -> Array:
    """r: the gradient times a root of the Fisher information.

    The roots of probabilities lie on a sphere, to which gradient / theta^(1/2) is tangent. So that those of several
    generations can be added up, each is carried along the sphere to the same point, that of equal probabilities.
    """
    xp, pole = namespace(theta), categories.pole
    root = xp.sqrt(theta)
    tangent = gradient / xp.where(root > 0.0, root, 1.0)
    toward = xp.sum(pole * tangent, axis=-1, keepdims=True) / (1.0 + xp.sum(pole * root, axis=-1, keepdims=True))
    return tangent - toward * (root + pole)
