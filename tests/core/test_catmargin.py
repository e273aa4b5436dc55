"""CatCMA with Margin: the fast text against the literal one of tests/reference, and the laws of its margin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mixcma import Bool, Categorical, Float, Int, Optimizer, Space
from mixcma.core.categories import Learning, categories, drawn, learning, with_margin
from mixcma.core.coordinates import values_at
from mixcma.core.methods import CatMargin, tell
from mixcma.core.state import decompose, initial_state
from mixcma.latent.encoding import Encoding
from mixcma.run.noise import NoiseSource
from mixcma.run.optimizer import setting_of
from tests.core.test_against_reference import latent_values
from tests.reference.catmargin import Category
from tests.reference.catmargin import CatMargin as Literal
from tests.reference.run import Noise as LiteralNoise

Array = NDArray[np.float64]
FLOATS = {"x": Float(-3, 3, mean=1.0), "y": Float(mean=2.0, std=1.0)}
INTEGERS = {"n": Int(-5, 5, std=1.0), "k": Int(0, 10, std=2.0)}
CATEGORIES = {"a": Categorical(list("pqr")), "b": Bool(), "c": Categorical([1, 2, 3, 4, 5])}
SPACES = {
    "all": Space(FLOATS | INTEGERS | CATEGORIES),
    "floats": Space(FLOATS | CATEGORIES),
    "integers": Space(INTEGERS | CATEGORIES),
    "numbers": Space(FLOATS | INTEGERS),
    "categories": Space(CATEGORIES),
    "one": Space({"a": Categorical(list("pqr"))}),
}


def smooth(values: Array) -> Array:
    """A bowl around 1 in every coordinate, steeper in the later ones."""
    weights = np.arange(1.0, values.shape[-1] + 1)
    return np.asarray((values - 1.0) ** 2 @ weights)


def rough(values: Array) -> Array:
    """The same in steps, which make equal candidates."""
    return np.floor(8 * smooth(values)) / 8


@pytest.mark.parametrize("objective", [smooth, rough])
@pytest.mark.parametrize("name", SPACES)
def test_a_whole_run_is_the_literal_one(name: str, objective: Callable[[Array], Array]) -> None:
    encoding, method = Encoding(SPACES[name], "categories"), CatMargin(keep_inside=False)
    setting = setting_of(encoding, None)
    n, choices = setting.strategy.dimension, encoding.coordinates.choices
    state = initial_state(encoding.initial_mean, choices)
    numeric = [values for values, line in zip(latent_values(encoding), encoding.axes) if not line.category]
    literal = Literal([*numeric, *(Category(int(K)) for K in choices)], encoding.initial_mean[:n].tolist())
    assert literal.constants.popsize == setting.strategy.popsize
    source = NoiseSource(7, 0, setting.strategy.popsize, encoding.dimension, uniforms=True)
    for generation in range(80):
        noise = source(generation)
        sample = method.sample(setting, state, noise)
        points = literal.sample(LiteralNoise(*(part.tolist() for part in noise)))
        np.testing.assert_allclose(sample.v, points, rtol=1e-6, atol=1e-8, err_msg=f"generation {generation}")
        values = objective(values_at(encoding.coordinates, sample.v))
        state = decompose(tell(method, setting, state, sample, values))
        literal.update(values.tolist())
        for fast, expected in (
            (state.m[:n], literal.m),
            (state.C[:n, :n], literal.C),
            (state.A[:n], literal.A),
            (state.p_c[:n], literal.p_c),
        ):
            np.testing.assert_allclose(fast, np.reshape(expected, fast.shape), rtol=1e-6, atol=1e-8)
        for c, K in enumerate(choices):
            np.testing.assert_allclose(state.theta[c, :K], literal.theta[c], rtol=1e-6, atol=1e-9)
            assert state.theta[c, K:].sum() == 0.0
        if len(choices):
            np.testing.assert_allclose(state.rate, [literal.gamma, literal.Delta, literal.delta], rtol=1e-6)
        if n and state.sigma[0] < 1e-5:
            break


@given(st.lists(st.integers(2, 7), min_size=1, max_size=4), st.integers(0, 10**6), st.floats(0.001, 0.3))
@settings(max_examples=100, deadline=None)
def test_every_choice_keeps_its_margin(counts: list[int], seed: int, alpha: float) -> None:
    space = Space({f"c{i}": Categorical(range(count)) for i, count in enumerate(counts)})
    fixed = categories(Encoding(space, "categories").coordinates, alpha)
    assert fixed is not None
    raw = np.random.default_rng(seed).dirichlet(np.full(max(counts), 0.1), len(counts)) * fixed.exists
    theta = with_margin(fixed, raw / np.maximum(raw.sum(axis=-1, keepdims=True), 1e-9))
    assert (theta >= fixed.exists * fixed.least * (1 - 1e-9)).all()
    np.testing.assert_allclose(theta.sum(axis=-1), 1.0, rtol=1e-12)


@given(st.permutations(range(5)), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_what_is_learnt_does_not_depend_on_the_order_of_the_choices(order: list[int], seed: int) -> None:
    space = Space({"a": Categorical(range(5)), "b": Categorical(range(3))})
    fixed = categories(Encoding(space, "categories").coordinates, 0.1)
    assert fixed is not None
    rng, theta = np.random.default_rng(seed), fixed.exists / fixed.exists.sum(axis=-1, keepdims=True)
    one = other = Learning(theta, np.zeros_like(theta), np.array([0.0, 1.0, 1.0]))
    for _ in range(20):
        wanted = np.array([rng.dirichlet(np.ones(5)), [*rng.dirichlet(np.ones(3)), 0.0, 0.0]])
        reordered = np.array([wanted[0][order], wanted[1]])
        one, other = learning(fixed, one, wanted), learning(fixed, other, reordered)
        np.testing.assert_allclose(other.theta, [one.theta[0][order], one.theta[1]], rtol=1e-9)
        np.testing.assert_allclose(other.rate, one.rate, rtol=1e-9)


def test_choices_are_drawn_with_their_probabilities() -> None:
    space = Space({"a": Categorical(list("xyz")), "b": Categorical([1, 2])})
    fixed = categories(Encoding(space, "categories").coordinates, 0.01)
    assert fixed is not None
    theta = np.array([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0]])
    uniform = (np.arange(1000) + 0.5)[:, None] / 1000 * np.ones(2)
    index = drawn(fixed, theta, uniform)
    assert [np.sum(index[:, 0] == k) for k in range(3)] == [200, 500, 300]
    assert [np.sum(index[:, 1] == k) for k in range(3)] == [900, 100, 0]


def test_a_mixed_problem_with_categories_is_solved() -> None:
    space = Space({"x": Float(-5, 5), "n": Int(-10, 10), "kind": Categorical(["a", "b", "c", None])})
    optimizer = Optimizer(space, method="catmargin", seed=2)
    cost = {"a": 3.0, "b": 0.0, "c": 1.0, None: 2.0}
    while not optimizer.stop and optimizer.evaluations < 5000:
        candidates = optimizer.ask()
        points = [c.params for c in candidates]
        optimizer.tell(candidates, [p["x"] ** 2 + (p["n"] - 3) ** 2 + cost[p["kind"]] for p in points])
    assert optimizer.best is not None
    assert optimizer.best.params["kind"] == "b"
    assert optimizer.best.value < 1e-9
