"""The finished cells of a long experiment, kept in a file so that the same command can continue from them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mixcma.batch import Watch

Item = TypeVar("Item")


class Ledger:
    """A JSON file of results by key. It is replaced as a whole after every result, so it is never half written."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)  # fail here rather than after the work is done
        self.path = path
        self._results: dict[str, Any] = {}
        if path.exists():
            try:
                self._results = dict(json.loads(path.read_text()))
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"{path}: expected the finished cells of an earlier run, but got something else ({error}); "
                    "move the file away to start afresh"
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
    """Run the items that the ledger does not have yet, group by group; `run` returns one result per item."""
    for group in groups:
        missing = [item for item in group if key(item) not in ledger]
        if missing:
            results = run(missing, started(missing))
            ledger.add({key(item): result for item, result in zip(missing, results)})
        finished(len(group))


def grouped(items: Iterable[Item], by: Callable[[Item], object]) -> list[list[Item]]:
    """Group items with equal keys; the groups are in the order of their first items."""
    groups: dict[object, list[Item]] = {}
    for item in items:
        groups.setdefault(by(item), []).append(item)
    return list(groups.values())


def no_watch(items: object) -> None:
    """The default where progress is reported: do nothing."""
