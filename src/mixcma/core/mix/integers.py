"""mix, steps 1 to 3 (docs/mix.md): adoption, success and centring of discrete coordinates."""

from __future__ import annotations

from typing import NamedTuple

from mixcma.core.centring import centring_moves
from mixcma.core.coordinates import Coordinates, cell_centre
from mixcma.core.mix.best import BestComparison
from mixcma.core.mix.presence import Presence
from mixcma.core.mix.state import MixSetting, MixState, Partition
from mixcma.core.namespace import Array, as_column, known_empty, known_repeated, namespace
from mixcma.core.sampling import Sample
from mixcma.core.update import combine


class IntegerStep(NamedTuple):
    """What a generation says about the discrete coordinates."""

    m: Array  # (..., N) the mean, with frozen coordinates moved
    y: Array  # (..., L, N) what moves the mean: y, with live integers centred
    g_idle: Array  # (...)
    adopted: Array  # (..., N) bool: frozen ones that took the value of a new best
    succeeded: Array  # (..., N) bool: left their cell in a good candidate, and were not adopted


def integer_step(
    setting: MixSetting,
    partition: Partition,
    state: MixState,
    sample: Sample,
    comparison: BestComparison,
    w_plus: Array,
    presence: Presence | None,
) -> IntegerStep:
    """Steps 1 to 3."""
    coordinates = setting.coordinates
    if known_repeated(sample.cells):  # for speed: the cells of all candidates are those of the mean
        return nothing_changes(state, sample)
    left = setting.settles & (sample.cells != setting.cells_of(state.m))
    leads, good = is_new_best(comparison, w_plus.shape[-1]), (w_plus > 0.0)[..., None]
    if known_empty(left & (good | leads[..., None])):  # for speed: most mutations are bad
        return nothing_changes(state, sample)
    # 1. adoption
    adopted = partition.frozen & (left & leads[..., None]).any(axis=-2)
    # 2. success; while the search is level, so many are mutated that some must be among the better half
    counts = (partition.n_active > 0)[..., None] & (partition.active | as_column(state.level == 0.0)) & ~adopted
    left = left & good & counts[..., None, :]
    succeeded = left.any(axis=-2)
    g_idle = (state.g_idle + 1.0) * ~(succeeded | adopted).any(axis=-1)
    m = moved_frozen(coordinates, state.m, sample.v, leads, w_plus, adopted, succeeded & partition.frozen)
    # 3. centring, which the mean alone learns from
    y, centred = sample.y, partition.live_integers
    if not known_empty(succeeded & centred):
        taking_part = centred[..., None, :] & good
        if presence is not None:
            taking_part = taking_part & (presence.exists > 0.0)
        moves = centring_moves(sample.v, cell_centre(coordinates, sample.cells), left & taking_part, taking_part)
        y = y + moves / (state.sigma * state.A)[..., None, :]
    return IntegerStep(m, y, g_idle, adopted, succeeded)


def nothing_changes(state: MixState, sample: Sample) -> IntegerStep:
    """The step of a generation in which no candidate that counts left a cell."""
    nobody = namespace(state.m).zeros(state.m.shape, dtype=bool)
    return IntegerStep(state.m, sample.y, state.g_idle + 1.0, nobody, nobody)


def is_new_best(comparison: BestComparison, candidates: int) -> Array:
    """(..., L) bool: the best of the generation, if it is better than all before it."""
    xp = namespace(comparison.best.point)
    if known_empty(comparison.is_new_best):  # for speed
        return xp.zeros((*comparison.first.shape, candidates), dtype=bool)
    return as_column(comparison.is_new_best) & (xp.arange(candidates) == comparison.first[..., None])


def moved_frozen(
    coordinates: Coordinates, m: Array, v: Array, leads: Array, w_plus: Array, adopted: Array, succeeded: Array
) -> Array:
    """The mean, with adopted coordinates at v_ij, and frozen integers that succeeded a part of the way to theirs."""
    xp, S, pulled = namespace(m), coordinates.granularity, succeeded & coordinates.margin
    if known_empty(adopted | pulled):
        return m
    away = v - m[..., None, :]
    pull = combine(w_plus, xp.minimum(xp.maximum(away, -S), S))
    return m + xp.where(adopted, combine(leads * 1.0, away), xp.where(pulled, pull, 0.0))
