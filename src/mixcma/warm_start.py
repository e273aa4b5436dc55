"""Points with values from earlier runs or other tools -> where a run starts, how wide, in which directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mixcma.core.state import State, initial_state, started_from
from mixcma.encoding import INITIAL_FRACTION, Encoding
from mixcma.outcome import Outcome, interpret
from mixcma.space import Params

History = Iterable[tuple[Mapping[str, Any], float | Outcome | None]]

# The part of the points that is taken as promising, and the width of each one's neighbourhood as a part of
# the range (Nomura et al., Warm Starting CMA-ES for Hyperparameter Optimization, AAAI 2021).
PROMISING = 0.1
NEIGHBOURHOOD = 0.1


def warm_start(encoding: Encoding, history: History) -> State:
    """The Gaussian closest to the promising points, each with a neighbourhood; without points, the space's own.

    m = mean of the promising points;  covariance = alpha^2 I + their covariance.
    """
    if not isinstance(history, Iterable):
        raise ValueError(
            f"history: expected pairs of parameters and value, but got {history!r:.80}; write [(params, value), ...]"
        )
    points = promising(encoding, history)
    if not points:
        return initial_state(encoding.initial_mean, encoding.coordinates.choices)
    u = np.array([encoding.encode(params) for params in points])
    alpha = NEIGHBOURHOOD / INITIAL_FRACTION  # a latent unit is that part of the range, where std is the default
    covariance = alpha**2 * np.eye(encoding.dimension) + np.cov(u, rowvar=False, bias=True)
    return started_from(u.mean(axis=0), covariance)


def promising(encoding: Encoding, history: History) -> list[Params]:
    """The best tenth of the points, at least one; failed ones left out."""
    checked = [_checked(encoding, number, entry) for number, entry in enumerate(history)]
    succeeded = [(params, outcome) for params, outcome in checked if not outcome.failed]
    succeeded.sort(key=lambda entry: entry[1].order)
    count = max(1, round(PROMISING * len(succeeded)))
    return [params for params, _ in succeeded[:count]]


def _checked(encoding: Encoding, number: int, entry: object) -> tuple[Params, Outcome]:
    if not isinstance(entry, tuple | list) or len(entry) != 2:
        raise ValueError(
            f"history: expected pairs of parameters and value, but entry {number} is {entry!r:.80}; "
            "write [(params, value), ...]"
        )
    try:
        return encoding.space.check_params(entry[0]), interpret(entry[1])
    except ValueError as error:
        raise ValueError(f"history, entry {number}: {error}") from error
