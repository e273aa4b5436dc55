"""Evaluators: points go in with a ticket, the number of the evaluation; results come out as they finish."""

from __future__ import annotations

import secrets
from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, Future
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

from mixcma.evaluation.calling import error_text
from mixcma.evaluation.command import SHARED_FILE, Command
from mixcma.evaluation.objective import (
    CallResult,
    ForeignAnswer,
    Objective,
    UnsendableObjective,
    evaluate,
    unloadable,
)
from mixcma.evaluation.workers import Engine, Workers
from mixcma.run.outcome import failure
from mixcma.space import Params

# A candidate whose worker died is sent again this many times before it counts as failed.
MOST_RETRIES = 2
# A signal interrupts after this many seconds at most.
LONGEST_WAIT = 0.2


class Finished(NamedTuple):
    """A ticket and what came of it."""

    ticket: int
    call: CallResult


class Evaluator(Protocol):
    """What the search needs from an evaluator."""

    capacity: int | None  # how many evaluations run at once, if known

    def submit(self, ticket: int, params: Params) -> None: ...

    def next(self) -> Finished:
        """Wait for the next evaluation to finish."""

    def close(self) -> None:
        """Abandon the evaluations that are under way."""


def open_evaluator(objective: Objective, workers: Workers, timeout: float | None) -> Evaluator:
    if isinstance(objective, Command) and objective.shared_file is not None and workers != 1:
        raise ValueError(f"objective: {SHARED_FILE.format(objective.shared_file)}")
    if workers == 1 and timeout is None:
        return InProcess(objective)
    return OnExecutor(Engine(workers, objective, timeout))


class InProcess:
    """Evaluates one point after the other, in the order of submission, when a result is asked for."""

    capacity: int | None = 1

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._waiting: deque[tuple[int, Params]] = deque()

    def submit(self, ticket: int, params: Params) -> None:
        self._waiting.append((ticket, params))

    def next(self) -> Finished:
        ticket, params = self._waiting.popleft()
        return Finished(ticket, evaluate(self._objective, params, ticket))

    def close(self) -> None:
        self._waiting.clear()


class OnExecutor:
    """Evaluates on an executor; evaluations whose worker died are sent again.

    Whatever the objective does wrong comes back as a result. So an exception of a future is the fault of the
    workers, and so is a result that does not repeat the name of its request. A broken pool does not say which
    evaluation broke it: all that were in it are suspects, and are sent to the new pool one at a time.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.capacity = engine.capacity
        self._waiting: deque[int] = deque()
        self._suspects: deque[int] = deque()
        self._flying: dict[Future[CallResult], int] = {}
        self._done: SimpleQueue[Future[CallResult]] = SimpleQueue()
        self._finished: deque[Finished] = deque()
        self._params: dict[int, Params] = {}
        self._requests: dict[int, str] = {}
        self._losses: dict[int, int] = {}
        try:
            self._check()
        except BaseException:
            engine.close()
            raise

    def _check(self) -> None:
        """Check that the objective can be loaded; a worker that dies meanwhile is replaced, as often as later."""
        for retries_left in reversed(range(MOST_RETRIES + 1)):
            try:
                self._engine.check()
                return
            except UnsendableObjective:
                raise
            except Exception as error:
                if not retries_left:
                    raise UnsendableObjective(unloadable(error_text(error))) from error
                if isinstance(error, BrokenExecutor):
                    self._engine.make_again()

    def submit(self, ticket: int, params: Params) -> None:
        self._params[ticket] = params
        self._requests[ticket] = secrets.token_hex(16)
        self._waiting.append(ticket)
        self._send()

    def next(self) -> Finished:
        while not self._finished:
            self._send()
            self._finish(self._landed())
        finished = self._finished.popleft()
        del self._params[finished.ticket], self._requests[finished.ticket]
        self._losses.pop(finished.ticket, None)
        return finished

    def close(self) -> None:
        for future in self._flying:
            future.cancel()
        self._engine.close()

    def _send(self) -> None:
        if self._suspects:
            if not self._flying:
                self._fly(self._suspects.popleft())
            return
        while self._waiting:
            self._fly(self._waiting.popleft())

    def _fly(self, ticket: int) -> None:
        request, params = self._requests[ticket], self._params[ticket]
        try:
            future = self._engine.submit(request, params, ticket)
        except BrokenExecutor:  # the pool broke between two candidates
            self._engine.make_again()
            future = self._engine.submit(request, params, ticket)
        self._flying[future] = ticket
        future.add_done_callback(self._done.put)

    def _landed(self) -> set[Future[CallResult]]:
        """Wait for a future, and take all that are done by then.

        concurrent.futures.wait would not do: a Ctrl-C inside it can leave futures locked, and their threads would
        wait for ever.
        """
        done = {self._first_done()}
        while not self._done.empty():
            done.add(self._done.get())
        return done & self._flying.keys()

    def _first_done(self) -> Future[CallResult]:
        """A wait without end would never see a signal that comes just as it begins."""
        while True:
            try:
                return self._done.get(timeout=LONGEST_WAIT)
            except Empty:
                continue

    def _finish(self, done: set[Future[CallResult]]) -> None:
        broken = any(isinstance(_error(future), BrokenExecutor) for future in done)
        while broken and len(done) < len(self._flying):  # then all its futures end at once
            done |= self._landed()
        for future in sorted(done, key=self._flying.__getitem__):
            ticket = self._flying.pop(future)
            answer = _answer(future, self._requests[ticket])
            if isinstance(answer, CallResult):
                self._finished.append(Finished(ticket, answer))
            else:
                self._lost(ticket, answer)
        if broken:
            self._engine.make_again()

    def _lost(self, ticket: int, error: BaseException) -> None:
        """There is no answer, through no fault of the objective: send the candidate again, but not for ever."""
        if isinstance(error, UnsendableObjective):
            raise error
        self._losses[ticket] = self._losses.get(ticket, 0) + 1
        if self._losses[ticket] > MOST_RETRIES:
            what = "gave an answer that is not its own" if isinstance(error, ForeignAnswer) else "died"
            text = f"its worker {what} {self._losses[ticket]} times, the last time with {error_text(error)}"
            self._finished.append(Finished(ticket, CallResult(failure(text), 0.0, 0.0)))
        elif isinstance(error, BrokenExecutor):
            self._suspects.append(ticket)
        else:
            self._waiting.append(ticket)


def _answer(future: Future[CallResult], request: str) -> CallResult | BaseException:
    """The answer to this request, or why there is none."""
    error = _error(future)
    if error is not None:
        return error
    answer: object = future.result()  # an executor may return anything
    if isinstance(answer, CallResult) and answer.request == request:
        return answer
    what = "the answer to another request" if isinstance(answer, CallResult) else f"a {type(answer).__name__}"
    return ForeignAnswer(f"the executor returned {what}")


def _error(future: Future[CallResult]) -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as error:
        return error
