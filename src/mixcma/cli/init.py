"""``mixcma init``: writes a problem file to start from."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from mixcma.cli.common import fail, plain, sentences, terminal

PROBLEM = """\
# What to minimise: a program. {name} in its arguments is replaced by the value of that variable, {here} by the folder
# of this file. No shell is involved.
[objective]
command = ["python3", "{here}/simulate.py", "--radius", "{radius}", "--ribs", "{ribs}", "--lined", "{lined}"]
value = "json:cost"          # from the JSON it prints; or "stdout" (last line), "regex:cost=(.*)", "file:out.txt"
constraints = "json:limits"  # numbers that must be <= 0; leave it out if there are none
timeout = 60                 # seconds after which an evaluation is ended and counts as failed
# workdir = "runs/{id}"      # a separate folder for each evaluation
# python = "module:function" # instead of command: a Python function that takes a dict and returns a number

[run]
budget = 500                 # the largest number of evaluations
seed = 1                     # the same seed gives the same run
workers = 2                  # processes that evaluate at the same time; they do not change the result
# target = 0.0               # stop as soon as this value is reached
# run_file = "problem.db"    # the file that holds the run; repeat the same command to continue it
# x0 = { radius = 50.0, ribs = 4, lined = false }   # a point to start from

# What may be varied: one table per variable.
[space.radius]
type = "float"               # low and high; log = true for a logarithmic scale
low = 10
high = 200

[space.ribs]
type = "int"                 # low and high; step = 2; log = true
low = 1
high = 12

[space.lined]
type = "bool"

# [space.plate]
# type = "discrete"          # any set of numbers; or "categorical" with choices = ["a", "b"], if there is no order
# values = [0.5, 0.75, 1.0, 1.5]
"""

PROGRAM = '''\
"""A stand-in for your simulator: prints a cost and a limit as JSON."""

import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("--radius", type=float)
parser.add_argument("--ribs", type=int)
parser.add_argument("--lined", choices=["true", "false"])
given = parser.parse_args()

strength = given.radius * (3 + given.ribs) * (1.5 if given.lined == "true" else 1)
cost = 0.02 * given.radius**2 + 7 * given.ribs + (20 if given.lined == "true" else 0)
print(json.dumps({"cost": cost, "limits": [600 - strength]}))
'''


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
def init(folder: Path) -> None:
    """Write a problem.toml to start from, and a small program for it to optimise, into FOLDER."""
    problem, program = folder / "problem.toml", folder / "simulate.py"
    for path in (problem, program):
        if path.exists():
            fail(f"{path} exists already and is left as it is; choose another folder: mixcma init FOLDER")
    with sentences():
        folder.mkdir(parents=True, exist_ok=True)
        problem.write_text(PROBLEM)
        program.write_text(PROGRAM)
    shown = shlex.quote(str(problem))
    said = (
        f"Written: {problem}, and {program} for it to optimise.\n\n"
        f"Edit in {problem}:\n"
        "  [objective] command: your program; value: where its result is\n"
        "  [space.*]: your variables\n"
        "  [run] budget: how many evaluations you can afford\n\n"
        f"Then   mixcma check {shown}    to make one evaluation,\n"
        f"       mixcma run {shown}      to optimise."
    )
    terminal().print(plain(said))
