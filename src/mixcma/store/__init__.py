"""The run file: one SQLite database per search."""

from mixcma.store.lock import holder
from mixcma.store.no_file import Entry, NoFile
from mixcma.store.reading import Record, Row, read
from mixcma.store.run_file import RunFile
from mixcma.store.schema import DamagedRunFile

__all__ = ["DamagedRunFile", "Entry", "NoFile", "Record", "Row", "RunFile", "holder", "read"]
