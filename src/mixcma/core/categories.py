"""Categories: a probability for each choice, which is drawn from, learnt, and kept above a margin (docs/catmargin.md).

Probabilities are (..., N_cat, K) arrays, K the largest number of choices; entries beyond a category's own are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mixcma.core.coordinates import Coordinates
from mixcma.core.namespace import Array, namespace

# The direction of a shorter gradient is nothing but rounding.
SHORTEST_GRADIENT = 1e-12
# Added to the length of the gradient, as in the authors' package.
SAFE = 1e-8
# ASNG: the signal-to-noise ratio that the rate is kept at, and the largest rate of accumulation.
SIGNAL_TO_NOISE = 1.5
LARGEST_BETA = 1.9


class Categories(NamedTuple):
    """What stays fixed about N_cat categories."""

    exists: Array  # (N_cat, K) 1 for choices, 0 for the entries beyond them
    pole: Array  # (N_cat, K) the square roots of equal probabilities
    ends: Array  # (N_cat,) the place of the last choice
    least: Array  # (N_cat, 1) q: the margin of each choice
    parameters: int  # n_theta = sum of K_c - 1


def margin_of(settling: int) -> float:
    """alpha = 1 - 0.73^(1 / D), for D integers and categories."""
    return float(1 - 0.73 ** (1 / max(1, settling)))


def categories_of(coordinates: Coordinates, alpha: float) -> Categories:
    """q_c = alpha / (K_c - 1)."""
    choices = coordinates.choices
    exists = (np.arange(choices.max(initial=1)) < choices[:, None]) * 1.0
    return Categories(
        exists=exists,
        pole=exists / choices[:, None] ** 0.5,
        ends=choices - 1.0,
        least=alpha / (choices[:, None] - 1.0),
        parameters=int((choices - 1).sum()),
    )


def draw_choices(categories: Categories, theta: Array, uniform: Array) -> Array:
    """The first choice k with u <= theta_1 + ... + theta_k: (..., N_cat, K), (..., L, N_cat) -> (..., L, N_cat)."""
    xp = namespace(theta)
    upto = xp.cumulative_sum(theta, axis=-1)[..., None, :, :]  # (..., 1, N_cat, K)
    return xp.minimum(xp.sum((uniform[..., None] > upto) * 1.0, axis=-1), categories.ends)


def frequencies(choices: int, chosen: Array, w_plus: Array) -> Array:
    """sum_i w+_i [c_i = k]: (..., L, N_cat), (..., L) -> (..., N_cat, K). Weights may be each category's own."""
    xp = namespace(chosen)
    w_plus = w_plus[..., None] if w_plus.ndim < chosen.ndim else w_plus
    taken = (chosen[..., None] == xp.arange(choices)) * 1.0  # (..., L, N_cat, K)
    return xp.sum(w_plus[..., None] * taken, axis=-3)


def with_margin(categories: Categories, theta: Array) -> Array:
    """Every choice keeps at least q; the others give what that takes, in proportion to what they have beyond it."""
    xp, least, exists = namespace(theta), categories.least, categories.exists
    theta = exists * xp.maximum(theta, least)
    total, count = xp.sum(theta, axis=-1, keepdims=True), exists.sum(axis=-1, keepdims=True)
    theta = theta - (total - 1.0) * exists * (theta - least) / (total - least * count)
    return theta / xp.sum(theta, axis=-1, keepdims=True)


class CategoryState(NamedTuple):
    """The distributions of all categories, and the state of their learning rate."""

    theta: Array  # (..., N_cat, K)
    s: Array  # (..., N_cat, K) the path of the gradient
    rate: Array  # (..., 3) gamma, Delta, delta


def initial_categories(theta: Array) -> CategoryState:
    """The start, with given probabilities: no path, gamma = 0, Delta = delta = 1."""
    xp = namespace(theta)
    batch = theta.shape[:-2]
    return CategoryState(theta, xp.zeros_like(theta), xp.asarray([0.0, 1.0, 1.0]) + xp.zeros((*batch, 1)))


def asng_step(categories: Categories, before: CategoryState, wanted: Array) -> CategoryState:
    """Steps 10 to 12: a step along the natural gradient, at a rate that adapts (ASNG), and the margin.

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
    s = (1.0 - beta) * before.s + xp.sqrt(gain) * direction
    gamma = (1.0 - beta) ** 2 * gamma + gain
    strength = xp.sum(s * s, axis=(-2, -1), keepdims=True)
    Delta = Delta * xp.exp(beta * (gamma - strength / SIGNAL_TO_NOISE))
    return CategoryState(theta, s, xp.concat([gamma, Delta, delta], axis=-1)[..., 0, :])


def _fisher_root(categories: Categories, gradient: Array, theta: Array) -> Array:
    """r: the gradient times a root of the Fisher information.

    The square roots of probabilities lie on a sphere, to which gradient / theta^(1/2) is tangent. So that gradients of
    several generations can be added up, each is carried along the sphere to the same point: equal probabilities.
    """
    xp, pole = namespace(theta), categories.pole
    root = xp.sqrt(theta)
    tangent = gradient / xp.where(root > 0.0, root, 1.0)
    toward = xp.sum(pole * tangent, axis=-1, keepdims=True) / (1.0 + xp.sum(pole * root, axis=-1, keepdims=True))
    return tangent - toward * (root + pole)
