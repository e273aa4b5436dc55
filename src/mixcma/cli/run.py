"""``mixcma run`` and ``mixcma resume``: optimise the problem that a file describes."""

from __future__ import annotations

import json
import logging
import math
import shlex
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from rich.logging import RichHandler
from rich.table import Table

from mixcma.cli.common import (
    FAILED,
    INTERRUPTED,
    WRONG,
    cell,
    errors,
    fail,
    plain,
    print_mistakes,
    problem_of,
    record_of,
    sentences,
    terminal,
)
from mixcma.cli.trust import ask, is_own, signature
from mixcma.evaluation import CallResult, open_evaluator
from mixcma.evaluation.command import Command
from mixcma.latent.encoding import Encoding
from mixcma.problem_file import Problem, WrongProblem, problem_from
from mixcma.search.driver import minimize
from mixcma.search.driver import resume as resume_run
from mixcma.search.progress import Progress, printable, printable_lines, value_text
from mixcma.search.result import Result
from mixcma.space import Params

Decorator = Callable[..., Any]


class WorkersType(click.ParamType):  # type: ignore[type-arg]  # older versions of click take no argument
    """A number of processes, or the address of a dask scheduler."""

    name = "workers"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int | str:
        text = str(value)
        if not text.isdigit() and not text.startswith("dask:"):
            self.fail(f'expected a number of processes or "dask:tcp://host:8786", but got {text!r}', parameter, context)
        return int(text) if text.isdigit() else text


