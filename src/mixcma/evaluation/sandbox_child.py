"""The program inside a sandbox: it evaluates what it is sent, until its owner hangs up.

It runs as a script and, if it can, imports nothing from mixcma, so it starts fast. It sends back what the objective
returned, for the owner to interpret. It leads a process group, so its children end with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

# An idle sandbox ends after this many seconds; its owner starts another when it needs one.
LONGEST_IDLE = 60.0


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, requests), daemon=True).start()
    sys.path[:], payload = pickle.loads(requests.get())
    try:
        objective = pickle.loads(payload)
    except Exception as error:
        connection.send_bytes(pickle.dumps(f"{type(error).__name__}: {error}"))
        return
    connection.send_bytes(pickle.dumps(None))
    while True:
        try:
            params, id = pickle.loads(requests.get(timeout=LONGEST_IDLE))
        except queue.Empty:
            _end()
        connection.send_bytes(_answer(objective, params, id))


def _listen(connection: Connection, requests: queue.SimpleQueue[bytes]) -> None:
    """Pass requests on; when the owner is gone, end this process and all that it started."""
    try:
        while True:
            requests.put(connection.recv_bytes())
    except (EOFError, OSError):
        _end()


def _end() -> None:
    """End this process and all that it started."""
    os.killpg(0, signal.SIGKILL)


def _answer(objective: Any, params: dict[str, Any], id: int) -> bytes:
    """(started, seconds, returned, error, exception), pickled; the value or exception in it is pickled separately."""
    started, clock = time.time(), time.perf_counter()
    returned, error, exception = None, None, None
    try:
        takes_id = getattr(objective, "takes_id", False) is True
        returned = objective(params, id) if takes_id else objective(params)
    except (Exception, SystemExit) as raised:
        error, exception = _described(raised)
    seconds = max(0.0, time.perf_counter() - clock)  # the clock of a virtual machine may step back
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # the signal that ends this process does not flush buffers
    return pickle.dumps((started, seconds, _sent(returned), error, exception))


def _described(raised: BaseException) -> tuple[str, bytes | None]:
    """An exception as text, and as bytes with its traceback as a note; None instead if it cannot be sent."""
    try:
        text = f"{type(raised).__name__}: {raised}"
    except Exception:  # it cannot even be converted to text
        text = type(raised).__name__
    try:
        raised.add_note("".join(traceback.format_exception(raised)))
        payload: bytes = cloudpickle.dumps(raised)
        pickle.loads(payload)
    except Exception:
        return text, None
    return text, payload


def _sent(returned: object) -> bytes:
    """What the objective returned, as bytes. If it cannot be sent, it is interpreted here, and its outcome is sent."""
    for dumps in (pickle.dumps, cloudpickle.dumps):
        with contextlib.suppress(Exception):
            payload: bytes = dumps(returned)
            pickle.loads(payload)
            return payload
    from mixcma.evaluation.objective import outcome_of  # not at the top: it would make every start slow

    return pickle.dumps(outcome_of(returned))


if __name__ == "__main__":
    try:
        main()
    except ConnectionError:  # the owner is gone
        _end()
