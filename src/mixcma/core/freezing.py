"""mix: integers and categories that have settled are drawn no more, and brought back (docs/mix.md)."""

from __future__ import annotations

from typing import NamedTuple

from mixcma.core.categories import Learning, frequencies, learning, with_margin
from mixcma.core.coordinates import Coordinates, cell_centre, cell_index, ends
from mixcma.core.namespace import Array, idle, namespace, ndtr, ndtri, wide
from mixcma.core.ranking import leader
from mixcma.core.sampling import Sample
from mixcma.core.setting import Live, Setting
from mixcma.core.state import Lead, State, deviations, initial_state
from mixcma.core.update import combine

# Integers and categories freeze at this many times the margin.
FREEZES_AT = 2.0
# What is divided by is at least this.
SMALLEST = 2.0**-80
# A search that returns to its best point begins there with so much of the initial standard deviation.
RETURNS_WITH = 0.03


class Learnt(NamedTuple):
    """What a generation says of the integers."""

    m: Array  # (..., N) frozen ones moved
    sample: Sample  # live ones centred
    idle: Array  # (...)
    succeeded: Array | None  # (..., N) bool: live ones, and frozen ones that may live again; None if none did


def integers_learnt(
    coordinates: Coordinates, given: Live, state: State, sample: Sample, lead: Lead, w_plus: Array
) -> Learnt:
    """Steps 1 to 3: adoption, success, centring."""
    if sample.left is None:
        return Learnt(state.m, sample, state.idle + 1.0, None)
    better = w_plus > 0.0
    m, left, adopted = state.m, sample.left & better[..., None], None
    if not given.none_frozen:
        leads = leader(lead, w_plus.shape[-1])
        adopted = sample.left & leads[..., None]
    if idle(left) and (adopted is None or idle(adopted)):
        return Learnt(m, sample, state.idle + 1.0, None)
    succeeded = some = left.any(axis=-2)
    if adopted is not None:
        adopted = adopted.any(axis=-2) & given.frozen
        # where so many are mutated that some are bound to be among the better half, only a new best is a success
        counts = given.some_active & (given.active | wide(state.level == 0.0)) & ~adopted
        left, succeeded = left & counts[..., None, :], succeeded & counts
        some = succeeded | adopted
        m = frozen_mean(coordinates, m, sample.v, leads, w_plus, adopted, succeeded & given.frozen)
    waited = (state.idle + 1.0) * ~some.any(axis=-1)
    if not given.no_integers and not idle(succeeded & given.integers):
        taking_part = given.integers[..., None, :] & better[..., None]
        sample = centred_sample(coordinates, state, sample, left, taking_part)
    return Learnt(m, sample, waited, succeeded)


def frozen_mean(
    coordinates: Coordinates, m: Array, v: Array, leads: Array, w_plus: Array, adopted: Array, succeeded: Array
) -> Array:
    """The mean, with frozen coordinates where the leader or the successful mutations of integers take them."""
    xp, reach, revivable = namespace(m), coordinates.granularity, succeeded & coordinates.margin
    if idle(adopted | revivable):
        return m
    away = v - m[..., None, :]
    pulled = combine(w_plus, xp.minimum(xp.maximum(away, -reach), reach))
    return m + xp.where(adopted, combine(leads * 1.0, away), xp.where(revivable, pulled, 0.0))


def centred_sample(coordinates: Coordinates, state: State, sample: Sample, left: Array, taking_part: Array) -> Sample:
    """The sample after integer centring of the live coordinates."""
    moved = centred(sample.v, cell_centre(coordinates, sample.cells), left, taking_part)
    more = moved / (state.sigma * state.A)[..., None, :]
    return sample._replace(y=sample.y + more, z=sample.z + more @ state.inverse_root)


