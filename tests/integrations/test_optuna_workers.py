"""Worker processes on one study in a real database; benchmarks/optuna_workers.py is the long version."""

from __future__ import annotations

import pytest
from benchmarks.optuna_workers import Task, campaign, new_database, sequential


@pytest.mark.parametrize("kind", [pytest.param("postgres", marks=pytest.mark.needs("initdb")), "sqlite"])
def test_workers_that_are_killed_neither_block_nor_spoil_a_study(kind):
    """A tenth of the trials kill their worker; nearly all the others are used."""
    task = Task(dimension=4, categories=False, workers=4, seed=1, kill_every=10, target=0.01, budget=2000, seconds=0.01)
    with new_database(kind) as url:
        result = campaign(url, task)
    assert result.solved
    assert result.kills > 5
    assert (
        1 - result.used
    ) * result.finished <= 0.05 * result.finished + 16  # 16: results that were still unused at the end
    assert result.finished <= 1.5 * sequential(task) + 16
