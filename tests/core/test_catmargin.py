"""CatCMA with Margin: the fast text against the literal one of tests/reference, and the laws of its margin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixcma import Bool, Categorical, Float, Int, Optimizer, Space
from mixcma.core.categories import asng_step, categories_of, draw_choices, initial_categories, with_margin
from mixcma.core.gaussian import start_at
from mixcma.core.methods import CatMargin
from mixcma.latent.encoding import Encoding
from tests.core.runs import (
    BOUNDED,
    BOUNDED_INTEGERS,
    Array,
    Objective,
    assert_close,
    at_the_bounds,
    beyond,
    constraint,
    in_step,
    latent_limits,
    latent_values,
)
from tests.reference.catmargin import Category
from tests.reference.catmargin import CatMargin as Literal

RTOL = 1e-6  # the fast text does not add the document's e = 1e-8 to what it divides by
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
BOUNDED_SPACES = {
    "bounded": Space({**BOUNDED, **CATEGORIES}),
    "bounded integers": Space({**BOUNDED_INTEGERS, **CATEGORIES}),
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
def test_a_whole_run_is_the_literal_one(name: str, objective: Objective) -> None:
    assert_same_run(SPACES[name], CatMargin(keep_inside=False), objective)


@pytest.mark.parametrize("violation", [None, constraint])
@pytest.mark.parametrize("objective", [beyond, at_the_bounds])
@pytest.mark.parametrize("name", BOUNDED_SPACES)
def test_a_run_that_is_kept_inside_is_the_literal_one(
    name: str, objective: Objective, violation: Objective | None
) -> None:
    assert assert_same_run(BOUNDED_SPACES[name], CatMargin(), objective, violation) > 10


def assert_same_run(space: Space, method: CatMargin, objective: Objective, violation: Objective | None = None) -> int:
    """In how many generations some candidates lay outside the bounds."""
    encoding = Encoding(space, True)
    setting = method.setting(encoding.coordinates, None)
    n, choices = setting.strategy.dimension, encoding.coordinates.choices
    state = method.initial_state(setting, start_at(encoding.initial_mean, choices))
    literal = Literal(
        [*latent_values(encoding), *(Category(int(K)) for K in choices)],
        encoding.initial_mean[:n].tolist(),
        limits=latent_limits(encoding) if method.keep_inside else None,
    )
    discrete, outside = encoding.coordinates.margin, 0
    for step in in_step(method, setting, state, literal, objective, violation, generations=80, rtol=RTOL):
        state, outside = step.after, outside + step.outside
        pairs = {
            "m": (state.m[:n], literal.m),
            "sigma": (state.sigma if n else [1.0], literal.sigma),
            "C": (state.C[:n, :n], literal.C),
            "A": (state.A[:n], literal.A),
            "p_sigma": (state.p_sigma[:n], literal.p_sigma),
            "p_c": (state.p_c[:n], literal.p_c),
            "p": (state.p_mut[discrete], np.array(literal.P)[discrete[:n]]),
        }
        if len(choices):
            learnt = state.categories
            pairs["s"] = np.concatenate([learnt.s[c, :K] for c, K in enumerate(choices)]), literal.s
            pairs["rate"] = learnt.rate, [literal.gamma, literal.Delta, literal.delta]
            for c, K in enumerate(choices):
                pairs[f"theta of {c}"] = learnt.theta[c, :K], literal.theta[c]
                assert not learnt.theta[c, K:].any()
        for what, (fast, expected) in pairs.items():
            assert_close(fast, expected, f"{what} {step.when}", RTOL)
        if n and state.sigma[0] < 1e-5:
            break
    return outside


@given(st.lists(st.integers(2, 7), min_size=1, max_size=4), st.integers(0, 10**6), st.floats(0.001, 0.3))
@settings(max_examples=100, deadline=None)
def test_every_choice_keeps_its_margin(counts: list[int], seed: int, alpha: float) -> None:
    space = Space({f"c{i}": Categorical(range(count)) for i, count in enumerate(counts)})
    fixed = categories_of(Encoding(space, True).coordinates, alpha)
    raw = np.random.default_rng(seed).dirichlet(np.full(max(counts), 0.1), len(counts)) * fixed.exists
    theta = with_margin(fixed, raw / np.maximum(raw.sum(axis=-1, keepdims=True), 1e-9))
    assert (theta >= fixed.exists * fixed.least * (1 - 1e-9)).all()
    np.testing.assert_allclose(theta.sum(axis=-1), 1.0, rtol=1e-12)


@given(st.permutations(range(5)), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_what_is_learnt_does_not_depend_on_the_order_of_the_choices(order: list[int], seed: int) -> None:
    space = Space({"a": Categorical(range(5)), "b": Categorical(range(3))})
    fixed = categories_of(Encoding(space, True).coordinates, 0.1)
    rng, theta = np.random.default_rng(seed), fixed.exists / fixed.exists.sum(axis=-1, keepdims=True)
    one = other = initial_categories(theta)
    for _ in range(20):
        wanted = np.array([rng.dirichlet(np.ones(5)), [*rng.dirichlet(np.ones(3)), 0.0, 0.0]])
        reordered = np.array([wanted[0][order], wanted[1]])
        one, other = asng_step(fixed, one, wanted), asng_step(fixed, other, reordered)
        np.testing.assert_allclose(other.theta, [one.theta[0][order], one.theta[1]], rtol=1e-9)
        np.testing.assert_allclose(other.rate, one.rate, rtol=1e-9)


def test_choices_are_drawn_with_their_probabilities() -> None:
    space = Space({"a": Categorical(list("xyz")), "b": Categorical([1, 2])})
    fixed = categories_of(Encoding(space, True).coordinates, 0.01)
    theta = np.array([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0]])
    uniform = (np.arange(1000) + 0.5)[:, None] / 1000 * np.ones(2)
    index = draw_choices(fixed, theta, uniform)
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
