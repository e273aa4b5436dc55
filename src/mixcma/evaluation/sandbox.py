"""Sandboxes: processes that evaluate, and that can be ended without harm to anything else.

An evaluation that hangs, crashes or eats the memory takes its sandbox with it, and nothing more; the
sandbox is the leader of its own process group, so what the objective started ends too.
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

from mixcma.evaluation.objective import Objective, Portable, Report, UnsendableObjective, outcome_of, unloadable
from mixcma.run.outcome import failure
from mixcma.space import Params

PROGRAM = Path(__file__).with_name("sandbox_child.py")
# Starting Python and loading the objective may take this many seconds.
LONGEST_START = 120.0
# While it waits, an owner looks every so many seconds whether the process is still there.
LOOK_EVERY = 1.0


class SandboxDied(RuntimeError):
    """The process that evaluated is gone: killed, crashed, or out of memory."""


class Sandbox:
    """One process with the objective loaded; evaluates one point at a time."""

    def __init__(self, payload: bytes) -> None:
        self._connection, child = Pipe()
        with child:
            command = [sys.executable, "-P", str(PROGRAM), str(child.fileno())]
            # its own session: a Ctrl-C in the terminal is for the owner alone
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
        """Looks without reaping: until that, the number of the process group is nobody else's."""
        if not hasattr(os, "waitid"):  # macOS
            return self._process.poll() is None
        if self._process.returncode is not None:
            return False
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def call(self, params: Params, id: int, timeout: float | None) -> Report:
        """Evaluate; past `timeout` seconds the process group is ended and the evaluation has failed."""
        began = time.time()
        try:
            self._connection.send_bytes(pickle.dumps((params, id)))
            if not self._answers_within(math.inf if timeout is None else timeout):
                self.end()
                seconds = max(0.0, time.time() - began)  # the clock may have been set back
                return Report(failure(f"timed out after {timeout:g} s"), began, seconds, timed_out=True)
            answer = self._connection.recv_bytes()
        except (EOFError, OSError) as gone:
            raise SandboxDied(f"the worker process that evaluated it died ({self.end()})") from gone
        started, seconds, returned, error, exception = pickle.loads(answer)
        outcome = outcome_of(pickle.loads(returned)) if error is None else failure(error)
        return Report(outcome, started, seconds, exception)

    def _answers_within(self, seconds: float) -> bool:
        """Wait for an answer. EOFError if the process is gone, even where its children hold the connection open."""
        deadline = time.monotonic() + seconds
        while not self._connection.poll(max(0.0, min(LOOK_EVERY, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            if not self.alive and not self._connection.poll(0):
                raise EOFError
        return True

    def kill(self) -> None:
        """End the whole process group, from any thread; whoever waits for an answer finds it gone."""
        if self._process.returncode is None:  # else the group's number may be another's by now
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> str:
        """Kill, and tidy up; says how the process ended."""
        self.kill()
        code = self._process.wait()
        self._connection.close()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


class Sandboxes:
    """As many sandboxes as evaluations run at once; idle ones are used again.

    Sent to another process, it becomes that process's own sandboxes for the same objective.
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
        """Start a sandbox, to see that the objective can be loaded in one."""
        self._give_back(self._take())

    def __call__(self, params: Params, id: int) -> Report:
        sandbox = self._take()
        try:
            return sandbox.call(params, id, self._timeout)
        finally:
            self._give_back(sandbox)

    def close(self) -> None:
        """End them all, also those that evaluate."""
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
    """This process's sandboxes for an objective that arrived from another."""
    return Sandboxes(payload, timeout)
