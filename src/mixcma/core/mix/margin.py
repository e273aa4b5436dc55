"""mix, steps 9 and 10 (docs/mix.md): the margin, and which integers freeze or live again."""

from __future__ import annotations

from typing import NamedTuple

from mixcma.core.coordinates import Coordinates, cell_centre, cell_index, ends
from mixcma.core.gaussian import deviations, set_apart
from mixcma.core.mix.state import MixSetting, MixState, Partition
from mixcma.core.namespace import Array, known_empty, namespace, ndtr, ndtri

# Integers and categories freeze at this many times the margin, up to rounding.
FREEZES_AT = 2.0 * (1 + 1e-9)
# What is divided by is at least this.
SMALLEST_DIVISOR = 2.0**-80


def apply_margin_and_freeze(setting: MixSetting, partition: Partition, state: MixState, succeeded: Array) -> MixState:
    """Steps 9 and 10, for live integers and for frozen ones that succeeded."""
    xp, alpha, live = namespace(state.m), setting.alpha, partition.live_integers
    if partition.no_live_integers and known_empty(succeeded):  # for speed
        return state
    concerned = live | (succeeded & setting.coordinates.margin)
    s = xp.where(live, deviations(state) * state.A, setting.s_frozen)
    p_max = xp.where(succeeded, 1.0, state.p)
    m, s_new, p = margin(setting.coordinates, alpha, p_max, state.m, s)
    state = state._replace(
        m=xp.where(concerned, m, state.m),
        A=xp.where(live, state.A * (s_new / s), state.A),
        p=xp.where(concerned, p, state.p),
    )
    rests = p <= FREEZES_AT * alpha
    return frozen_and_revived(state, live & rests, concerned & ~live & ~rests, s_new)


class Tails(NamedTuple):
    """The two sides on which the cell of the mean can be left, (..., N) each."""

    lower: Array  # where the cell ends
    upper: Array
    at_bottom: Array  # bool: the first cell, which has no lower tail
    at_end: Array  # bool: the first or the last cell
    alpha_tail: Array  # the margin of a tail: alpha / 2, or alpha where it is the only one
    e_low: Array  # what the tails have beyond their margin
    e_up: Array
    short: Array  # bool: a tail has less than its margin


def tails_of(coordinates: Coordinates, alpha: float, k: Array, m: Array, s: Array) -> Tails:
    """The tails of N(m, s^2); k is the cell of m."""
    xp = namespace(m)
    lower, upper = ends(coordinates, k)
    at_bottom, at_top = k <= 0.0, k >= coordinates.last
    at_end = at_bottom | at_top
    alpha_tail = xp.where(at_end, alpha, alpha / 2)
    q_low = xp.where(at_bottom, 0.0, ndtr((lower - m) / s))
    q_up = xp.where(at_top, 0.0, ndtr((m - upper) / s))
    short = ((q_low < alpha_tail) & ~at_bottom) | ((q_up < alpha_tail) & ~at_top)
    return Tails(
        lower,
        upper,
        at_bottom,
        at_end,
        alpha_tail,
        xp.maximum(q_low - alpha_tail, 0.0),
        xp.maximum(q_up - alpha_tail, 0.0),
        short,
    )


def margin(coordinates: Coordinates, alpha: float, p_max: Array, m: Array, s: Array) -> tuple[Array, Array, Array]:
    """Step 9: m, s and p, the probability of leaving the cell, which is kept between `alpha` and `p_max`.

    Where no limit is active, m and s come back unchanged, bit for bit.
    """
    xp, k = namespace(m), cell_index(coordinates, m)
    t = tails_of(coordinates, alpha, k, m, s)
    e = t.e_low + t.e_up
    # in the first and the last cell a small tail says nothing while the Gaussian is wider than the cell
    way = xp.abs(cell_centre(coordinates, k) - xp.where(t.at_bottom, t.upper, t.lower))
    wide = t.at_end & (s > way * (1 + 1e-9) / -float(ndtri(alpha)))
    active = t.short | (alpha + e > p_max)
    if known_empty(active):  # for speed
        return m, s, xp.where(wide, 1.0, alpha + e)
    kappa = xp.minimum(1.0, (p_max - alpha) / xp.maximum(e, SMALLEST_DIVISOR))
    x_low, x_up = ndtri(t.alpha_tail + kappa * t.e_low), ndtri(t.alpha_tail + kappa * t.e_up)  # negative
    # where a limit is active between two cells, x_low + x_up is well below 0: the ceiling only serves the rest
    s_new = xp.where(active & ~t.at_end, (t.lower - t.upper) / xp.minimum(x_low + x_up, -SMALLEST_DIVISOR), s)
    m_new = xp.where(t.at_bottom, t.upper + s_new * x_up, t.lower - s_new * x_low)
    return xp.where(active, m_new, m), s_new, xp.where(wide, 1.0, alpha + kappa * e)


def frozen_and_revived(state: MixState, freezes: Array, revives: Array, s: Array) -> MixState:
    """Step 10. Both begin with the identity in C and 0 in the paths; frozen ones are 0 in the roots of C."""
    changes = freezes | revives
    if known_empty(changes):
        return state
    xp, kept = namespace(state.m), 1.0 - changes
    return state._replace(
        C=set_apart(state.C, changes, changes),
        A=xp.where(revives, s / state.sigma, state.A),
        root=set_apart(state.root, changes, revives),
        inverse_root=set_apart(state.inverse_root, changes, revives),
        p_sigma=kept * state.p_sigma,
        p_c=kept * state.p_c,
        live=kept * state.live + revives,
    )