def centred(v: Array, centre: Array, left: Array, taking_part: Array) -> Array:
    """Integer centring: how far each point (..., L, N) is moved.

    Points that left the mean's cell go to the centre of theirs; what that shifts their sum by, the others give back,
    on the way to their own centres, all by the same part of it. `left` and `taking_part` are bool; who left, but takes
    no part, is not moved.
    """
    xp = namespace(v)
    way, all_of_them = xp.where(taking_part, centre - v, 0.0), xp.ones(v.shape[-2])
    moved = xp.where(left, way, 0.0)
    bias, others = combine(all_of_them, moved), way - moved
    opposite = xp.where(others * bias[..., None, :] < 0.0, others, 0.0)
    available = combine(all_of_them, opposite)
    part = xp.minimum(1.0, -bias / xp.where(available == 0.0, 1.0, available))
    return moved + part[..., None, :] * opposite


def settled(setting: Setting, given: Live, state: State, succeeded: Array | None) -> State:
    """Steps 9 and 10: the margin, and who freezes or lives again. `succeeded` (..., N) bool; None if nothing did."""
    xp, coordinates = namespace(state.m), setting.coordinates
    concerned, live, most = given.integers, given.integers, state.leaving
    if succeeded is not None:
        most = xp.where(succeeded, 1.0, most)
        if not given.none_frozen:
            concerned = live | (succeeded & coordinates.margin)
    if idle(concerned):
        return state
    sd, alpha = deviations(state) * state.A, setting.alpha
    if not given.none_frozen:
        sd = xp.where(live, sd, setting.frozen_deviation)
    tails = tails_of(coordinates, setting.cell(state.m)[..., 0, :], alpha, state.m, sd)
    leaving, deviation = alpha + tails.beyond, sd
    if not idle(concerned & (tails.short | (leaving > most))):
        m, deviation, leaving = held_margin(tails, alpha, most, sd)
        A = xp.where(live, state.A * (deviation / sd), state.A)
        state = state._replace(m=xp.where(concerned, m, state.m), A=A)
    state = state._replace(leaving=xp.where(concerned, leaving, state.leaving))
    rests = leaving <= FREEZES_AT * alpha * (1 + 1e-9)  # from a centre it is 2 alpha, rounded
    freezes = live & rests
    revives = concerned & ~live & ~rests
    return state if idle(freezes | revives) else changed(state, freezes, revives, deviation)


class Tails(NamedTuple):
    """The two sides on which the cell of the mean is left: (..., N) each, and what they have beyond their margin."""

    lower: Array  # where the cell ends
    upper: Array
    at_bottom: Array  # bool: the first cell has no lower tail
    has_one: Array  # bool: the first and the last cell
    least: Array  # the margin of a tail: alpha / 2, or alpha where it is the only one
    beyond_low: Array  # what it has beyond that, at least 0
    beyond_up: Array
    beyond: Array  # both
    short: Array  # bool: a tail has less


def tails_of(coordinates: Coordinates, k: Array, alpha: float, m: Array, sd: Array) -> Tails:
    """Of N(m, sd^2); k is the cell of m."""
    xp = namespace(m)
    lower, upper = ends(coordinates, k)
    at_bottom, at_top = k <= 0.0, k >= coordinates.last
    has_one = at_bottom | at_top
    least = xp.where(has_one, alpha, alpha / 2)
    low = xp.where(at_bottom, 0.0, ndtr((lower - m) / sd) - least)
    up = xp.where(at_top, 0.0, ndtr((m - upper) / sd) - least)
    beyond_low, beyond_up = xp.maximum(low, 0.0), xp.maximum(up, 0.0)
    short = xp.minimum(low, up) < 0.0
    return Tails(lower, upper, at_bottom, has_one, least, beyond_low, beyond_up, beyond_low + beyond_up, short)


def held_margin(tails: Tails, alpha: float, most: Array, sd: Array) -> tuple[Array, Array, Array]:
    """m, the standard deviation and p, the probability of leaving the cell, held between `alpha` and `most`.

    Each tail has at least its margin; what is beyond that of both is reduced in proportion, so that p is their sum
    before, or what it is held to.
    """
    xp, (lower, upper, at_bottom, has_one, least, beyond_low, beyond_up, beyond, _) = namespace(sd), tails
    part = xp.minimum(1.0, (most - alpha) / xp.maximum(beyond, SMALLEST))
    x_low, x_up = ndtri(least + part * beyond_low), ndtri(least + part * beyond_up)  # negative
    deviation = xp.where(has_one, sd, (lower - upper) / xp.minimum(x_low + x_up, -1e-3))
    return xp.where(at_bottom, upper + deviation * x_up, lower - deviation * x_low), deviation, alpha + part * beyond


