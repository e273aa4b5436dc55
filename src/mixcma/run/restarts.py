"""Restart schedules, as pure functions of (seed, number of the run)."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from mixcma.latent.encoding import Encoding
from mixcma.run.noise import start_uniforms


def allowed_restarts(restarts: object) -> float:
    """How many restarts True, False or a number allows."""
    if not isinstance(restarts, Integral) or restarts < 0:
        raise ValueError(f"restarts: expected True, False or a number of restarts, but got {restarts!r}; pass True")
    return math.inf if isinstance(restarts, bool) and restarts else int(restarts)


def restart_popsize(first: int, run: int) -> int:
    """The population of a run: 1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8, ... times that of the first.

    That is the sequence of Luby, Sinclair and Zuckerman (1993): as much is spent on runs of each size, and no other
    schedule is better by more than a logarithm where it is not known which size the problem needs.
    """
    place = run + 1
    while place & (place + 1):  # not 2^k - 1, the end of a round
        place -= (1 << (place.bit_length() - 1)) - 1
    return first * (place + 1) // 2


def start_mean(encoding: Encoding, seed: int, run: int) -> NDArray[np.float64]:
    """The latent mean of a run: the space's own for the first, then random.

    Every second restart begins within two standard deviations of the space's own mean, the others anywhere within the
    bounds. These differ only where a user gave a mean or a standard deviation: they say where the optimum is expected,
    but they may be wrong. A float without bounds always begins near its mean.
    """
    if run == 0:
        return encoding.initial_mean
    low, high = encoding.near_box if run % 2 else encoding.start_box
    return low + (high - low) * start_uniforms(seed, run, encoding.dimension)
