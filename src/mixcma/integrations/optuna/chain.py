"""What trials carry, and which of it counts: the longest chain of closed generations.

Whoever finds a generation's results complete closes it, and says so in the trial it is about to draw. A trial
belongs to one worker, so nobody overwrites anybody. Where two workers close the same generation at the same
moment there are two records with the same predecessor; as soon as all see both, all follow the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Start(NamedTuple):
    """The beginning of a run: all that the settings do not say."""

    run: int
    seed: int
    mean: list[float] | None  # the latent point where it starts, if the user said so
    history: int  # it starts from the results of the trials with a number below,
    unfinished: list[int]  # but for these


class Record(NamedTuple):
    """A generation was closed, or a run begins, or both."""

    carrier: int  # number of the trial that it is kept in
    after: int | None  # carrier of the record before
    depth: int  # records before
    took: list[int]  # the trials whose results the generation was closed with
    start: Start | None

    def to_json(self) -> dict[str, Any]:
        about: dict[str, Any] = {"after": self.after, "depth": self.depth}
        if self.took:
            about["took"] = self.took
        if self.start is not None:
            about["start"] = self.start._asdict()
        return about


def record_from_json(carrier: int, about: dict[str, Any]) -> Record:
    start = about.get("start")
    return Record(carrier, about["after"], about["depth"], about.get("took", []), start and Start(**start))


class Chain:
    """Records that follow one another; those whose predecessor is not known yet wait."""

    def __init__(self) -> None:
        self.last: Record | None = None  # of the longest chain; of two of one length, that with the earlier carrier
        self._records: dict[int, Record] = {}
        self._waiting: dict[int, Record] = {}

    def add(self, *records: Record) -> None:
        self._waiting.update((record.carrier, record) for record in records)
        while fitting := [record for record in self._waiting.values() if self._fits(record)]:
            for record in fitting:
                self._records[record.carrier] = self._waiting.pop(record.carrier)
                if self.last is None or (-record.depth, record.carrier) < (-self.last.depth, self.last.carrier):
                    self.last = record

    def _fits(self, record: Record) -> bool:
        if record.after is None:
            return record.depth == 0 and record.start is not None
        before = self._records.get(record.after)
        return before is not None and before.depth == record.depth - 1

    def backwards(self) -> Iterator[Record]:
        """From the last record of the longest chain to the first."""
        record = self.last
        while record is not None:
            yield record
            record = None if record.after is None else self._records[record.after]
