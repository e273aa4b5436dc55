"""What the candidates that were not evaluated may be worth, as the model ranks them (docs/model.md, "Trust")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def guess_between(order: NDArray[np.int64], chosen: list[int], values: FloatArray, violations: FloatArray) -> None:
    """Fill in what was not evaluated, in place.

    A candidate that the model puts between the k-th and the next of the evaluated ones gets a value between the k-th
    and the next best that actually came; several share the gap evenly. One that it puts before all comes behind the
    best.
    """
    known = np.array(chosen)
    came = known[np.lexsort((values[known], violations[known]))]
    # behind a failure, or what is infinite, nothing can be ranked
    came = came[np.isfinite(values[came]) & np.isfinite(violations[came])]
    if not len(came):
        return
    behind: dict[int, list[int]] = {}
    passed, evaluated = 0, set(came.tolist())
    for candidate in order.tolist():
        if candidate in evaluated:
            passed += 1
        elif candidate not in chosen:
            behind.setdefault(max(passed, 1), []).append(candidate)
    for k, group in behind.items():
        share = np.arange(1, len(group) + 1) / (len(group) + 1)
        a, b = came[k - 1], came[min(k, len(came) - 1)]
        further = violations[b] > violations[a]
        with np.errstate(over="ignore"):  # what is infinite comes last
            gap = values[b] - values[a] if k < len(came) else _beyond(values[came])
            values[group] = values[a] + (0.0 if further else share * gap)
            violations[group] = violations[a] + share * (violations[b] - violations[a])


def _beyond(values: FloatArray) -> float:
    """How far behind the worst the guesses lie; only their order matters."""
    return float(np.ptp(values)) + max(1e-12 * float(np.abs(values).max()), 1e-300)
