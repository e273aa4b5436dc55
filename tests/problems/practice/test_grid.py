"""A grid gives what was measured at its points, and is linear between them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mixcma.problems.practice import grid as grids
from mixcma.problems.practice.grid import Grid, is_log
from mixcma.problems.practice.tuning import BOOSTING, NETWORK, PIPELINE, SVM
from mixcma.space import Categorical, Float, Int

GRID = pytest.mark.parametrize("grid", [SVM, NETWORK, PIPELINE, BOOSTING], ids=lambda grid: grid.name)


def test_values_between_the_points_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(grids, "TABLES", tmp_path)
    grid = Grid("tiny", {"kind": ("a", "b"), "rate": (0.01, 1.0, 100.0), "count": (1, 3)})
    table = np.arange(12.0).reshape(2, 3, 2)
    np.savez_compressed(grid.path, values=table)
    assert grid({"kind": "b", "rate": 1.0, "count": 3}) == table[1, 1, 1]
    assert grid({"kind": "a", "rate": 10.0, "count": 2}) == pytest.approx(table[0, 1:].mean())
    assert grid({"kind": "a", "rate": 100.0, "count": 1}) == table[0, 2, 0]
    assert grid.best() == ({"kind": "a", "rate": 0.01, "count": 1}, 0.0)
    space = grid.space
    assert isinstance(space["kind"], Categorical)
    assert isinstance(space["count"], Int)
    assert isinstance(space["rate"], Float)
    assert space["rate"].log
    assert not is_log((0.25, 0.5, 1.0))


@GRID
def test_a_table_is_small_and_has_a_value_for_every_point(grid):
    assert grid.path.stat().st_size < 150_000
    with np.load(grid.path) as file:
        values = file["values"]
    assert values.shape == tuple(len(axis) for axis in grid.axes.values())
    assert np.all(np.isfinite(values))
    rng = np.random.default_rng(0)
    for place in rng.integers(values.shape, size=(20, values.ndim)):
        params = {name: axis[i] for (name, axis), i in zip(grid.axes.items(), place, strict=True)}
        assert grid(params) == pytest.approx(float(values[tuple(place)]), rel=1e-12)


@GRID
def test_nothing_between_the_points_is_below_the_best(grid):
    rng = np.random.default_rng(1)
    _, best = grid.best()
    for _ in range(50):
        params = {}
        for name, axis in grid.axes.items():
            if isinstance(axis[0], str):
                params[name] = axis[rng.integers(len(axis))]
            elif isinstance(axis[0], int):
                params[name] = int(rng.integers(axis[0], axis[-1] + 1))
            else:
                params[name] = float(rng.uniform(axis[0], axis[-1]))
        assert grid(params) >= best - 1e-12


def test_a_kernel_ignores_what_it_does_not_use():
    settings = [
        SVM({"kernel": "linear", "degree": degree, "C": 0.1, "gamma": gamma})
        for degree, gamma in itertools.product((2, 4), (1e-4, 1.0))
    ]
    assert np.ptp(settings) < 1e-12
    assert math.isfinite(settings[0])
