"""States of runs, compared: every array of them, those of their parts too, and the count of generations."""

from __future__ import annotations

import numpy as np

from mixcma.run.snapshot import arrays_of


def arrays(state):
    """The arrays of a state, or of a start, by name."""
    return arrays_of(state) | {"generation": getattr(state, "generation", 0)}


def same_state(one, other):
    """Bit for bit; NaN nowhere."""
    return all(np.array_equal(a, b) for a, b in pairs(one, other).values())


def assert_close(one, other, rtol, said=""):
    """Up to `rtol` of the largest number of each array."""
    for name, (found, expected) in pairs(one, other).items():
        scale = np.abs(expected).max(initial=0.0)
        if np.shape(found) == np.shape(expected) and (np.abs(found - expected) <= rtol * scale).all():
            continue  # numpy.testing says what is wrong, but takes its time
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * scale, err_msg=f"{name} {said}")


def pairs(one, other):
    """The arrays of two states of the same kind, side by side."""
    left, right = arrays(one), arrays(other)
    assert left.keys() == right.keys()
    return {name: (left[name], right[name]) for name in left}
