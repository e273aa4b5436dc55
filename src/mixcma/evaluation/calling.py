"""Calling the objective, whatever it does; the exceptions it raises become texts of bounded length.

Sandboxes load this file by itself, so it imports nothing from mixcma and nothing that is slow to import.
"""

from __future__ import annotations

import os
import pickle
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

# An objective with this attribute is also called with the number of the evaluation.
TAKES_ID = "takes_id"
# No more characters than this of an error or of a traceback, and no more bytes of an exception, leave the worker.
LONGEST_TEXT, LARGEST_EXCEPTION = 10_000, 2**20
# A traceback has at most this many frames: the last ones.
MOST_FRAMES = 50


class Call(NamedTuple):
    """What one call of the objective returned or raised, and how long it took."""

    returned: Any
    raised: BaseException | None
    started: float  # seconds since the epoch
    seconds: float


def call(objective: Callable[..., object], params: dict[str, Any], id: int) -> Call:
    """Call the objective, and return what it raises, whatever that is."""
    started, clock, process = time.time(), time.perf_counter(), os.getpid()
    try:
        takes_id = getattr(objective, TAKES_ID, False) is True  # a proxy may claim to have any attribute
        returned = objective(params, id) if takes_id else objective(params)
    except BaseException as error:
        if os.getpid() != process:
            end_fork(error)
        return Call(None, error, started, _since(clock))
    if os.getpid() != process:
        end_fork()
    return Call(returned, None, started, _since(clock))


def _since(clock: float) -> float:
    return max(0.0, time.perf_counter() - clock)  # the clock of a virtual machine may step back


def end_fork(raised: BaseException | None = None) -> NoReturn:
    """End this process, which the objective forked: the process that was asked is another, and it alone answers."""
    if isinstance(raised, SystemExit) and (raised.code is None or isinstance(raised.code, int)):
        os._exit((raised.code or 0) & 0xFF)
    os._exit(0 if raised is None else 1)


def error_text(error: BaseException) -> str:
    """The class and the message of an exception, as the last line of a traceback has them."""
    try:
        return f"{type(error).__name__}: {error}"[:LONGEST_TEXT]
    except KeyboardInterrupt:
        raise
    except BaseException:  # it cannot even be converted to text
        return type(error).__name__


def traceback_text(error: BaseException) -> str | None:
    """What Python prints about an exception, without the frames of this file; None if that cannot be made."""
    try:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
            frames = frames.tb_next
        printed = traceback.TracebackException(type(error), error, frames, limit=-MOST_FRAMES)
        return "".join(printed.format())[-LONGEST_TEXT:]
    except KeyboardInterrupt:
        raise
    except BaseException:  # making it runs the code of the exception
        return None


def pickled_exception(error: BaseException, trace: str | None) -> bytes | None:
    """An exception of any class as bytes, with its traceback as a note; None if it cannot be sent."""
    try:
        import cloudpickle  # not at the top: a sandbox is told only later where to find it

        if trace is not None:
            error.add_note(trace)
        payload: bytes = cloudpickle.dumps(error)
        if len(payload) > LARGEST_EXCEPTION:
            return None
        pickle.loads(payload)
    except KeyboardInterrupt:
        raise
    except BaseException:  # pickling runs the code of the exception
        return None
    return payload
