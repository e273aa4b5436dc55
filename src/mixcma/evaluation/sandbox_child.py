"""The program inside a sandbox: it evaluates what it is sent, until its owner hangs up.

A sandbox is two processes. The worker evaluates. Its parent, the keeper, only waits: when the worker ends, or when the
owner is gone or wants the sandbox to end, the keeper ends all that is left.

The program runs as a script and, if it can, imports nothing from mixcma, so it starts fast. It answers with plain
numbers and texts, or with an `Outcome` of such: the owner never runs code of what the objective returned.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pickle
import queue
import select
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from mixcma.evaluation import calling, families

# An idle sandbox ends after this many seconds; its owner starts another when it needs one.
LONGEST_IDLE = 60.0
# A keeper that receives one of these signals ends the sandbox.
TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# The number of the request to Linux that a process adopt its descendants whose parents end (prctl.h).
PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    number, lifeline = map(int, sys.argv[1:])
    _start_worker(number, lifeline)
    os.set_inheritable(number, False)  # if another program replaces this one, or is left behind, it has no connection
    connection, opened = Connection(number), _identity(number)
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
        answer = pickle.dumps((request, *_answer(objective, params, id)))
        if _identity(number) != opened:  # the objective has put another file in its place
            _end()
        connection.send_bytes(answer)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


# The keeper


def _start_worker(connection: int, lifeline: int) -> None:
    """Fork the worker, and return in it alone: this process stays behind as its keeper.

    Nothing is ever written to a lifeline. When the process that holds its other end is gone, in whatever way, there is
    an end of file to read.
    """
    _adopt_orphans()
    reading, writing = os.pipe()
    worker = os.fork()
    if worker:
        os.close(connection)
        os.close(reading)
        _keep(worker, lifeline)
    os.close(lifeline)
    os.close(writing)
    os.setsid()
    _end_with_keeper(reading)


def _keep(worker: int, lifeline: int) -> NoReturn:
    """Wait until the worker has ended or the owner has hung up; end all that is left, and end as the worker did."""
    waking, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *TO_END):
        signal.signal(number, lambda *_: None)  # its number can be read from the pipe
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the owner may have blocked some
    while (status := _reaped(worker)) is None:
        ready, _, _ = select.select([lifeline, waking], [], [])
        if lifeline in ready or not set(os.read(waking, 4096)).isdisjoint(TO_END):
            break
    families.end_descendants(os.getpid())
    families.end_group(worker)  # where descendants cannot be found
    _end_as(os.waitpid(worker, 0)[1] if status is None else status)


def _reaped(worker: int) -> int | None:
    """Reap every child that has ended, most of them adopted; the status of the worker if it is one of them."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == worker:
                status = ended[1]
    return status


def _end_as(status: int) -> NoReturn:
    """End with the exit status of another process, or of the signal that it died of."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core file is enough
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that they are found when this family is ended."""
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_with_keeper(lifeline: int) -> None:
    """Let the kernel kill this process group if its keeper is killed, even while C code holds the interpreter's lock.

    At the end of the pipe, Linux sends the signal of asynchronous input to the group. PR_SET_PDEATHSIG would end this
    process alone and not its children. Elsewhere than on Linux, `_listen` has to do.
    """
    import fcntl

    if hasattr(fcntl, "F_SETSIG"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


# The worker


def _listen(connection: Connection, requests: queue.SimpleQueue[bytes]) -> None:
    """Pass requests on; when the owner has hung up, end."""
    try:
        while True:
            requests.put(connection.recv_bytes())
    except (EOFError, OSError):
        _end()


def _end() -> NoReturn:
    """End this process and its group; its keeper ends the rest."""
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
        with contextlib.suppress(BaseException):
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
    calling, families = _beside("calling"), _beside("families")


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
    except ConnectionError:
        pass  # the owner is gone
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    _end()  # Python itself would wait for threads that the objective has left behind
