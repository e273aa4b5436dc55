"""Export a run file as CSV and as JSON."""

from __future__ import annotations

import csv
import json
from typing import IO

from mixcma.space import Params, Space, Value
from mixcma.store import Record, Row

COLUMNS = (
    "evaluation", "run", "generation", "slot", "status", "value", "violation", "error", "started", "seconds",
    "traceback",
)  # fmt: skip
# A spreadsheet takes a text that begins with one of these for a formula, and computes it.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(record: Record, out: IO[str]) -> None:
    """Write one row per candidate: its result, then its parameters and constraints.

    Texts that a spreadsheet would take for a formula get an apostrophe in front.
    """
    most = max((len(row.outcome.constraints) for row in record.rows if row.outcome is not None), default=0)
    table = csv.writer(out)
    table.writerow(map(_harmless, [*COLUMNS, *record.space, *(f"constraint {i + 1}" for i in range(most))]))
    for row in record.rows:
        constraints = [] if row.outcome is None else list(row.outcome.constraints)
        cells = [*_cells(row), *_values(record.space, row.params), *constraints, *[""] * (most - len(constraints))]
        table.writerow(map(_harmless, cells))


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def _values(space: Space, params: Params) -> list[Value]:
    """A cell for each variable, empty for those that do not exist at this point."""
    return [params.get(name, "") for name in space]


def _cells(row: Row) -> list[object]:
    outcome = row.outcome
    value = "" if outcome is None or outcome.failed else outcome.value
    violation = "" if outcome is None or outcome.failed else outcome.violation
    error = "" if outcome is None else outcome.error or ""
    traceback = "" if outcome is None else outcome.traceback or ""
    place = [row.id, row.run, row.generation, row.slot]
    return [*place, row.status, value, violation, error, row.started, row.seconds, traceback]


def write_json(record: Record, out: IO[str]) -> None:
    """Write settings and evaluations. Infinities become null, because JSON has no infinities."""
    evaluations = [
        {
            **dict(zip(COLUMNS, (None if cell == "" else cell for cell in _cells(row)))),
            "params": row.params,
            "constraints": None if row.outcome is None else list(row.outcome.constraints),
        }
        for row in record.rows
    ]
    whole = {"settings": record.settings, "runs": [run._asdict() for run in record.runs], "evaluations": evaluations}
    json.dump(_without_infinities(whole), out, indent=1, allow_nan=False)
    out.write("\n")


def _without_infinities(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_infinities(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_infinities(entry) for entry in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value
