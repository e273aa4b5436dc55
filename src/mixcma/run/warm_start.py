"""Points with values from earlier runs or other tools -> where a run starts, how wide, in which directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixcma.core.state import State, initial_state, started_from
from mixcma.latent.axis import INITIAL_FRACTION
from mixcma.latent.encoding import Encoding
from mixcma.run.outcome import Outcome, interpret
from mixcma.space import Params

History = Iterable[tuple[Mapping[str, Any], float | Outcome | None]]

# The part of the points that is taken as promising, and the width of each one's neighbourhood as a part of
# the range (Nomura et al., Warm Starting CMA-ES for Hyperparameter Optimization, AAAI 2021).
PROMISING = 0.1
NEIGHBOURHOOD = 0.1
# Both values of a boolean begin with at least this probability, whatever its mean.
SMALLEST_START = 0.1


def warm_start(encoding: Encoding, history: History) -> State:
    """The Gaussian closest to the promising points, each with a neighbourhood; without points, the space's own.

    m = mean of the promising points;  covariance = alpha^2 I + their covariance.
    """
    if not isinstance(history, Iterable):
        raise ValueError(
            f"history: expected pairs of parameters and value, but got {history!r:.80}; write [(params, value), ...]"
        )
    points = promising(encoding, history)
    choices = encoding.coordinates.choices
    if not points:
        return started_at(encoding, encoding.initial_mean)
    u = np.array([encoding.encode(params) for params in points])
    n = encoding.dimension - len(choices)
    alpha = NEIGHBOURHOOD / INITIAL_FRACTION  # a latent unit is that part of the range, where std is the default
    covariance = np.eye(encoding.dimension)
    covariance[:n, :n] = alpha**2 * np.eye(n) + np.cov(u[:, :n], rowvar=False, bias=True).reshape(n, n)
    places = np.arange(choices.max(initial=1))
    seen = np.mean(u[:, n:, None] == places, axis=0)  # (N_cat, K)
    state = started_from(np.concatenate([u[:, :n].mean(axis=0), seen.argmax(axis=-1)]), covariance, choices)
    return state._replace(theta=(state.theta + seen) / 2)


def started_at(encoding: Encoding, mean: NDArray[np.float64]) -> State:
    """The start of a run at a latent mean; of a category with two choices it is the probability of the second."""
    choices = encoding.coordinates.choices
    n = encoding.dimension - len(choices)
    state = initial_state(np.concatenate([mean[:n], np.round(mean[n:])]), choices)
    second = np.clip(mean[n:], SMALLEST_START, 1 - SMALLEST_START)[:, None]
    of_two = np.concatenate([1 - second, second, np.zeros((len(choices), state.theta.shape[-1]))], axis=-1)
    pairs = (choices == 2)[:, None]
    return state._replace(theta=np.where(pairs, of_two[:, : state.theta.shape[-1]], state.theta))


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
