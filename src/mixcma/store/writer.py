"""Writer: rows in, durable transactions out."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sqlite3
import time
from pathlib import Path

from mixcma.store.reading import Record
from mixcma.store.schema import PENDING, TABLES, VERSION, checksum, insert, statements

logger = logging.getLogger("mixcma")
Cells = tuple[object, ...]  # a row of a table

# Every commit survives the death of the process. After this many seconds, one is forced to the disk, to survive the
# death of the machine.
SYNC_EVERY = 1.0
# Seconds between two attempts to write, while the disk is full.
RETRY_EVERY = 1.0
# The tables whose rows may be replaced at any time; candidates may be replaced until they are finished.
REPLACED = ("setting", "run", "snapshot")

_INSERT = {table: insert(table) for table in TABLES}


class Writer:
    """Queues rows, and writes them in one transaction per `commit`.

    While the disk is full, the queue waits in memory; it is written when there is room again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path  # as the user wrote it
        self.committed = -math.inf  # when the last commit was
        self.connection: sqlite3.Connection | None = None
        self._file = path.resolve()  # SQLite keeps its files beside the target of a link
        self._queue: list[tuple[str, Cells]] = []  # tables, and rows with their checksums
        self._total = (0, 0)  # the number of rows, and the sum of their checksums
        self._replaceable: dict[tuple[str, object], int] = {}  # checksums of rows that may still change
        self._synced = -math.inf
        self._full_sync = True
        self._failing = False
        self._retry_at = 0.0

    def put(self, table: str, row: Cells) -> None:
        """Queue a row, which replaces one with the same key, and update the total."""
        count, total = self._total
        new, old = checksum(row), self._replaceable.pop((table, row[0]), None)
        self._total = (count + 1, total + new) if old is None else (count, total - old + new)
        if table in REPLACED or row[5] == PENDING:
            self._replaceable[table, row[0]] = new
        self._queue.append((table, (*row, new)))

    def create(self) -> None:
        """Create the file from the queue; it appears complete, since a draft is written first and then renamed."""
        draft = self._beside(".new")
        stale = [draft, *(self._beside(end) for end in (".new-wal", ".new-shm", "-wal", "-shm"))]
        try:
            for left in stale:  # left by a process that was killed, or by a file that was removed
                left.unlink(missing_ok=True)
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN")
                for statement in statements():
                    connection.execute(statement)
                self._write_queue(connection)
                connection.execute("COMMIT")
            os.replace(draft, self._file)
        except (sqlite3.Error, OSError) as error:
            for left in stale:
                left.unlink(missing_ok=True)
            raise ValueError(f"run_file: {self.path} cannot be written ({error}); choose another path") from error
        self._queue.clear()
        self._connect()

    def go_on(self, record: Record) -> None:
        """Append to a file that exists."""
        self._total, self._replaceable = record.total, dict(record.replaceable)
        self._connect()

    def commit(self) -> None:
        """Write the queue in one transaction. If that fails, the queue is kept and written later."""
        if not self._queue or self.connection is None or time.monotonic() < self._retry_at:
            return
        try:
            self._choose_sync(self.connection)
            self.connection.execute("BEGIN IMMEDIATE")
            self._write_queue(self.connection)
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._failed(self.connection, error)
            return
        self._queue.clear()
        self.committed = time.monotonic()
        if self._failing:
            logger.warning("run_file: %s can be written again and is complete", self.path)
            self._failing, self._retry_at = False, 0.0

    def close(self) -> None:
        if self.connection is None:
            return
        self._retry_at = 0.0
        self.commit()
        if self._queue:
            lost = len(self._queue)
            logger.warning("run_file: %s could not be completed; its last %d rows are lost", self.path, lost)
        self.connection.close()

    def _beside(self, end: str) -> Path:
        return self._file.with_name(self._file.name + end)

    def _connect(self) -> None:
        if not os.access(self._file, os.W_OK):  # SQLite would notice too late, and leave read-only files beside it
            raise ValueError(f"run_file: {self.path} cannot be written (Permission denied); make it writable")
        self.connection = sqlite3.connect(self.path, isolation_level=None, timeout=5.0)
        try:
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute(f"PRAGMA user_version = {VERSION}")  # an actual write, to see whether it works
        except sqlite3.Error as error:
            self.connection.close()
            raise ValueError(f"run_file: {self.path} cannot be written ({error}); make it writable") from error

    def _write_queue(self, connection: sqlite3.Connection) -> None:
        for table, row in self._queue:
            connection.execute(_INSERT[table], row)
        total = (1, *self._total)
        connection.execute(_INSERT["total"], (*total, checksum(total)))

    def _choose_sync(self, connection: sqlite3.Connection) -> None:
        now = time.monotonic()
        due = now - self._synced >= SYNC_EVERY
        if due:
            self._synced = now
        if due != self._full_sync:
            connection.execute(f"PRAGMA synchronous = {'FULL' if due else 'NORMAL'}")
            self._full_sync = due

    def _failed(self, connection: sqlite3.Connection, error: sqlite3.Error) -> None:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        self._retry_at = time.monotonic() + RETRY_EVERY
        if not self._failing:
            self._failing = True
            logger.warning(
                "run_file: %s cannot be written (%s); the search continues in memory and tries again, "
                "but what it finds is lost if it is killed now; make room on the disk",
                self.path, error,
            )  # fmt: skip
