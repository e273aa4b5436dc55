"""``mixcma salvage``: saves what is intact in a damaged run file."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from mixcma.cli.common import plain, run_file_argument, sentences, terminal
from mixcma.search.salvaging import Salvaged
from mixcma.search.salvaging import salvage as save


@click.command()
@run_file_argument
@click.argument("new", type=click.Path(path_type=Path, dir_okay=False))
def salvage(run_file: Path, new: Path) -> None:
    """Save what is intact in the damaged RUN_FILE into the file NEW, from which the run can continue."""
    with sentences():
        saved = save(run_file, new)
    terminal().print(plain(_summary(saved, run_file)), soft_wrap=True)


def _summary(saved: Salvaged, run_file: Path) -> str:
    rows = "1 row is" if saved.lost == 1 else f"{saved.lost} rows are"
    lost = "an unknown number of rows is lost" if saved.lost is None else f"{rows} lost"
    kept = f"{saved.saved} rows of {run_file} are saved in {saved.run_file}, {saved.evaluations} of them evaluations"
    lines = [f"{kept}; {lost}."]
    if saved.continues:
        lines.append("The run continues where it stood; what it needs of the lost rows is evaluated again.")
    else:
        lines.append("The state of the run is lost: it begins again at the best point that was saved.")
    if saved.has_problem is None:
        lines.append("The stored problem is lost, so mixcma resume cannot go on: the problem file is needed.")
    file = shlex.quote(str(saved.run_file))
    return "\n".join([*lines, *_ways_to_go_on(saved, file), f"  mixcma show {file}"])


def _ways_to_go_on(saved: Salvaged, file: str) -> list[str]:
    if saved.has_problem:
        return [f"  mixcma resume {file}"]
    in_python = f"  mixcma.resume({str(saved.run_file)!r}, objective)   # in Python"
    if saved.has_problem is None:
        return [f"  mixcma run PROBLEM --run-file {file}", f"{in_python}, if the run was begun there"]
    return [in_python]
