"""The benchmark functions: their values, their shapes, and equal results on every back end."""

from __future__ import annotations

import itertools
import pickle

import jax
import numpy as np
import pytest

from mixcma.problems import PAPER_FUNCTIONS, PROBLEMS, problem
from mixcma.space import Bool, Float, Int

BINARY = PAPER_FUNCTIONS[:4]
EXTREME = 1000.0**2  # the square of an ellipsoid's largest coefficient


def draw(name: str, shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    """Decoded values: normal floats, then random bits or integers."""
    rng = np.random.default_rng(seed)
    half = shape[-1] // 2
    rest = (*shape[:-1], shape[-1] - half)
    discrete = rng.random(rest) < 0.7 if name in BINARY else rng.integers(-10, 11, rest)
    return np.concatenate([rng.normal(size=(*shape[:-1], half)), discrete.astype(float)], axis=-1)


def literal(name: str, x: np.ndarray) -> float:
    """The definitions of Section 5, term by term, in plain Python."""
    n = len(x)
    half = n // 2

    def ellipsoid(values: list[float]) -> float:
        last = len(values) - 1
        return sum((1000 ** (j / last if last else 0) * v) ** 2 for j, v in enumerate(values))

    continuous, bits = list(x[:half]), list(x[half:])
    ones = sum(bits)
    leading = len(list(itertools.takewhile(lambda b: b == 1, bits)))
    return {
        "SphereOneMax": lambda: sum(v * v for v in continuous) + n - half - ones,
        "SphereLeadingOnes": lambda: sum(v * v for v in continuous) + n - half - leading,
        "EllipsoidOneMax": lambda: ellipsoid(continuous) + n - half - ones,
        "EllipsoidLeadingOnes": lambda: ellipsoid(continuous) + n - half - leading,
        "SphereInt": lambda: sum(v * v for v in x),
        "EllipsoidInt": lambda: ellipsoid(list(x)),
        "ReversedEllipsoidInt": lambda: ellipsoid(list(x)[::-1]),
        "Tablet": lambda: sum(1e4 * v * v for v in continuous) + sum(v * v for v in bits),
    }[name]()


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("SphereOneMax", [1, 2, 3, 0, 1, 1], 14 + 1),
        ("SphereLeadingOnes", [1, 2, 3, 1, 0, 1], 14 + 2),
        ("SphereLeadingOnes", [0, 0, 0, 0, 1, 1], 3),
        ("EllipsoidOneMax", [1, 1, 1, 0, 1, 0], 1 + 1000 + EXTREME + 2),
        ("EllipsoidLeadingOnes", [2, 0, 0, 1, 1, 0], 4 + 1),
        ("SphereInt", [0.5, -2, 3, 4], 0.25 + 4 + 9 + 16),
        ("EllipsoidInt", [3, 0, 0, -2], 9 + 4 * EXTREME),
        ("EllipsoidInt", [0, 2, 0, 0], 4 * 100),
        ("ReversedEllipsoidInt", [3, 0, 0, -2], 9 * EXTREME + 4),
        ("Tablet", [0.01, 0.02, 3, -4], 1 + 4 + 9 + 16),
    ],
)
def test_values_worked_out_by_hand(name, x, expected):
    assert problem(name, len(x)).function(np.asarray(x, dtype=float)) == pytest.approx(expected)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("n", [2, 3, 7, 20])
