"""Integers that have settled: taken out of the Gaussian, mutated explicitly, brought back (docs/mix.md)."""

from __future__ import annotations

from mixcma.core.coordinates import Coordinates, cell_centre, cell_index, threshold_above
from mixcma.core.namespace import Array, namespace, ndtr, ndtri

# Of candidates, at least so many are mutated, however long nothing has come of it.
LEAST_MUTATED = 0.05
# Mutations are made at the full rate for as long as each frozen coordinate takes to be tried so often.
TRIES = 4.0
# Jumps beyond this many cells cannot be told apart in floats.
LONGEST_JUMP = 2.0**40


def mutated(
    coordinates: Coordinates,
    alpha: float,
    m: Array,
    live: Array,
    idle: Array,
    v: Array,
    normal: Array,
    choice: Array,
    jump: Array,
) -> Array:
    """The latent points (..., L, N) with some of their frozen coordinates mutated.

    The normals of frozen coordinates are not used by the Gaussian: they decide how many coordinates of a candidate
    are mutated, so that P(k or more) = q / k. `choice` and `jump` are uniforms in (0, 1], (..., L, N).
    """
    xp = namespace(v)
    frozen = 1.0 - live[..., None, :]
    n_frozen = xp.maximum(xp.sum(frozen, axis=-1, keepdims=True), 1.0)
    q = mutation_rate(alpha, live, idle, v.shape[-2])[..., None, :]
    u = ndtr(xp.sum(frozen * normal, axis=-1, keepdims=True) / xp.sqrt(n_frozen))
    count = xp.minimum(xp.floor(q / u), n_frozen)  # (..., L, 1)
    choice = xp.where(frozen > 0.0, choice, 2.0)
    first = choice <= xp.min(choice, axis=-1, keepdims=True)
    chosen = (frozen > 0.0) & (count >= 1.0) & (first | (choice < (count - 1.0) / n_frozen))
    cell = cell_index(coordinates, m)[..., None, :]
    return xp.where(chosen, cell_centre(coordinates, jumped(coordinates, cell, jump)), v)


def mutation_rate(alpha: float, live: Array, idle: Array, popsize: int) -> Array:
    """q (..., 1): the part of the candidates that are mutated; it falls while nothing succeeds."""
    xp = namespace(live)
    n = xp.sum(live, axis=-1, keepdims=True)
    n_frozen = live.shape[-1] - n
    full = 1.0 - (1.0 - alpha) ** xp.maximum(n_frozen, 1.0)
    lasting = TRIES * n_frozen / (popsize * full)
    q = xp.maximum(full * lasting / xp.maximum(lasting + idle, 1.0), xp.minimum(full, LEAST_MUTATED))
    return xp.where(n > 0.0, q, 1.0)


def jumped(coordinates: Coordinates, cell: Array, uniform: Array) -> Array:
    """Another cell, d away, with P(d or more) = d^-2; back, or to a neighbour, where there is none."""
    xp = namespace(uniform)
    away = 2.0 * uniform - 1.0
    length = xp.minimum(xp.floor(xp.maximum(xp.abs(away), LONGEST_JUMP**-2) ** -0.5), LONGEST_JUMP)
    step = xp.where(away > 0.0, length, -length)
    there, back = cell + step, cell - step
    neighbour = xp.where(cell < coordinates.last, cell + 1.0, cell - 1.0)
    back = xp.where((back >= 0.0) & (back <= coordinates.last), back, neighbour)
    return xp.where((there >= 0.0) & (there <= coordinates.last), there, back)


def centred(v: Array, centre: Array, left: Array, taking_part: Array) -> Array:
    """Integer centring: how far each point (..., L, N) is moved.

    Points that left the mean's cell go to the centre of theirs; what that shifts their sum by, the others give back,
    on the way to their own centres, all by the same part of it. `left` and `taking_part` are bool.
    """
    xp = namespace(v)
    way = xp.where(taking_part, centre - v, 0.0)
    moved = xp.where(left, way, 0.0)
    bias = xp.sum(moved, axis=-2, keepdims=True)
    opposite = xp.where(~left & (way * bias < 0.0), way, 0.0)
    available = xp.sum(opposite, axis=-2, keepdims=True)
    part = xp.minimum(1.0, -bias / xp.where(available == 0.0, 1.0, available))
    return moved + xp.where(available == 0.0, 0.0, part) * opposite


def leaving(coordinates: Coordinates, m: Array, sd: Array) -> Array:
    """The probability that a coordinate leaves the cell of its mean."""
    xp = namespace(m)
    k = cell_index(coordinates, m)
    below = xp.where(k > 0.0, ndtr((threshold_above(coordinates, k - 1.0) - m) / sd), 0.0)
    above = xp.where(k < coordinates.last, ndtr((m - threshold_above(coordinates, k)) / sd), 0.0)
    return below + above


def frozen_deviation(coordinates: Coordinates, alpha: float) -> Array:
    """The standard deviation with which a frozen coordinate comes back: it leaves from its centre with 2 alpha."""
    return coordinates.granularity / 2 / -float(ndtri(alpha))


def identity_outside(kept: Array, C: Array) -> Array:
    """C where both coordinates are kept (1, not 0), the identity elsewhere."""
    xp = namespace(C)
    inside = kept[..., :, None] * kept[..., None, :]
    return inside * C + (1.0 - inside) * xp.eye(C.shape[-1])


def transformed(C: Array, eta: Array, w: Array, y: Array, x: Array, d: Array) -> Array:
    """(I + K) C (I + K)^T with K = eta / 2 (sum w_i y_i x_i^T - d I), and x_i = C^(-1) y_i.

    To the first order that is C + eta (sum w_i y_i y_i^T - d C), but it is positive definite whatever the weights are,
    and however old the C is that x was made with.
    """
    kept, eta, w = (1.0 - eta * d / 2)[..., None], eta[..., None], w[..., None]
    x_C = x @ C
    cross = y.mT @ (w * x_C)
    inner = w * (x_C @ x.mT) * w.mT
    return kept**2 * C + (kept * eta / 2) * (cross + cross.mT) + (eta**2 / 4) * (y.mT @ (inner @ y))


def held(change: Array) -> Array:
    """A change of a logarithm, at most 1 at a time."""
    xp = namespace(change)
    return xp.minimum(xp.maximum(change, -1.0), 1.0)
