"""Every example runs as its text says."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mixcma.cli import main
from mixcma.problem_file import load_problem
from mixcma.problems import DESIGNS

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_as_a_problem_file(name, tmp_path, run_command):
    path = EXAMPLES / "designs" / f"{name}.toml"
    assert load_problem(path).space.to_dict() == DESIGNS[name].space.to_dict()
    options = ["--budget", "3000", "--json", "--run-file", str(tmp_path / "run.db")]
    result = run_command(main, ["run", str(path), *options])
    assert result.exit_code == 0, result.stderr
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["feasible"]
    outcome = DESIGNS[name](last["params"])
    assert getattr(outcome, "value", outcome) == last["value"]
    assert last["value"] <= 1.5 * DESIGNS[name].best_known + 1e-6


@pytest.mark.needs("cc")
def test_a_program_in_c(tmp_path, run_command):
    folder = tmp_path / "c_program"
    shutil.copytree(EXAMPLES / "c_program", folder)
    subprocess.run(["cc", "-O2", "-o", folder / "beam", folder / "beam.c"], check=True)
    result = run_command(main, ["run", str(folder / "problem.toml"), "--budget", "300", "--json"])
    assert result.exit_code == 0, result.stderr
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["feasible"]
    assert last["value"] < 80  # the best is 60.3


@pytest.mark.parametrize(
    ("script", "arguments", "words"),
    [
        ("ask_and_tell.py", [], "feasible"),
        ("pressure_vessel.py", ["--budget", "2000"], "Best design found"),
        ("scikit_learn/tune.py", ["--budget", "12", "--workers", "1"], "max_depth"),
    ],
)
def test_a_script(script, arguments, words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert words in capsys.readouterr().out
