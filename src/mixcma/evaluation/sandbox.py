"""Sandboxes: processes that evaluate, and that can be ended without harm to anything else.

An evaluation that hangs, crashes or uses up the memory takes only its sandbox with it. The process that is started here
is the keeper of the sandbox (sandbox_child.py): it ends with the one that evaluates and in the same way, and ends all
processes that the objective started; on Linux also those that left the group.
"""

from __future__ import annotations

import fcntl
import functools
import math
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mixcma.evaluation.families import end_family, family_of
from mixcma.evaluation.objective import (
    CallResult,
    ForeignAnswer,
    Objective,
    Portable,
    UnsendableObjective,
    outcome_of,
    unloadable,
)
from mixcma.run.outcome import failure
from mixcma.space import Params

PROGRAM = Path(__file__).with_name("sandbox_child.py")
# Starting Python and loading the objective may take this many seconds.
LONGEST_START = 120.0
# Seconds between two checks, while the owner waits, that the process is still there.
LOOK_EVERY = 1.0
# A sandbox that has not ended by itself this many seconds after the owner has hung up is killed.
LONGEST_END = 10.0
# Every so many evaluations, a sandbox that holds this many ended descendants is replaced (`Sandbox.worn`).
LOOK_FOR_ENDED_EVERY, MOST_ENDED = 200, 1000
# An answer has at most this many bytes; whatever announces more is none.
LONGEST_ANSWER = 2**28


class SandboxDied(RuntimeError):
    """The process that evaluated is gone: it was killed, crashed, or ran out of memory."""


