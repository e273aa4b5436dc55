"""Spaces with every kind of variable, and points of them."""

from __future__ import annotations

import numpy as np

from mixcma import Bool, Categorical, Discrete, Float, Int, Space
from mixcma.core.coordinates import cell_centre
from mixcma.core.model.features import Features
from mixcma.latent.encoding import Encoding

SPACES = {
    "float": Space({"x": Float(-5, 5)}),
    "floats": Space({"x": Float(-5, 5), "y": Float(mean=0, std=2), "z": Float(1e-3, 1e3, log=True)}),
    "integers": Space({"n": Int(0, 6), "m": Int(-3, 3)}),
    "categories": Space({"on": Bool(), "kind": Categorical(["a", "b", "c", "d"])}),
    "numbers": Space({"x": Float(-5, 5), "n": Int(0, 6), "wire": Discrete([0.1, 0.5, 0.2, 3.0])}),
    "mixed": Space(
        {
            "x": Float(-5, 5),
            "kind": Categorical(["a", "b", "c"]),
            "n": Int(0, 6),
            "on": Bool(),
            "y": Float(-1, 4),
            "two": Int(0, 1),
        }
    ),
}


def features_of(name):
    return Features(Encoding(SPACES[name], True).coordinates)


def points_of(features, rng, count):
    """Latent points (count, N): floats drawn around 0, integers at the centres of cells, choices as their places."""
    coordinates = features.coordinates
    cells = np.floor(rng.random((count, len(coordinates.last))) * (np.asarray(coordinates.last) + 1))
    return np.where(coordinates.discrete, cell_centre(coordinates, cells), rng.normal(size=cells.shape))
