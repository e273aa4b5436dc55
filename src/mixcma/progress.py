"""Where a search stands, and a live line in the terminal that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import rich.progress as bars
from rich.console import Console
from rich.table import Column

from mixcma.optimizer import Best


@dataclass(frozen=True)
class Progress:
    """Where a search stands at the end of a generation; what a callback receives."""

    evaluations: int
    budget: int
    run: int
    generation: int
    popsize: int
    step_size: float
    failures: int
    best: Best | None


@contextmanager
def progress_display(budget: int, console: Console | None = None) -> Iterator[Callable[[Progress], None]]:
    """A display that is fed with the progress of every generation."""
    columns = (
        bars.BarColumn(bar_width=12),
        bars.MofNCompleteColumn(table_column=Column(no_wrap=True)),
        bars.TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        bars.TextColumn("[bold]{task.fields[best]}", table_column=Column(no_wrap=True)),
        bars.TextColumn("{task.fields[run]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
    )
    with bars.Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=budget, run="", best="the first evaluation is under way")

        def show(progress: Progress) -> None:
            bar.update(
                task,
                completed=progress.evaluations,
                run=f"run {progress.run + 1}, population {progress.popsize}",
                best=_best(progress),
            )

        yield show


def _best(progress: Progress) -> str:
    best = progress.best
    if best is None:
        return "no evaluation has succeeded yet"
    if best.feasible:
        return f"best {best.value:.8g}"
    return f"nothing feasible yet, violation {best.violation:.3g}"
