"""Where another point says nothing new."""

from __future__ import annotations

import numpy as np

from mixcma.core.model.plateau import ENOUGH, MANY, exhausted, on_plateau


def test_a_plateau_is_where_enough_neighbours_have_the_same_outcome():
    known = np.array([[0.5], [0.501], [0.502], [0.9], [0.91], [0.92]])
    outcomes = np.array([[1.0, 0.0]] * 3 + [[1.0, 0.0], [1.0, 0.0], [1.0, 0.5]])
    assert on_plateau(np.array([[0.503], [0.51], [0.6], [0.91]]), known, outcomes).tolist() == [
        True, True, False, False,
    ]  # fmt: skip
    assert not on_plateau(np.array([[0.5]]), known[: ENOUGH - 1], outcomes[: ENOUGH - 1]).any()


def test_a_step_close_by_does_not_hide_a_plateau():
    """What is farther away had other values, but what is nearest had not."""
    known = np.array([[0.5], [0.5001], [0.5002], [0.51]])
    assert on_plateau(np.array([[0.5003]]), known, np.array([[1.0], [1.0], [1.0], [2.0]])).all()


def test_other_choices_are_far_away():
    known = np.array([[0.5, 0.7, 0.0]] * 3)
    assert on_plateau(np.array([[0.5, 0.7, 0.0], [0.5, 0.0, 0.7]]), known, np.ones((3, 1))).tolist() == [True, False]


def test_a_small_place_is_exhausted_once_nothing_better_comes():
    known = np.full((MANY, 1), 0.5) + np.linspace(0, 1e-4, MANY)[:, None]
    rows = np.array([[0.5], [0.502]])
    falling, stuck = np.arange(MANY, 0.0, -1.0), np.array([5.0, 1.0, 4.0, 3.0, 2.0, 6.0])
    assert not exhausted(rows, known, falling).any()
    assert exhausted(rows, known, stuck).tolist() == [True, False]
    assert not exhausted(rows, known[:-1], stuck[:-1]).any()
