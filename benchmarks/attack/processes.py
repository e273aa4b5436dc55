"""Objectives that leave processes behind, become others, or die."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from typing import NoReturn

from cases import AGAIN, ASYNCHRONOUS, EITHER, INSIDE, LOKY, POOL, PROCESS, SANDBOXES, VALUE, WORKERS, Case, Params
from registry import CASES, FOREVER, FUNCTIONS, LIE, attack, honest


@attack(VALUE)
def forks_and_child_returns(p: Params) -> float:
    """Forks; the child returns too, with another value."""
    return honest(p) if os.fork() else LIE


@attack(VALUE)
def forks_and_child_raises(p: Params) -> float:
    """Forks; an exception of the child leaves the objective."""
    if os.fork():
        return honest(p)
    raise RuntimeError("in the child")


@attack(VALUE)
def forks_and_child_exits(p: Params) -> float:
    """Forks; the child calls sys.exit."""
    if not os.fork():
        sys.exit("the child is done")
    return honest(p)


@attack(VALUE)
def forks_and_child_ends(p: Params) -> float:
    """Forks; the child ends, and nobody waits for it."""
    if not os.fork():
        os._exit(0)
    return honest(p)


@attack(VALUE)
def forks_and_child_returns_late(p: Params) -> float:
    """Forks; the child returns another value when its process has gone on to other points."""
    if os.fork():
        return honest(p)
    time.sleep(0.1)
    return LIE


@attack(VALUE)
def forks_and_child_returns_early(p: Params) -> float:
    """Forks; the child returns another value before its parent has one."""
    if not os.fork():
        return LIE
    time.sleep(0.1)
    return honest(p)


@attack(EITHER, needs=PROCESS)
def forks_and_parent_ends(p: Params) -> float:
    """Forks and ends; the child returns the value."""
    if os.fork():
        os._exit(0)
    return honest(p)


@attack(VALUE, needs=PROCESS)
def forks_and_child_stays(p: Params) -> float:
    """Forks; the child sleeps on."""
    if not os.fork():
        time.sleep(FOREVER)
        os._exit(0)
    return honest(p)


@attack(VALUE, needs=PROCESS)
def leaves_daemon(p: Params) -> float:
    """Leaves a daemon behind, by two forks and setsid."""
    if not (child := os.fork()):
        os.setsid()
        if not os.fork():
            time.sleep(FOREVER)
        os._exit(0)
    os.waitpid(child, 0)
    return honest(p)


@attack(VALUE, needs=PROCESS)
def leaves_deaf_daemon(p: Params) -> float:
    """Leaves a daemon behind that ignores signals and holds every file open."""
    command = "trap '' TERM HUP INT; sleep 600"
    subprocess.Popen(["sh", "-c", command], start_new_session=True, close_fds=False)
    return honest(p)


@attack(VALUE, needs=PROCESS)
def leaves_program(p: Params) -> float:
    """Starts a program and does not wait for it."""
    subprocess.Popen(["sleep", "600"])
    return honest(p)


@attack(VALUE, needs=PROCESS)
def leaves_orphan(p: Params) -> float:
    """Starts a program that starts another and ends."""
    subprocess.run(["sh", "-c", "sleep 600 & exit 0"])
    return honest(p)


@attack(VALUE, lasts=True)
def ignores_children(p: Params) -> float:
    """Ignores SIGCHLD, so that nobody can wait for a child."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return honest(p)


@attack(EITHER, needs=PROCESS)
def reaps_every_child(p: Params) -> float:
    """Waits for every child process there is, whoever started it."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return honest(p)


@attack(VALUE, lasts=True)  # without a sandbox a worker of dask is not allowed to have children
def runs_pool(p: Params) -> float:
    """Computes its value in a process pool of its own."""
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(1) as pool:
        return pool.submit(honest, p).result()


@attack(VALUE)
def runs_asyncio(p: Params) -> float:
    """Computes its value in an event loop, and leaves a task in it that refuses to be cancelled once."""
    import asyncio

    async def stubborn() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(FOREVER)

    async def value() -> float:
        asyncio.get_running_loop().create_task(stubborn())
        await asyncio.sleep(0)
        return honest(p)

    return asyncio.run(value())


@attack(VALUE)
def runs_search(p: Params) -> float:
    """Runs another search inside the objective."""
    from mixcma import Float, Space, minimize

    minimize(lambda q: q["y"] ** 2, Space({"y": Float(-1, 1)}), budget=12, seed=1)
    return honest(p)


@attack(VALUE, ways=(INSIDE, WORKERS, ASYNCHRONOUS, POOL))
def runs_search_on_workers(p: Params) -> float:
    """Runs another search with two workers of its own inside the objective."""
    from mixcma import Float, Space, minimize

    minimize(lambda q: q["y"] ** 2, Space({"y": Float(-1, 1)}), budget=6, seed=1, workers=2)
    return honest(p)


@attack(AGAIN, needs=PROCESS)
def becomes_another_program(p: Params) -> NoReturn:
    """Replaces itself by the program true."""
    os.execvp("true", ["true"])


# Deaths


def kills_itself(number: signal.Signals, p: Params) -> float:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(1)  # until the signal arrives
    return LIE


for _number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGHUP, signal.SIGUSR1, signal.SIGPIPE):
    _name = f"dies_of_{_number.name.lower()}"
    CASES[_name] = Case(_name, f"Sends itself {_number.name}", AGAIN, needs=PROCESS, ways=SANDBOXES)
    FUNCTIONS[_name] = functools.partial(kills_itself, _number)


@attack(AGAIN, ways=(*SANDBOXES, POOL, LOKY))
def dies_of_sigkill(p: Params) -> NoReturn:
    """Kills itself, as the system does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@attack(AGAIN, ways=(*SANDBOXES, POOL, LOKY))
def dies_quietly(p: Params) -> NoReturn:
    """Calls os._exit(0)."""
    os._exit(0)


@attack(AGAIN, needs=PROCESS)
def dies_in_c(p: Params) -> object:
    """Reads from address 0 in C."""
    import ctypes

    return ctypes.string_at(0)
