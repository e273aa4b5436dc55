"""Sandboxes: processes that evaluate, and that can be ended without harm to anything else.

An evaluation that hangs, crashes or uses up the memory takes only its sandbox with it. The sandbox leads its own
process group, so the processes that the objective started end with it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path

from mixcma.evaluation.objective import CallResult, Objective, Portable, UnsendableObjective, outcome_of, unloadable
from mixcma.run.outcome import failure
from mixcma.space import Params

PROGRAM = Path(__file__).with_name("sandbox_child.py")
# Starting Python and loading the objective may take this many seconds.
LONGEST_START = 120.0
# Seconds between two checks, while the owner waits, that the process is still there.
LOOK_EVERY = 1.0


class SandboxDied(RuntimeError):
    """The process that evaluated is gone: it was killed, crashed, or ran out of memory."""


class Sandbox:
    """One process that has loaded the objective and evaluates one point at a time."""

    def __init__(self, payload: bytes) -> None:
        self._connection, child = Pipe()
        with child:
            command = [sys.executable, "-P", str(PROGRAM), str(child.fileno())]
            # a session of its own: a Ctrl-C in the terminal is meant for the owner alone
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[child.fileno()], start_new_session=True
            )
        try:
            self._connection.send_bytes(pickle.dumps((sys.path, payload)))
            if not self._answers_within(LONGEST_START):
                raise SandboxDied(f"a worker process did not start within {LONGEST_START:g} s")
            error = pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError) as gone:
            raise SandboxDied(f"a worker process ended while it started ({self.end()})") from gone
        except BaseException:
            self.end()
            raise
        if error is not None:
            self.end()
            raise UnsendableObjective(unloadable(error))

    @property
    def alive(self) -> bool:
        """Whether the process runs. It is not reaped here: until it is, no other group can have its number."""
        if not hasattr(os, "waitid"):  # macOS
            return self._process.poll() is None
        if self._process.returncode is not None:
            return False
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def call(self, params: Params, id: int, timeout: float | None) -> CallResult:
        """Evaluate. After `timeout` seconds the process group is ended, and the evaluation has failed."""
        began = time.time()
        try:
            self._connection.send_bytes(pickle.dumps((params, id)))
            if not self._answers_within(math.inf if timeout is None else timeout):
                self.end()
                seconds = max(0.0, time.time() - began)  # the clock may have been set back
                return CallResult(failure(f"timed out after {timeout:g} s"), began, seconds, timed_out=True)
            answer = self._connection.recv_bytes()
        except (EOFError, OSError) as gone:
            raise SandboxDied(f"the worker process that evaluated it died ({self.end()})") from gone
        started, seconds, returned, error, exception = pickle.loads(answer)
        outcome = outcome_of(pickle.loads(returned)) if error is None else failure(error)
        return CallResult(outcome, started, seconds, exception)

    def _answers_within(self, seconds: float) -> bool:
        """Wait for an answer. Raises EOFError if the process is gone, even if its children hold the connection open."""
        deadline = time.monotonic() + seconds
        while not self._connection.poll(max(0.0, min(LOOK_EVERY, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            if not self.alive and not self._connection.poll(0):
                raise EOFError
        return True

    def kill(self) -> None:
        """End the whole process group, from any thread; a thread that waits for an answer finds the process gone."""
        if self._process.returncode is None:  # otherwise another group may have the number by now
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> str:
        """Kill the process and clean up; returns how the process ended."""
        self.kill()
        code = self._process.wait()
        self._connection.close()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


class Sandboxes:
    """As many sandboxes as evaluations run at once; idle ones are used again.

    When it is sent to another process, it becomes the sandboxes of that process for the same objective.
    """

    def __init__(self, objective: Objective | bytes, timeout: float | None) -> None:
        self._payload = objective if isinstance(objective, bytes) else Portable(objective).pickled()
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: list[Sandbox] = []
        self._busy: set[Sandbox] = set()
        self._closed = False

    def __reduce__(self) -> tuple[Callable[[bytes, float | None], Sandboxes], tuple[bytes, float | None]]:
        return _here, (self._payload, self._timeout)

    def load(self) -> None:
        """Start a sandbox, to check that it can load the objective."""
        self._give_back(self._take())

    def __call__(self, params: Params, id: int) -> CallResult:
        sandbox = self._take()
        try:
            return sandbox.call(params, id, self._timeout)
        finally:
            self._give_back(sandbox)

    def close(self) -> None:
        """End all sandboxes, including those that are evaluating."""
        with self._lock:
            self._closed = True
            for sandbox in self._busy:
                sandbox.kill()
            while self._idle:
                self._idle.pop().end()

    def _take(self) -> Sandbox:
        with self._lock:
            while self._idle:
                sandbox = self._idle.pop()
                if sandbox.alive:
                    self._busy.add(sandbox)
                    return sandbox
                sandbox.end()
        sandbox = Sandbox(self._payload)
        with self._lock:
            self._busy.add(sandbox)
        if self._closed:
            self._give_back(sandbox)
            raise SandboxDied("the run has ended")
        return sandbox

    def _give_back(self, sandbox: Sandbox) -> None:
        with self._lock:
            self._busy.discard(sandbox)
            keep = sandbox.alive and not self._closed
            if keep:
                self._idle.append(sandbox)
        if not keep:
            sandbox.end()


@functools.lru_cache(maxsize=8)
def _here(payload: bytes, timeout: float | None) -> Sandboxes:
    """The sandboxes of this process for an objective that another process sent."""
    return Sandboxes(payload, timeout)
