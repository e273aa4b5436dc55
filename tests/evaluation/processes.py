"""Pools of processes for tests, and a place where processes meet, so that no test has to sleep until they run."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Client, Listener


def processes(count, **options):
    """A pool that is not forked from the process of the tests, which has threads of other libraries."""
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("forkserver"), **options)


class Meeting:
    """Whoever calls `attend(meeting.address)`, in any process, waits there until `count` are present."""

    def __init__(self, count):
        self._listener, self._count, self._over = Listener(), count, False
        self.address = self._listener.address
        self._thread = threading.Thread(target=self._receive)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over = True
        Client(self.address).close()  # the listener waits for somebody
        self._thread.join()
        self._listener.close()

    def _receive(self):
        while True:
            present = []
            while len(present) < self._count:
                present.append(self._listener.accept())
                if self._over:
                    for connection in present:
                        connection.close()
                    return
            for connection in present:
                with connection:
                    connection.send("go on")


def attend(address):
    with Client(address) as connection:
        connection.recv()
