"""The program inside a sandbox: evaluates what it is sent, until its owner hangs up.

It runs as a script, imports nothing of mixcma (so it starts fast), and sends back what the objective
returned for the owner to read. Being the leader of a process group, it takes its children with it.
"""

from __future__ import annotations

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
    """(started, seconds, returned, error, exception), pickled."""
    started, clock = time.time(), time.perf_counter()
    returned, error, exception = None, None, None
    try:
        returned = objective(params, id) if hasattr(objective, "takes_id") else objective(params)
    except (Exception, SystemExit) as raised:
        error, exception = f"{type(raised).__name__}: {raised}", raised
        raised.add_note("".join(traceback.format_exception(raised)))
    seconds = time.perf_counter() - clock
    try:
        answer = pickle.dumps((started, seconds, returned, error, exception))
        pickle.loads(answer)
    except Exception as broken:
        if error is None:
            error = f"expected a number, but the objective returned a {type(returned).__name__} ({broken})"
        answer = pickle.dumps((started, seconds, None, error, None))
    return answer


if __name__ == "__main__":
    main()
