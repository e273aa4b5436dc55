"""mix: mutations of integers and categories that are frozen (docs/mix.md)."""

from __future__ import annotations

from typing import NamedTuple

from mixcma.core.coordinates import Coordinates
from mixcma.core.namespace import Array, held, idle, namespace, ndtr, wide
from mixcma.core.sampling import Noise
from mixcma.core.setting import Live
from mixcma.core.state import State
from mixcma.core.strategy import MutationPace
from mixcma.core.update import combine

# Of the candidates, so many are mutated where nothing else is gained.
MUTATED_WHERE_LEVEL = 0.5
# Jumps are shorter than 2**40 cells, so that they can be told apart in floats.
SHORTEST = 2.0**-80


class Mutations(NamedTuple):
    """Where candidates are mutated, and the cells that they are taken to there."""

    mutated: Array  # (..., L, N) bool
    cells: Array  # (..., L, N)


def mutations(coordinates: Coordinates, given: Live, state: State, cell: Array, noise: Noise) -> Mutations | None:
    """Of the frozen coordinates of the candidates; `cell`, (..., 1, N), is that of m. None if there is none, for sure.

    The normals of frozen coordinates are not used by the Gaussian: they decide how many coordinates of a candidate
    are mutated, so that P(k or more) = q / k.
    """
    xp, pace = namespace(cell), given.mutation
    q, frozen = wide(mutation_rate(pace, state.idle, state.level)), wide(pace.frozen)
    u = ndtr(combine(given.frozen_direction, noise.normal.mT))  # (..., L)
    some = u <= q
    if idle(some):
        return None
    count = xp.minimum(xp.floor(q / u), frozen)
    choice = noise.sign + given.out_of_reach[..., None, :]  # beyond 1 for those that are not frozen
    reach = xp.maximum(choice.min(axis=-1), (count - 1.0) / frozen) * some
    return Mutations(
        mutated=choice <= xp.minimum(reach, 1.0)[..., None],
        cells=jumped(coordinates, cell, noise.geometric),
    )


def mutation_rate(pace: MutationPace, idle_for: Array, level: Array) -> Array:
    """q (...): the part of the candidates that are mutated; it falls while nothing succeeds.

    Where the live coordinates gain nothing either, it is at least half of them.
    """
    falling = pace.mutates * pace.lasting / (pace.lasting + idle_for)
    return held(MUTATED_WHERE_LEVEL * level, held(pace.mutates_always, falling, 1.0), 1.0)


def jumped(coordinates: Coordinates, cell: Array, uniform: Array) -> Array:
    """Another cell, d away, with P(d or more) = d^-2; the last one on that side where there are fewer.

    Where there is none, it is the neighbour on the other side. Of a category it is any other choice.
    """
    xp = namespace(uniform)
    away = uniform - 0.5
    length = xp.floor(xp.sqrt(0.5 / xp.maximum(xp.abs(away), SHORTEST)))
    first, last = (cell == 0.0) * 1.0, coordinates.last - (cell == coordinates.last)  # but for the cell itself
    there = xp.minimum(xp.maximum(cell + xp.copysign(length, away), first), last)
    categories = len(coordinates.choices)
    if not categories:
        return there
    others = coordinates.choices - 1.0
    further = cell[..., -categories:] + xp.ceil(uniform[..., -categories:] * others)
    return xp.concat([there[..., :-categories], further % coordinates.choices], axis=-1)