def changed(state: State, freezes: Array, revives: Array, deviation: Array) -> State:
    """Those that freeze or live again have the identity in C and no paths; frozen ones are 0 in its roots."""
    xp, identity = namespace(state.m), namespace(state.m).eye(state.C.shape[-1])
    changes = freezes | revives
    kept = 1.0 - changes
    both_kept = kept[..., :, None] * kept[..., None, :]
    state = state._replace(
        C=both_kept * state.C + changes[..., None] * identity,
        root=both_kept * state.root,
        inverse_root=both_kept * state.inverse_root,
        p_sigma=kept * state.p_sigma,
        p_c=kept * state.p_c,
        live=kept * state.live,
    )
    if idle(revives):
        return state
    begins = revives[..., None] * identity
    return state._replace(
        A=xp.where(revives, deviation / state.sigma, state.A),
        root=state.root + begins,
        inverse_root=state.inverse_root + begins,
        live=state.live + revives,
    )


def returned(coordinates: Coordinates, state: State) -> State:
    """A new start at the best point of the run, for the floats alone: its integers and categories are frozen."""
    xp, discrete = namespace(state.m), coordinates.margin
    centre = cell_centre(coordinates, cell_index(coordinates, state.recalled))
    start = initial_state(xp.where(discrete, centre, state.recalled), coordinates.choices)
    live = xp.where(discrete, 0.0, start.live)
    return start._replace(
        sigma=RETURNS_WITH * start.sigma,
        root=live[..., None] * start.root,
        inverse_root=live[..., None] * start.root,
        recalled=state.recalled,
        live=live,
        best=state.best,
        theta=state.theta,
        open=0.0 * state.open,
        generation=state.generation,
    )


def choices_learnt(
    setting: Setting, before: State, state: State, sample: Sample, w_plus: Array, succeeded: Array | None
) -> State:
    """Step 11: open categories learn the probabilities of their choices; those that are sure of one are frozen.

    A frozen one that succeeded has the frequencies of this generation, and is open again unless it is sure.
    """
    categories = setting.categories
    if categories is None:
        return state
    xp, n = namespace(state.m), setting.strategy.dimension
    is_open, mode = state.open > 0.0, state.m[..., n:]
    adopted = mode != before.m[..., n:]
    if succeeded is None and idle(is_open | adopted):
        return state
    places, chosen = xp.arange(state.theta.shape[-1]), sample.v[..., n:]
    wanted, some_open = frequencies(len(places), chosen, w_plus), is_open.any(axis=-1, keepdims=True)
    toward = wanted
    if sample.older is not None:  # not all were drawn with theta: the gradient is that from their mean frequencies
        toward = state.theta + frequencies(len(places), chosen, w_plus - 1.0 / w_plus.shape[-1])
    again = xp.zeros_like(is_open) if succeeded is None else succeeded[..., n:] & ~is_open & ~adopted
    so_far = Learning(state.theta, state.signal, state.rate)
    learnt = learning(categories, so_far, xp.where(is_open[..., None], toward, state.theta))
    told = xp.where(adopted[..., None], (mode[..., None] == places) * 1.0, wanted)
    theta = xp.where(is_open[..., None], learnt.theta, state.theta)
    theta = xp.where((again | adopted)[..., None], with_margin(categories, told), theta)
    unsure = 1.0 - theta.max(axis=-1) > FREEZES_AT * setting.alpha * (1 + 1e-9)
    mode = xp.where(is_open | again, xp.argmax(theta, axis=-1) * 1.0, mode)
    opens = unsure & (is_open | again)
    return state._replace(
        m=xp.concat([state.m[..., :n], mode], axis=-1),
        theta=theta,
        signal=xp.where(some_open[..., None], learnt.signal, state.signal),
        rate=xp.where(some_open, learnt.rate, state.rate),
        open=state.open if idle(opens != is_open) else opens * 1.0,
    )
