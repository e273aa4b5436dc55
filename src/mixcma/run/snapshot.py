"""Snapshot: a run between two generations, as plain numbers and arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.core.method import State


class Snapshot(NamedTuple):
    """A run between two generations: plain numbers and texts, and the arrays of its state by name."""

    numbers: dict[str, Any]
    arrays: dict[str, NDArray[np.float64]]


def arrays_of(state: State, prefix: str = "") -> dict[str, NDArray[np.float64]]:
    """The arrays of a state; those of a part are named like ``"best.point"``."""
    arrays: dict[str, NDArray[np.float64]] = {}
    for name, part in zip(state._fields, state):
        if isinstance(part, tuple):
            arrays |= arrays_of(part, f"{prefix}{name}.")
        elif name != "generation":
            arrays[prefix + name] = np.asarray(part)
    return arrays


def state_from(like: State, snapshot: Snapshot) -> State:
    """The state of a snapshot; `like` is any state of the same run."""
    if set(arrays_of(like)) != set(snapshot.arrays):
        raise ValueError(
            "run_file: the search was begun by an earlier version of mixcma, whose method kept another state, so it "
            "cannot go on bit for bit; start a new one with history= set to this file, or install that version"
        )
    state = _filled(like, snapshot.arrays, "")
    return state._replace(generation=snapshot.numbers["generation"])


def _filled(like: State, arrays: dict[str, NDArray[np.float64]], prefix: str) -> State:
    parts = {}
    for name, part in zip(like._fields, like):
        if isinstance(part, tuple):
            parts[name] = _filled(part, arrays, f"{prefix}{name}.")
        elif name != "generation":
            parts[name] = arrays[prefix + name].reshape(np.shape(part))[()]  # a number of the run is a scalar again
    return like._replace(**parts)
