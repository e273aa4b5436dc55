"""Integers that have settled: taken out of the Gaussian, mutated explicitly, brought back (docs/mix.md)."""

from __future__ import annotations

from typing import NamedTuple

from mixcma.core.coordinates import Coordinates, cell_centre, cell_index
from mixcma.core.margin import corrected
from mixcma.core.namespace import Array, idle, namespace, ndtr
from mixcma.core.sampling import Noise, Sample
from mixcma.core.setting import Setting
from mixcma.core.state import State, deviations, replaced
from mixcma.core.strategy import Pace
from mixcma.core.update import combine

# Of the candidates, so many are mutated where nothing else is gained.
MUTATED_WHERE_LEVEL = 0.5
# Integers freeze at this many times the margin.
FREEZES_AT = 2.0
# Jumps are shorter than 2**40 cells, so that they can be told apart in floats.
SHORTEST = 2.0**-80


def mutated(coordinates: Coordinates, pace: Pace, state: State, v: Array, noise: Noise) -> Array:
    """The latent points (..., L, N) with some of their frozen coordinates mutated.

    The normals of frozen coordinates are not used by the Gaussian: they decide how many coordinates of a candidate
    are mutated, so that P(k or more) = q / k.
    """
    xp = namespace(v)
    q = mutation_rate(pace, state.idle, state.level)
    u = ndtr(xp.matvec(noise.normal, 1.0 - state.live) / pace.root_frozen)  # (..., L)
    if idle(u <= q):
        return v
    count = xp.minimum(xp.floor(q / u), pace.frozen)
    choice = noise.sign + 2.0 * state.live[..., None, :]  # beyond 1 for the live ones
    reach = xp.maximum(choice.min(axis=-1), (count - 1.0) / pace.frozen) * (count >= 1.0)
    cell = cell_index(coordinates, state.m)[..., None, :]
    jumped_to = cell_centre(coordinates, jumped(coordinates, cell, noise.geometric))
    return xp.where(choice <= xp.minimum(reach, 1.0)[..., None], jumped_to, v)


def mutation_rate(pace: Pace, idle_for: Array, level: Array) -> Array:
    """q (..., 1): the part of the candidates that are mutated; it falls while nothing succeeds.

    Where the live coordinates gain nothing either, it is at least half of them.
    """
    xp = namespace(idle_for)
    falling = pace.mutates * pace.lasting / (pace.lasting + idle_for)
    return xp.maximum(xp.maximum(falling, pace.mutates_always), MUTATED_WHERE_LEVEL * level)


def jumped(coordinates: Coordinates, cell: Array, uniform: Array) -> Array:
    """Another cell, d away, with P(d or more) = d^-2; the last one on that side where there are fewer.

    Where there is none, it is the neighbour on the other side.
    """
    xp = namespace(uniform)
    away = 2.0 * uniform - 1.0
    length = xp.floor(1.0 / xp.sqrt(xp.maximum(xp.abs(away), SHORTEST)))
    there = xp.minimum(xp.maximum(cell + xp.copysign(length, away), 0.0), coordinates.last)
    inward = xp.where(cell > 0.0, cell - 1.0, 1.0)
    return xp.where(there == cell, inward, there)


class Learnt(NamedTuple):
    """What a generation says of the integers."""

    m: Array  # (..., N) frozen ones moved
    sample: Sample  # live ones centred
    idle: Array  # (..., 1)
    succeeded: Array | None  # (..., N) bool: frozen ones that may live again; None if there is none


