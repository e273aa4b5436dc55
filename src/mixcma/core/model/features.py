"""A latent point as a row of numbers, and the columns of a polynomial of such rows (docs/model.md, "Features")."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mixcma.core.conditions import without_absent
from mixcma.core.coordinates import Coordinates

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Kind = Literal["linear", "diagonal", "sparse", "full"]
KINDS: tuple[Kind, ...] = ("linear", "diagonal", "full")  # a sparse one has some of the columns of a full one


class Features:
    """Numbers come first, as they are; then each category of K choices as K - 1 zeros and ones, the first choice
    being all zeros.

    Parameters
    ----------
    coordinates
        What the latent coordinates mean. Variables with two values are categories here, as in mix.
    """

    def __init__(self, coordinates: Coordinates) -> None:
        self.coordinates = coordinates
        self.choices: IntArray = np.asarray(coordinates.choices, dtype=np.int64)
        self.numbers = len(coordinates.scale) - len(self.choices)
        discrete = np.asarray(coordinates.discrete)[: self.numbers]
        self.floats, self.integers = np.flatnonzero(~discrete), np.flatnonzero(discrete)
        self.count = self.numbers + int((self.choices - 1).sum())
        self.variables = self.numbers + len(self.choices)
        # the first indicator of each category
        self.first_indicator = self.numbers + np.concatenate([[0], np.cumsum(self.choices - 1)[:-1]]).astype(np.int64)

    @property
    def sizes(self) -> dict[Kind, int]:
        """How many coefficients a polynomial of each kind has."""
        linear = 1 + self.count
        return {"linear": linear, "diagonal": linear + self.numbers, "full": linear + self.numbers + len(self.pairs[0])}

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The pairs of features whose products a full model has; indicators of one category exclude each other."""
        category = np.repeat(np.arange(len(self.choices)), self.choices - 1)
        of = np.concatenate([-1 - np.arange(self.numbers), category])
        i, j = np.triu_indices(self.count, 1)
        different = of[i] != of[j]
        return i[different], j[different]

    def rows(self, points: FloatArray) -> FloatArray:
        """Latent points (n, N) -> features (n, p). What does not exist at a point is the same everywhere."""
        points = without_absent(self.coordinates, points)
        parts = [points[:, : self.numbers]]
        for category, K in enumerate(self.choices, start=self.numbers):
            parts.append(1.0 * (points[:, [category]] == np.arange(1, K)))
        return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]

    def matrix(self, rows: FloatArray, kind: Kind) -> FloatArray:
        """The columns of a polynomial: 1, the features, the squares of numbers, and products of two."""
        parts = [np.ones((len(rows), 1)), rows]
        if kind != "linear":
            parts.append(rows[:, : self.numbers] ** 2)
        if kind in ("sparse", "full"):
            parts.append(rows[:, self.pairs[0]] * rows[:, self.pairs[1]])
        return np.concatenate(parts, axis=1)
