"""Reference: every step of the fast text equals the literal one, on the same noise, over whole runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mixcma.core.gaussian import start_at
from mixcma.core.methods import METHODS, Cma, IntegerMutation, Margin, Method
from mixcma.core.strategy import strategy
from mixcma.latent.encoding import Encoding
from mixcma.space import Space
from tests.core.runs import (
    BINARY,
    BOUNDED,
    BOUNDED_INTEGERS,
    FLOATS,
    INTEGERS,
    MIXED,
    PAPER_LIKE,
    RTOL,
    Objective,
    assert_close,
    at_the_bounds,
    beyond,
    constraint,
    ellipsoid,
    in_step,
    latent_limits,
    latent_values,
    plateaus,
)
from tests.reference.constants import constants
from tests.reference.run import Reference

# As users run them; and as the paper has them, where latent points may wander beyond the bounds.
NAMES = ("cma", "margin", "im", "im-box")
TO_THE_LETTER = {name: replace(METHODS[name], keep_inside=False) for name in NAMES}
SPACES = {"mixed": MIXED, "int": INTEGERS, "paper": PAPER_LIKE, "binary": BINARY, "floats": FLOATS}


def assert_same_run(
    space: Space,
    method: Method,
    reference_method: str,
    objective: Objective = ellipsoid,
    violation: Objective | None = None,
    *,
    generations: int = 150,
    interval: int = 1,
    popsize: int | None = None,
    **reference_choices: object,
) -> int:
    """In how many generations some candidates lay outside the bounds."""
    if isinstance(method, IntegerMutation):  # the reference's own defaults are the printed ones
        reference_choices = {"geometric_base": 0.1, "recall_on": "stuck"} | reference_choices
    encoding = Encoding(space)
    setting = method.setting(encoding.coordinates, popsize)
    state = method.initial_state(setting, start_at(encoding.initial_mean))
    reference = Reference(
        reference_method,
        latent_values(encoding),
        encoding.initial_mean.tolist(),
        popsize,
        eigen_interval=interval,
        limits=latent_limits(encoding) if method.keep_inside else None,
        **reference_choices,  # type: ignore[arg-type]  # choices of several types in one dict
    )
    told, outside = 0, 0
    for step in in_step(
        method, setting, state, reference, objective, violation, generations=generations, interval=interval
    ):
        told, outside = told + 1, outside + step.outside
        for name in ("m", "sigma", "C", "A", "p_sigma", "p_c"):
            if hasattr(step.after, name):
                assert_close(getattr(step.after, name), getattr(reference, name), f"{name} {step.when}")
            else:
                assert set(getattr(reference, name)) == {1.0}
        assert step.after.generation == reference.t
        if step.after.sigma[0] < 1e-6:  # below, x - m has lost too many digits in the literal text
            break
    assert told > 30
    return outside


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 20, 60])
@pytest.mark.parametrize("popsize", [None, 4, 5, 37])
def test_the_constants_are_those_of_table_1(dimension: int, popsize: int | None) -> None:
    fast, literal = strategy(dimension, popsize), constants(dimension, popsize)
    np.testing.assert_allclose(fast.weights, literal.w, rtol=RTOL)
    for name in ("popsize", "mu_w", "c_m", "c_sigma", "c_c", "c_1", "c_mu", "d_sigma", "chi_n"):
        np.testing.assert_allclose(getattr(fast, name), getattr(literal, name), rtol=RTOL, err_msg=name)


@pytest.mark.parametrize("objective", [ellipsoid, plateaus])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_run_is_the_literal_one(name: str, space: str, objective: Objective) -> None:
    assert_same_run(SPACES[space], TO_THE_LETTER[name], name, objective)


@pytest.mark.parametrize("violation", [None, constraint])
@pytest.mark.parametrize("objective", [beyond, at_the_bounds])
@pytest.mark.parametrize("space", [BOUNDED, BOUNDED_INTEGERS], ids=["bounded", "bounded int"])
@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_is_kept_inside_is_the_literal_one(
    name: str, space: Space, objective: Objective, violation: Objective | None
) -> None:
    outside = assert_same_run(space, METHODS[name], name, objective, violation, generations=60)
    assert outside > 10


@pytest.mark.parametrize("name", NAMES)
def test_a_run_with_lazy_decompositions_and_a_constraint_is_the_literal_one(name: str) -> None:
    assert_same_run(PAPER_LIKE, TO_THE_LETTER[name], name, ellipsoid, constraint, interval=4, popsize=13)
    assert_same_run(BOUNDED, METHODS[name], name, beyond, constraint, interval=4, popsize=13)


@pytest.mark.parametrize("alpha", [1e-4, 0.02, 0.3])
def test_a_margin_run_with_another_alpha_is_the_literal_one(alpha: float) -> None:
    assert_same_run(MIXED, Margin(alpha=alpha, keep_inside=False), "margin", alpha=alpha)


@pytest.mark.parametrize(
    "choice",
    [
        {"recall": "floor"},
        {"recall": "round"},
        {"recall_on": "all"},
        {"geometric_start": 0},
        {"geometric_base": 0.7},
        {"geometric_base": 0.7, "recall_on": "all"},
        {"sign_per": "vector"},
        {"negative_norm": "unmutated"},
        {"penalty_weight": 1.0},
    ],
    ids=str,
)
def test_every_choice_of_integer_mutation_is_the_literal_one(choice: dict[str, object]) -> None:
    fast = IntegerMutation(box=True, keep_inside=False, **choice)  # type: ignore[arg-type]  # of several types
    assert_same_run(PAPER_LIKE, fast, "im-box", **choice)
    assert_same_run(BINARY, fast, "im-box", **choice)


def test_the_box_penalty_is_the_literal_one() -> None:
    encoding = Encoding(MIXED)
    reference = Reference("im-box", latent_values(encoding), encoding.initial_mean.tolist())
    v = encoding.initial_mean + 20 * np.random.default_rng(1).standard_normal((50, encoding.dimension))
    setting = METHODS["im-box"].setting(encoding.coordinates, None)
    assert_close(METHODS["im-box"].penalty(setting, v), reference.penalties(v.tolist()), "penalty")
    assert Cma().penalty(setting, v) == METHODS["im"].penalty(setting, v) == 0.0
