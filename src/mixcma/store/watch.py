"""Watch: whether the run file is still where it was, and as the search has left it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from mixcma.store.names import beside
from mixcma.store.reading import read


class Look(NamedTuple):
    """What the file system says of a file."""

    device: int
    inode: int
    size: int
    modified: int


def look(file: Path) -> Look | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return Look(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


class Watch:
    """Compares the run file with what it was: one call of `stat`.

    Commits go to the WAL. The file itself changes only when the search moves them there, and remembers it then.
    """

    def __init__(self, file: Path, total: tuple[int, int]) -> None:
        self.total = total  # of all rows that were committed
        self._file, self._wal = file, beside(file, "-wal")
        self._last, self._last_wal = look(self._file), look(self._wal)

    def remember(self) -> None:
        """The search itself has just changed the file."""
        now = look(self._file)
        if _same_file(now, self._last):  # else `trouble` will say so
            self._last = now

    def trouble(self, thorough: bool) -> str | None:
        """What has happened to the file; None if it is whole. If `thorough`, its WAL is looked at, too."""
        now = look(self._file)
        if now is None:
            return "was removed or renamed"
        if not _same_file(now, self._last):
            return "was replaced by another file"
        if thorough and self._last_wal is not None and not _same_file(look(self._wal), self._last_wal):
            return "has lost its WAL"
        if now == self._last:
            return None
        if self._last is not None and now.size < self._last.size:
            return "was cut off"
        if not self._holds_all():
            return "was changed by another program"
        self._last = now  # another program has moved rows from the WAL into the file, which is harmless
        return None

    def owns_wal(self) -> bool:
        """Whether this is still the WAL that was remembered."""
        return _same_file(look(self._wal), self._last_wal)

    def _holds_all(self) -> bool:
        try:
            return read(self._file).total == self.total
        except ValueError:
            return False


def _same_file(one: Look | None, other: Look | None) -> bool:
    return one is not None and other is not None and one[:2] == other[:2]
