"""Held: every row of a run file in memory, so that the file can be made again if something destroys it."""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from typing import Any

from mixcma.store.schema import TABLES

Cells = tuple[Any, ...]  # a row of a table


class Held:
    """The newest version of every row, with its checksum; about half a kilobyte per evaluation of twenty variables."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[object, bytes]] = {table: {} for table in TABLES}

    def put(self, table: str, row: Cells) -> int:
        """Keep a row; returns about how many bytes it has."""
        kept = self._rows[table][row[0]] = marshal.dumps(row)
        return len(kept)

    def rows(self) -> Iterator[tuple[str, Cells]]:
        for table, rows in self._rows.items():
            for row in rows.values():
                yield table, marshal.loads(row)
