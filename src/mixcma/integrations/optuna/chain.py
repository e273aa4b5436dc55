"""What trials carry, and which of it counts: the longest chain of closed generations.

Whoever finds a generation's results complete closes it, and says so in the trial it is about to draw. A trial
belongs to one worker, so nobody overwrites anybody. Where two workers close the same generation at the same
moment there are two records with the same predecessor; as soon as all see both, all follow the same one.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Start(NamedTuple):
    """The beginning of a run: all that the settings do not say."""

    run: int
    seed: int
    mean: list[float] | None  # the latent point where it starts, if the user said so
    unfinished: list[int] | None  # it starts from all trials before it but these; None: from none


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
    """All records that were seen."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}

    def add(self, record: Record) -> None:
        self._records[record.carrier] = record

    def longest(self) -> list[Record]:
        """From the first record to the last; of chains of one length, that whose last carrier came first."""
        for last in sorted(self._records.values(), key=lambda record: (-record.depth, record.carrier)):
            chain = [last]
            while (before := chain[-1].after) is not None and before in self._records:
                chain.append(self._records[before])
            if chain[-1].after is None:  # else one of them cannot be seen yet
                return chain[::-1]
        return []