def test_equals_the_definition(name, n):
    for x in draw(name, (20, n)):
        assert problem(name, n).function(x) == pytest.approx(literal(name, x), rel=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("n", [2, 5, 40])
def test_optimum_is_zero_and_the_only_zero(name, n):
    half = n // 2
    best = np.concatenate([np.zeros(half), np.full(n - half, 1.0 if name in BINARY else 0.0)])
    function = problem(name, n).function
    assert function(best) == 0.0
    flipped = (1.0 - 2.0 * best) * (np.arange(n) >= half) + (np.arange(n) < half)
    assert np.all(function(best + np.diag(flipped)) >= 1.0)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_batch_equals_a_loop(name):
    x = draw(name, (2, 5, 9))
    function = problem(name, 9).function
    looped = [[function(row) for row in rows] for rows in x]
    assert function(x).shape == (2, 5)
    np.testing.assert_allclose(function(x), looped, rtol=1e-14)


@pytest.mark.parametrize("name", PROBLEMS)
def test_leaves_its_argument_alone(name):
    x = draw(name, (6, 10))
    before = x.copy()
    x.setflags(write=False)
    function = problem(name, 10).function
    np.testing.assert_array_equal(function(x), function(before))
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", PROBLEMS)
def test_numpy_equals_jitted_jax(name):
    x = draw(name, (3, 4, 11))
    function = problem(name, 11).function
    with jax.enable_x64(True):
        values = jax.jit(function)(jax.numpy.asarray(x))
        assert isinstance(values, jax.Array)
        assert values.dtype == jax.numpy.float64
    np.testing.assert_allclose(np.asarray(values), function(x), rtol=1e-13)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("n", [2, 5])
def test_a_problem_evaluates_params_by_name(name, n):
    task, x = problem(name, n), draw(name, (n,))
    types = {"float": float, "int": int, "bool": bool}
    params = {key: types[variable.kind](given) for (key, variable), given in zip(task.space.items(), x, strict=True)}
    value = task(dict(reversed(params.items())))
    assert type(value) is float
    assert value == pytest.approx(literal(name, x), rel=1e-12)


def test_spaces_are_the_papers():
    bits, integers = problem("EllipsoidLeadingOnes", 5), problem("Tablet", 4)
    assert dict(bits.space) == {
        **{name: Float(mean=2.0, std=1.0) for name in ("x1", "x2")},
        **{name: Bool(mean=0.5, std=1.0) for name in ("b1", "b2", "b3")},
    }
    assert bits.space.names == ("x1", "x2", "b1", "b2", "b3")
    assert dict(integers.space) == {
        **{name: Float(mean=2.0, std=1.0) for name in ("x1", "x2")},
        **{name: Int(-10, 10, mean=2.0, std=1.0) for name in ("z1", "z2")},
    }
    assert bits.success == 1e-10


@pytest.mark.parametrize("name", PROBLEMS)
def test_start_is_random_within_the_papers_range_and_repeatable(name):
    task = problem(name, 20)
    starts = [task.start(seed) for seed in range(500)]
    assert starts[7] == problem(name, 20).start(7)
    assert all(tuple(start) == task.space.names for start in starts)
    means = np.asarray([list(start.values()) for start in starts])
    moving = means[:, :10] if name in BINARY else means
    assert np.all((moving >= 1.0) & (moving <= 3.0))
    assert np.unique(moving).size == moving.size
    assert moving.mean() == pytest.approx(2.0, abs=0.05)
    assert moving.min() < 1.005
    assert moving.max() > 2.995
    if name in BINARY:
        assert np.all(means[:, 10:] == 0.5)


def test_the_list_of_problems():
    assert len(PROBLEMS) == 8
    assert PROBLEMS[6:] == ("ReversedEllipsoidInt", "Tablet")
    assert PROBLEMS[:6] == PAPER_FUNCTIONS
    assert [problem(name, 2).name for name in PROBLEMS] == list(PROBLEMS)


def test_a_problem_survives_pickling():
    task = problem("EllipsoidOneMax", 6)
    assert pickle.loads(pickle.dumps(task)) == task


@pytest.mark.parametrize("dimension", [1, 0, -4, 20.0, True, "20", None])
def test_a_wrong_dimension_is_refused(dimension):
    with pytest.raises(ValueError, match=r"SphereInt: expected .* at least 2 .* but got") as caught:
        problem("SphereInt", dimension)
    assert repr(dimension) in str(caught.value)
    assert "Tablet" in str(caught.value)


@pytest.mark.parametrize("name", ["sphereint", "", None])
def test_an_unknown_name_is_refused_with_those_known(name):
    with pytest.raises(ValueError, match=r"one of SphereOneMax.*Tablet, but got") as caught:
        problem(name, 20)
    assert repr(name) in str(caught.value)
