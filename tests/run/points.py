"""Points of a space as the numbers that the core computes with."""

from __future__ import annotations

from mixcma import Categorical
from mixcma.latent.decoder import values_of


def numbers_of(encoding, params):
    """What `values_at` gives for a point: numbers are themselves, choices count from 0. In the order of the latents."""
    variables = {name: encoding.space[name] for name in encoding.names}
    return [
        float(values_of(variable).index(params[name]) if isinstance(variable, Categorical) else params[name])
        for name, variable in variables.items()
    ]