class Sandbox:
    """One process that has loaded the objective and evaluates one point at a time."""

    def __init__(self, payload: bytes) -> None:
        self._calls = 0
        self._ending = threading.Lock()
        self._start()
        try:
            request = self._ask(sys.path, payload)
            if not self._answers_within(LONGEST_START):
                raise SandboxDied(f"a worker process did not start within {LONGEST_START:g} s")
            (error,) = self._answer_to(request)
        except (EOFError, OSError) as gone:
            raise SandboxDied(f"a worker process ended while it started ({self.end()})") from gone
        except BaseException:
            self.end()
            raise
        if error is not None:
            self.end()
            raise UnsendableObjective(unloadable(error))

    def _start(self) -> None:
        """Start the process. Nothing is ever sent through the lifeline: when it is closed, the sandbox ends itself."""
        self._connection, its_connection = (Connection(above_streams(end.detach())) for end in socket.socketpair())
        reading, writing = map(above_streams, os.pipe())
        self._lifeline = Connection(writing, readable=False)
        with its_connection, Connection(reading, writable=False):
            inherited = [its_connection.fileno(), reading]
            # a session of its own: a Ctrl-C in the terminal is meant for the owner alone
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(PROGRAM), *map(str, inherited)],
                stdin=subprocess.DEVNULL, stdout=stream_for_child(1), stderr=stream_for_child(2),
                pass_fds=inherited, start_new_session=True,
            )  # fmt: skip
        _started_here.add(self)

    @property
    def alive(self) -> bool:
        """Whether the process runs and shall go on. It is not reaped here: until it is, nobody else has its number."""
        if self._lifeline.closed:
            return False
        if not hasattr(os, "waitid"):  # macOS
            return self._process.poll() is None
        if self._process.returncode is not None:
            return False
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    @property
    def ready(self) -> bool:
        """Whether it can be asked something: it runs, and has nothing to say, not even that the worker has ended."""
        return self.alive and not self._connection.poll(0)

    def call(self, params: Params, id: int, timeout: float | None) -> CallResult:
        """Evaluate. After `timeout` seconds the process and its descendants are ended, and the evaluation has failed.

        Raises `SandboxDied` or `ForeignAnswer` where the fault is not the objective's.
        """
        began = time.time()
        self._calls += 1
        try:
            request = self._ask(params, id)
            if not self._answers_within(math.inf if timeout is None else timeout):
                self.end()
                seconds = max(0.0, time.time() - began)  # the clock may have been set back
                return CallResult(failure(f"timed out after {timeout:g} s"), began, seconds, timed_out=True)
            started, seconds, returned, error, trace, exception = self._answer_to(request)
        except (EOFError, OSError) as gone:
            raise SandboxDied(f"the worker process that evaluated it died ({self.end()})") from gone
        except ForeignAnswer:
            self.end()
            raise
        outcome = outcome_of(returned) if error is None else failure(error, trace)
        return CallResult(outcome, started, seconds, exception)

    def _ask(self, *question: object) -> str:
        """Send a question, and return the name of this request, which nobody else can know and its answer repeats."""
        request = secrets.token_hex(16)
        self._connection.send_bytes(pickle.dumps((request, *question)))
        return request

    def _answer_to(self, request: str) -> Any:
        """The answer that has arrived, if it is the answer to this request; nothing else is believed."""
        message = self._connection.recv_bytes(LONGEST_ANSWER)
        try:
            answered, *answer = pickle.loads(message)
        except Exception as error:
            raise ForeignAnswer("the worker process sent something that is no answer") from error
        if answered != request:
            raise ForeignAnswer("the worker process sent an answer to something that it was not asked")
        return answer

    def _answers_within(self, seconds: float) -> bool:
        """Wait for an answer. Raises EOFError if the process is gone, even if its children hold the connection open."""
        deadline = time.monotonic() + seconds
        while not self._connection.poll(max(0.0, min(LOOK_EVERY, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            if not self.alive and not self._connection.poll(0):
                raise EOFError
        return True

    @property
    def worn(self) -> bool:
        """Whether it holds so many processes that have ended that their numbers may run out.

        The sandbox cannot ask how they ended: the objective may still want to, about its own children.
        """
        return self._calls % LOOK_FOR_ENDED_EVERY == 0 and len(family_of(self._process.pid).ended) >= MOST_ENDED

    def kill(self) -> None:
        """End the process and its descendants, from any thread; a thread that waits for an answer finds it gone."""
        with self._ending:
            self._lifeline.close()

    def end(self) -> str:
        """Kill the process and clean up; returns how the process ended."""
        self.kill()
        try:
            code = self._process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:  # somebody has stopped it, for instance
            end_family(self._process.pid)
            code = self._process.wait()
        self._hang_up()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

    def leave_to_parent(self) -> None:
        """In a process that was forked from the owner: to this process, the sandbox has ended."""
        self._process.returncode = 0
        self._hang_up()

    def _hang_up(self) -> None:
        self._connection.close()
        self._lifeline.close()


# The sandboxes that this process has started.
_started_here: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """In a process that was forked from this one: the sandboxes are its parent's, and must end with that."""
    for sandbox in list(_started_here):
        sandbox.leave_to_parent()
    _started_here.clear()
    _here.cache_clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def above_streams(descriptor: int) -> int:
    """The same open file under a number that no standard stream has.

    Where a standard stream is closed, the next file that is opened gets its number, and everything that a library
    prints goes there.
    """
    if descriptor > 2:
        return descriptor
    moved: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved


def stream_for_child(descriptor: int) -> int | None:
    """What a child gets for a standard stream: this process's own, or /dev/null if it has none.

    If the stream is closed, its number may belong to any file that was opened since; Python opens all files such
    that children do not inherit them.
    """
    try:
        return None if os.get_inheritable(descriptor) else subprocess.DEVNULL
    except OSError:
        return subprocess.DEVNULL


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
            for sandbox in (*self._busy, *self._idle):
                sandbox.kill()
            while self._idle:
                self._idle.pop().end()

    def _take(self) -> Sandbox:
        with self._lock:
            while self._idle:
                sandbox = self._idle.pop()
                if sandbox.ready:
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
            keep = not self._closed and sandbox.ready and not sandbox.worn
            if keep:
                self._idle.append(sandbox)
        if not keep:
            sandbox.end()


@functools.lru_cache(maxsize=8)
def _here(payload: bytes, timeout: float | None) -> Sandboxes:
    """The sandboxes of this process for an objective that another process sent."""
    return Sandboxes(payload, timeout)
