"""Points with values from earlier runs or other tools -> where a run starts, how wide, in which directions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixcma.core.gaussian import Start, start_at
from mixcma.latent.axis import INITIAL_FRACTION
from mixcma.latent.encoding import Encoding
from mixcma.run.explorer import is_data
from mixcma.run.outcome import Outcome, interpret
from mixcma.space import Params

History = Iterable[tuple[Mapping[str, Any], float | Outcome | None]]

# The part of the points that is taken as promising, and the width of each one's neighbourhood as a part of
# the range (Nomura et al., Warm Starting CMA-ES for Hyperparameter Optimization, AAAI 2021).
PROMISING = 0.1
NEIGHBOURHOOD = 0.1
# So many points of a history are told to the model.
MOST_TOLD = 100
# Both values of a variable that has two begin with at least this probability, whatever its mean.
SMALLEST_START = 0.1


def warm_start(encoding: Encoding, history: History) -> Start:
    """The Gaussian closest to the promising points, each with a neighbourhood; without points, the space's own.

    m = mean of the promising points;  covariance = alpha^2 I + their covariance.
    """
    points = promising(encoding, history)
    choices = encoding.coordinates.choices
    if not points:
        return started_at(encoding, encoding.initial_mean)
    u = np.array([encoding.encode(params) for params in points])
    exists = np.array([[name in params for name in encoding.names] for params in points])
    n, known = encoding.dimension - len(choices), exists.sum(axis=0) > 0
    m = np.where(known, (u * exists).sum(axis=0) / np.maximum(exists.sum(axis=0), 1), encoding.initial_mean)[:n]
    alpha = NEIGHBOURHOOD / INITIAL_FRACTION  # a latent unit is that part of the range, where std is the default
    covariance = np.eye(encoding.dimension)
    off = np.where(exists[:, :n], u[:, :n] - m, 0.0)
    covariance[:n, :n] = np.diag(np.where(known[:n], alpha**2, 1.0)) + off.T @ off / len(u)
    places = np.arange(choices.max(initial=1))
    seen = (u[:, n:, None] == places).sum(axis=0) / np.maximum(exists[:, n:].sum(axis=0), 1)[:, None]  # (N_cat, K)
    even = start_at(np.concatenate([m, seen.argmax(axis=-1)]), choices)
    return even._replace(covariance=covariance, theta=np.where(known[n:, None], (even.theta + seen) / 2, even.theta))


def started_at(encoding: Encoding, mean: NDArray[np.float64]) -> Start:
    """The start of runs at latent means (..., N); for a category with two choices, that is the second's probability."""
    choices = encoding.coordinates.choices
    n = encoding.dimension - len(choices)
    start = start_at(np.concatenate([mean[..., :n], np.round(mean[..., n:])], axis=-1), choices)
    second = np.clip(mean[..., n:], SMALLEST_START, 1 - SMALLEST_START)[..., None]
    of_two = np.concatenate([1 - second, second, np.zeros(start.theta.shape)], axis=-1)
    pairs = (choices == 2)[:, None]
    return start._replace(theta=np.where(pairs, of_two[..., : start.theta.shape[-1]], start.theta))


def started_from(encoding: Encoding, point: NDArray[np.float64]) -> Start:
    """The start of a run at a known point (N,): half of the first choices of each category are its own."""
    n = encoding.dimension - len(encoding.coordinates.choices)
    even = start_at(np.concatenate([point[:n], np.maximum(point[n:], 0.0)]), encoding.coordinates.choices)
    chosen = point[n:, None] == np.arange(even.theta.shape[-1])
    exists = point[n:, None] >= 0.0
    return even._replace(theta=np.where(exists, (even.theta + chosen) / 2, even.theta))


def promising(encoding: Encoding, history: History) -> list[Params]:
    """The best tenth of the points, at least one; failed ones left out."""
    succeeded = _ranked(checked_history(encoding, history))
    return [params for params, _ in succeeded[: max(1, round(PROMISING * len(succeeded)))]]


def telling(encoding: Encoding, history: History) -> list[tuple[Params, Outcome]]:
    """What a model is told of a history, the most telling first: in turn the best points, and
    some spread over all ranks."""
    ranked = [entry for entry in _ranked(checked_history(encoding, history)) if is_data(entry[1])]
    spread = np.linspace(len(ranked) - 1, 0, MOST_TOLD // 2).round().astype(int)
    in_turn = itertools.chain.from_iterable(zip(range(len(ranked)), spread.tolist()))
    return [ranked[place] for place in list(dict.fromkeys([*in_turn, *range(len(ranked))]))[:MOST_TOLD]]


def _ranked(history: Sequence[tuple[Params, Outcome]]) -> list[tuple[Params, Outcome]]:
    succeeded = [(params, outcome) for params, outcome in history if not outcome.failed]
    return sorted(succeeded, key=lambda entry: entry[1].order)


def checked_history(encoding: Encoding, history: History) -> list[tuple[Params, Outcome]]:
    if history is None:
        return []
    if not isinstance(history, Iterable) or isinstance(history, str):
        raise ValueError(
            f"history: expected pairs of parameters and value, but got {history!r:.80}; write [(params, value), ...]"
        )
    return [_checked(encoding, number, entry) for number, entry in enumerate(history)]


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
