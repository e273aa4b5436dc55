"""``mixcma race``: compares mixcma with its peers, from the same starts and with the same budgets and targets."""

from __future__ import annotations

import importlib.metadata
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import rich.progress as bars
from rich.console import Console
from rich.table import Table

from mixcma.cli.common import drawing, words
from mixcma.experiments.race.beds import BEDS, Choice
from mixcma.experiments.race.racers import RACERS
from mixcma.experiments.race.runner import Result, cells_of, run_bed
from mixcma.experiments.race.tables import ROWS, Row, headers, shown, write_results

PROBLEMS = tuple(dict.fromkeys(name for bed in BEDS.values() for name in bed.problems))


def _numbers(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Reads whole numbers and ranges of them: 1-3,7."""
    if text is None:
        return None
    numbers: list[int] = []
    try:
        for word in text.split(","):
            first, _, last = word.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of whole numbers and ranges, like 1-3,7") from None
    if not numbers or min(numbers) < 1:
        raise click.BadParameter(f"{text!r}: expected whole numbers of at least 1, and ranges in ascending order")
    return tuple(dict.fromkeys(numbers))


@click.command()
@click.option("--beds", default=",".join(BEDS), show_default=True, callback=words(tuple(BEDS)))
@click.option(
    "--methods",
    default=",".join(RACERS),
    callback=words(tuple(RACERS)),
    help=f"The racers. Default: all, {', '.join(RACERS)}.",
)
@click.option("--problems", callback=words(PROBLEMS), help="Default: all problems of the beds.")
@click.option("--dimensions", callback=_numbers, help="For paper and bbob-mixint. Default: 20,40 and 5,10,20,40.")
@click.option("--instances", default="1-3", show_default=True, callback=_numbers, help="For bbob-mixint.")
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1), help="Runs per problem, other beds.")
@click.option(
    "--budget",
    type=click.IntRange(2),
    help="Evaluations per variable; for practice and branches in total. Default: 10000; for bbob-mixint 1000, and 200 "
    "from D = 80 on; for designs and discrete 20000 in total; for practice 1000; for branches 150.",
)
@click.option(
    "--spread",
    default=1 / 6,
    show_default="1/6",
    type=click.FloatRange(0, 1, min_open=True),
    help="Initial standard deviation as a fraction of the range, for bbob-mixint, designs, practice and branches.",
)
@click.option("--against", help="The racer that ratios of areas refer to. Default: the first.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--out", default="race", show_default=True, type=click.Path(path_type=Path, file_okay=False))
def race(
    beds: Sequence[str],
    methods: Sequence[str],
    problems: tuple[str, ...] | None,
    dimensions: tuple[int, ...] | None,
    instances: tuple[int, ...],
    seeds: int,
    budget: int | None,
    spread: float,
    against: str | None,
    jobs: int,
    out: Path,
) -> None:
    """Race mixcma against its peers: every optimiser through its own package, from the same starts.

    Finished runs are kept in the folder of --out; the same command continues from there.
    """
    console = Console(soft_wrap=True, markup=False, emoji=False)
    figures = drawing("mixcma.experiments.race.figures")
    racers = _installed_racers(console, methods)
    if against is not None and against not in racers:
        raise click.BadParameter(f"{against!r} is not one of the racers: {', '.join(racers)}", param_hint="--against")
    choice = Choice(problems, dimensions, instances, seeds, budget, spread)
    results = _race(console, _possible_beds(console, beds), racers, choice, jobs, out)
    rows = {bed: ROWS[bed](found, against or racers[0]) for bed, found in results.items()}
    written = write_results(rows, _about(racers, choice, against or racers[0]), out)
    for bed, found in results.items():
        _print_rows(console, bed, rows[bed])
        written += figures.save(figures.runtime_figure(bed, found), out / bed)
    console.print(f"Written: {', '.join(str(path) for path in written)}")


def _race(
    console: Console, beds: Sequence[str], racers: Sequence[str], choice: Choice, jobs: int, out: Path
) -> dict[str, list[Result]]:
    """The results by bed; beds with none of the chosen problems are left out."""
    results = {}
    for bed in beds:
        try:
            total = len(cells_of(bed, racers, choice))
        except ValueError as error:
            raise click.ClickException(str(error)) from error
        if total:
            with _long_work(console, bed, total, out) as finished:
                results[bed] = run_bed(bed, racers, choice, out=out, jobs=jobs, finished=finished)
    if not results:
        raise click.ClickException("nothing to run: none of the problems belongs to any of the beds")
    return results


def _installed_racers(console: Console, methods: Sequence[str]) -> list[str]:
    """The racers whose package is installed; a sentence names each of the others."""
    missing = {name: RACERS[name].missing for name in methods}
    for name, package in missing.items():
        if package is not None:
            console.print(f"{name} is left out: {_not_installed(package)}")
    racers = [name for name in methods if missing[name] is None]
    if not racers:
        raise click.ClickException(f"none of the racers is installed; pip install {missing[methods[0]]}")
    return racers


def _possible_beds(console: Console, beds: Sequence[str]) -> list[str]:
    """The beds whose package is installed; a sentence names each of the others."""
    missing = {bed: BEDS[bed].package for bed in beds if not _is_installed(BEDS[bed].package)}
    for bed, package in missing.items():
        console.print(f"{bed} is left out: {_not_installed(package)}")
    return [bed for bed in beds if bed not in missing]


def _not_installed(package: str | None) -> str:
    return f"the package {package} is not installed; pip install {package}"


def _is_installed(package: str | None) -> bool:
    try:
        return package is None or bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


def _about(racers: Sequence[str], choice: Choice, against: str) -> dict[str, Any]:
    return {
        "versions": {RACERS[name].package: RACERS[name].version for name in racers},
        "against": against,
        "instances": choice.instances,
        "seeds": choice.seeds,
        "budget": choice.budget,
        "spread": choice.spread,
    }


def _print_rows(console: Console, bed: str, rows: Sequence[Row]) -> None:
    """One section per problem and dimension; rows with runs that ended with an error stand out."""
    names = headers(rows)
    table = Table(*names, title=bed)
    for _, group in itertools.groupby(rows, key=lambda row: (row[names[0]], row.get("N"))):
        table.add_section()
        for row in group:
            table.add_row(*(shown(row.get(name)) for name in names), style="yellow" if row["errors"] else None)
    console.print(table, soft_wrap=False)


@contextmanager
def _long_work(console: Console, bed: str, total: int, out: Path) -> Iterator[Callable[[int], None]]:
    """A progress bar with the number of finished runs and the time left; Ctrl-C keeps what is finished."""
    columns = (
        bars.TextColumn(bed),
        bars.BarColumn(bar_width=20),
        bars.TextColumn("{task.completed}/{task.total} runs"),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(compact=True),
    )
    with bars.Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=total)
        try:
            yield lambda count: progress.update(task, advance=count)
        except KeyboardInterrupt:
            progress.stop()
            kept = f"finished runs are kept in {out}, and the same command continues from there"
            raise click.ClickException(f"stopped; {kept}") from None
        except (OSError, ValueError, RuntimeError) as error:
            progress.stop()
            raise click.ClickException(str(error)) from error
