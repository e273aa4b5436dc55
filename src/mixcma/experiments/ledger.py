"""Finished cells of a long experiment, kept in a file so that the same command goes on from them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mixcma.batch import Watch

Item = TypeVar("Item")


class Ledger:
    """A JSON file of results by key; written whole after every result, so it is never half a file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)  # before any work is done for it
        self.path = path
        self._results: dict[str, Any] = {}
        if path.exists():
            try:
                self._results = dict(json.loads(path.read_text()))
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"{path}: expected the finished cells of an earlier run, but got something else ({error}); "
                    "move the file away to start anew"
                ) from error

    def __contains__(self, key: str) -> bool:
        return key in self._results

    def __getitem__(self, key: str) -> Any:
        return self._results[key]

    def add(self, results: dict[str, Any]) -> None:
        self._results |= results
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._results, indent=1))
        os.replace(temporary, self.path)


def run_missing(
    ledger: Ledger,
    groups: Iterable[Sequence[Item]],
    key: Callable[[Item], str],
    run: Callable[[list[Item], Watch | None], list[dict[str, Any]]],
    started: Callable[[list[Item]], Watch | None],
    finished: Callable[[int], None],
) -> None:
    """Run what the ledger does not have yet, group by group; `run` gives a result for each item."""
    for group in groups:
        missing = [item for item in group if key(item) not in ledger]
        if missing:
            results = run(missing, started(missing))
            ledger.add({key(item): result for item, result in zip(missing, results)})
        finished(len(group))


def grouped(items: Iterable[Item], by: Callable[[Item], object]) -> list[list[Item]]:
    """Items with equal keys together, in the order of their first."""
    groups: dict[object, list[Item]] = {}
    for item in items:
        groups.setdefault(by(item), []).append(item)
    return list(groups.values())


def nobody(items: object) -> None:
    """Watches nothing."""
