"""Points that a state did not draw, and starts from a covariance: against the literal text, on every back end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from mixcma import Bool, Cma, Discrete, Float, Int, IntegerMutation, Margin, Mix, Space
from mixcma.core.coordinates import values_at
from mixcma.core.methods import Setting, tell
from mixcma.core.sampling import Noise, Sample
from mixcma.core.state import State, decompose, initial_state, started_from
from mixcma.core.strategy import strategy
from mixcma.latent.encoding import Encoding
from mixcma.run.optimizer import setting_of
from tests.reference import injection
from tests.reference.cma import matrix_roots

RTOL = 1e-9
SPACE = Space(
    {
        "x": Float(-3, 3, mean=1.0),
        "free": Float(mean=2.0, std=1.0),
        "n": Int(-10, 10, std=1.0),
        "m": Int(0, 3, std=1.0),
        "b": Bool(std=1.0),
        "uneven": Discrete([0.01, 0.1, 1.0], std=1.0),
    }
)
ENCODING = Encoding(SPACE)
SETTING = Setting(strategy(ENCODING.dimension), ENCODING.coordinates)
L, N = SETTING.strategy.popsize, SETTING.strategy.dimension
METHODS = {"cma": Cma(), "margin": Margin(), "im": IntegerMutation(), "im-box": IntegerMutation(box=True)}
Convert = Callable[[Any], Any]


def read_only(array: Any) -> Any:
    array = np.array(array)
    array.setflags(write=False)
    return array


@pytest.fixture(params=["numpy", "read-only", "jax"])
def convert(request: pytest.FixtureRequest) -> Iterator[Convert]:
    """Arrays of each back end."""
    with jax.enable_x64(True) if request.param == "jax" else contextlib.nullcontext():
        yield {"numpy": np.asarray, "read-only": read_only, "jax": jax.numpy.asarray}[request.param]


def noise(rng: np.random.Generator, batch: tuple[int, ...] = ()) -> Noise:
    normal = rng.standard_normal((*batch, L, N))
    return Noise(normal, *(1 - rng.random(shape) for shape in ((*batch, N), normal.shape, normal.shape)))


def objective(x: Any) -> Any:
    return np.sum((np.arange(1.0, N + 1) * (x - 0.7)) ** 2, axis=-1)


def after(method: Cma, generations: int, batch: tuple[int, ...] = ()) -> tuple[State, Sample]:
    """The state after some generations, and the candidates that it draws next."""
    rng = np.random.default_rng(generations)
    state = initial_state(np.broadcast_to(ENCODING.initial_mean, (*batch, N)).copy())
    for _ in range(generations):
        sample = method.sample(SETTING, state, noise(rng, batch))
        state = decompose(tell(method, SETTING, state, sample, objective(values_at(ENCODING.coordinates, sample.v))))
    return state, method.sample(SETTING, state, noise(rng, batch))


def on(convert: Convert, state: State) -> State:
    return State(*(convert(field) for field in state[:-1]), state.generation)


def points_around(state: State) -> np.ndarray[Any, Any]:
    """Some close, some a few standard deviations away, some very far."""
    rng = np.random.default_rng(3)
    reach = np.repeat([1e-3, 0.3, 1.0, 5.0, 1e6], 4)[:, None]
    return state.m[..., None, :] + reach * (rng.standard_normal((*state.m.shape[:-1], 20, N)) @ state.root)


def assert_is_literal(found: Sample, state: State, v: np.ndarray[Any, Any]) -> None:
    """Each row is what the reference makes of the point; `state` without batch axes."""
    inverse_root = matrix_roots(state.C.tolist())[1]
    for i, point in enumerate(v):
        literal = injection.inject(
            point.tolist(), state.m.tolist(), float(state.sigma[0]), state.A.tolist(), inverse_root
        )
        for name in ("y", "step", "norm_sq"):
            expected = np.asarray(getattr(literal, name))
            scale = np.abs(expected).max()
            row = np.sum(np.asarray(found.z)[i] ** 2) if name == "norm_sq" else np.asarray(getattr(found, name))[i]
            np.testing.assert_allclose(row, expected, rtol=RTOL, atol=RTOL * scale, err_msg=f"{name} of point {i}")
    np.testing.assert_array_equal(np.asarray(found.v), v)


# Expressing


@pytest.mark.parametrize("generations", [0, 1, 60])
@pytest.mark.parametrize("name", METHODS)
def test_a_point_is_expressed_as_the_literal_text_does(name: str, generations: int, convert: Convert) -> None:
    method = METHODS[name]
    state, _ = after(method, generations)
    v = points_around(state)
    found = method.express(SETTING, on(convert, state), convert(v))
    assert_is_literal(found, state, v)


def test_the_margin_has_widened_some_coordinates_by_then() -> None:
    """Else the division by A would not have been seen."""
    assert (after(METHODS["margin"], 60)[0].A != 1.0).any()


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_of_states_is_a_loop_over_them(name: str, convert: Convert) -> None:
    method = METHODS[name]
    states, _ = after(method, 8, (2, 3))
    v = points_around(states)
    found = method.express(SETTING, on(convert, states), convert(v))
    for i, j in np.ndindex(2, 3):
        one = State(*(field[i, j] for field in states[:-1]), states.generation)
        rows = Sample(*(None if part is None else np.asarray(part)[i, j] for part in found))
        assert_is_literal(rows, one, v[i, j])


@pytest.mark.parametrize("generations", [0, 60])
@pytest.mark.parametrize("name", ["cma", "margin"])
def test_a_point_drawn_by_the_state_itself_comes_back_as_itself(name: str, generations: int, convert: Convert) -> None:
    method = METHODS[name]
    state, drawn = after(method, generations)
    found = method.express(SETTING, on(convert, state), convert(drawn.v))
    kept = np.sum(drawn.z**2, axis=-1) <= injection.longest(N) ** 2
    assert kept.sum() >= L - 2
    for part in ("y", "z", "step", "v"):
        expected = getattr(drawn, part)[kept]
        np.testing.assert_allclose(np.asarray(getattr(found, part))[kept], expected, rtol=RTOL, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_a_point_from_far_away_is_shortened_to_the_longest_length(name: str) -> None:
    method = METHODS[name]
    state, _ = after(method, 60)
    v = points_around(state)[-4:]
    found = method.express(SETTING, state, v)
    np.testing.assert_allclose(np.sum(found.z**2, axis=-1), injection.longest(N) ** 2, rtol=RTOL)
    np.testing.assert_allclose(found.step, state.sigma * found.y, rtol=RTOL)
    whole = (v - state.m) / state.A
    cosines = np.vecdot(found.step, whole) / np.linalg.norm(found.step, axis=-1) / np.linalg.norm(whole, axis=-1)
    np.testing.assert_allclose(cosines, 1.0, rtol=RTOL)


def test_the_box_penalty_is_that_of_the_point(convert: Convert) -> None:
    method = METHODS["im-box"]
    state, drawn = after(method, 60)
    found = method.express(SETTING, on(convert, state), convert(drawn.v))
    np.testing.assert_allclose(np.asarray(found.penalty), drawn.penalty, rtol=RTOL)


@pytest.mark.parametrize("name", METHODS)
def test_a_point_at_the_mean_itself_can_be_learnt_from(name: str) -> None:
    """It has no direction and the length zero, by which nothing may be divided."""
    method = METHODS[name]
    state, drawn = after(method, 5)
    v = drawn.v.copy()
    v[-1] = state.m  # as the worst: its weight is negative, and scaled by the length
    sample = method.express(SETTING, state, v)
    np.testing.assert_array_equal(sample.y[-1], np.zeros(N))
    after_it = tell(method, SETTING, state, sample, np.arange(float(L)))
    for field, value in zip(State._fields, after_it):
        assert field == "best" or np.isfinite(value).all(), field  # the others do not remember their best


@pytest.mark.parametrize("name", METHODS)
def test_expressing_can_be_traced_and_compiled(name: str) -> None:
    method = METHODS[name]
    state, _ = after(method, 5)
    v = points_around(state)
    with jax.enable_x64(True):
        compiled = jax.jit(lambda s, points: method.express(SETTING, s, points))(state, v)
    assert_is_literal(compiled, state, v)


@pytest.mark.parametrize("frozen", [[], [2, 3]])
def test_what_an_older_state_drew_is_to_mix_half_where_it_lies_and_half_its_noise(
    frozen: list[int], convert: Convert
) -> None:
    method, setting = Mix(), setting_of(ENCODING, None)
    state, _ = after(Margin(), 60)
    live = np.where(np.isin(np.arange(N), frozen), 0.0, 1.0)
    state = state._replace(live=live, root=live[:, None] * state.root * live)
    v = points_around(state)
    v[0] = state.m
    xi = live * np.random.default_rng(1).standard_normal(v.shape)
    found = method.express(setting, on(convert, state), convert(v), redrawn=convert(xi))
    inverse_root = matrix_roots(state.C.tolist())[1]
    m, A, sigma = state.m.tolist(), state.A.tolist(), float(state.sigma[0])
    for i, point in enumerate(v):
        still = np.where(live > 0, point, state.m).tolist()
        y = injection.y_of_x(injection.x_of_v(still, m, A), m, sigma)
        z = np.array(injection.delayed_z(y, inverse_root, xi[i].tolist()))
        for part, expected in (("z", z), ("y", z @ state.root), ("step", sigma * (z @ state.root))):
            row, scale = np.asarray(getattr(found, part))[i], np.abs(expected).max()
            np.testing.assert_allclose(row, expected, rtol=RTOL, atol=RTOL * scale, err_msg=f"{part} of point {i}")
    np.testing.assert_array_equal(np.asarray(found.v), v)


# Starting


def covariances(batch: tuple[int, ...] = ()) -> np.ndarray[Any, Any]:
    scales = np.geomspace(0.01, 30, N)
    root = np.random.default_rng(8).standard_normal((*batch, N, N)) * scales
    return root @ root.mT + 0.16 * np.eye(N)


def test_a_start_from_a_covariance_is_the_literal_one(convert: Convert) -> None:
    m, covariance = np.arange(float(N)), covariances()
    state = started_from(convert(m), convert(covariance))
    sigma, C = injection.scale_and_shape(covariance.tolist())
    np.testing.assert_array_equal(np.asarray(state.m), m)
    np.testing.assert_allclose(np.asarray(state.sigma), [sigma], rtol=RTOL)
    np.testing.assert_allclose(np.asarray(state.C), C, rtol=RTOL, atol=RTOL * np.abs(C).max())


def test_a_start_has_the_roots_of_its_covariance_and_nothing_behind_it(convert: Convert) -> None:
    m, covariance = np.arange(float(N)), covariances()
    state = started_from(convert(m), convert(covariance))
    root, C = np.asarray(state.root), np.asarray(state.C)
    np.testing.assert_allclose(root @ root, C, atol=RTOL * np.abs(C).max())
    np.testing.assert_allclose(root @ np.asarray(state.inverse_root), np.eye(N), atol=RTOL)
    np.testing.assert_allclose(np.linalg.det(C), 1.0, rtol=RTOL)
    np.testing.assert_allclose(np.asarray(state.sigma) ** 2 * C, covariance, rtol=1e-8)
    np.testing.assert_array_equal(np.asarray(state.A), np.ones(N))
    for path in (state.p_sigma, state.p_c):
        np.testing.assert_array_equal(np.asarray(path), np.zeros(N))
    assert state.generation == 0


def test_a_batch_of_starts_is_a_loop_over_them(convert: Convert) -> None:
    m, covariance = np.random.default_rng(1).standard_normal((2, 3, N)), covariances((2, 3))
    states = started_from(convert(m), convert(covariance))
    assert states.sigma.shape == (2, 3, 1)
    for i, j in np.ndindex(2, 3):
        alone = started_from(m[i, j], covariance[i, j])
        for name, batched, single in zip(State._fields[:-1], states, alone):
            scale = np.abs(single).max(initial=0.0)
            np.testing.assert_allclose(np.asarray(batched)[i, j], single, rtol=RTOL, atol=RTOL * scale, err_msg=name)


def test_the_identity_is_the_ordinary_start() -> None:
    m = np.arange(float(N))
    for found, expected in zip(started_from(m, np.eye(N)), initial_state(m)):
        np.testing.assert_allclose(found, expected, atol=1e-15)
