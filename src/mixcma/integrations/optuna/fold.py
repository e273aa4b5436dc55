"""Fold: the state of a search as a function of the trials of a study.

Each trial carries the latent point that it was decoded from and the generation that it was drawn from, and some trials
carry a record that a generation was closed. Telling the results of the closed generations one after the other gives the
state: every process can compute it from the study alone, and keeps it in memory.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from mixcma.core.methods import Method
from mixcma.core.model.features import Features
from mixcma.core.strategy import strategy
from mixcma.integrations.optuna.chain import NONSENSE, Chain, Record, Start, finite, record_from_json, whole
from mixcma.integrations.optuna.parameters import Parameters, Unfinished
from mixcma.run.explorer import Explorer
from mixcma.run.optimizer import Optimizer
from mixcma.run.outcome import Outcome, failure
from mixcma.run.restarts import restart_popsize, start_mean
from mixcma.run.snapshot import Snapshot
from mixcma.run.stream import OLDEST_RESULT, Drawn, Stream
from mixcma.space import Params

logger = logging.getLogger("mixcma")

# With at least this many populations of earlier trials the search starts from them; fewer are used as results.
HISTORY_POPULATIONS = 5
# Trials that are older than the run in which they are drawn take their noise from this slot on.
LATE_SLOTS = 2**40
# The number of latent points that a method keeps of a candidate, at most: mutated and unmutated.
MOST_LATENTS = 2
# The number of states that are kept to return to if another chain of records turns out to be longer.
STATES_KEPT = 8


class Point(NamedTuple):
    """The latent point that a trial was drawn as, its generation, and the slot of its noise."""

    trial: int  # the number of the trial itself, which shows whether the attribute was copied from another trial
    run: int
    generation: int
    slot: int  # the number of its noise within the run
    latents: NDArray[np.float64]  # (P, N) what the method keeps of a candidate; the first one was evaluated

    def to_json(self) -> dict[str, Any]:
        return self._asdict() | {"latents": self.latents.tolist()}


def point_from_json(about: Any, dimension: int) -> Point:
    """The point that `to_json` described; raises an error of `NONSENSE` if it can have described none."""
    latents = np.array([[finite(number) for number in row] for row in about["latents"]])
    if latents.ndim != 2 or not 1 <= len(latents) <= MOST_LATENTS or latents.shape[1] != dimension:
        raise ValueError(f"its latents have the shape {latents.shape}")
    trial, run, generation, slot = (whole(about[name]) for name in ("trial", "run", "generation", "slot"))
    return Point(trial, run, generation, slot, latents)


class Position(NamedTuple):
    """The state that a chain of records leads to."""

    record: Record  # the last record
    start: Record  # the record that began this run
    closings: tuple[Record, ...]  # the last closings of this run
    newest: tuple[int, ...]  # the highest trial number when the run began, and at each of these closings
    snapshot: Snapshot


class Suggestion(NamedTuple):
    """The parameters that a trial is to evaluate, and the attribute that it has to carry."""

    params: dict[str, Any]
    attribute: dict[str, Any] | None  # None while the study explores
    run: int


class Fold:
    """The search that follows from the trials of a study; `key` is the name of its attribute in the trials."""

    def __init__(self, parameters: Parameters, method: Method, popsize: int | None, key: str, maximize: bool) -> None:
        self.parameters = parameters
        self.key = key
        self._explores = method.guided
        self._method = method.unguided
        self._explorer: tuple[Explorer, list[int]] | None = None  # and the trials that it knows, in their order
        self._popsize = strategy(parameters.encoding.dimension, popsize).popsize  # of the first run
        self._sign = -1.0 if maximize else 1.0
        self._trials: dict[int, FrozenTrial] = {}
        self._unfinished = Unfinished()
        self._points: dict[int, Point] = {}  # of the trials that this search has drawn
        self._finished: set[int] = set()
        self._waiting: set[int] = set()  # finished trials that may still be used
        self._incomplete: dict[int, Record] = {}  # by carrier; not all of their results are visible yet
        self._chain = Chain()
        self._current: Position | None = None
        self._positions: OrderedDict[int, Position] = OrderedDict()  # the last few, by carrier
        self._warned = False
        self._optimizer: Optimizer
        self._stream: Stream

    def suggest(self, number: int, trials: Sequence[FrozenTrial], seed: int, mean: list[float] | None) -> Suggestion:
        """Draw a candidate for the trial `number` from the state that follows from all trials.

        `seed` and `mean` are used only if the search begins with this trial.
        """
        self._read(trials)
        self._follow()
        if self._current is None and self._explores:
            params = self._explored(number, seed, mean)
            if params is not None:
                return Suggestion(params, None, 0)
        record = self._advance(number, seed, mean)
        drawn = self._stream.draw(self._slot(number))
        place = drawn.run, drawn.generation, drawn.slot
        attribute = Point(number, *place, drawn.latents).to_json()
        if record is not None:
            attribute["record"] = record.to_json()
        return Suggestion(self.parameters.suggested(drawn.params), attribute, drawn.run)

    def _slot(self, number: int) -> int:
        """The slot of a trial's noise, counted from the trial that began the run: no two trials share a slot.

        A single worker therefore draws the same points as `Optimizer`. Trials that are older than the run have slots
        beyond all others.
        """
        assert self._current is not None
        first = self._current.start.carrier
        return number - first if number >= first else LATE_SLOTS + number

    # Exploring: trials before the first record, which become the history from which the search starts

    def _explored(self, number: int, seed: int, mean: list[float] | None) -> dict[str, Any] | None:
        """What Gaussian processes propose for a trial; None once the study has been explored."""
        explorer, finished = self._explorer_of(seed), sorted(self._finished)
        if explorer.over:
            return None
        if len(finished) >= self._popsize:
            unfinished = set(self._trials) - self._finished - {number}
            latents = (self._latent_of(self._trials[other]) for other in sorted(unfinished))
            waiting = [latent for latent in latents if latent is not None]
            for point in explorer.propose(1, number, waiting):
                return self.parameters.suggested(self.parameters.encoding.decode(point[None])[0])
        start = Start(0, seed, mean, 0, [])
        return self.parameters.suggested(Stream(self._optimizer_of(start)).draw(number).params)

    def _explorer_of(self, seed: int) -> Explorer:
        """An explorer that knows all finished trials, in the order of their numbers."""
        finished = sorted(self._finished)
        if self._explorer is None or finished[: len(self._explorer[1])] != self._explorer[1]:
            features = Features(self.parameters.encoding.coordinates)
            self._explorer = Explorer(features, seed, 0), []
        explorer, known = self._explorer
        for number in finished[len(known) :]:
            latent = self._latent_of(self._trials[number])
            if latent is not None:
                explorer.add(latent, self.outcome(self._trials[number]))
            known.append(number)
        return explorer

    def _latent_of(self, trial: FrozenTrial) -> NDArray[np.float64] | None:
        """The latent point of a trial; None if it lacks a parameter."""
        params = self.parameters.complete(trial.params)
        return None if params is None else self.parameters.encoding.encode_checked(params)

    # Reading the study

    def _read(self, trials: Sequence[FrozenTrial]) -> None:
        for trial in self._unfinished(trials):
            number = trial.number
            self._trials[number] = trial
            if number not in self._points:
                self._read_attribute(trial)
            if trial.state.is_finished():
                self._finished.add(number)
                self._waiting.add(number)

    def _read_attribute(self, trial: FrozenTrial) -> None:
        """Read what this search wrote into a trial; anything else there is ignored, with one warning."""
        about, number = trial.system_attrs.get(self.key), trial.number
        if about is None:
            return
        try:
            point = point_from_json(about, self.parameters.encoding.dimension)
            record = record_from_json(number, about["record"]) if "record" in about else None
        except NONSENSE as error:
            if not self._warned:
                self._warned = True
                logger.warning(
                    "MixCmaSampler: the attribute %s of trial %d is not one that this sampler writes (%s: %s), and is "
                    "ignored; a result that the trial has is used like that of another sampler",
                    self.key, number, type(error).__name__, error,
                )  # fmt: skip
            return
        if point.trial != number:  # a trial that was added or retried may carry a copy of another's attribute
            return
        self._points[number] = point
        if record is not None:
            self._incomplete[number] = record

    def _follow(self) -> None:
        """Follow the longest chain of records, from the last record whose position is known.

        The trials were not all read at the same moment, so a record may be visible before the results it refers to.
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
        if position is not self._current:
            self._go_back(position)
        for record in reversed(new):
            self._apply(record)

    def _is_complete(self, record: Record) -> bool:
        """Whether all results that a record refers to are visible."""
        known = self._finished.issuperset(record.took)
        if record.start is not None:
            known = known and self._finished.union(record.start.unfinished).issuperset(range(record.start.history))
        return known

    # Extending the chain

    def _advance(self, number: int, seed: int, mean: list[float] | None) -> Record | None:
        """Close the generation if its results are in, and begin a run if one is due; return the record of this."""
        if self._current is None:
            first = Record(number, None, 0, [], Start(0, seed, mean, *self._history_to_start_from()))
            self._apply(first)
            return first
        results, before = self._results(), self._current.record
        enough = len(results) >= self._optimizer.popsize
        record = Record(number, before.carrier, before.depth + 1, results[: self._optimizer.popsize * enough], None)
        if enough:
            self._apply(record)
        if self._optimizer.stop is None:
            return record if enough else None
        run, first_start = self._optimizer.run + 1, self._current.start.start
        assert first_start is not None
        record = record._replace(start=Start(run, first_start.seed, None, 0, []))
        self._begin(record)
        return record

    def _results(self) -> list[int]:
        """The trials whose results may enter the next update, the oldest first; trials that are too old are dropped."""
        self._waiting = {number for number in self._waiting if self._usable(number)}
        return sorted(self._waiting)

    def _usable(self, number: int) -> bool:
        assert self._current is not None
        if any(number in closing.took for closing in self._current.closings):
            return False
        point, run = self._points.get(number), self._optimizer
        if point is not None:
            young = point.run == run.run and run.generation - point.generation <= OLDEST_RESULT
        else:
            young = self._is_recent_foreign_trial(number)
        return young and self._latent(number) is not None

    def _is_recent_foreign_trial(self, number: int) -> bool:
        """Whether a trial that this search did not draw was created at most one generation ago."""
        assert self._current is not None
        assert self._current.start.start is not None
        if self._optimizer.generation <= OLDEST_RESULT and self._optimizer.run == 0:
            start = self._current.start.start
            return number >= start.history or number in start.unfinished
        return number > self._current.newest[0 if self._optimizer.generation <= OLDEST_RESULT else -1 - OLDEST_RESULT]

    # Computing the state

    def _apply(self, record: Record) -> None:
        if record.took:
            self._close(record)
        if record.start is not None:
            self._begin(record)

    def _close(self, record: Record) -> None:
        assert self._current is not None
        for number in record.took:
            self._stream.take(self._drawn(number), self.outcome(self._trials[number]))
        newest = max(self._current.newest[-1], record.carrier, *record.took)
        self._keep(
            Position(
                record=record,
                start=self._current.start,
                closings=(*self._current.closings, record)[-1 - OLDEST_RESULT :],
                newest=(*self._current.newest, newest)[-2 - OLDEST_RESULT :],
                snapshot=self._optimizer.snapshot(),
            )
        )

    def _begin(self, record: Record) -> None:
        earlier = None if self._current is None else self._optimizer
        self._create_optimizer(record)
        if earlier is not None:
            self._optimizer.follow(earlier)
        newest = record.carrier if self._current is None else max(record.carrier, self._current.newest[-1])
        self._keep(Position(record, record, (), (newest,), self._optimizer.snapshot()))

    def _keep(self, position: Position) -> None:
        self._current = self._positions[position.record.carrier] = position
        while len(self._positions) > STATES_KEPT:
            self._positions.popitem(last=False)

    def _go_back(self, position: Position | None) -> None:
        """Return to a position that was kept, or to the beginning."""
        self._current = position
        self._waiting = set(self._finished)
        if position is not None:
            self._create_optimizer(position.start)
            self._optimizer.restore(position.snapshot)

    def _create_optimizer(self, record: Record) -> None:
        """Create the optimizer of the run that a record begins."""
        assert record.start is not None
        self._optimizer = self._optimizer_of(record.start)
        self._stream = Stream(self._optimizer)

    def _optimizer_of(self, start: Start) -> Optimizer:
        encoding = self.parameters.encoding
        mean = None if start.mean is None else np.array(start.mean)
        if start.run > 0:
            mean = start_mean(encoding, start.seed, start.run)
        return Optimizer(
            encoding.space,
            method=self._method,
            seed=start.seed,
            popsize=restart_popsize(self._popsize, start.run),
            mean=mean,
            history=self._history(start.history, start.unfinished),
            target=0.0,  # so that a run whose values are still approaching zero does not count as flat
            run=start.run,
        )

    # Trials as results

    def _drawn(self, number: int) -> Drawn:
        """A trial as a drawn candidate: of the present generation, of an earlier one, or from elsewhere."""
        now, point = self._optimizer.generation, self._points.get(number)
        generation = now if point is not None and point.generation == now else now - OLDEST_RESULT
        latents = self._latent(number)
        assert latents is not None
        slot = 0 if point is None else point.slot
        return Drawn({}, latents, self._optimizer.run, generation, slot, foreign=point is None)

    def _latent(self, number: int) -> NDArray[np.float64] | None:
        """The latent point that was really evaluated, mutated and unmutated; None if the trial cannot be used."""
        trial, point, encoding = self._trials[number], self._points.get(number), self.parameters.encoding
        known = self.parameters.known(trial.params)
        if known is None:
            return None
        if point is None:
            params = self.parameters.complete(trial.params)
            if trial.state != TrialState.COMPLETE or params is None:
                return None
            return encoding.encode_checked(params)[None]
        decoded = encoding.decode(point.latents[:1])[0]
        edited = np.array([name in known and known[name] != decoded.get(name) for name in encoding.names])
        if not edited.any():
            return point.latents
        params = self.parameters.complete({**self.parameters.suggested(decoded), **trial.params})
        return None if params is None else np.where(edited, encoding.encode_checked(params), point.latents)

    def outcome(self, trial: FrozenTrial) -> Outcome:
        """The outcome of a trial; failed and pruned trials, and a value of -inf, count as failures."""
        if trial.state != TrialState.COMPLETE or trial.value is None:
            return failure(f"the trial is {trial.state.name}")
        value = self._sign * trial.value
        if value == -math.inf:
            return failure("the value of the trial is infinitely good")
        return Outcome(value, tuple(trial.constraints.values()))

    def _history_to_start_from(self) -> tuple[int, list[int]]:
        """The number below which trials are the history, and the unfinished ones among them; 0 if there are too few."""
        before = max(self._finished, default=-1) + 1
        unfinished = sorted(set(range(before)) - self._finished)
        if len(self._history(before, unfinished)) < HISTORY_POPULATIONS * self._popsize:
            return 0, []
        return before, unfinished

    def _history(self, before: int, unfinished: Sequence[int]) -> list[tuple[Params, Outcome]]:
        """The results of the trials with a number below `before`, except the unfinished ones."""
        history = []
        for number in sorted(set(range(before)).difference(unfinished)):
            trial = self._trials[number]
            params, outcome = self.parameters.complete(trial.params), self.outcome(trial)
            if params is not None and not outcome.failed:
                history.append((params, outcome))
        return history
