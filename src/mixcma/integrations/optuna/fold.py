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
from mixcma.integrations.optuna.parameters import Parameters, Unfinished
from mixcma.run.optimizer import Optimizer, Snapshot
from mixcma.run.outcome import Outcome, failure
from mixcma.run.restarts import restart_popsize, start_mean
from mixcma.run.stream import OLDEST_RESULT, Drawn, Stream
from mixcma.space import Params

# So many populations of earlier trials are a history to start from; fewer are used as results.
HISTORY_POPULATIONS = 5
# Where the noise of trials begins that are older than the run they are drawn in.
LATE_SLOTS = 2**40
# States kept to go back to, where another chain of records turns out to be the longest.
STATES_KEPT = 8


class Point(NamedTuple):
    """What a trial was drawn from, by which generation, and with which noise."""

    trial: int  # the trial's own number: what is copied from another does not count
    run: int
    generation: int
    slot: int  # number of its noise in the run
    latent: NDArray[np.float64]
    unmutated: NDArray[np.float64]  # before integers were mutated, where the method does that

    def to_json(self) -> dict[str, Any]:
        about = self._asdict() | {"latent": self.latent.tolist(), "unmutated": self.unmutated.tolist()}
        if self.unmutated is self.latent:
            del about["unmutated"]
        return about


def point_from_json(about: Mapping[str, Any]) -> Point:
    latent = np.array(about["latent"])
    unmutated = np.array(about["unmutated"]) if "unmutated" in about else latent
    return Point(about["trial"], about["run"], about["generation"], about["slot"], latent, unmutated)


class Position(NamedTuple):
    """Where a chain of records leads to."""

    record: Record  # the last one
    start: Record  # the one that began this run
    closings: tuple[Record, ...]  # the last ones of this run
    newest: tuple[int, ...]  # the highest number of a trial when it began, and at these closings
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
        self._unfinished = Unfinished()
        self._points: dict[int, Point] = {}  # of the trials that this search drew
        self._finished: set[int] = set()
        self._waiting: set[int] = set()  # finished ones that may yet be used
        self._incomplete: dict[int, Record] = {}  # records of trials that cannot be seen as finished yet, by carrier
        self._chain = Chain()
        self._at: Position | None = None
        self._positions: OrderedDict[int, Position] = OrderedDict()  # the last ones, by carrier
        self._optimizer: Optimizer
        self._stream: Stream

    def suggest(self, number: int, trials: Sequence[FrozenTrial], seed: int, mean: list[float] | None) -> Suggestion:
        """A candidate for the trial `number`, drawn from all that the trials know.

        `seed` and `mean` are for a search that begins here.
        """
        self._read(trials)
        self._follow()
        record = self._advance(number, seed, mean)
        drawn = self._stream.draw(self._slot(number))
        place = drawn.run, drawn.generation, drawn.slot
        attribute = Point(number, *place, drawn.latent, drawn.unmutated).to_json()
        if record is not None:
            attribute["record"] = record.to_json()
        return Suggestion(self.parameters.suggested(drawn.params), attribute, drawn.run)

    def _slot(self, number: int) -> int:
        """The number of a trial's noise, counted from the one that began the run: no two trials have the same.

        So one worker alone draws what `Optimizer` does. Trials that are older than the run come after all others.
        """
        assert self._at is not None
        first = self._at.start.carrier
        return number - first if number >= first else LATE_SLOTS + number

    # What is in the study

    def _read(self, trials: Sequence[FrozenTrial]) -> None:
        for trial in self._unfinished(trials):
            number = trial.number
            self._trials[number] = trial
            about = trial.system_attrs.get(self.key)
            # a trial that was added or tried again may carry what was copied from another
            if number not in self._points and about is not None and about.get("trial") == number:
                self._points[number] = point_from_json(about)
                if "record" in about:
                    self._incomplete[number] = record_from_json(number, about["record"])
            if trial.state.is_finished():
                self._finished.add(number)
                self._waiting.add(number)

    def _follow(self) -> None:
        """Go along the longest chain of records, from the last one whose position is known.

        What was read need not be of one moment: a record may be seen before the results that it is about.
        """
        complete = [record for record in self._incomplete.values() if self._is_complete(record)]
        for record in complete:
            del self._incomplete[record.carrier]
        self._chain.add(*complete)
        new: list[Record] = []
        position = None
        for record in self._chain.backwards():
            position = self._positions.get(record.carrier)
            if position is not None:
                break
            new.append(record)
        if position is not self._at:
            self._go_back(position)
        for record in reversed(new):
            self._apply(record)

    def _is_complete(self, record: Record) -> bool:
        """Whether all results that a record refers to can be seen."""
        known = self._finished.issuperset(record.took)
        if record.start is not None:
            known = known and self._finished.union(record.start.unfinished).issuperset(range(record.start.history))
        return known

    # What is added to it

    def _advance(self, number: int, seed: int, mean: list[float] | None) -> Record | None:
        """Close the generation if its results are in; begin a run if it is time to. The record of that, to be kept."""
        if self._at is None:
            first = Record(number, None, 0, [], Start(0, seed, mean, *self._history_to_start_from()))
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
        record = record._replace(start=Start(run, first_start.seed, None, 0, []))
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
        assert self._at.start.start is not None
        if self._optimizer.generation <= OLDEST_RESULT and self._optimizer.run == 0:
            start = self._at.start.start
            return number >= start.history or number in start.unfinished
        return number > self._at.newest[0 if self._optimizer.generation <= OLDEST_RESULT else -1 - OLDEST_RESULT]

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
        newest = max(self._at.newest[-1], record.carrier, *record.took)
        self._keep(
            Position(
                record=record,
                start=self._at.start,
                closings=(*self._at.closings, record)[-1 - OLDEST_RESULT :],
                newest=(*self._at.newest, newest)[-2 - OLDEST_RESULT :],
                snapshot=self._optimizer.snapshot(),
            )
        )

    def _begin(self, record: Record) -> None:
        earlier = None if self._at is None else self._optimizer
        self._set_out(record)
        if earlier is not None:
            self._optimizer.follow(earlier)
        newest = record.carrier if self._at is None else max(record.carrier, self._at.newest[-1])
        self._keep(Position(record, record, (), (newest,), self._optimizer.snapshot()))

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
            popsize=restart_popsize(self._popsize, start.run),
            mean=mean,
            history=self._history(start.history, start.unfinished),
            target=0.0,  # a run is given up as flat like any other, but not on its way to zero
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
        slot = 0 if point is None else point.slot
        return Drawn({}, *latents, self._optimizer.run, generation, slot, foreign=point is None)

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

    def _history_to_start_from(self) -> tuple[int, list[int]]:
        """The number below which trials are a history, and those that are not finished; 0 if there are too few."""
        before = max(self._finished, default=-1) + 1
        unfinished = sorted(set(range(before)) - self._finished)
        if len(self._history(before, unfinished)) < HISTORY_POPULATIONS * self._popsize:
            return 0, []
        return before, unfinished

    def _history(self, before: int, unfinished: Sequence[int]) -> list[tuple[Params, Outcome]]:
        """The results of the trials with a number below `before`, but the unfinished ones."""
        history = []
        for number in sorted(set(range(before)).difference(unfinished)):
            params, outcome = self.parameters.known(self._trials[number].params), self.outcome(self._trials[number])
            if params is not None and len(params) == len(self.parameters.distributions) and not outcome.failed:
                history.append((params, outcome))
        return history
