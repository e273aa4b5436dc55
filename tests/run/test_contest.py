"""Which choice deserves the next evaluation, and runs that do not settle on the choice that is good on average."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mixcma import Bool, Categorical, Float, Int, Optimizer, Space
from mixcma.core.model.features import Features
from mixcma.latent.encoding import Encoding
from mixcma.run.contest import PATIENCE, PER_VARIABLE, Choice, contested, deserving

TWO_AND_X = {"kind": Categorical(list("abc")), "x": Float(0, 1), "on": Bool()}


def features(variables):
    return Features(Encoding(Space(variables), True).coordinates)


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        (TWO_AND_X, ["kind"]),
        ({**TWO_AND_X, "n": Int(1, 5, when={"on": True})}, ["on", "kind"]),
        ({"x": Float(0, 1), "on": Bool()}, []),
        ({f"c{i}": Categorical(list("abc")) for i in range(4)}, []),
        ({"c": Categorical(range(25))}, []),
        ({"n": Int(0, 9)}, []),
    ],
)
def test_what_is_compared(variables, names):
    encoding = Encoding(Space(variables), True)
    assert [encoding.names[column] for column in contested(Features(encoding.coordinates))] == names


def most_wanting(choices, values, violations=None, **more):
    """The choice that deserves an evaluation, after these."""
    of = features({"kind": Categorical(list("abc")), "x": Float(0, 1), **more})
    points = np.array([[0.5, choice] for choice in choices], dtype=float)
    feasible = np.zeros(len(values)) if violations is None else np.array(violations, dtype=float)
    chosen = deserving(of, contested(of), points, np.array(values, dtype=float), feasible)
    return None if chosen is None else chosen.place


def test_every_choice_gets_its_share():
    """1 : 1/4 : 1/9 of the evaluations."""
    assert most_wanting([0, 0, 0, 1], [1, 1, 1, 2]) == 2
    assert most_wanting([0, 1, 1, 2], [1, 2, 2, 3]) is None  # the first, which all evaluations say something of
    values = {0: 1.0, 1: 2.0, 2: 3.0}
    choices = [0, 1, 2]
    for _ in range(20):
        wanted = most_wanting(choices, [values[c] for c in choices])
        choices.append(0 if wanted is None else wanted)
    counts = [choices.count(c) for c in range(3)]
    assert counts == sorted(counts, reverse=True)
    assert counts[1] >= 3


def test_a_choice_with_variables_of_its_own_is_named_even_if_it_leads():
    of = features({"kind": Categorical(list("abc")), "x": Float(0, 1, when={"kind": "a"})})
    points = np.array([[0.5, 0.0], [0.5, 1.0], [0.5, 1.0], [0.5, 2.0]])
    assert deserving(of, contested(of), points, np.array([1.0, 2, 2, 3]), np.zeros(4)) == Choice(1, 0)


def test_a_choice_that_does_not_get_better_makes_way():
    length = PATIENCE + PER_VARIABLE
    stale = [0] * (length + 5) + [1] * 8 + [2] * 4
    values = [1.0] * (length + 5) + [2.0] * 8 + [3.0] * 4
    assert most_wanting(stale, values) == 1
    better = np.linspace(2.0, 1.0, length + 5).tolist() + values[length + 5 :]
    assert most_wanting(stale, better) is None


def test_feasible_choices_come_first():
    choices = [0] * 4 + [1] * 4 + [2] * 1
    assert most_wanting(choices, [0.0] * 4 + [5.0] * 4 + [0.0], [1.0] * 4 + [0.0] * 4 + [1.0]) is None


KERNELS = Space({"kernel": Categorical(["linear", "poly", "rbf"]), "C": Float(-4, 4), "gamma": Float(-4, 4)})


def tuned(p):
    """The linear kernel is never bad; the radial one is best where both of its parameters are right."""
    if p["kernel"] == "linear":
        return 0.05 + 0.002 * p["C"] ** 2
    off = (p["C"] - 2) ** 2 + (p["gamma"] + 1.5) ** 2
    return 0.6 - (0.58 if p["kernel"] == "rbf" else 0.5) * math.exp(-off / 3)


@pytest.mark.parametrize("order", [["linear", "poly", "rbf"], ["rbf", "linear", "poly"]])
def test_the_choice_that_needs_its_own_parameters_is_found(order):
    space = Space({**KERNELS, "kernel": Categorical(order)})
    found = 0
    for seed in range(1, 7):
        optimizer = Optimizer(space, seed=seed)
        while optimizer.evaluations < 150 and not optimizer.stop:
            candidates = optimizer.ask()
            optimizer.tell(candidates, [tuned(c.params) for c in candidates])
        found += optimizer.best.params["kernel"] == "rbf"
    assert found >= 5


def test_without_floats_the_first_point_is_drawn():
    """So the order of a category's list does not matter: not even the first point is its middle."""
    space = Space({f"stage {i}": Categorical(range(5)) for i in range(25)})
    firsts = {tuple(Optimizer(space, seed=seed).ask()[0].params.values()) for seed in range(20)}
    assert len(firsts) == 20
    counts = np.bincount(np.array(sorted(firsts)).ravel(), minlength=5)
    assert counts.min() > 60  # 100 of each are expected


def test_the_choices_of_a_category_are_compared_where_it_exists():
    """A kernel is named only if its model deserves the evaluation; then the model comes with it."""
    of = features(
        {
            "model": Categorical(list("abc")),
            "kernel": Categorical(list("pqr"), when={"model": "a"}),
            "x": Float(0, 1, when={"model": "b"}),
        }
    )
    few_a = np.array([*[[0.5, 0.0, 0.0]] * 4, [0.5, 0.0, 1.0], *[[0.5, 1.0, -1.0]] * 9, [0.5, 2.0, -1.0]])
    value = np.array([*[1.0] * 4, 2.0, *[3.0] * 9, 4.0])
    assert deserving(of, contested(of), few_a, value, np.zeros(15)) == Choice(2, 2)
    many_a = np.array([*[[0.5, 0.0, 0.0]] * 9, [0.5, 1.0, -1.0], [0.5, 2.0, -1.0]])
    named = deserving(of, contested(of), many_a, np.array([*[1.0] * 9, 2.0, 3.0]), np.zeros(11))
    assert named is not None
    assert named.column == 1
