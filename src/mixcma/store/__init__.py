"""The run file: one SQLite database per search."""

from mixcma.store.lock import holder
from mixcma.store.no_file import Entry, NoFile
from mixcma.store.reading import Record, Row, read
from mixcma.store.run_file import RunFile, snapshot_row, write_run_file
from mixcma.store.salvage import Remains, remains_of
from mixcma.store.schema import DamagedRunFile

__all__ = [
    "DamagedRunFile",
    "Entry",
    "NoFile",
    "Record",
    "Remains",
    "Row",
    "RunFile",
    "holder",
    "read",
    "remains_of",
    "snapshot_row",
    "write_run_file",
]
