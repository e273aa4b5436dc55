"""Back ends: one text on NumPy, on read-only NumPy, on JAX, for one run and for a batch."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Space
from mixcma.core.coordinates import values_at
from mixcma.core.gaussian import decompose, map_arrays, start_at
from mixcma.core.methods import METHODS, Method
from mixcma.core.sampling import Noise, Sample
from mixcma.latent.encoding import Encoding

SPACE = Space(
    {
        "x": Float(-3, 3, mean=1.0),
        "rate": Float(1e-4, 1.0, log=True),
        "free": Float(mean=2.0, std=1.0),
        "n": Int(-10, 10, std=1.0),
        "batch": Int(1, 500, log=True),
        "b": Bool(std=1.0),
        "b2": Bool(std=1.0),
        "uneven": Discrete([0.01, 0.1, 1.0], std=1.0),
        "powers": Discrete([1, 2, 4, 8, 16]),
    }
)
CATEGORIES = {"kind": Categorical(["only"]), "kernel": Categorical(list("pqr")), "solver": Categorical(range(5))}
ENCODINGS = {False: Encoding(SPACE), True: Encoding(Space({**SPACE, **CATEGORIES}), True)}
Convert = Callable[[Any], Any]
State = Any  # of any method


def encoding_of(method: Method) -> Encoding:
    return ENCODINGS[method.takes_categories]


# a setting is part of what is compiled, so each method has one
SETTINGS = {name: method.setting(encoding_of(method).coordinates, None) for name, method in METHODS.items()}


def noises(name: str, generations: int, batch: tuple[int, ...] = ()) -> list[Noise]:
    rng, L, N = np.random.default_rng(5), SETTINGS[name].strategy.popsize, encoding_of(METHODS[name]).dimension
    return [
        Noise(
            rng.standard_normal((*batch, L, N)),
            1 - rng.random((*batch, N)),
            1 - rng.random((*batch, L, N)),
            1 - rng.random((*batch, L, N)),
        )
        for _ in range(generations)
    ]


def objective(x: Any) -> Any:
    """Steep in the floats, with plateaus."""
    xp = x.__array_namespace__()
    return xp.floor(xp.sum(xp.abs(x - 0.7) * xp.asarray(np.arange(1.0, x.shape[-1] + 1)), axis=-1))


def start(name: str, convert: Convert, batch: tuple[int, ...] = ()) -> State:
    encoding = encoding_of(METHODS[name])
    mean = np.broadcast_to(np.round(encoding.initial_mean, 1), (*batch, encoding.dimension)).copy()
    return METHODS[name].initial_state(SETTINGS[name], start_at(convert(mean), encoding.coordinates.choices))


def generation(name: str, state: State, noise: Noise, older: Any = None) -> State:
    """Infeasible where the first coordinate is negative; `older` marks candidates that an older state drew."""
    method, setting = METHODS[name], SETTINGS[name]
    sample = method.sample(setting, state, noise)
    if older is not None:
        sample = sample._replace(older=older)
    x = values_at(setting.coordinates, sample.v)
    violations = x.__array_namespace__().maximum(-x[..., 0], 0.0)
    return method.decomposed(method.tell(setting, state, sample, objective(x), violations))


def run(name: str, noise: list[Noise], convert: Convert, batch: tuple[int, ...] = ()) -> list[State]:
    """The states of all generations on the given noise; from half of them on, some candidates are older."""
    states = [start(name, convert, batch)]
    for t, drawn in enumerate(noise):
        L = SETTINGS[name].strategy.popsize
        older = convert(np.broadcast_to(np.arange(L) % 3 == t % 3, (*batch, L))) if 2 * t > len(noise) else None
        after = generation(name, states[-1], Noise(*map(convert, drawn)), older)
        states.append(map_arrays(convert, after))
    return states[1:]


def read_only(array: Any) -> Any:
    array = np.array(array)
    array.setflags(write=False)
    return array


def leaves(state: State) -> dict[str, Any]:
    """The arrays of a state, nested ones too, by name."""
    found = {}
    for field, part in zip(state._fields, state):
        nested = leaves(part) if isinstance(part, tuple) else {"": part}
        found |= {f"{field} {name}".strip(): array for name, array in nested.items()}
    return found


def assert_equal_states(left: State, right: State, rtol: float) -> None:
    one, other = leaves(left), leaves(right)
    assert one.keys() == other.keys()
    for name, expected in other.items():
        assert np.shape(one[name]) == np.shape(expected), name
        atol = rtol * np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(np.asarray(one[name]), np.asarray(expected), rtol=rtol, atol=atol, err_msg=name)


@pytest.mark.parametrize("name", METHODS)
def test_jax_gives_the_same_generations_as_numpy(name: str) -> None:
    noise = noises(name, 25)
    with jax.enable_x64(True):
        on_jax = run(name, noise, jax.numpy.asarray)
    for left, right in zip(on_jax, run(name, noise, np.asarray)):
        assert_equal_states(left, right, rtol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_read_only_arrays_are_enough(name: str) -> None:
    noise = noises(name, 25)
    for left, right in zip(run(name, noise, read_only), run(name, noise, np.asarray)):
        assert_equal_states(left, right, rtol=0.0)


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_is_a_loop(name: str) -> None:
    noise = noises(name, 25, (2, 3))
    batched = run(name, noise, np.asarray, (2, 3))
    for i, j in np.ndindex(2, 3):
        alone = run(name, [Noise(*(part[i, j] for part in drawn)) for drawn in noise], np.asarray)
        for together, one in zip(batched, alone):
            assert_equal_states(map_arrays(operator.itemgetter((i, j)), together), one, rtol=1e-9)


@pytest.mark.parametrize("live", ["11110000", "11011000", "00000001", "00000000", "11111111"])
def test_who_is_frozen_is_no_part_of_the_decomposition(live: str) -> None:
    Z, flags = np.random.default_rng(3).normal(size=(40, 8)), np.array([float(flag) for flag in live])
    C = Z.T @ Z / 40
    alone, in_a_batch = decompose(C, flags), decompose(C[None], flags[None])
    kept = np.flatnonzero(flags)
    np.testing.assert_allclose(alone.root[np.ix_(kept, kept)] @ alone.root[np.ix_(kept, kept)], C[np.ix_(kept, kept)])
    frozen = np.flatnonzero(flags == 0)
    assert not alone.root[frozen].any()
    assert not alone.inverse_root[:, frozen].any()
    assert np.isclose(alone.eigenvalues, 1.0).sum() >= len(frozen)
    for name, one, other in zip(alone._fields, alone, in_a_batch):
        np.testing.assert_allclose(one, other[0], atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", METHODS)
def test_the_text_can_be_traced_and_compiled(name: str) -> None:
    """Compiled code knows nothing about the values: neither whether something is frozen, nor whether some are older."""
    noise, state = noises(name, 25), start(name, np.asarray)
    with jax.enable_x64(True):
        compiled = jax.jit(lambda *arguments: generation(name, *arguments))
        on_jax = start(name, jax.numpy.asarray)._replace(generation=jax.numpy.asarray(0))
        for t, drawn in enumerate(noise):
            older = np.arange(len(drawn.normal)) % 3 == t % 4
            after, state = compiled(on_jax, drawn, older), generation(name, state, drawn, older)
            assert_equal_states(after, state, rtol=1e-9)
            on_jax = map_arrays(np.asarray, after)  # without JAX's weak types, so that it is compiled once


@pytest.mark.parametrize("name", METHODS)
def test_a_sample_is_the_same_on_all_back_ends(name: str) -> None:
    noise = noises(name, 1)[0]
    state, sampled = start(name, np.asarray), []
    for convert in (np.asarray, jax.numpy.asarray):
        with jax.enable_x64(True):
            sample = METHODS[name].sample(SETTINGS[name], map_arrays(convert, state), Noise(*map(convert, noise)))
            sampled.append([np.asarray(part) for part in sample])
    for field, one, other in zip(Sample._fields, *sampled):
        assert one.dtype == other.dtype, field
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=field)
