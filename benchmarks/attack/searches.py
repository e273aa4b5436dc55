"""One search with the objective or program of a case, in one of the ways of running."""

from __future__ import annotations

import json
import os
import sys
import traceback
import zlib
from pathlib import Path
from typing import Any

import objectives
import programs
from cases import AGAIN, ASYNCHRONOUS, COMMAND_LINE, DASK, INSIDE, LOKY, NOTHING, POOL, TIMEOUT, WORKERS, Case, Params

from mixcma import Float, Int, Space, minimize
from mixcma.evaluation.command import Command

RUN_FILE = "run.db"
BUDGET, SHORT_BUDGET = 18, 10  # evaluations; the smaller one where each that misbehaves takes long
SHORT, LONG = 1.5, 10.0  # timeouts in seconds: for cases that hang, and for the others
LOW, HIGH, LAST = -5.0, 5.0, 11
FIRST = ((-0.5, 1), (2.5, 3), (-2.5, 5), (3.5, 8))  # x and n of the first points: every case meets two of its own
MIXCMA = "import sys; from mixcma.cli import main; sys.argv[0] = 'mixcma'; main()"
PROBLEM = """[objective]
command = {command}
value = {value}
{workdir}
{timeout}
[run]
budget = {budget}
seed = {seed}
workers = 2
x0 = [{x0}]
[space.{x}]
type = "float"
low = {low}
high = {high}
[space.{n}]
type = "int"
low = 0
high = {last}
"""


def budget(case: Case) -> int:
    return SHORT_BUDGET if case.needs == TIMEOUT or case.makes == AGAIN else BUDGET


def seed(case: Case) -> int:
    return zlib.crc32(case.name.encode()) % 1000


def honest(case: Case, params: Params) -> float:
    """The value of a point, by the formula of the case's kind."""
    named = dict(zip(("x", "n"), params.values()))
    return programs.honest(named) if isinstance(case, programs.Program) else objectives.honest(named)


def run(case: Case, way: str, cluster: str | None) -> None:
    """Search in the current folder, and note how the search ended in a file; it does not return."""
    if way == COMMAND_LINE:
        run_command_line(case)
    folder = Path.cwd()  # the objective may change the current folder
    try:
        with_pool(case, way, cluster)
        end = {"stop": "finished"}
    except BaseException as error:
        end = {"stop": type(error).__name__, "error": str(error)[:500], "traceback": traceback.format_exc()[-3000:]}
    (folder / f"end-{os.getpid()}.json").write_text(json.dumps(end))  # two of them if the objective forked


def with_pool(case: Case, way: str, cluster: str | None) -> None:
    """Open the workers of a way, search, and close them."""
    sandboxed = LONG if case.needs != NOTHING or case.leaves else None  # in a pool a timeout is what makes a sandbox
    if way == INSIDE:
        search(case, 1, None)
    elif way == WORKERS:
        search(case, 2, None)
    elif way == ASYNCHRONOUS:
        search(case, 2, LONG, asynchronous=True)
    elif way == POOL:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(2) as pool:
            search(case, pool, sandboxed)
    elif way == LOKY:
        import loky

        pool = loky.ProcessPoolExecutor(2)
        search(case, pool, sandboxed)
        pool.shutdown(kill_workers=True)
    elif way == DASK:
        search(case, f"dask:{cluster}", LONG if case.lasts else sandboxed)


def search(case: Case, workers: Any, timeout: float | None, **options: Any) -> None:
    objective: Any = objectives.Objective(case.name)
    names = ("x", "n")
    if isinstance(case, programs.Program):
        arguments = (programs.write(case, Path()), *case.arguments)
        objective = Command(arguments, value=case.rule, workdir=case.workdir, folder=os.getcwd())
        names = case.names
    space = Space({names[0]: Float(LOW, HIGH), names[1]: Int(0, LAST)})
    limit = SHORT if case.needs == TIMEOUT else timeout
    first = [dict(zip(names, point)) for point in FIRST]
    given = {"x0": first, "budget": budget(case), "seed": seed(case), "workers": workers, "timeout": limit, **options}
    minimize(objective, space, run_file=RUN_FILE, **given)


def run_command_line(case: Case) -> None:
    """Become ``mixcma run`` with closed standard streams."""
    assert isinstance(case, programs.Program)
    x, n = case.names
    text = PROBLEM.format(
        command=json.dumps([programs.write(case, Path()), *case.arguments]), value=json.dumps(case.rule),
        workdir=f"workdir = {json.dumps(case.workdir)}" if case.workdir else "",
        timeout=f"timeout = {SHORT}" if case.needs == TIMEOUT else "",
        x0=", ".join(f"{{ {x} = {first[0]}, {n} = {first[1]} }}" for first in FIRST),
        budget=budget(case), seed=seed(case), x=x, n=n, low=LOW, high=HIGH, last=LAST,
    )  # fmt: skip
    Path("problem.toml").write_text(text)
    os.closerange(0, 3)
    os.execv(sys.executable, [sys.executable, "-c", MIXCMA, "run", "problem.toml", "--quiet", "--run-file", RUN_FILE])
