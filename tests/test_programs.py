"""What `make test` installs: the programs that some tests need, and the lowest versions of the packages."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ["dask", "jax", "optuna", "report"]
BOUNDS = [*PROJECT["dependencies"], *(bound for extra in EXTRAS for bound in PROJECT["optional-dependencies"][extra])]


def test_without_its_program_a_test_is_skipped_and_named(tmp_path):
    test = "tests/test_examples.py::test_a_program_in_c"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", test]
    environment = {**os.environ, "PATH": str(tmp_path)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"SKIPPED {test} - Skipped: needs cc, which is not installed" in run.stdout


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_lowest_versions_are_those_that_pyproject_allows(bound):
    """`make lock` renews them."""
    pins = dict(line.split("==") for line in (ROOT / "requirements-lowest.lock").read_text().splitlines())
    name, lowest = bound.split(">=")
    assert Version(pins[name]) == Version(lowest)
