"""The program inside a sandbox: it evaluates what it is sent, until its owner hangs up.

It runs as a script and, if it can, imports nothing from mixcma, so it starts fast. It answers with plain numbers and
texts, or with an `Outcome` of such: the owner never runs code of what the objective returned. It leads a process group,
so its children end with it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pickle
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from mixcma.evaluation import calling

# An idle sandbox ends after this many seconds; its owner starts another when it needs one.
LONGEST_IDLE = 60.0
# The number of the request to Linux that a process adopt its descendants whose parents end (prctl.h).
PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    connection, lifeline = Connection(int(sys.argv[1])), int(sys.argv[2])
    _end_with_owner(lifeline)
    _adopt_orphans()
    sys.stdout, sys.stderr = _forgiving(sys.stdout, 1), _forgiving(sys.stderr, 2)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, requests), daemon=True).start()
    request, sys.path[:], payload = pickle.loads(requests.get())
    objective, error = _loaded(payload)
    connection.send_bytes(pickle.dumps((request, error)))
    while error is None:
        try:
            request, params, id = pickle.loads(requests.get(timeout=LONGEST_IDLE))
        except queue.Empty:
            _end()
        connection.send_bytes(pickle.dumps((request, *_answer(objective, params, id))))


# What ties it to its owner and its descendants to it


def _end_with_owner(lifeline: int) -> None:
    """Let the kernel kill this process group when the owner is gone, even while C code holds the interpreter's lock.

    Nobody writes to this pipe. When the owner ends, in whatever way, its end is closed, and Linux sends the signal
    of asynchronous input to the group. PR_SET_PDEATHSIG would not do: it comes when the *thread* ends that started
    this process, and it ends this process alone and not its children. Elsewhere than on Linux, `_listen` has to do.
    """
    import fcntl

    if hasattr(fcntl, "F_SETSIG"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that the owner finds them when it ends this family."""
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _listen(connection: Connection, requests: queue.SimpleQueue[bytes]) -> None:
    """Pass requests on; when the owner is gone, end this process and all that it started."""
    try:
        while True:
            requests.put(connection.recv_bytes())
    except (EOFError, OSError):
        _end()


def _end() -> NoReturn:
    """End this process and all that it started."""
    os.killpg(0, signal.SIGKILL)
    raise SystemExit  # it is not reached


# Standard streams


class _Forgiving(io.FileIO):
    """A file that drops what it cannot write, on a full disk or to a closed pipe, instead of failing."""

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            return super().write(data)
        return memoryview(data).nbytes


def _forgiving(stream: Any, descriptor: int) -> io.TextIOWrapper:
    """A standard stream that never fails an evaluation."""
    raw = io.BufferedWriter(_Forgiving(descriptor, "w", closefd=False))
    kept = {name: getattr(stream, name) for name in ("encoding", "line_buffering", "write_through")}
    return io.TextIOWrapper(raw, errors="backslashreplace", **kept)


def _flush() -> None:
    """The signal that ends this process does not flush buffers. The objective may have replaced or closed them."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


# Evaluating


def _beside(name: str) -> Any:
    """The module in the file of that name beside this one, without the package around it."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    calling = _beside("calling")


def _loaded(payload: bytes) -> tuple[Any, str | None]:
    """The objective, or the text of the error that loading it gave."""
    process = os.getpid()
    try:
        objective, error = pickle.loads(payload), None
    except Exception as raised:
        objective, error = None, calling.error_text(raised)
    if os.getpid() != process:
        calling.end_fork()
    return objective, error


def _answer(objective: Any, params: dict[str, Any], id: int) -> tuple[Any, ...]:
    """(started, seconds, returned, error, traceback, exception); the exception is pickled by itself."""
    returned, raised, started, seconds = calling.call(objective, params, id)
    said: tuple[object, ...] = (_plain(returned), None, None, None) if raised is None else (None, *_described(raised))
    _flush()
    return (started, seconds, *said)


def _described(raised: BaseException) -> tuple[str, str | None, bytes | None]:
    """The text, the traceback and the bytes of an exception."""
    trace = calling.traceback_text(raised)
    return calling.error_text(raised), trace, calling.pickled_exception(raised, trace)


def _plain(returned: object) -> object:
    """What the objective returned, as a number, or as an `Outcome` of plain numbers and texts."""
    if returned is None or type(returned) in (float, int, bool):
        return returned
    if type(returned).__module__ == "numpy" and getattr(returned, "shape", None) == ():
        number = returned.item()  # type: ignore[attr-defined]
        if type(number) in (float, int, bool):
            return number
    from mixcma.evaluation.objective import outcome_of  # not at the top: it would make every start slow

    return outcome_of(returned)


if __name__ == "__main__":
    try:
        main()
    except ConnectionError:  # the owner is gone
        _end()
