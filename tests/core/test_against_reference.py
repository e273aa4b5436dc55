"""Reference: every step of the fast text equals the literal one, on the same noise, over whole runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from mixcma import Bool, Discrete, Float, Int, Space
from mixcma.core.coordinates import values_at
from mixcma.core.methods import Cma, IntegerMutation, Margin, Setting, tell
from mixcma.core.state import decompose, initial_state
from mixcma.core.strategy import strategy
from mixcma.latent.encoding import Encoding
from mixcma.run.noise import NoiseSource
from tests.reference.constants import constants
from tests.reference.run import Noise as ReferenceNoise
from tests.reference.run import Reference

Array = NDArray[np.float64]
RTOL = 1e-9
# As the paper has them: latent points may wander beyond the bounds.
FAST: dict[str, Cma] = {
    "cma": Cma(keep_inside=False),
    "margin": Margin(keep_inside=False),
    "im": IntegerMutation(keep_inside=False),
    "im-box": IntegerMutation(box=True, keep_inside=False),
}

MIXED = Space(
    {
        "x1": Float(mean=1.5, std=1.0),
        "x2": Float(mean=2.5, std=1.0),
        "n1": Int(-10, 10, mean=2.25, std=1.0),
        "n2": Int(0, 3, mean=1.25, std=1.0),
        "n3": Int(1, 9, step=2, mean=4.0, std=2.0),
        "b1": Bool(mean=0.5, std=1.0),
        "b2": Bool(mean=0.5, std=1.0),
        "d1": Discrete([0.01, 0.1, 1.0], std=1.0),
        "d2": Discrete([1, 2, 4, 8], mean=3.5, std=1.0),
    }
)
INTEGERS = Space({f"n{i}": Int(-10, 10, mean=2.0 + i / 7, std=1.0) for i in range(5)})
PAPER_LIKE = Space(
    {f"x{i}": Float(mean=1 + i / 3, std=1.0) for i in range(4)}
    | {f"n{i}": Int(-10, 10, mean=1 + i / 2, std=1.0) for i in range(4)}
)
BINARY = Space({f"x{i}": Float(mean=1 + i / 3, std=1.0) for i in range(3)} | {f"b{i}": Bool(std=1.0) for i in range(3)})


def ellipsoid(values: Array) -> Array:
    """Ill-conditioned, with an optimum that is not in the middle of a cell."""
    scales = np.geomspace(1, 100, values.shape[-1])
    return np.sum((scales * (values - 0.7)) ** 2, axis=-1)


def plateaus(values: Array) -> Array:
    """Many equal values, so that weights are shared."""
    return np.floor(np.sum(np.abs(values - 0.7), axis=-1))


def latent_values(encoding: Encoding) -> list[list[float] | None]:
    """The values of each discrete coordinate in latent units, as the reference takes them."""
    listed: list[list[float] | None] = []
    for line in encoding.axes:
        if not line.cells:
            listed.append(None)
        elif line.values is None:
            listed.append([k / line.scale for k in range(line.cells)])
        else:
            listed.append([line.latent(z) for z in line.values])
    return listed


def assert_same_run(
    space: Space,
    method: Cma,
    reference_method: str,
    objective: Callable[[Array], Array] = ellipsoid,
    *,
    generations: int = 150,
    eigen_interval: int = 1,
    popsize: int | None = None,
    **reference_choices: object,
) -> None:
    if isinstance(method, IntegerMutation):  # the reference's own defaults are the printed ones
        reference_choices = {"geometric_base": 0.1, "recall_on": "stuck"} | reference_choices
    encoding = Encoding(space)
    setting = Setting(strategy(encoding.dimension, popsize, eigen_interval), encoding.coordinates)
    state = initial_state(encoding.initial_mean)
    reference = Reference(
        reference_method,
        latent_values(encoding),
        encoding.initial_mean.tolist(),
        popsize,
        eigen_interval=eigen_interval,
        **reference_choices,  # type: ignore[arg-type]  # choices of several types in one dict
    )
    source = NoiseSource(7, 0, setting.strategy.popsize, encoding.dimension, uniforms=True)
    for generation in range(generations):
        noise = source(generation)
        sample = method.sample(setting, state, noise)
        points = reference.sample(ReferenceNoise(*(part.tolist() for part in noise)))
        np.testing.assert_allclose(sample.v, points, rtol=RTOL, atol=1e-12)
        if sample.penalty is not None:
            np.testing.assert_allclose(sample.penalty, reference.penalties(points), rtol=RTOL, atol=1e-12)
        values = objective(values_at(encoding.coordinates, sample.v))
        state = tell(method, setting, state, sample, values)
        if state.generation % eigen_interval == 0:
            state = decompose(state)
        reference.update(values.tolist())
        for name in ("m", "sigma", "C", "A", "p_sigma", "p_c"):
            expected = np.asarray(getattr(reference, name), dtype=float)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                np.reshape(getattr(state, name), expected.shape), expected, rtol=RTOL, atol=RTOL * scale,
                err_msg=f"{name} after generation {generation}",
            )  # fmt: skip
        assert state.generation == reference.t
        if state.sigma[0] < 1e-6:  # below, x - m has lost too many digits in the literal text
            assert generation > 30
            break


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 20, 60])
@pytest.mark.parametrize("popsize", [None, 4, 5, 37])
def test_the_constants_are_those_of_table_1(dimension: int, popsize: int | None) -> None:
    fast, literal = strategy(dimension, popsize), constants(dimension, popsize)
    np.testing.assert_allclose(fast.weights, literal.w, rtol=RTOL)
    for name in ("popsize", "mu_w", "c_m", "c_sigma", "c_c", "c_1", "c_mu", "d_sigma", "chi_n"):
        np.testing.assert_allclose(getattr(fast, name), getattr(literal, name), rtol=RTOL, err_msg=name)


@pytest.mark.parametrize("objective", [ellipsoid, plateaus])
@pytest.mark.parametrize("space", [MIXED, INTEGERS, PAPER_LIKE, BINARY], ids=["mixed", "int", "paper", "binary"])
@pytest.mark.parametrize("method", FAST)
def test_a_whole_run_is_the_literal_one(method: str, space: Space, objective: Callable[[Array], Array]) -> None:
    assert_same_run(space, FAST[method], method, objective)


@pytest.mark.parametrize("method", FAST)
def test_a_run_with_lazy_decompositions_is_the_literal_one(method: str) -> None:
    assert_same_run(PAPER_LIKE, FAST[method], method, eigen_interval=4, popsize=13)


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
