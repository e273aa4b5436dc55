"""Finished cells of a long experiment, kept in a file so that the same command goes on from them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class Ledger:
    """A JSON file of results by key; written whole after every result, so it is never half a file."""

    def __init__(self, path: Path) -> None:
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
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._results, indent=1))
        os.replace(temporary, self.path)
