"""Objectives that never end, some of them while the process of the search is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from typing import NoReturn

from cases import BEGUN, ENDS_TOO, FAILED, PROCESS, SANDBOXES, TIMEOUT, Params
from process_state import ignores_signals
from processes import leaves_daemon
from registry import FOREVER, LIE, attack, sleep


@attack(FAILED, needs=TIMEOUT)
def hangs_asleep(p: Params) -> float:
    """Sleeps past the timeout."""
    return sleep()


@attack(FAILED, needs=TIMEOUT)
def hangs_stopped(p: Params) -> float:
    """Stops itself with SIGSTOP."""
    os.kill(os.getpid(), signal.SIGSTOP)
    return LIE


@attack(FAILED, needs=TIMEOUT)
def hangs_in_regex(p: Params) -> object:
    """Is caught in a regular expression, which does not let other threads run."""
    import re

    return re.match(r"(a+)+$", "a" * 60 + "b")


@attack(FAILED, needs=TIMEOUT)
def hangs_in_arithmetic(p: Params) -> object:
    """Computes a power of an integer for hours, without letting other threads run."""
    return 3 ** (10**10)


@attack(FAILED, needs=TIMEOUT)
def hangs_deaf(p: Params) -> float:
    """Ignores SIGTERM and SIGINT, and sleeps."""
    ignores_signals(p)
    return sleep()


@attack(FAILED, needs=TIMEOUT)
def hangs_undaunted(p: Params) -> NoReturn:
    """Catches whatever is raised, for ever."""
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(FOREVER)


@attack(FAILED, needs=TIMEOUT)
def hangs_at_pipe(p: Params) -> float:
    """Fills a pipe from which nobody reads."""
    _, end = os.pipe()
    while True:
        os.write(end, b"x" * 2**16)


@attack(FAILED, needs=TIMEOUT)
def hangs_at_lock(p: Params) -> bool:
    """Waits for a lock that it holds itself."""
    lock = threading.Lock()
    return lock.acquire() and lock.acquire()


@attack(FAILED, needs=TIMEOUT)
def hangs_at_child(p: Params) -> float:
    """Waits for a program that never ends."""
    subprocess.run(["sleep", "600"])
    return LIE


@attack(FAILED, needs=TIMEOUT)
def hangs_at_daemon(p: Params) -> float:
    """Waits for a program in a session of its own."""
    subprocess.run(["sleep", "600"], start_new_session=True)
    return LIE


@attack(FAILED, needs=TIMEOUT)
def hangs_as_another_program(p: Params) -> NoReturn:
    """Replaces itself by a program that sleeps."""
    os.execvp("sleep", ["sleep", "600"])


@attack(FAILED, needs=TIMEOUT)
def hangs_while_child_returns(p: Params) -> float:
    """Forks and sleeps; the child returns another value."""
    return sleep() if os.fork() else LIE


# The process of the search is killed while its workers are at these

OWNER_DIES = {"needs": PROCESS, "ways": SANDBOXES, "owner_dies": True}


def begin() -> None:
    """Say that the process of the search can be killed now; this process runs in the folder of the search."""
    os.close(os.open(BEGUN, os.O_CREAT | os.O_WRONLY))


@attack(ENDS_TOO, **OWNER_DIES)
def orphaned_asleep(p: Params) -> float:
    """Sleeps, while the process of the search is killed."""
    begin()
    return sleep()


@attack(ENDS_TOO, **OWNER_DIES)
def orphaned_in_regex(p: Params) -> object:
    """Is in C code that lets no other thread run, while the process of the search is killed."""
    begin()
    return hangs_in_regex(p)


@attack(ENDS_TOO, **OWNER_DIES)
def orphaned_stopped(p: Params) -> object:
    """Has stopped itself, while the process of the search is killed."""
    begin()
    return hangs_stopped(p)


@attack(ENDS_TOO, **OWNER_DIES)
def orphaned_with_daemon(p: Params) -> float:
    """Has started a daemon and sleeps, while the process of the search is killed."""
    leaves_daemon(p)
    begin()
    return sleep()
