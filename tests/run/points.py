"""Points of a space as the numbers that the core computes with."""

from __future__ import annotations

import math

from mixcma import Categorical


def numbers_of(encoding, params):
    """What `values_at` gives for a point: numbers are themselves, choices count from 0. In the order of the latents.

    What does not exist is nan.
    """
    return [_number(encoding.space[name], params[name]) if name in params else math.nan for name in encoding.names]


def _number(variable, value):
    return float(variable.listed.index(value) if isinstance(variable, Categorical) else value)
