"""Property tests draw the same examples every time; ``HYPOTHESIS_PROFILE=explore`` draws new and many more."""

from __future__ import annotations

import inspect
import os

# Before NumPy is loaded, and for processes that tests start: threads for tiny matrices only get in each other's way.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pytest
from benchmarks.postgres import find
from click.testing import CliRunner
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=3000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


# Before version 8.2, click mixes the two unless told otherwise.
APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}


def pytest_collection_modifyitems(items):
    """Skip each test whose program is not installed."""
    for item in items:
        for needed in item.iter_markers("needs"):
            (program,) = needed.args
            if find(program) is None:
                item.add_marker(pytest.mark.skip(f"needs {program}, which is not installed"))


@pytest.fixture
def run_command():
    """Runs a command of mixcma as a user would, with stdout and stderr apart."""

    def run(command, arguments, **options):
        return CliRunner(**APART).invoke(command, arguments, catch_exceptions=False, **options)

    return run
