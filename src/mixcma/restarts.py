"""Restart schedules, as pure functions of (seed, number of the run)."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from mixcma.encoding import Encoding
from mixcma.noise import start_uniforms

# More doublings than this would spend any sensible budget on one run.
MOST_DOUBLINGS = 9


def allowed_restarts(restarts: object) -> float:
    """How many restarts True, False or a number allows."""
    if not isinstance(restarts, Integral) or restarts < 0:
        raise ValueError(f"restarts: expected True, False or a number of restarts, but got {restarts!r}; pass True")
    return math.inf if isinstance(restarts, bool) and restarts else int(restarts)


def ipop_popsize(first: int, run: int) -> int:
    """IPOP (Auger and Hansen, 2005): the population doubles with every restart."""
    return first << min(run, MOST_DOUBLINGS)


def start_mean(encoding: Encoding, seed: int, run: int) -> NDArray[np.float64]:
    """The latent mean of a run: the space's own for the first, then uniform over the bounds.

    Where a float has no bounds it is uniform within two standard deviations of the space's own mean.
    """
    if run == 0:
        return encoding.initial_mean
    low, high = encoding.start_box
    return low + (high - low) * start_uniforms(seed, run, encoding.dimension)
