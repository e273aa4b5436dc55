"""Points that a state did not draw, and starts from a covariance: against the literal text, on every back end."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from mixcma import Bool, Discrete, Float, Int, Space
from mixcma.core.coordinates import values_at
from mixcma.core.gaussian import Start, initial_gaussian, map_arrays, start_at
from mixcma.core.methods import METHODS, Method
from mixcma.core.sampling import Noise, Sample
from mixcma.latent.encoding import Encoding
from tests.core.runs import assert_close
from tests.reference import injection
from tests.reference.cma import matrix_roots

RTOL = 1e-9
SPACE = Space(
    {
        "x": Float(-3, 3, mean=1.0),
        "free": Float(mean=2.0, std=1.0),
        "n": Int(-10, 10, std=1.0),
        "m": Int(0, 3, std=1.0),
        "uneven": Discrete([0.01, 0.1, 1.0], std=1.0),
        "b": Bool(std=1.0),
    }
)
ENCODINGS = {takes_categories: Encoding(SPACE, takes_categories) for takes_categories in (False, True)}
N = len(SPACE)
Array = np.ndarray[Any, Any]
Convert = Callable[[Any], Any]
State = Any  # of any method


def encoding_of(method: Method) -> Encoding:
    return ENCODINGS[method.takes_categories]


SETTINGS = {name: method.setting(encoding_of(method).coordinates, None) for name, method in METHODS.items()}
L = SETTINGS["cma"].strategy.popsize


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


def after(name: str, generations: int, batch: tuple[int, ...] = ()) -> tuple[State, Sample]:
    """The state after some generations, and the candidates that it draws next."""
    method, setting, rng = METHODS[name], SETTINGS[name], np.random.default_rng(generations)
    mean = np.broadcast_to(np.floor(encoding_of(method).initial_mean), (*batch, N)).copy()
    state = method.initial_state(setting, start_at(mean, setting.coordinates.choices))
    for _ in range(generations):
        sample = method.sample(setting, state, noise(rng, batch))
        values = objective(values_at(setting.coordinates, sample.v))
        state = method.decomposed(method.tell(setting, state, sample, values))
    return state, method.sample(setting, state, noise(rng, batch))


def express(name: str, state: State, v: Any, redrawn: Any = None) -> Sample:
    return METHODS[name].express(SETTINGS[name], state, v[..., None, :], redrawn)


def points_around(state: State) -> Array:
    """Some close, some a few standard deviations away, some very far."""
    rng = np.random.default_rng(3)
    reach = np.repeat([1e-3, 0.3, 1.0, 5.0, 1e6], 4)[:, None]
    return state.m[..., None, :] + reach * (rng.standard_normal((*state.m.shape[:-1], 20, N)) @ state.root)


def spread_by(state: State) -> Array:
    """A, or ones."""
    A: Array = getattr(state, "A", np.ones(N))
    return A


def assert_is_literal(name: str, found: Sample, state: State, v: Array) -> None:
    """Each row is what the reference makes of the point; `state` without batch axes.

    What is frozen, and categories, are no part of the Gaussian.
    """
    n = SETTINGS[name].strategy.dimension
    still = np.where(getattr(state, "live", np.ones(N)) > 0.0, v, state.m)
    inverse_root = matrix_roots(state.C[:n, :n].tolist())[1]
    for i, point in enumerate(still):
        literal = injection.inject(
            point[:n].tolist(), state.m[:n].tolist(), float(state.sigma[0]), spread_by(state)[:n].tolist(), inverse_root
        )
        assert_close(np.asarray(found.y)[i, :n], literal.y, f"y of point {i}")
        assert_close(np.asarray(found.step)[i, :n], literal.step, f"step of point {i}")
        assert_close(np.sum(np.asarray(found.z)[i] ** 2), literal.norm_sq, f"length of point {i}")
        assert not np.asarray(found.y)[i, n:].any()
    np.testing.assert_array_equal(np.asarray(found.v), v)


# Expressing


@pytest.mark.parametrize("generations", [0, 1, 60])
@pytest.mark.parametrize("name", METHODS)
def test_a_point_is_expressed_as_the_literal_text_does(name: str, generations: int, convert: Convert) -> None:
    state, _ = after(name, generations)
    v = points_around(state)
    assert_is_literal(name, express(name, map_arrays(convert, state), convert(v)), state, v)


def test_by_then_some_coordinates_are_wider_and_some_frozen() -> None:
    """Else the division by A, and what is left out, would not have been seen."""
    assert (after("margin", 60)[0].A != 1.0).any()
    assert (after("mix", 60)[0].live[2:5] == 0.0).any()


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_of_states_is_a_loop_over_them(name: str, convert: Convert) -> None:
    states, _ = after(name, 8, (2, 3))
    v = points_around(states)
    found = express(name, map_arrays(convert, states), convert(v))
    for place in np.ndindex(2, 3):
        rows = Sample(*(np.asarray(part)[place] for part in found))
        assert_is_literal(name, rows, map_arrays(operator.itemgetter(place), states), v[place])


@pytest.mark.parametrize("generations", [0, 60])
@pytest.mark.parametrize("name", ["cma", "margin", "im", "im-box"])
def test_a_point_drawn_by_the_state_itself_comes_back_as_itself(name: str, generations: int, convert: Convert) -> None:
    method = METHODS[name]
    state, drawn = after(name, generations)
    latents = method.latents(state, drawn)  # of a mutated point also that before the mutation
    assert latents.shape == (L, 2 if name.startswith("im") else 1, N)
    found = method.express(SETTINGS[name], map_arrays(convert, state), convert(latents))
    y, whole = ((latents[:, k] - state.m) / spread_by(state) / state.sigma for k in (-1, 0))
    kept = np.maximum(*(np.sum((part @ state.inverse_root) ** 2, axis=-1) for part in (y, whole)))
    kept = kept <= injection.longest(N) ** 2
    assert kept.sum() >= (1 if name.startswith("im") else L - 2)
    for part in ("y", "z", "step", "v", "cells"):
        expected = getattr(drawn, part)[kept]
        np.testing.assert_allclose(np.asarray(getattr(found, part))[kept], expected, rtol=RTOL, atol=1e-12)


@pytest.mark.parametrize("name", ["cma", "margin", "im", "im-box"])
def test_a_point_from_far_away_is_shortened_to_the_longest_length(name: str) -> None:
    state, _ = after(name, 60)
    v = points_around(state)[-4:]
    found = express(name, state, v)
    np.testing.assert_allclose(np.sum(found.z**2, axis=-1), injection.longest(N) ** 2, rtol=RTOL)
    np.testing.assert_allclose(found.step, state.sigma * found.y, rtol=RTOL)
    whole = (v - state.m) / spread_by(state)
    cosines = np.vecdot(found.step, whole) / np.linalg.norm(found.step, axis=-1) / np.linalg.norm(whole, axis=-1)
    np.testing.assert_allclose(cosines, 1.0, rtol=RTOL)


@pytest.mark.parametrize("name", METHODS)
def test_a_point_at_the_mean_itself_can_be_learnt_from(name: str) -> None:
    """It has no direction and the length zero, by which nothing may be divided."""
    state, drawn = after(name, 5)
    v = drawn.v.copy()
    v[-1] = state.m  # as the worst: its weight is negative, and scaled by the length
    sample = express(name, state, v)
    np.testing.assert_array_equal(sample.y[-1], np.zeros(N))
    learnt = METHODS[name].tell(SETTINGS[name], state, sample, np.arange(float(L)))
    map_arrays(assert_finite, learnt)


def assert_finite(array: Any) -> Any:
    assert np.isfinite(array).all()
    return array


@pytest.mark.parametrize("name", METHODS)
def test_expressing_can_be_traced_and_compiled(name: str) -> None:
    state, _ = after(name, 5)
    v = points_around(state)
    with jax.enable_x64(True):
        compiled = jax.jit(lambda s, points: express(name, s, points))(state, v)
    assert_is_literal(name, compiled, state, v)


@pytest.mark.parametrize("generations", [0, 60])
def test_what_an_older_state_drew_is_to_mix_half_where_it_lies_and_half_its_noise(
    generations: int, convert: Convert
) -> None:
    state, _ = after("mix", generations)
    assert (generations == 0) == (state.live[:5] == 1.0).all()
    v = points_around(state)
    v[0] = state.m
    xi = state.live * np.random.default_rng(1).standard_normal(v.shape)
    found = express("mix", map_arrays(convert, state), convert(v), convert(xi))
    inverse_root = matrix_roots(state.C.tolist())[1]
    m, A, sigma = state.m.tolist(), state.A.tolist(), float(state.sigma[0])
    for i, point in enumerate(v):
        still = np.where(state.live > 0, point, state.m).tolist()
        y = injection.y_of_x(injection.x_of_v(still, m, A), m, sigma)
        z = np.array(injection.delayed_z(y, inverse_root, xi[i].tolist()))
        for part, expected in (("z", z), ("y", z @ state.root), ("step", sigma * (z @ state.root))):
            assert_close(np.asarray(getattr(found, part))[i], expected, f"{part} of point {i}")
    np.testing.assert_array_equal(np.asarray(found.v), v)


# Starting


def covariances(batch: tuple[int, ...] = ()) -> Array:
    scales = np.geomspace(0.01, 30, N)
    root = np.random.default_rng(8).standard_normal((*batch, N, N)) * scales
    return root @ root.mT + 0.16 * np.eye(N)


def started(m: Any, covariance: Any) -> dict[str, Any]:
    return initial_gaussian(start_at(m)._replace(covariance=covariance))


def test_a_start_from_a_covariance_is_the_literal_one(convert: Convert) -> None:
    m, covariance = np.arange(float(N)), covariances()
    state = started(convert(m), convert(covariance))
    sigma, C = injection.scale_and_shape(covariance.tolist())
    np.testing.assert_array_equal(np.asarray(state["m"]), m)
    assert_close(state["sigma"], [sigma], "sigma")
    assert_close(state["C"], C, "C")


def test_a_start_has_the_roots_of_its_covariance_and_nothing_behind_it(convert: Convert) -> None:
    m, covariance = np.arange(float(N)), covariances()
    state = started(convert(m), convert(covariance))
    root, C = np.asarray(state["root"]), np.asarray(state["C"])
    np.testing.assert_allclose(root @ root, C, atol=RTOL * np.abs(C).max())
    np.testing.assert_allclose(root @ np.asarray(state["inverse_root"]), np.eye(N), atol=RTOL)
    np.testing.assert_allclose(np.linalg.det(C), 1.0, rtol=RTOL)
    np.testing.assert_allclose(np.asarray(state["sigma"]) ** 2 * C, covariance, rtol=1e-8)
    for path in ("p_sigma", "p_c"):
        np.testing.assert_array_equal(np.asarray(state[path]), np.zeros(N))
    assert state["generation"] == 0


def test_categories_are_no_part_of_the_covariance_of_a_start() -> None:
    numbers = covariances()[:4, :4]
    covariance = np.eye(N)
    covariance[:4, :4] = numbers
    state = initial_gaussian(Start(np.zeros(N), covariance, start_at(np.zeros(N), (2, 3)).theta))
    alone = initial_gaussian(start_at(np.zeros(4))._replace(covariance=numbers))
    for name in ("C", "root", "inverse_root"):
        assert_close(state[name][:4, :4], alone[name], name)
        assert_close(state[name][4:], np.eye(N)[4:] * (name == "C"), name)
    assert_close(state["sigma"], alone["sigma"], "sigma")


def test_a_batch_of_starts_is_a_loop_over_them(convert: Convert) -> None:
    m, covariance = np.random.default_rng(1).standard_normal((2, 3, N)), covariances((2, 3))
    states = started(convert(m), convert(covariance))
    assert states["sigma"].shape == (2, 3, 1)
    for place in np.ndindex(2, 3):
        for name, single in started(m[place], covariance[place]).items():
            if name != "generation":
                assert_close(np.asarray(states[name])[place], single, name)


def test_the_ordinary_start_is_the_identity() -> None:
    ordinary = initial_gaussian(start_at(np.arange(float(N))))
    assert ordinary["sigma"].tolist() == [1.0]
    for name in ("C", "root", "inverse_root"):
        assert ordinary[name].tolist() == np.eye(N).tolist()