def _run_options(command: Decorator) -> Decorator:
    """Adds the options of both commands; they override what the file says."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON: one line per generation, then the result."),
        click.option("--quiet", is_flag=True, help="Print only the result."),
        click.option("--timeout", type=click.FloatRange(0, min_open=True), help="The most seconds per evaluation."),
        click.option("--workers", type=WorkersType(), help='A number of processes, or "dask:tcp://host:8786".'),
        click.option("--target", type=float, help="Stop as soon as a feasible value is at or below this."),
        click.option("--budget", type=click.IntRange(1), help="The largest number of evaluations."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("problem", type=click.Path(path_type=Path, dir_okay=False))
@_run_options
@click.option("--seed", type=click.IntRange(0), help="The same seed gives the same run.")
@click.option("--method", help="mix (the default), mix-without-model, margin, catmargin, im, im-box or cma.")
@click.option("--popsize", type=click.IntRange(4), help="Candidates per generation.")
@click.option("--run-file", type=click.Path(dir_okay=False), help="Default: the name of PROBLEM with .db.")
def run(problem: Path, as_json: bool, quiet: bool, **options: Any) -> None:
    """Optimise the problem that the file PROBLEM describes. If its run file exists, the run continues."""
    described = problem_of(problem)
    given = {**described.run, **{name: value for name, value in options.items() if value is not None}}
    timeout = given.pop("timeout", described.timeout)
    run_file = problem.with_suffix(".db")
    if given.pop("run_file", None) is not None:  # an option is relative to the current folder, a key to its file
        run_file = Path(options["run_file"] or described.folder / described.run["run_file"])
    if "history" in given:
        given["history"] = described.folder / given["history"]
    about = {"text": described.text, "folder": str(described.folder), "path": str(problem.resolve())}
    kept = {"problem": {**about, "signature": signature(about)}}
    if run_file.exists() and _objective_of(_problem_in(run_file)) not in (None, _objective_of(described.text)):
        changed = (
            f"The objective has changed since {run_file} was begun; its earlier values are kept. "
            "For a new run, use --run-file with another name."
        )
        errors.print(plain(changed, "yellow"))

    def search(**how: Any) -> Result:
        return minimize(described.objective, described.space, run_file=run_file, notes=kept, **given, **how)

    _carry_out(search, described, run_file, timeout, quiet, as_json, f"mixcma run {shlex.quote(str(problem))}")


@click.command()
@click.argument("run_file", type=click.Path(path_type=Path, dir_okay=False))
@_run_options
@click.option("--yes", is_flag=True, help="Run the command in RUN_FILE even if it is not from your own mixcma run.")
def resume(run_file: Path, as_json: bool, quiet: bool, yes: bool, **options: Any) -> None:
    """Continue RUN_FILE, which `mixcma run` has begun. This runs the command that is kept in it."""
    notes = record_of(run_file).settings["notes"]
    if "problem" not in notes:
        fail(f"{run_file} was not begun by mixcma run; continue in Python: mixcma.resume({str(run_file)!r}, objective)")
    kept = notes["problem"]
    if not yes and not is_own(kept):
        ask(run_file, kept)
    if not Path(kept["folder"]).is_dir():
        fail(
            f"{run_file} was begun in {kept['folder']}, which is gone; put it back, or continue with the problem file: "
            f"mixcma run PROBLEM --run-file {run_file}"
        )
    try:
        described = problem_from(kept["text"], Path(kept["folder"]), kept["path"])
    except WrongProblem as wrong:  # its Python module is gone, or this version knows other keys
        print_mistakes(wrong)
        sys.exit(WRONG)
    source = Path(kept["path"])
    if source.exists() and source.read_bytes() != kept["text"].encode():
        changed = f"{source} has changed since the run was begun, and is not read here; to use it: mixcma run {source}"
        errors.print(plain(changed, "yellow"))
    given = {name: value for name, value in options.items() if value is not None}
    timeout = given.pop("timeout", described.timeout)
    given.setdefault("workers", described.run.get("workers", 1))

    def search(**how: Any) -> Result:
        return resume_run(run_file, described.objective, **given, **how)

    _carry_out(search, described, run_file, timeout, quiet, as_json, f"mixcma resume {shlex.quote(str(run_file))}")


def _problem_in(run_file: Path) -> str:
    """The text of the problem file that a run was begun with; empty if there was none."""
    text: str = record_of(run_file).settings["notes"].get("problem", {"text": ""})["text"]
    return text


def _objective_of(text: str) -> object:
    try:
        return tomllib.loads(text).get("objective")
    except (ValueError, RecursionError):  # not written by mixcma
        return None


def trial(described: Problem) -> tuple[Params, CallResult]:
    """One evaluation at the point where the search would start, under the conditions of a run."""
    encoding = Encoding(described.space)
    params = encoding.decode(encoding.initial_mean[None])[0]
    with sentences():
        evaluator = open_evaluator(described.objective, 1, _limit(described, described.timeout))
    try:
        evaluator.submit(0, params)
        return params, evaluator.next().call
    finally:
        evaluator.close()


def _limit(described: Problem, timeout: float | None) -> float | None:
    """The timeout. A program without one gets an infinite one: it then runs in a sandbox, and ends with its owner."""
    return math.inf if timeout is None and isinstance(described.objective, Command) else timeout


def _carry_out(
    search: Callable[..., Result],
    described: Problem,
    run_file: Path,
    timeout: float | None,
    quiet: bool,
    as_json: bool,
    again: str,
) -> None:
    """Search with a display, then print the result and what to do next."""
    handler = RichHandler(console=errors, show_time=False, show_path=False)
    handler.setFormatter(_Printable("%(message)s"))
    handler.addFilter(lambda record: not record.getMessage().startswith("interrupted"))  # printed as a command below
    logging.basicConfig(handlers=[handler])
    progress = not quiet and not as_json
    if progress and run_file.exists():
        spent = sum(row.evaluated for row in record_of(run_file).rows)
        click.echo(printable(f"continuing after the {spent} evaluations in {run_file}"))
    with sentences():
        result = search(
            timeout=_limit(described, timeout), progress=progress, callback=_print_json if as_json else None
        )
    if as_json:
        click.echo(json.dumps({"event": "result", **_summary(result)}))
    else:
        _print_result(result)
        if not quiet:
            _print_next(result, run_file, again)
    if result.stop.name == "interrupted":
        sys.exit(INTERRUPTED)
    if result.params is None:
        sys.exit(FAILED)


def _print_json(progress: Progress) -> None:
    best = progress.best
    line = {
        "event": "generation",
        "evaluations": progress.evaluations,
        "budget": progress.budget,
        "run": progress.run,
        "generation": progress.generation,
        "failures": progress.failures,
        "step_size": progress.step_size,
        "value": None if best is None else _json_number(best.value),
        "violation": None if best is None else best.violation,
        "params": None if best is None else best.params,
    }
    with suppress(OSError):  # nobody reads it, or a disk is full: that is no reason to end a search
        click.echo(json.dumps(line))


def _summary(result: Result) -> dict[str, Any]:
    return {
        "params": result.params,
        "value": _json_number(result.value),
        "feasible": result.params is not None and result.feasible,
        "evaluations": result.evaluations,
        "failures": result.failures,
        "stop": result.stop.name,
        "message": str(result.stop),
        "runs": len(result.runs),
        "seed": result.seed,
        "run_file": str(result.run_file),
    }


def _json_number(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def _print_result(result: Result) -> None:
    console = terminal()
    if result.params is None:
        console.print("No evaluation succeeded.", style="red")
    else:
        console.print(f"best value {result.value:.10g}", style="bold")
        table = Table("variable", "value")
        for name, value in result.params.items():
            table.add_row(cell(name), cell(value_text(value)))
        console.print(table)
        if not result.feasible:
            console.print(f"Not feasible: the constraints are violated by {result.violation:.6g}.", style="red")
    runs = f" in {len(result.runs)} runs" if len(result.runs) > 1 else ""
    failed = f", {result.failures} of them failed" if result.failures else ""
    why = str(result.stop) if result.params is not None else result.stop.message
    console.print(f"{result.evaluations} evaluations{runs}{failed}, seed {result.seed}. {why}")
    if result.params is None:
        console.print(plain(f"The first error: {result.first_error}"))


def _print_next(result: Result, run_file: Path, again: str) -> None:
    """The commands that a user is likely to want now."""
    if result.run_file is not None and result.run_file != run_file:  # something has happened to the file
        run_file = result.run_file
        again = f"mixcma resume {shlex.quote(str(run_file))}"
    file = shlex.quote(str(run_file))
    if result.stop.name == "budget" and result.params is not None:
        onward = f"mixcma resume {file} --budget {2 * result.evaluations}"
    elif result.stop.name == "interrupted":
        onward = f"{again}   # continues"
    elif result.params is None:
        onward = f"{again}   # continues, once the problem is corrected"
    else:
        onward = f"mixcma show {file}"
    lines = [f"\nThe run is in {run_file}:", f"  mixcma report {file}   # writes an HTML page", f"  {onward}"]
    terminal().print(plain("\n".join(lines)), soft_wrap=True)


class _Printable(logging.Formatter):
    """Messages may contain texts of the user, which must not act on the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))
