"""Stream: candidates drawn, evaluated and told one at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixcma.core.namespace import Array
from mixcma.core.sampling import Sample
from mixcma.core.state import State
from mixcma.run.optimizer import Optimizer
from mixcma.run.outcome import Outcome, read_outcomes
from mixcma.space import Params

# A result enters an update if its candidate was drawn from the present state or from one this much older.
OLDEST_RESULT = 1


class Drawn(NamedTuple):
    """One candidate: what to evaluate, the latent points (N,) behind it, and the state that drew it."""

    params: Params
    latent: NDArray[np.float64]  # v, which was decoded
    unmutated: NDArray[np.float64]  # the same before integers were mutated, where the method does that
    run: int
    generation: int
    slot: int  # number of the draw in its run
    foreign: bool = False  # from elsewhere: no noise of this run is behind it


class Stream:
    """Candidates come from the newest state; a generation closes when lambda results are in.

    A result whose candidate was drawn one generation ago is expressed in the present state, older ones
    are not used. Points that are fast to evaluate come back sooner, so they take part in more updates:
    where time and value are related, the search leans toward the fast ones.
    """

    def __init__(self, optimizer: Optimizer, drawn: int = 0) -> None:
        self.optimizer = optimizer
        self._drawn = drawn
        self._results: list[tuple[Drawn, Outcome]] = []
        self._block: tuple[State, int, Sample] | None = None  # drawn last: from which state, which block

    def draw(self, number: int | None = None) -> Drawn:
        """A candidate from the newest state; its noise is that of its number, the next one unless given."""
        if number is None:
            number = self._drawn
        self._drawn = number + 1
        optimizer, state = self.optimizer, self.optimizer.state
        sample = self._sample(number)
        unmutated = state.m + state.sigma * sample.y if optimizer.method.mutates else sample.v
        params = optimizer.encoding.decode(sample.v[None])[0]
        return Drawn(params, sample.v, unmutated, optimizer.run, optimizer.generation, number)

    def take(self, drawn: Drawn, outcome: Outcome) -> bool:
        """Use a result, if it is young enough; whether it closed a generation."""
        optimizer = self.optimizer
        if drawn.run != optimizer.run or optimizer.generation - drawn.generation > OLDEST_RESULT:
            return False
        self._results.append((drawn, outcome))
        if len(self._results) < optimizer.popsize:
            return False
        results, self._results = self._results, []
        rows = [self._learnt_from(drawn) for drawn, _ in results]
        parts: dict[str, Array] = {name: np.stack([getattr(row, name) for row in rows]) for name in _parts(rows[0])}
        older = np.array([drawn.generation < optimizer.generation and not drawn.foreign for drawn, _ in results])
        sample = Sample(**parts, older=older if older.any() else None)
        optimizer.advance(sample, read_outcomes([outcome for _, outcome in results]))
        return True

    def _learnt_from(self, drawn: Drawn) -> Sample:
        """What the present state drew as it was drawn; older candidates expressed in the present state."""
        optimizer, redrawn = self.optimizer, None
        if not drawn.foreign:
            sample = self._sample(drawn.slot)
            if drawn.generation == optimizer.generation and np.array_equal(sample.v, drawn.latent):
                return sample
            redrawn = sample.z[None]
        v, unmutated = drawn.latent[None], drawn.unmutated[None]
        return _row(optimizer.method.express(optimizer.setting, optimizer.state, v, unmutated, redrawn), 0)

    def _sample(self, number: int) -> Sample:
        """The draw of that number from the present state: (N,) each."""
        optimizer, state = self.optimizer, self.optimizer.state
        block, row = divmod(number, optimizer.popsize)
        if self._block is None or self._block[0] is not state or self._block[1] != block:
            self._block = state, block, optimizer.method.sample(optimizer.setting, state, optimizer.noise(block))
        return _row(self._block[2], row)


def _row(sample: Sample, row: int) -> Sample:
    return Sample(**{name: getattr(sample, name)[row] for name in _parts(sample)})


def _parts(sample: Sample) -> tuple[str, ...]:
    """What each candidate has of its own; what follows from them all is found when they are told."""
    return ("y", "z", "step", "v") if sample.penalty is None else ("y", "z", "step", "v", "penalty")
