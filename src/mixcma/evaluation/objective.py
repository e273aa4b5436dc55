"""One call of the objective, in this process or in a worker, and what came of it."""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

import cloudpickle

from mixcma.evaluation.calling import call, error_text, pickled_exception, traceback_text
from mixcma.run.outcome import Outcome, failure, interpret
from mixcma.space import Params

# The second kind has the attribute `takes_id`, and is also called with the number of the evaluation in the run file.
Objective = Callable[[Params], float | Outcome] | Callable[[Params, int], float | Outcome]


@dataclass(frozen=True)
class CallResult:
    """What one call of the objective returned, how long it took, and the exception behind a failure."""

    outcome: Outcome
    started: float  # seconds since the epoch
    seconds: float
    exception: BaseException | bytes | None = None  # pickled if it came from another process
    timed_out: bool = False
    request: str | None = None  # an answer of an executor repeats the name of the request that it belongs to

    def raise_failure(self) -> NoReturn:
        """Raise the exception that the objective raised, or an error that says how it failed."""
        exception = pickle.loads(self.exception) if isinstance(self.exception, bytes) else self.exception
        raise exception or ValueError(f"the objective: {self.outcome.error}")


def evaluate(objective: Callable[..., object], params: Params, id: int) -> CallResult:
    """Call the objective with its own copy of `params`; if it raises, the evaluation has failed.

    A KeyboardInterrupt is taken for Ctrl-C and passed on.
    """
    returned, error, started, seconds = call(objective, dict(params), id)
    if error is None:
        return CallResult(outcome_of(returned), started, seconds)
    if isinstance(error, KeyboardInterrupt):
        raise error
    return _failed(error, started, seconds)


def evaluate_in_worker(objective: Callable[..., object], params: Params, id: int) -> CallResult:
    """As `evaluate`; but a KeyboardInterrupt is passed on only in the main thread, which alone receives a Ctrl-C."""
    returned, error, started, seconds = call(objective, dict(params), id)
    if error is None:
        return CallResult(outcome_of(returned), started, seconds)
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error
    return _failed(error, started, seconds)


def _failed(error: BaseException, started: float, seconds: float) -> CallResult:
    return CallResult(failure(error_text(error), traceback_text(error)), started, seconds, error)


def outcome_of(returned: object) -> Outcome:
    """What the objective returned, as an outcome; -inf is a failure too, since nothing could beat it."""
    try:
        return interpret(returned)
    except KeyboardInterrupt:
        raise
    except ValueError as error:
        return failure(str(error))
    except BaseException as error:  # reading it runs the user's code
        what = f"a {type(returned).__name__} that cannot be read ({error_text(error)})"
        return failure(f"expected a number, but the objective returned {what}")


class UnsendableObjective(ValueError):
    """The objective cannot be sent to other processes, or cannot be loaded there."""


class ForeignAnswer(RuntimeError):
    """What came back from a worker is not the answer to what it was asked, so it says nothing about the candidate."""


class Portable:
    """An objective that can be sent: an executor that pickles does so by value (lambdas, closures, notebooks).

    In threads nothing is pickled, and the object itself is called.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self._payload: bytes | None = None

    def pickled(self) -> bytes:
        """The objective as bytes; raises `UnsendableObjective` if that fails."""
        if self._payload is not None:
            return self._payload
        try:
            payload: bytes = cloudpickle.dumps(self.objective)
        except Exception as error:
            raise UnsendableObjective(
                "objective: expected a function that can be sent to worker processes, but pickling it failed "
                f"({error_text(error)}); create locks, open files and connections inside the function, "
                "or run it in threads, without a timeout: workers=ThreadPoolExecutor(...)"
            ) from error
        self._payload = payload
        return payload

    def load(self) -> None:
        """There is nothing to load: the objective is here."""

    def __call__(self, params: Params, id: int) -> CallResult:
        return evaluate_in_worker(self.objective, params, id)

    def __reduce__(self) -> tuple[Callable[[bytes], object], tuple[bytes]]:
        return Arrived, (self.pickled(),)


class Arrived:
    """A `Portable` in a worker process; it is unpickled at its first call, once per process."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def load(self) -> None:
        _loaded(self.payload)

    def __call__(self, params: Params, id: int) -> CallResult:
        result = evaluate_in_worker(_loaded(self.payload), params, id)
        if not isinstance(result.exception, BaseException):
            return result
        return replace(result, exception=pickled_exception(result.exception, result.outcome.traceback))


@functools.lru_cache(maxsize=8)
def _loaded(payload: bytes) -> Objective:
    try:
        objective: Objective = cloudpickle.loads(payload)
    except Exception as error:
        raise UnsendableObjective(unloadable(error_text(error))) from error
    return objective


def unloadable(error: str) -> str:
    return (
        f"objective: expected a function that worker processes can load, but loading it failed ({error}); "
        "make its module importable there, or define the function in the script or notebook itself"
    )
