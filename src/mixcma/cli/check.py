"""``mixcma check``: is the problem file right, and does one evaluation work?"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
from rich.table import Table

from mixcma.cli.common import FAILED, cell, fail, plain, problem_of, terminal
from mixcma.cli.run import trial
from mixcma.evaluation.command import SHARED_FILE, Command
from mixcma.search.progress import duration, value_text
from mixcma.space import Params, Space


@click.command()
@click.argument("problem", type=click.Path(path_type=Path, dir_okay=False))
def check(problem: Path) -> None:
    """Check the file PROBLEM and make one trial evaluation, at the point where a search starts by default."""
    described = problem_of(problem)
    objective, workers = described.objective, described.run.get("workers", 1)
    if isinstance(objective, Command) and objective.shared_file is not None and workers != 1:
        fail(f"objective: {SHARED_FILE.format(objective.shared_file)}")
    params, call = trial(described)
    console = terminal()
    table = Table("variable", "kind", "tried with")
    for name, variable in described.space.items():
        table.add_row(cell(name), variable.kind, cell(_tried(described.space, name, params)))
    console.print(table)
    outcome = call.outcome
    if outcome.failed:
        console.print(plain(f"The trial evaluation failed: {outcome.error}", "red"))
        if outcome.traceback is not None:
            console.print(plain(outcome.traceback), soft_wrap=True)
        sys.exit(FAILED)
    console.print(f"value {outcome.value:.8g}", end="")
    if outcome.constraints:
        shown = ", ".join(f"{g:.6g}" for g in outcome.constraints)
        console.print(f", constraints {shown}: {'feasible' if outcome.feasible else 'not feasible'}", end="")
    budget = described.run["budget"]
    console.print(f", in {duration(call.seconds)}; {budget} evaluations on one worker would take "
                  f"{duration(budget * call.seconds)}.")  # fmt: skip
    console.print(plain(f"{problem} is ready: mixcma run {shlex.quote(str(problem))}"))


def _tried(space: Space, name: str, params: Params) -> str:
    """The value of a variable, or where it would exist."""
    return value_text(params[name]) if name in params else f"exists only where {space.where(name)}"
