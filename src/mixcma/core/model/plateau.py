"""Where another point says nothing new: neighbours had exactly the same value, or the last of many brought nothing
better (docs/model.md, "Plateaus")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mixcma.core.model.features import FloatArray

# So many known points are enough, if they are all nearer than one of these, in units of the box.
ENOUGH, NEAR = 3, (0.02, 0.005, 0.001)


# A place this small is exhausted after so many evaluations, if the last ones of them brought nothing better.
SMALL, MANY, LAST = 0.001, 6, 3


def on_plateau(rows: FloatArray, known: FloatArray, outcomes: FloatArray) -> NDArray[np.bool_]:
    """Which of the rows (m, p) have enough known ones (n, p) near them, all with the same outcomes (n, outputs)."""
    found: NDArray[np.bool_] = np.zeros(len(rows), dtype=bool)
    if len(known) >= ENOUGH:
        distances = cdist(rows, known, "chebyshev")
        for near in NEAR:
            for i in np.flatnonzero(~found & ((distances < near).sum(axis=1) >= ENOUGH)):
                own = outcomes[distances[i] < near]
                found[i] = (own == own[0]).all()
    return found


def exhausted(rows: FloatArray, known: FloatArray, cost: FloatArray) -> NDArray[np.bool_]:
    """Which of the rows (m, p) lie where many of the known ones (n, p) do, in the order of time, without progress."""
    found: NDArray[np.bool_] = np.zeros(len(rows), dtype=bool)
    if len(known) >= MANY:
        near = cdist(rows, known, "chebyshev") < SMALL
        for i in np.flatnonzero(near.sum(axis=1) >= MANY):
            own = cost[near[i]]
            found[i] = own[-LAST:].min() >= own[:-LAST].min()
    return found
