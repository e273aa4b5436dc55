"""Fold: the state of a search as a function of the trials of a study.

Each trial carries the latent point it was decoded from and the generation that drew it, and some carry a record
that a generation was closed. The state is what comes out when the results of the closed generations are told one
after the other: every process gets there from the study alone, and keeps it in memory.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from mixcma.core.methods import Cma
from mixcma.core.strategy import strategy
from mixcma.integrations.optuna.chain import Chain, Record, Start, record_from_json
from mixcma.integrations.optuna.parameters import Parameters
from mixcma.optimizer import Optimizer, Snapshot
from mixcma.outcome import Outcome, failure
from mixcma.restarts import ipop_popsize, start_mean
from mixcma.space import Params
from mixcma.stream import OLDEST_RESULT, Drawn, Stream

# So many populations of earlier trials are a history to start from; fewer are used as results.
HISTORY_POPULATIONS = 3
# States kept to go back to, where another chain of records turns out to be the longest.
STATES_KEPT = 8


class Point(NamedTuple):
    """What a trial was drawn from, and by which generation."""

    run: int
    generation: int
    latent: NDArray[np.float64]
    unmutated: NDArray[np.float64]  # before integers were mutated, where the method does that

    def to_json(self) -> dict[str, Any]:
        about: dict[str, Any] = {"run": self.run, "generation": self.generation, "latent": self.latent.tolist()}
        if self.unmutated is not self.latent:
            about["unmutated"] = self.unmutated.tolist()
        return about


def point_from_json(about: Mapping[str, Any]) -> Point:
    latent = np.array(about["latent"])
    return Point(
        about["run"], about["generation"], latent, np.array(about["unmutated"]) if "unmutated" in about else latent
    )


class Position(NamedTuple):
    """Where a chain of records leads to."""

    record: Record  # the last one
    start: Record  # the one that began this run
    closings: tuple[Record, ...]  # the last ones of this run
    snapshot: Snapshot


class Suggestion(NamedTuple):
    """What a trial is to evaluate, and what it has to carry."""

    params: dict[str, Any]
    attribute: dict[str, Any]
    run: int


class Fold:
    """The search that the trials of a study add up to; `key` names its attribute in them."""

    def __init__(self, parameters: Parameters, method: Cma, popsize: int | None, key: str, maximize: bool) -> None:
        self.parameters = parameters
        self.key = key
        self._method = method
        self._popsize = strategy(parameters.encoding.dimension, popsize).popsize  # of the first run
        self._sign = -1.0 if maximize else 1.0
        self._trials: dict[int, FrozenTrial] = {}
        self._points: dict[int, Point] = {}  # of the trials that this search drew
        self._finished: set[int] = set()
        self._waiting: set[int] = set()  # finished ones that may yet be used
        self._chain = Chain()
        self._at: Position | None = None
        self._positions: OrderedDict[int, Position] = OrderedDict()  # the last ones, by carrier
        self._optimizer: Optimizer
        self._stream: Stream

    def suggest(self, number: int, trials: Sequence[FrozenTrial], seed: int, mean: list[float] | None) -> Suggestion:
        """A candidate for the trial `number`, drawn from all that the trials know.

        `seed` and `mean` are for a search that begins here. The noise is that of the trial's number: no two have
        the same, and nobody has to agree on it.
        """
        self._read(trials)
        self._follow(self._chain.longest())
        record = self._advance(number, seed, mean)
        drawn = self._stream.draw(number)
        attribute = Point(drawn.run, drawn.generation, drawn.latent, drawn.unmutated).to_json()
        if record is not None:
            attribute["record"] = record.to_json()
        return Suggestion(self.parameters.suggested(drawn.params), attribute, drawn.run)

    # What is in the study

    def _read(self, trials: Sequence[FrozenTrial]) -> None:
        for trial in trials:
            number = trial.number
            if number in self._finished:
                continue
            self._trials[number] = trial
            if number not in self._points and self.key in trial.system_attrs:
                self._read_attribute(number, trial.system_attrs[self.key])
            if trial.state.is_finished():
                self._finished.add(number)
                self._waiting.add(number)

    def _read_attribute(self, number: int, about: Mapping[str, Any]) -> None:
        self._points[number] = point_from_json(about)
        if "record" in about:
            self._chain.add(record_from_json(number, about["record"]))

    def _follow(self, chain: list[Record]) -> None:
        """Apply the records that were not applied yet, after the last one whose position is known."""
        new: list[Record] = []
        while chain and chain[-1].carrier not in self._positions:
            new.append(chain.pop())
        position = self._positions[chain[-1].carrier] if chain else None
        if position is not self._at:
            self._go_back(position)
        for record in reversed(new):
            self._apply(record)

    # What is added to it

    def _advance(self, number: int, seed: int, mean: list[float] | None) -> Record | None:
        """Close the generation if its results are in; begin a run if it is time to. The record of that, to be kept."""
        if self._at is None:
            first = Record(number, None, 0, [], Start(0, seed, mean, self._history_but(number)))
            self._apply(first)
            return first
        results, before = self._results(), self._at.record
        enough = len(results) >= self._optimizer.popsize
        record = Record(number, before.carrier, before.depth + 1, results[: self._optimizer.popsize * enough], None)
        if enough:
            self._apply(record)
        if self._optimizer.stop is None:
            return record if enough else None
        run, first_start = self._optimizer.run + 1, self._at.start.start
        assert first_start is not None
        record = record._replace(start=Start(run, first_start.seed, None, None))
        self._begin(record)
        return record

    def _results(self) -> list[int]:
        """The results that may enter the next update, the oldest first; those that never will are forgotten."""
        self._waiting = {number for number in self._waiting if self._usable(number)}
        return sorted(self._waiting)

    def _usable(self, number: int) -> bool:
        assert self._at is not None
        if any(number in closing.took for closing in self._at.closings):
            return False
        point, run = self._points.get(number), self._optimizer
        if point is not None:
            young = point.run == run.run and run.generation - point.generation <= OLDEST_RESULT
        else:
            young = self._is_young_stranger(number)
        return young and self._latent(number) is not None

    def _is_young_stranger(self, number: int) -> bool:
        """Whether a trial of somebody else was created at most a generation ago."""
        assert self._at is not None
        if self._optimizer.generation > OLDEST_RESULT:
            return number > self._at.closings[-1 - OLDEST_RESULT].carrier
        start = self._at.start.start
        assert start is not None
        if start.run == 0 and start.unfinished is None:
            return True
        return number > self._at.start.carrier or number in (start.unfinished or ())

    # The state

    def _apply(self, record: Record) -> None:
        if record.took:
            self._close(record)
        if record.start is not None:
            self._begin(record)

    def _close(self, record: Record) -> None:
        assert self._at is not None
        for number in record.took:
            self._stream.take(self._drawn(number), self.outcome(self._trials[number]))
        closings = (*self._at.closings, record)[-1 - OLDEST_RESULT :]
        self._keep(Position(record, self._at.start, closings, self._optimizer.snapshot()))

    def _begin(self, record: Record) -> None:
        self._set_out(record)
        self._keep(Position(record, record, (), self._optimizer.snapshot()))

    def _keep(self, position: Position) -> None:
        self._at = self._positions[position.record.carrier] = position
        while len(self._positions) > STATES_KEPT:
            self._positions.popitem(last=False)

    def _go_back(self, position: Position | None) -> None:
        """To a position that was kept, or to the beginning."""
        self._at = position
        self._waiting = set(self._finished)
        if position is not None:
            self._set_out(position.start)
            self._optimizer.restore(position.snapshot)

    def _set_out(self, record: Record) -> None:
        """The optimizer of the run that a record begins."""
        start, encoding = record.start, self.parameters.encoding
        assert start is not None
        mean = None if start.mean is None else np.array(start.mean)
        if start.run > 0:
            mean = start_mean(encoding, start.seed, start.run)
        self._optimizer = Optimizer(
            encoding.space,
            method=self._method,
            seed=start.seed,
            popsize=ipop_popsize(self._popsize, start.run),
            mean=mean,
            history=[] if start.unfinished is None else self._history(record.carrier, start.unfinished),
            run=start.run,
        )
        self._stream = Stream(self._optimizer)

    # Trials as results

    def _drawn(self, number: int) -> Drawn:
        """A trial as something that was drawn: by the present generation, or by an earlier one or somebody else."""
        now, point = self._optimizer.generation, self._points.get(number)
        generation = now if point is not None and point.generation == now else now - OLDEST_RESULT
        latents = self._latent(number)
        assert latents is not None
        return Drawn({}, *latents, self._optimizer.run, generation, number)

    def _latent(self, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The latent points of what was really evaluated, mutated and not; None if it tells nothing of this space."""
        trial, point, encoding = self._trials[number], self._points.get(number), self.parameters.encoding
        known = self.parameters.known(trial.params)
        if known is None:
            return None
        if point is None:
            if trial.state != TrialState.COMPLETE or len(known) < len(encoding.space):
                return None
            latent = encoding.encode(known)
            return latent, latent
        decoded = encoding.decode(point.latent[None])[0]
        edited = np.array([name in known and known[name] != decoded[name] for name in encoding.names])
        if not edited.any():
            return point.latent, point.unmutated
        evaluated = encoding.encode({**decoded, **known})
        return np.where(edited, evaluated, point.latent), np.where(edited, evaluated, point.unmutated)

    def outcome(self, trial: FrozenTrial) -> Outcome:
        """Failed and pruned trials, and those without a finite bound to their value, are failures."""
        if trial.state != TrialState.COMPLETE or trial.value is None:
            return failure(f"the trial is {trial.state.name}")
        value = self._sign * trial.value
        if value == -math.inf:
            return failure("its value is infinitely good")
        return Outcome(value, tuple(trial.constraints.values()))

    def _history_but(self, number: int) -> list[int] | None:
        """The numbers before this one that are not finished; None if too few others are to start from."""
        unfinished = sorted(set(range(number)) - self._finished)
        enough = len(self._history(number, unfinished)) >= HISTORY_POPULATIONS * self._popsize
        return unfinished if enough else None

    def _history(self, carrier: int, unfinished: Sequence[int]) -> list[tuple[Params, Outcome]]:
        """All trials before `carrier` but the unfinished ones, with what came out."""
        history = []
        for number in sorted(self._finished.difference(unfinished)):
            trial = self._trials[number]
            known = self.parameters.known(trial.params)
            if number < carrier and known is not None and len(known) == len(self.parameters.distributions):
                history.append((known, self.outcome(trial)))
        return history
