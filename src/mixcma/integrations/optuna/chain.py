"""The records that trials carry, and which of them count: those of the longest chain of closed generations.

The worker that finds the results of a generation complete closes the generation, and writes a record of this into the
trial that it is about to draw. A trial belongs to one worker, so no worker overwrites what another has written. If two
workers close the same generation at the same moment, there are two records with the same predecessor; as soon as
all workers see both, they all follow the same one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple


class Start(NamedTuple):
    """How a run begins: everything that the settings do not say."""

    run: int
    seed: int
    mean: list[float] | None  # the latent point where the run starts, if the user gave one
    history: int  # the run starts from the results of the trials with a lower number,
    unfinished: list[int]  # except for these trials, which were not finished


class Record(NamedTuple):
    """The record that a generation was closed, that a run begins, or both."""

    carrier: int  # the number of the trial that this record is kept in
    after: int | None  # the carrier of the preceding record; None for the first
    depth: int  # the number of preceding records
    took: list[int]  # the trials whose results the generation was closed with
    start: Start | None

    def to_json(self) -> dict[str, Any]:
        about: dict[str, Any] = {"after": self.after, "depth": self.depth}
        if self.took:
            about["took"] = self.took
        if self.start is not None:
            about["start"] = self.start._asdict()
        return about


def record_from_json(carrier: int, about: Any) -> Record:
    """The record that `to_json` described; raises an error of `NONSENSE` if it can have described none."""
    after, took, start = about["after"], about.get("took", []), about.get("start")
    return Record(
        carrier=carrier,
        after=None if after is None else whole(after),
        depth=whole(about["depth"]),
        took=wholes(took),
        start=None if start is None else _start_from_json(start),
    )


def _start_from_json(about: Any) -> Start:
    mean = about["mean"]
    return Start(
        run=whole(about["run"]),
        seed=whole(about["seed"]),
        mean=None if mean is None else [finite(number) for number in mean],
        history=whole(about["history"]),
        unfinished=wholes(about["unfinished"]),
    )


# What reading a text raises that was not written by this sampler.
NONSENSE = (AttributeError, KeyError, OverflowError, TypeError, ValueError)


def whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r:.40} is not a whole number")
    return value


def wholes(values: object) -> list[int]:
    if not isinstance(values, list):
        raise ValueError(f"{values!r:.40} is not a list")
    return [whole(value) for value in values]


def finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r:.40} is not a finite number")
    return float(value)


class Chain:
    """The records that follow one another; a record whose predecessor is not known yet has to wait."""

    def __init__(self) -> None:
        self.last: Record | None = None  # of the longest chain; of two equally long ones, the earlier trial's
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
        """Yield the records of the longest chain, from the last to the first."""
        record = self.last
        while record is not None:
            yield record
            record = None if record.after is None else self._records[record.after]
