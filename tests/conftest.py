"""Property tests draw the same examples every time; ``HYPOTHESIS_PROFILE=explore`` draws new and many more."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=3000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def run_command():
    """Runs a command of mixcma as a user would, with stdout and stderr apart."""

    def run(command, arguments, **options):
        return CliRunner().invoke(command, arguments, catch_exceptions=False, **options)

    return run
