"""Back ends: one text on NumPy, on read-only NumPy, on JAX, for one run and for a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from mixcma import Bool, Categorical, CatMargin, Cma, Discrete, Float, Int, IntegerMutation, Margin, Mix, Space
from mixcma.core.coordinates import values_at
from mixcma.core.methods import tell
from mixcma.core.sampling import Noise
from mixcma.core.state import State, decompose, initial_state
from mixcma.latent.encoding import Encoding
from mixcma.run.optimizer import setting_of

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
ENCODINGS = {
    "numbers": Encoding(SPACE),
    "categories": Encoding(Space({**SPACE, **CATEGORIES}), "categories"),
}
SETTINGS = {pairs: setting_of(encoding, None) for pairs, encoding in ENCODINGS.items()}
METHODS = [Cma(), Margin(), IntegerMutation(), IntegerMutation(box=True), Mix(), CatMargin()]
IDS = ["cma", "margin", "im", "im-box", "mix", "catmargin"]
Convert = Callable[[Any], Any]


def noises(method: Cma, generations: int, batch: tuple[int, ...] = ()) -> list[Noise]:
    rng, L, N = np.random.default_rng(5), SETTINGS[method.pairs].strategy.popsize, ENCODINGS[method.pairs].dimension
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


def start(method: Cma, convert: Convert, batch: tuple[int, ...] = ()) -> State:
    encoding = ENCODINGS[method.pairs]
    mean = np.broadcast_to(np.round(encoding.initial_mean, 1), (*batch, encoding.dimension)).copy()
    return initial_state(convert(mean), encoding.coordinates.choices)


def run(method: Cma, noise: list[Noise], convert: Convert, batch: tuple[int, ...] = ()) -> list[State]:
    """Generations on the given noise; infeasible where the first coordinate is negative."""
    state, setting = start(method, convert, batch), SETTINGS[method.pairs]
    states = []
    for drawn in noise:
        sample = method.sample(setting, state, Noise(*map(convert, drawn)))
        x = values_at(setting.coordinates, sample.v)
        violations = x.__array_namespace__().maximum(-x[..., 0], 0.0)
        state = decompose(tell(method, setting, state, sample, objective(x), violations))
        state = State(*(convert(field) if hasattr(field, "shape") else field for field in state))
        states.append(state)
    return states


def read_only(array: Any) -> Any:
    array = np.array(array)
    array.setflags(write=False)
    return array


def assert_equal_states(left: State, right: State, rtol: float) -> None:
    for name, a, b in zip(State._fields, left, right):
        finite = np.asarray(b)[np.isfinite(b)]  # no best is known yet, or remembered
        scale = np.abs(finite).max(initial=0.0)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol * scale, err_msg=name)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_jax_gives_the_same_generations_as_numpy(method: Cma) -> None:
    noise = noises(method, 25)
    with jax.enable_x64(True):
        on_jax = run(method, noise, jax.numpy.asarray)
    for left, right in zip(on_jax, run(method, noise, np.asarray)):
        assert_equal_states(left, right, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_read_only_arrays_are_enough(method: Cma) -> None:
    noise = noises(method, 25)
    for left, right in zip(run(method, noise, read_only), run(method, noise, np.asarray)):
        assert_equal_states(left, right, rtol=0.0)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_a_batch_is_a_loop(method: Cma) -> None:
    noise = noises(method, 25, (2, 3))
    batched = run(method, noise, np.asarray, (2, 3))[-1]
    for i, j in np.ndindex(2, 3):
        alone = run(method, [Noise(*(part[i, j] for part in drawn)) for drawn in noise], np.asarray)[-1]
        one = State(*(part[i, j] if np.ndim(part) > 1 else part for part in batched))
        assert_equal_states(one, alone, rtol=1e-9)


@pytest.mark.parametrize("live", ["11110000", "11011000", "00000001", "00000000", "11111111"])
def test_who_is_frozen_is_no_part_of_the_decomposition(live: str) -> None:
    Z = np.random.default_rng(3).normal(size=(40, 8))
    state = initial_state(np.zeros(8))._replace(C=Z.T @ Z / 40, live=np.array([float(flag) for flag in live]))
    alone, in_a_batch = decompose(state), decompose(State(*(np.asarray(part)[None] for part in state[:-1]), 0))
    kept = np.flatnonzero(state.live)
    np.testing.assert_allclose(
        alone.root[np.ix_(kept, kept)] @ alone.root[np.ix_(kept, kept)], state.C[np.ix_(kept, kept)]
    )
    for name in ("C", "root", "inverse_root", "eigenvalues"):
        one, other = getattr(alone, name), getattr(in_a_batch, name)[0]
        np.testing.assert_allclose(one, other, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("method", METHODS, ids=IDS)
def test_the_text_can_be_traced_and_compiled(method: Cma) -> None:
    noise, setting = noises(method, 1)[0], SETTINGS[method.pairs]

    def generation(state: State, drawn: Noise) -> State:
        sample = method.sample(setting, state, drawn)
        return tell(method, setting, state, sample, objective(values_at(setting.coordinates, sample.v)))

    with jax.enable_x64(True):
        compiled = jax.jit(generation)(start(method, jax.numpy.asarray), noise)
    assert_equal_states(compiled, generation(start(method, np.asarray), noise), rtol=1e-9)
