"""How far the model is trusted, from what it predicted and what came (docs/model.md, "Trust")."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixcma.core.model.features import FloatArray
from mixcma.core.model.surrogate import agreement

# Trust is the agreement of predictions with what came, over so many generations; at first it is given.
REMEMBERED, FIRST_TRUST, LEAST_PAIRS = 8, 0.7, 4
# The share of a generation that is evaluated where trust is at least so much: the most promising candidates, and one
# that is taken at random.
EVALUATED = ((0.8, 0.0), (0.6, 0.25), (0.4, 0.5))
# The model's own points pause for 1, 2, 4, ... generations after each that was not the best so far; and for so many if
# there was nothing new to propose.
LONGEST_PAUSE, REST = 64, 4


class Trust:
    """What is remembered of the model's predictions and proposals."""

    def __init__(self) -> None:
        self._judged: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)  # agreement times pairs, pairs
        self._pauses: dict[str, list[int]] = {}  # for each kind of model: generations to wait, and the last pause

    @property
    def value(self) -> float:
        """-1 to 1: the share of pairs that were predicted in their order, less that of the others."""
        pairs = sum(count for _, count in self._judged)
        return sum(agreed for agreed, _ in self._judged) / pairs if pairs >= LEAST_PAIRS else FIRST_TRUST

    def wanted(self, popsize: int) -> int:
        """How many candidates of a generation to evaluate."""
        trust = self.value
        share = next((share for least, share in EVALUATED if trust >= least), 1.0)
        return min(popsize, 1 + max(1, int(share * popsize)))

    def judge(self, predicted: FloatArray, came: FloatArray) -> None:
        """Candidates of one generation were predicted in an order, and came in another."""
        pairs = len(came) * (len(came) - 1) // 2
        if pairs:
            self._judged.append((agreement(predicted, came) * pairs, pairs))

    def lose(self) -> None:
        """Trust the model no longer, until it has proved itself again."""
        self._judged.clear()
        self._judged.append((0.0, LEAST_PAIRS))

    def may_propose(self, kind: str) -> bool:
        """Whether a model of this kind may propose a point now."""
        return self._pauses.get(kind, [0, 1])[0] == 0

    def rest(self, kind: str) -> None:
        """A model of this kind had nothing new to propose."""
        _, length = self._pauses.get(kind, [0, 1])
        self._pauses[kind] = [REST, length]

    def judge_proposal(self, kind: str, succeeded: bool | None) -> None:
        """A generation with a model of this kind is over: whether its point is the best so far, None without one."""
        waits, length = self._pauses.get(kind, [0, 1])
        if succeeded is None:
            self._pauses[kind] = [max(0, waits - 1), length]
        else:
            self._pauses[kind] = [0, 1] if succeeded else [length, min(2 * length, LONGEST_PAUSE)]

    def snapshot(self) -> dict[str, Any]:
        return {
            "judged": [list(each) for each in self._judged],
            "pauses": {kind: list(pause) for kind, pause in self._pauses.items()},
        }

    def restore(self, numbers: dict[str, Any]) -> None:
        self._judged.clear()
        self._judged.extend((float(agreed), int(pairs)) for agreed, pairs in numbers["judged"])
        self._pauses = {kind: list(pause) for kind, pause in numbers["pauses"].items()}


def places(order: NDArray[np.int64]) -> FloatArray:
    """The place of each candidate in an order of their indices: (L,)."""
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    return place