def integers_learnt(coordinates: Coordinates, state: State, sample: Sample, w_plus: Array) -> Learnt:
    """Steps 1 to 3: adoption, success, centring."""
    xp = namespace(state.m)
    cells, cell = cell_index(coordinates, sample.v), cell_index(coordinates, state.m)[..., None, :]
    left = coordinates.margin & (cells != cell)  # (..., L, N)
    if idle(left):
        return Learnt(state.m, sample, state.idle + 1.0, None)
    live, frozen, leader = state.live > 0.0, state.live == 0.0, sample.leader
    adopted = xp.zeros_like(frozen)
    if leader is not None:
        adopted = (left & leader[..., None]).any(axis=-2) & frozen
    # where so many are mutated that some are bound to be among the better half, only a new best is a success
    telling = live.any(axis=-1, keepdims=True) & (live | (state.level == 0.0))
    left = left & (w_plus > 0.0)[..., None] & (~adopted & telling)[..., None, :]
    succeeded = left.any(axis=-2)
    waited = xp.where((succeeded | adopted).any(axis=-1, keepdims=True), 0.0, state.idle + 1.0)
    m, revivable = state.m, succeeded & frozen
    if not idle(adopted | revivable):
        m = frozen_mean(coordinates, m, sample, w_plus, adopted, revivable)
    if not idle(succeeded & live):
        sample = centred_sample(coordinates, state, sample, cells, left, w_plus)
    return Learnt(m, sample, waited, revivable)


def frozen_mean(
    coordinates: Coordinates, m: Array, sample: Sample, w_plus: Array, adopted: Array, succeeded: Array
) -> Array:
    """The mean, with frozen coordinates where the leader or the successful mutations take them."""
    xp, reach = namespace(m), coordinates.granularity
    away = sample.v - m[..., None, :]
    pulled = combine(w_plus, xp.minimum(xp.maximum(away, -reach), reach))
    led = 0.0 if sample.leader is None else combine(sample.leader * 1.0, away)
    return m + xp.where(adopted, led, xp.where(succeeded, pulled, 0.0))


def centred_sample(
    coordinates: Coordinates, state: State, sample: Sample, cells: Array, left: Array, w_plus: Array
) -> Sample:
    """The sample after integer centring of the live coordinates."""
    live = coordinates.margin & (state.live > 0.0)
    taking_part = live[..., None, :] & (w_plus > 0.0)[..., None]
    moved = centred(sample.v, cell_centre(coordinates, cells), left & taking_part, taking_part)
    more = moved / (state.sigma * state.A)[..., None, :]
    return sample._replace(y=sample.y + more, z=sample.z + more @ state.inverse_root, step=sample.step + moved)


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


def settled(setting: Setting, state: State, succeeded: Array | None) -> State:
    """Steps 9 and 10: the margin, and who freezes or lives again. `succeeded` are frozen integers, None if none did."""
    xp, coordinates = namespace(state.m), setting.coordinates
    concerned = live = coordinates.margin & (state.live > 0.0)
    if succeeded is not None:
        concerned = live | succeeded
    if idle(concerned):
        return state
    sd = xp.where(live, deviations(state) * state.A, setting.frozen_deviation)
    m, A, leaving = corrected(coordinates, setting.alpha, state.m, sd, state.A)
    rests = leaving <= FREEZES_AT * setting.alpha * (1 + 1e-9)  # from a centre it is 2 alpha, rounded
    deviation = sd * (A / state.A)
    state = state._replace(m=xp.where(concerned, m, state.m), A=xp.where(live, A, state.A))
    freezes = live & rests
    revives = concerned & ~live & ~rests
    return state if idle(freezes | revives) else changed(state, freezes, revives, deviation)


def changed(state: State, freezes: Array, revives: Array, deviation: Array) -> State:
    """Those that freeze or live again have the identity in C and no paths; frozen ones are 0 in its roots."""
    xp = namespace(state.m)
    changes, begins = freezes | revives, revives * 1.0
    kept = xp.where(changes, 0.0, 1.0)
    return state._replace(
        A=xp.where(revives, deviation / state.sigma, state.A),
        C=replaced(state.C, kept, changes * 1.0),
        root=replaced(state.root, kept, begins),
        inverse_root=replaced(state.inverse_root, kept, begins),
        p_sigma=kept * state.p_sigma,
        p_c=kept * state.p_c,
        live=xp.where(changes, begins, state.live),
    )
