"""The program inside a sandbox: evaluates what it is sent, until its owner hangs up.

It runs as a script, imports nothing of mixcma if it can (so it starts fast), and sends back what the
objective returned for the owner to read. Being the leader of a process group, it takes its children with it.
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
    """Pass requests on; when the owner is gone, so is this process and all that it started."""
    try:
        while True:
            requests.put(connection.recv_bytes())
    except (EOFError, OSError):
        _end()


def _end() -> None:
    """End this process and all that it started."""
    os.killpg(0, signal.SIGKILL)


def _answer(objective: Any, params: dict[str, Any], id: int) -> bytes:
    """(started, seconds, returned, error, exception), pickled; what was returned or raised is pickled by itself."""
    started, clock = time.time(), time.perf_counter()
    returned, error, exception = None, None, None
    try:
        takes_id = getattr(objective, "takes_id", False) is True
        returned = objective(params, id) if takes_id else objective(params)
    except (Exception, SystemExit) as raised:
        error, exception = _described(raised)
    seconds = max(0.0, time.perf_counter() - clock)  # virtual machines' clocks may step back
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # this process is ended by a signal, which asks no buffers
    return pickle.dumps((started, seconds, _sent(returned), error, exception))


def _described(raised: BaseException) -> tuple[str, bytes | None]:
    """An exception as a text, and as bytes where it can be sent, with its traceback as a note."""
    try:
        text = f"{type(raised).__name__}: {raised}"
    except Exception:  # it cannot even be shown
        text = type(raised).__name__
    try:
        raised.add_note("".join(traceback.format_exception(raised)))
        payload: bytes = cloudpickle.dumps(raised)
        pickle.loads(payload)
    except Exception:
        return text, None
    return text, payload


def _sent(returned: object) -> bytes:
    """What the objective returned, as bytes. What cannot be sent is read here, and its outcome sent."""
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
