"""Processes and their descendants, also those that left the process group; where there is no /proc, none are found.

Sandboxes load this file by itself, so it imports nothing from mixcma and nothing that is slow to import.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

# Descendants that start new processes while they are ended are looked for this many times.
MOST_ROUNDS = 50


class Family(NamedTuple):
    """The descendants of a process."""

    running: list[int]
    ended: list[int]  # nobody has asked how they ended, so they still have their numbers


def family_of(ancestor: int) -> Family:
    children: dict[int, list[int]] = defaultdict(list)
    ended: set[int] = set()
    for pid, parent, state in _processes():
        children[parent].append(pid)
        if state in "ZX":
            ended.add(pid)
    found = list(children[ancestor])
    for pid in found:  # it grows on the way
        found += children[pid]
    return Family([pid for pid in found if pid not in ended], [pid for pid in found if pid in ended])


def _processes() -> list[tuple[int, int, str]]:
    """Number, parent and state of every process."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]  # the name before may hold anything
                found.append((int(name), int(parent), state.decode()))
    return found


def end_family(leader: int) -> None:
    """End a process that leads a group, its descendants, and its group.

    It is stopped first: it then starts nothing new, and keeps the numbers of those that end from being given to others.
    """
    _signal(os.kill, leader, signal.SIGSTOP)
    end_descendants(leader)
    end_group(leader)


def end_descendants(ancestor: int) -> None:
    """End all descendants of a process that adopts those whose parents end, so that none can leave the family."""
    for _ in range(MOST_ROUNDS):
        running = family_of(ancestor).running
        for pid in running:
            _signal(os.kill, pid, signal.SIGKILL)
        if not running:
            break


def end_group(leader: int) -> None:
    _signal(os.killpg, leader, signal.SIGKILL)


def _signal(send: Callable[[int, int], None], pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(pid, number)
