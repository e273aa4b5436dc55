"""``mixcma reproduce``: the three experiments of the paper, one command each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import rich.progress as bars
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from mixcma.batch import Backend, Watch
from mixcma.cli.common import drawing, words
from mixcma.core.methods import METHODS
from mixcma.experiments import alpha as alpha_experiment
from mixcma.experiments import stagnation as stagnation_experiment
from mixcma.experiments import table as table_experiment
from mixcma.problems import PAPER_FUNCTIONS

Command = Callable[..., Any]


@click.group()
def reproduce() -> None:
    """Run the experiments of "CMA-ES with Margin" (GECCO 2022) and put the results beside the paper's."""


def _options(command: Command) -> Command:
    """Adds the options of the commands that run trials."""
    for option in (
        click.option("--trials", default=100, show_default=True, type=click.IntRange(1), help="Runs per cell."),
        click.option("--seed", default=0, show_default=True, type=click.IntRange(0)),
        click.option("--backend", default="numpy", show_default=True, type=click.Choice(["numpy", "jax"])),
    ):
        command = option(command)
    return command


def _out(name: str) -> Command:
    return click.option(
        "--out",
        default=f"reproduction/{name}",
        show_default=True,
        type=click.Path(path_type=Path, file_okay=False),
    )


def _dimensions(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    """Reads a comma-separated list of whole numbers of at least 2."""
    try:
        numbers = tuple(int(word) for word in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a comma-separated list of whole numbers, like 20,40") from None
    if min(numbers) < 2:
        raise click.BadParameter(f"{min(numbers)} is too small a dimension; the smallest is 2")
    return numbers


FUNCTIONS_OPTION = click.option(
    "--functions", default=",".join(PAPER_FUNCTIONS), callback=words(PAPER_FUNCTIONS), help="Default: all six."
)
DIMENSIONS_OPTION = click.option(
    "--dimensions", default=",".join(map(str, table_experiment.DIMENSIONS)), show_default=True, callback=_dimensions
)
METHODS_OPTION = click.option(
    "--methods", default=",".join(table_experiment.METHODS), show_default=True, callback=words(tuple(METHODS))
)


@reproduce.command()
@FUNCTIONS_OPTION
@DIMENSIONS_OPTION
@METHODS_OPTION
@click.option(
    "--penalty",
    default="fitted",
    show_default=True,
    type=click.Choice(["fitted", "printed"]),
    help="The penalty of im-box for N > 20: the one that yields the paper's column, or the one in its text.",
)
@_out("table")
@_options
def table(
    functions: Sequence[str],
    dimensions: Sequence[int],
    methods: Sequence[str],
    trials: int,
    seed: int,
    backend: Backend,
    penalty: table_experiment.Penalty,
    out: Path,
) -> None:
    """Table 2: success rates and median evaluations, beside the paper's, with a verdict per cell."""
    cells = table_experiment.default_cells(functions, dimensions, methods)
    with _long_work("cells", len(cells), out) as (started, finished):
        records = table_experiment.reproduce_table(
            cells, trials=trials, seed=seed, backend=backend, out=out, penalty=penalty,
            started=lambda group: started(f"{group[0].method}, N = {group[0].dimension}, {group[0].function}"),
            finished=finished,
        )  # fmt: skip
    console = Console(markup=False, emoji=False)
    _print_table(console, table_experiment.table_rows(records))
    paper = table_experiment.paper_records()
    verdicts = [table_experiment.verdict(r, paper[r.cell]).passed for r in records if r.cell in paper]
    if verdicts:
        console.print(f"{sum(verdicts)} of {len(verdicts)} cells agree with the paper.")
    console.print(f"Written: {out}/table.json, table.csv, table.md")


@reproduce.command()
@DIMENSIONS_OPTION
@_out("alpha")
@_options
def alpha(dimensions: Sequence[int], trials: int, seed: int, backend: Backend, out: Path) -> None:
    """Section 5.1: 48 sizes of the margin on SphereInt, as the two heat maps of Figure 4."""
    figures = drawing("mixcma.experiments.figures")
    points = alpha_experiment.grid(dimensions)
    with _long_work("settings", len(points), out) as (started, finished):
        records = alpha_experiment.reproduce_alpha(
            points, trials=trials, seed=seed, backend=backend, out=out,
            started=lambda group: started(f"N = {group[0].dimension}, m = {group[0].m:g}"),
            finished=finished,
        )  # fmt: skip
    paths = figures.save(figures.alpha_figure(records), out / "alpha")
    Console(markup=False, emoji=False).print(f"Written: {out}/alpha.json, {', '.join(path.name for path in paths)}")


@reproduce.command()
@click.option("--dimension", default=stagnation_experiment.DIMENSION, show_default=True, type=click.IntRange(2))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@_out("stagnation")
def stagnation(dimension: int, seed: int, out: Path) -> None:
    """Section 3: a failed run of each older method, and a run of the margin from the same start."""
    figures = drawing("mixcma.experiments.figures")
    out.mkdir(parents=True, exist_ok=True)
    console = Console(markup=False, emoji=False)
    try:
        with console.status("looking for failed runs"):
            pairs = stagnation_experiment.reproduce_stagnation(seed, dimension)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    for failed, margin in pairs:
        console.print(
            f"{failed.method}, trial {failed.trial}: stuck at {failed.best[-1]:.3g} after "
            f"{len(failed.best)} generations; the margin from the same start: {margin.best[-1]:.3g} after "
            f"{len(margin.best)}"
        )
    paths = figures.save(figures.stagnation_figure(pairs), out / "stagnation")
    console.print(f"Written: {', '.join(str(path) for path in paths)}")


def _print_table(console: Console, rows: list[list[str]]) -> None:
    """One group per method and dimension, so that the rows fit a narrow terminal."""
    names = ("function", "median (IQR)", "paper", "ratio", "successes", "paper's", "verdict")
    shown = Table(*(Column(name, no_wrap=index == 0) for index, name in enumerate(names)))
    for (dimension, method), group in itertools.groupby(rows, key=lambda row: (row[1], row[2])):
        shown.add_section()
        shown.add_row(Text(f"{method}, N = {dimension}", style="bold"))
        for row in group:
            style = None if row[-1] in ("ok", "") else "yellow"
            shown.add_row(row[0], *row[3:8], row[-1], style=style)
    console.print(shown)


@contextmanager
def _long_work(unit: str, total: int, out: Path) -> Iterator[tuple[Callable[[str], Watch], Callable[[int], None]]]:
    """A progress bar with what is finished, the active runs and the time left; Ctrl-C keeps what is finished."""
    columns = (
        bars.BarColumn(bar_width=12),
        bars.TextColumn("{task.completed}/{task.total} " + unit, table_column=Column(no_wrap=True)),
        bars.TimeElapsedColumn(table_column=Column(no_wrap=True)),
        bars.TextColumn("left", table_column=Column(no_wrap=True)),
        bars.TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        bars.TextColumn("{task.fields[now]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
    )
    with bars.Progress(*columns) as progress:
        task = progress.add_task("", total=total, now="")

        def started(what: str) -> Watch:
            progress.update(task, now=what)
            return lambda generation, alive: progress.update(
                task, now=f"{alive} active runs, generation {generation} ({what})"
            )

        def finished(count: int) -> None:
            progress.update(task, advance=count, now="")

        try:
            yield started, finished
        except KeyboardInterrupt:
            progress.stop()
            kept = out / "cells.json"
            done = f"finished {unit} are kept in {kept}" if kept.exists() else f"none of the {unit} was finished yet"
            raise click.ClickException(f"stopped; {done}, and the same command continues from there") from None
        except (ModuleNotFoundError, OSError, ValueError) as error:
            progress.stop()
            raise click.ClickException(str(error)) from error
