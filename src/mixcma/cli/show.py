"""``mixcma show``: shows where a run stands."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mixcma.cli.common import cell, plain, record_of, run_file_argument, terminal
from mixcma.core.stopping import REASONS
from mixcma.run.outcome import Outcome
from mixcma.search.progress import duration, sparkline, value_text
from mixcma.store import Record, Row, holder

BEST_SHOWN = 5
ERRORS_SHOWN = 3
LINES_SHOWN = 15  # of a traceback: the last ones
REFRESH = 2.0  # seconds


@click.command()
@run_file_argument
@click.option("--watch", is_flag=True, help="Repeat every two seconds, until the run ends or you press Ctrl-C.")
def show(run_file: Path, watch: bool) -> None:
    """Show where the run in RUN_FILE stands, even while it is running."""
    console = terminal()
    if not watch:
        console.print(_view(record_of(run_file), holder(run_file)))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            running = holder(run_file)
            live.update(_view(record_of(run_file), running), refresh=True)
            if running is None:
                return
            try:
                time.sleep(REFRESH)
            except KeyboardInterrupt:
                return


def _view(record: Record, running: str | None) -> RenderableType:
    evaluated = sorted((row for row in record.rows if row.evaluated), key=lambda row: row.counted or row.id)
    succeeded = [(row, row.outcome) for row in evaluated if row.outcome is not None and not row.outcome.failed]
    parts: list[RenderableType] = [_head(record, evaluated, running)]
    if succeeded:
        parts += [Text(sparkline(_course(outcome for _, outcome in succeeded)), style="cyan"), _best_points(succeeded)]
    failed = [row.outcome for row in evaluated if row.outcome is not None and row.outcome.failed]
    if failed:
        parts.append(_failures(failed))
    return Group(*parts)


def _failures(failed: list[Outcome]) -> Text:
    """How many evaluations failed, and the first failures with different errors."""
    distinct: dict[str | None, Outcome] = {}
    for outcome in failed:
        distinct.setdefault(outcome.error, outcome)
    first, *others = list(distinct.values())
    lines = [f"{len(failed)} failed; the first: {first.error}", *_end_of_traceback(first)]
    for other in others[: ERRORS_SHOWN - 1]:
        lines += [f"another: {other.error}", *_end_of_traceback(other)]
    if len(distinct) > ERRORS_SHOWN:
        lines.append(f"and {_count(len(distinct) - ERRORS_SHOWN, 'other error')}")
    return plain("\n".join(lines), "red")


def _end_of_traceback(outcome: Outcome) -> list[str]:
    lines = (outcome.traceback or "").rstrip().splitlines()
    cut = ["  ..."] if len(lines) > LINES_SHOWN else []
    return cut + [f"  {line}" for line in lines[-LINES_SHOWN:]]


def _head(record: Record, evaluated: list[Row], running: str | None) -> Text:
    settings = record.settings
    budget, stop = settings["budget"], settings["stop"]
    lines = [f"{record.path}: {len(evaluated)} of {budget} evaluations, {_count(len(record.runs), 'run')}"]
    if record.generations:
        newest = record.generations[-1]
        lines.append(f"generation {newest.generation + 1} of run {newest.run + 1}, step size {newest.step_size:.3g}, "
                     f"axis ratio {newest.axis_ratio:.3g}")  # fmt: skip
    busy = sum(row.seconds or 0.0 for row in evaluated)
    if evaluated:
        lines.append(f"{duration(busy)} spent in evaluations, {duration(busy / len(evaluated))} each")
    if running is not None:
        lines.append(f"in use by {running}")
    elif stop is None:
        lines.append(f"it is not running and has not ended; to continue it: mixcma resume {record.path}")
    else:
        lines.append(str(REASONS.get(stop, stop)))
    return plain("\n".join(lines))


def _best_points(succeeded: list[tuple[Row, Outcome]]) -> Table:
    """One column per point, so that many variables fit."""
    ranked = sorted(succeeded, key=lambda entry: entry[1].order)[:BEST_SHOWN]
    table = Table("best points", *(f"evaluation {row.id}" for row, _ in ranked))
    table.add_row("value", *(f"{outcome.value:.8g}" for _, outcome in ranked), style="bold")
    if any(outcome.constraints for _, outcome in ranked):
        table.add_row("violation", *(f"{outcome.violation:.3g}" for _, outcome in ranked))
    for name in dict.fromkeys(name for row, _ in ranked for name in row.params):
        table.add_row(
            cell(name), *(cell(value_text(row.params[name]) if name in row.params else "") for row, _ in ranked)
        )
    return table


def _course(outcomes: Iterable[Outcome]) -> list[float]:
    """The best value after each evaluation."""
    return [best.value for best in itertools.accumulate(outcomes, _better)]


def _better(one: Outcome, other: Outcome) -> Outcome:
    return min(one, other, key=lambda outcome: outcome.order)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
