"""Which choice of a category deserves the next evaluation (docs/model.md, "Choices in time")."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.core.conditions import existing
from mixcma.core.coordinates import cell_index
from mixcma.core.model.features import Features, FloatArray

# Choices are compared where there are at most so many categories with at least three choices or with variables of their
# own, and so many choices in all.
MOST_CATEGORIES, MOST_CHOICES, LEAST_CHOICES = 3, 24, 3
# A choice is stale once so many evaluations with it, and so many more per variable, have brought it no nearer to the
# best of the others than by this part of the gap.
PATIENCE, PER_VARIABLE, PART_OF_GAP = 10, 5, 0.01
# The share of the evaluations that the choice with the r-th best value deserves is 1 / r^2 of the first one's. Stale
# ones deserve this part of it.
STALE = 0.1


class Choice(NamedTuple):
    """A choice of a category: the column of the category among the latent coordinates, and the place of the choice."""

    column: int
    place: int


def contested(features: Features) -> list[int]:
    """The columns of the categories whose choices are compared."""
    parents = {condition.parent for condition in features.coordinates.conditions}
    columns = features.numbers + np.arange(len(features.choices))
    matter = [j for j, K in zip(columns.tolist(), features.choices) if K >= LEAST_CHOICES or j in parents]
    total = sum(int(features.choices[j - features.numbers]) for j in matter)
    return matter if len(matter) <= MOST_CATEGORIES and total <= MOST_CHOICES else []


def deserving(
    features: Features, columns: list[int], points: FloatArray, values: FloatArray, violations: FloatArray
) -> Choice | None:
    """The choice that was evaluated too seldom for its best value; None if nothing is to be done for one.

    Of categories that exist with that choice, it is one of theirs.
    """
    cost = np.where(violations > 0.0, np.inf, values) if (violations == 0.0).any() else violations
    within = [column for column in columns if not _parents(features, column) & set(columns)]
    choice: Choice | None = None
    while within:
        wanting = max((_most_wanting(features, column, points, cost) for column in within), key=lambda each: each[0])
        if wanting[1] is None or wanting[0] <= 0.0:
            break
        choice = wanting[1]
        within = [column for column in columns if _comes_with(features, column, choice)]
    return choice


def _parents(features: Features, column: int) -> set[int]:
    return {condition.parent for condition in features.coordinates.conditions if condition.child == column}


def _comes_with(features: Features, column: int, choice: Choice) -> bool:
    """Whether a category exists with this choice of another one."""
    return any(
        condition.child == column and condition.parent == choice.column and choice.place in condition.cells
        for condition in features.coordinates.conditions
    )


def _most_wanting(features: Features, column: int, points: FloatArray, cost: FloatArray) -> tuple[float, Choice | None]:
    """By how many evaluations the choice with the largest deficit falls short, and that choice.

    None for the choice with the best value, unless it has variables of its own: all evaluations say something of it.
    """
    K, of = int(features.choices[column - features.numbers]), points[:, column]
    own = [of == place for place in range(K)]
    best = np.array([np.nanmin(cost[mine], initial=np.inf) for mine in own])
    count = np.array([mine.sum() for mine in own])
    order = np.argsort(best, kind="stable")
    deserves = np.empty(K)
    deserves[order] = 1.0 / np.arange(1, K + 1) ** 2
    for place, mine in enumerate(own):
        others = np.delete(best, place).min()
        if _is_stale(cost[mine], abs(others - best[place]), _variables(features, points[mine])):
            deserves[place] *= STALE
    deficit = deserves / deserves.sum() * count.sum() - count
    most = int(deficit.argmax())
    has_children = any(condition.parent == column for condition in features.coordinates.conditions)
    return float(deficit[most]), None if most == order[0] and not has_children else Choice(column, most)


def _is_stale(cost: FloatArray, gap: float, variables: int) -> bool:
    """Whether the last evaluations with a choice have hardly brought anything."""
    length = PATIENCE + PER_VARIABLE * variables
    if len(cost) <= length:
        return False
    before, since = np.nanmin(cost[:-length], initial=np.inf), np.nanmin(cost[-length:], initial=np.inf)
    if not np.isfinite(before) or not np.isfinite(gap):
        return not since < before
    return bool(before - since <= PART_OF_GAP * gap)


def _variables(features: Features, points: FloatArray) -> int:
    """How many numbers exist where a choice was made."""
    if not len(points):
        return 0
    exists: NDArray[np.bool_] = existing(features.coordinates, cell_index(features.coordinates, points[-1]))
    return int(exists[: features.numbers].sum())
