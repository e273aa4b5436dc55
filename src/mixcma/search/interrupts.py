"""Ctrl-C and SIGTERM during a search: they end it between two steps, never inside one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupts:
    """Raises KeyboardInterrupt, but only where that is allowed; elsewhere the signal waits.

    Handlers that the program installed itself are left alone. In threads other than the main one, signals are
    not handled at all.
    """

    def __init__(self) -> None:
        self.waiting = False  # whether a signal came where it could not interrupt
        self._allowed = False
        self._process = os.getpid()
        self._before: dict[int, Any] = {}  # the handlers to restore

    @contextmanager
    def handled(self) -> Iterator[Interrupts]:
        """While this is open, the signals come here."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        ordinary = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        self._before = {number: handler for number, handler in ordinary.items() if signal.getsignal(number) is handler}
        for number in self._before:
            signal.signal(number, self._received)
        try:
            yield self
        finally:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Inside, a signal interrupts at once: while the user's code runs, or the search waits for something."""
        self._allowed = True
        try:
            self.check()
            yield
        finally:
            self._allowed = False

    def check(self) -> None:
        """Let a signal that waits interrupt here: between two steps."""
        if self.waiting:
            raise KeyboardInterrupt

    def _received(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # this is a worker that was forked during the search: not its concern
            signal.signal(number, self._before[number])
            signal.raise_signal(number)
            return
        self.waiting = True
        if self._allowed:
            self._allowed = False  # a second signal must not interrupt the cleaning up
            raise KeyboardInterrupt
