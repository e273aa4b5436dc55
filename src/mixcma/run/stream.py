"""Stream: candidates drawn, evaluated and told one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from mixcma.core.method import State
from mixcma.core.model.features import Kind
from mixcma.core.sampling import Sample
from mixcma.run.guide import CONSTRAINED, FLOATS, PROCESS
from mixcma.run.outcome import Outcome, read_outcomes
from mixcma.space import Params

if TYPE_CHECKING:
    from mixcma.run.optimizer import Optimizer

# A result enters an update if its candidate was drawn from the present state or from one this much older.
OLDEST_RESULT = 1
# Points of the model's own have slots from here on: so many for each kind of model.
EXPLORED = 2**40
PROPOSERS = (PROCESS, CONSTRAINED, *get_args(Kind), FLOATS)


class Drawn(NamedTuple):
    """One candidate: what to evaluate, the latent points (P, N) behind it, and the state that drew it."""

    params: Params
    latents: NDArray[np.float64]  # what the method keeps of a candidate; the first one was decoded
    run: int
    generation: int
    slot: int  # the number of the draw in its run; higher for points of the model's own
    foreign: bool = False  # from elsewhere: no noise of this run is behind it

    @property
    def proposed(self) -> bool:
        """Whether it is a point of the model's own."""
        return self.slot >= EXPLORED


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

    def draw(self, number: int | None = None, waiting: Sequence[Drawn] = ()) -> Drawn:
        """A candidate from the newest state; its noise is that of its number, the next one unless given.

        The model may propose another point instead, knowing which are `waiting` for their evaluation.
        """
        if number is None:
            number = self._drawn
        self._drawn = number + 1
        optimizer = self.optimizer
        if optimizer.guide is not None:
            suggestion = optimizer.guide.suggest(number, [drawn.latents[0] for drawn in waiting])
            if suggestion is not None:
                point, kind = suggestion
                (params,) = optimizer.encoding.decode(point[None])
                slot = EXPLORED * (1 + PROPOSERS.index(kind)) + number
                return Drawn(params, point[None], optimizer.run, optimizer.generation, slot, foreign=True)
        sample = self._sample(number)
        (params,) = optimizer.encoding.decode(sample.v, sample.cells)
        latents = optimizer.method.latents(optimizer.state, sample)[0]
        return Drawn(params, latents, optimizer.run, optimizer.generation, number)

    def take(self, drawn: Drawn, outcome: Outcome) -> bool:
        """Use a result, if it is young enough; whether it closed a generation."""
        optimizer = self.optimizer
        if drawn.run != optimizer.run:
            return False
        guide, number = optimizer.guide, drawn.slot % EXPLORED
        if guide is not None:
            point = optimizer.encoding.encode_checked(drawn.params)  # as whoever reads the run file will have it
            kind = PROPOSERS[drawn.slot // EXPLORED - 1] if drawn.proposed else None
            if guide.take(point, number, kind, outcome):
                if not guide.explorer.over:
                    return False
                self._results = []
                optimizer.end_exploring()
                return True
        if optimizer.generation - drawn.generation > OLDEST_RESULT:
            return False
        self._results.append((drawn, outcome))
        if len(self._results) < optimizer.popsize:
            return False
        results, self._results = self._results, []
        rows = [self._as_sample(drawn) for drawn, _ in results]
        sample = Sample._make(np.concatenate(parts) for parts in zip(*rows))
        optimizer.advance(sample, read_outcomes([outcome for _, outcome in results]))
        return True

    def _as_sample(self, drawn: Drawn) -> Sample:
        """What the present state drew, as it was drawn; other candidates expressed in the present state."""
        optimizer, redrawn = self.optimizer, None
        method, setting, state = optimizer.method, optimizer.setting, optimizer.state
        if not drawn.foreign:
            sample = self._sample(drawn.slot)
            if drawn.generation == optimizer.generation and np.array_equal(sample.v[0], drawn.latents[0]):
                return sample
            redrawn = sample.z
        older = not drawn.foreign and drawn.generation < optimizer.generation
        return method.express(setting, state, drawn.latents[None], redrawn)._replace(older=np.array([older]))

    def _sample(self, number: int) -> Sample:
        """The draw of that number from the present state: one row of each array."""
        optimizer, state = self.optimizer, self.optimizer.state
        block, row = divmod(number, optimizer.popsize)
        if self._block is None or self._block[0] is not state or self._block[1] != block:
            self._block = state, block, optimizer.method.sample(optimizer.setting, state, optimizer.noise(block))
        return Sample._make(part[row : row + 1] for part in self._block[2])
