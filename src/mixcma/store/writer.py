"""Writer: rows in, durable transactions out."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from mixcma.store.held import Cells, Held
from mixcma.store.lock import Lock
from mixcma.store.names import DRAFT, beside, clear_the_way, draft_prefix, refuse_foreign, remove_drafts
from mixcma.store.reading import Record
from mixcma.store.schema import (
    PENDING,
    TABLES,
    VERSION,
    checksum,
    columns,
    insert,
    row_checksum,
    statements,
    upgrades,
)
from mixcma.store.watch import Watch

logger = logging.getLogger("mixcma")

# Every commit survives the death of the process. After this many seconds, one is forced to the disk, to survive the
# death of the machine.
SYNC_EVERY = 1.0
# Seconds between two attempts to write, while the disk is full.
RETRY_EVERY = 1.0
# The WAL is moved into the file when about this many bytes are in it; a commit costs several pages besides its rows.
WAL_BYTES, COMMIT_BYTES = 4_000_000, 20_000
# The tables whose rows may be replaced at any time; candidates may be replaced until they are finished.
REPLACED = ("setting", "run", "snapshot")
# How many names are tried in a folder for a new file.
OTHER_NAMES = 10
STATUS = list(TABLES["evaluation"]).index("status")

_INSERT = {table: insert(table) for table in TABLES}


class Writer:
    """Queues rows, and writes them in one transaction per `commit`. It has the lock of the file until `close`.

    While the disk is full, the queue waits in memory; it is written when there is room again. If something happens to
    the file itself, all of it is written to a new one, where the search continues.
    """

    def __init__(self, path: Path) -> None:
        self.path = path  # as the user wrote it
        self.committed = -math.inf  # when the last commit was
        self.connection: sqlite3.Connection | None = None
        self._file = path.resolve()  # SQLite keeps its files beside the target of a link
        self._lock = Lock(path)
        self._held = Held()
        self._queue: list[tuple[str, Cells]] = []  # tables, and rows with their checksums
        self._total = (0, 0)  # the number of rows, and the sum of their checksums
        self._replaceable: dict[tuple[str, object], int] = {}  # checksums of rows that may still change
        self._version = VERSION  # of the file
        self._unmoved = 0  # about how many bytes are in the WAL and not yet in the file
        self._synced = -math.inf
        self._full_sync = True
        self._failing = False
        self._retry_at = 0.0

    def put(self, table: str, row: Cells) -> None:
        """Queue a row, which replaces one with the same key, and update the total."""
        count, total = self._total
        new, old = row_checksum(table, row), self._replaceable.pop((table, row[0]), None)
        self._total = (count + 1, total + new) if old is None else (count, total - old + new)
        if table in REPLACED or row[STATUS] == PENDING:
            self._replaceable[table, row[0]] = new
        checked = (*row, new)
        self._queue.append((table, checked))
        self._unmoved += self._held.put(table, checked)

    def create(self) -> None:
        """Create the file from the queue; it appears complete, since a draft is written first and then renamed."""
        try:
            self._create(self._file, self._queue)
        except (sqlite3.Error, OSError) as error:
            raise ValueError(f"run_file: {self.path} cannot be written ({error}); choose another path") from error
        self._queue.clear()
        self._connect()

    def go_on(self, record: Record) -> None:
        """Append to a file that exists."""
        self._total, self._replaceable = record.total, dict(record.replaceable)
        self._version = record.version
        refuse_foreign(self._file)
        remove_drafts(self._file)
        self._connect()
        assert self.connection is not None
        for table in TABLES.keys() - {"total"}:
            for row in self.connection.execute(f"SELECT {', '.join(columns(table, self._version))} FROM {table}"):
                self._held.put(table, row)

    def commit(self) -> None:
        """Write the queue in one transaction. If that fails, the queue is kept and written later."""
        if self._queue and self.connection is not None and time.monotonic() >= self._retry_at:
            self._watch_and_write(self.connection, False)

    def settle(self) -> None:
        """Write what is left, after the most careful look at the file; `path` then says where everything is."""
        if self.connection is not None and time.monotonic() >= self._retry_at:
            self._watch_and_write(self.connection, True)

    def close(self) -> None:
        """Write what is left, and release the lock."""
        try:
            self._retry_at = 0.0
            self.settle()
            if self.connection is not None:
                if self._queue:
                    lost = len(self._queue)
                    logger.warning("run_file: %s could not be completed; its last %d rows are lost", self.path, lost)
                self._disconnect()
        finally:
            self._lock.release()

    def _watch_and_write(self, connection: sqlite3.Connection, thorough: bool) -> None:
        trouble = self._watch.trouble(thorough)
        try:
            if trouble is not None:
                self._move(trouble)
            elif self._queue:
                self._append(connection)
        except (sqlite3.Error, OSError, ValueError) as error:
            self._failed(connection, error)

    def _append(self, connection: sqlite3.Connection) -> None:
        self._choose_sync(connection)
        connection.execute("BEGIN IMMEDIATE")
        if self._version < VERSION:  # only now: a search that is refused leaves its file as it was
            for statement in upgrades(self._version):
                connection.execute(statement)
        self._write_rows(connection, self._queue)
        connection.execute("COMMIT")
        self._version = VERSION
        self._written()
        if self._unmoved >= WAL_BYTES or not self._has_wal:
            self._move_wal(connection)
        if self._failing:
            logger.warning("run_file: %s can be written again and is complete", self.path)
            self._failing, self._retry_at = False, 0.0

    def _written(self) -> None:
        self._queue.clear()
        self._unmoved += COMMIT_BYTES
        self._watch.total = self._total
        self.committed = time.monotonic()

    def _move_wal(self, connection: sqlite3.Connection) -> None:
        """Move the WAL into the file. SQLite would do so by itself, but then nobody knew who has changed the file."""
        self._unmoved = 0
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            self._watch.remember()

    # Opening and closing

    def _create(self, file: Path, rows: Iterable[tuple[str, Cells]]) -> None:
        """Make a run file with these rows. No file that is there already is touched."""
        clear_the_way(file)
        with tempfile.TemporaryDirectory(prefix=draft_prefix(file), dir=file.parent) as folder:
            draft = Path(folder) / DRAFT
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN")
                for statement in statements():
                    connection.execute(statement)
                self._write_rows(connection, rows)
                connection.execute("COMMIT")
            if file.exists():
                raise FileExistsError(f"{file.name} has appeared in the meantime")
            os.replace(draft, file)

    def _connect(self) -> None:
        if not os.access(self._file, os.W_OK):  # SQLite would notice too late, and leave read-only files beside it
            raise ValueError(f"run_file: {self.path} cannot be written (Permission denied); make it writable")
        self.connection = sqlite3.connect(self._file, isolation_level=None, timeout=5.0)
        try:
            (mode,) = self.connection.execute("PRAGMA journal_mode = WAL").fetchone()
            self._has_wal = mode == "wal"  # some file systems allow none
            self.connection.execute("PRAGMA wal_autocheckpoint = 0")
            self.connection.execute(f"PRAGMA user_version = {self._version}")  # a write, to see whether it works
            self._guard = _reader(self._file)
        except sqlite3.Error as error:
            self.connection.close()
            self.connection = None
            raise ValueError(f"run_file: {self.path} cannot be written ({error}); make it writable") from error
        self._watch = Watch(self._file, self._total)

    def _disconnect(self) -> None:
        """Close the file. The last connection that can write moves everything into the file and removes the WAL."""
        assert self.connection is not None
        self._guard.close()
        self.connection.close()

    def _abandon(self) -> None:
        """Close a file that is no longer ours: nothing is written to it. Only our own WAL is removed."""
        assert self.connection is not None
        self.connection.close()  # while the guard is open, this moves nothing into the file
        self._guard.close()
        wal = beside(self._file, "-wal")
        if self._watch.owns_wal():
            wal.unlink()
            beside(self._file, "-shm").unlink(missing_ok=True)
        self._lock.release()

    # When something has happened to the file

    def _move(self, trouble: str) -> None:
        """Write all rows to a new file, and continue there."""
        new, lock = self._written_elsewhere()
        self._abandon()
        logger.warning(
            "run_file: %s %s while the search was running; all evaluations so far are now in %s, where the search "
            "continues; do not move, remove or change a run file that is in use",
            self.path, trouble, new,
        )  # fmt: skip
        self.path = self._file = new
        self._lock, self._version, self._failing, self._retry_at = lock, VERSION, False, 0.0
        self._full_sync, self._synced = True, -math.inf
        self._connect()
        self._written()

    def _written_elsewhere(self) -> tuple[Path, Lock]:
        """A new file with all rows, and its lock."""
        errors: list[Exception] = []
        for path in _other_paths(self._file):
            try:
                lock = Lock(path)
            except (ValueError, OSError) as error:
                errors.append(error)
                continue
            try:
                self._create(path, self._held.rows())
            except (ValueError, OSError, sqlite3.Error) as error:
                errors.append(error)
                lock.release()
            else:
                return path, lock
        raise OSError(f"it is gone, and there is no other place for it: {errors[-1]}")

    # Writing

    def _write_rows(self, connection: sqlite3.Connection, rows: Iterable[tuple[str, Cells]]) -> None:
        for table, row in rows:
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

    def _failed(self, connection: sqlite3.Connection, error: Exception) -> None:
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


def _reader(file: Path) -> sqlite3.Connection:
    """A connection that only reads, and holds its lock on the file."""
    reader = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    reader.execute("SELECT count(*) FROM total").fetchone()
    return reader


def _other_paths(file: Path) -> Iterator[Path]:
    """Free names like run-2.db: beside the file, or in the nearest folder that is left; then among temporary files."""
    nearest = next(folder for folder in file.parents if folder.is_dir())
    for folder in (nearest, Path(tempfile.gettempdir())):
        paths = (folder / f"{file.stem}-{number}{file.suffix}" for number in itertools.count(2))
        yield from itertools.islice((path for path in paths if not os.path.lexists(path)), OTHER_NAMES)
