"""From a run file back to where its search stood."""

from __future__ import annotations

import math

from mixcma.core.stopping import FAILING, REASONS
from mixcma.run.optimizer import Optimizer
from mixcma.search.account import Account
from mixcma.search.result import Run
from mixcma.store import Record, Row


def take_up(account: Account, optimizer: Optimizer, record: Record) -> None:
    """Bring the account and the optimizer to where they were at the file's snapshot; the file holds what came later."""
    optimizer.restore(record.snapshot)
    # whoever goes on with a search in which all failed has corrected something: what failed is tried again
    account.recalls_failures = record.settings["stop"] != FAILING.name
    present = record.runs[optimizer.run]
    later = record.runs[1:]
    for run, following in zip(record.runs, later):
        evaluations = following.evaluations_before - run.evaluations_before
        account.runs.append(Run(run.popsize, evaluations, _best_value(record.rows, run.run), REASONS[run.stop or ""]))
    known = [row for row in record.rows if _in_snapshot(row, record, optimizer)]
    known.sort(key=lambda row: (row.counted or 0, row.id))
    account.begin_run(present.evaluations_before)
    for row in known:
        assert row.outcome is not None
        if row.evaluated:
            account.take(row.params, row.outcome)
        if row.run == present.run:
            account.see(row.outcome, row.evaluated)
            optimizer.remember(row.params, row.outcome)


def _in_snapshot(row: Row, record: Record, optimizer: Optimizer) -> bool:
    """Whether the row is finished and its outcome had been used when the snapshot was taken."""
    if not row.finished:
        return False
    if row.counted is not None:
        return bool(row.counted <= record.snapshot.numbers["counted"])
    if row.run == 0 and row.generation < 0:  # the points of x0 are taken again before the first generation
        return (optimizer.run, optimizer.generation) != (0, 0)
    return (row.run, row.generation) < (optimizer.run, optimizer.generation)


def _best_value(rows: list[Row], run: int) -> float:
    values = [row.outcome.value for row in rows if row.run == run and row.outcome is not None and row.outcome.feasible]
    return min(values, default=math.inf)
