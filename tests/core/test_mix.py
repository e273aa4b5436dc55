"""mix: the fast text is the literal one, and what has settled freezes, is tried, and comes back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from mixcma import Bool, Discrete, Float, Int, Optimizer, Space
from mixcma.core.coordinates import cell_centre, cell_index, values_at
from mixcma.core.freezing import centred, held_margin, jumped, mutation_rate, returned
from mixcma.core.methods import Mix, Setting, tell
from mixcma.core.natural import caution, covariance
from mixcma.core.state import decompose, initial_state
from mixcma.core.strategy import CovariancePace, Pace, covariance_paces, paces, strategy
from mixcma.encoding import Encoding
from mixcma.noise import NoiseSource
from tests.core.test_against_reference import BINARY, INTEGERS, MIXED, PAPER_LIKE, ellipsoid, latent_values, plateaus
from tests.reference.mix import Mix as Literal
from tests.reference.mix import covariance_constants, mix_constants
from tests.reference.run import Noise as LiteralNoise

Array = NDArray[np.float64]
RTOL = 1e-8


def violation(values: Array) -> Array:
    return np.maximum(0.0, 1.0 - np.abs(values[..., 0]))


@pytest.mark.parametrize("popsize", [4, 12, 50])
def test_the_constants_are_those_of_the_document(popsize: int) -> None:
    fixed = strategy(20, popsize)
    mu_w, table, slow = fixed.mu_w, Pace._make(paces(fixed, 10)), CovariancePace._make(covariance_paces(fixed, 10))
    for n in range(1, 21):
        literal = mix_constants(n, popsize, mu_w)
        related = covariance_constants(n, 10, popsize, mu_w)
        for name in ("c_1", "eta_C"):
            np.testing.assert_allclose(getattr(slow, name)[n], getattr(related, name), rtol=1e-12, err_msg=name)
        for name in ("chi", "eta_sigma"):
            np.testing.assert_allclose(getattr(table, name)[n], getattr(literal, name), rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(1 - table.keeps_sigma[n], literal.c_sigma, rtol=1e-12)
        np.testing.assert_allclose(1 - slow.keeps_c[n], related.c_c, rtol=1e-12)
        np.testing.assert_allclose(table.distance[n], literal.a, rtol=1e-9)


@pytest.mark.parametrize("objective", [ellipsoid, plateaus])
@pytest.mark.parametrize("space", [MIXED, INTEGERS, PAPER_LIKE, BINARY], ids=["mixed", "int", "paper", "binary"])
def test_a_whole_run_is_the_literal_one(space: Space, objective: Callable[[Array], Array]) -> None:
    assert_same_run(space, objective)


@pytest.mark.parametrize("space", [MIXED, INTEGERS], ids=["mixed", "int"])
def test_a_run_with_lazy_decompositions_and_a_constraint_is_the_literal_one(space: Space) -> None:
    assert_same_run(space, ellipsoid, violation, interval=4, popsize=13)


def assert_same_run(
    space: Space,
    objective: Callable[[Array], Array],
    constraint: Callable[[Array], Array] | None = None,
    interval: int = 1,
    popsize: int | None = None,
) -> None:
    encoding, method = Encoding(space), Mix(keep_inside=False)
    setting = Setting(strategy(encoding.dimension, popsize, interval), encoding.coordinates)
    state = initial_state(encoding.initial_mean)
    literal = Literal(latent_values(encoding), encoding.initial_mean.tolist(), popsize, eigen_interval=interval)
    source = NoiseSource(7, 0, setting.strategy.popsize, encoding.dimension, uniforms=True)
    froze = revived = 0
    for generation in range(100):
        noise, before = source(generation), state.live
        sample = method.sample(setting, state, noise)
        points = literal.sample(LiteralNoise(*(part.tolist() for part in noise)))
        np.testing.assert_allclose(sample.v, points, rtol=RTOL, atol=1e-11, err_msg=f"generation {generation}")
        values = values_at(encoding.coordinates, sample.v)
        violations = None if constraint is None else constraint(values)
        state = tell(method, setting, state, sample, objective(values), violations)
        if state.generation % interval == 0:
            state = decompose(state)
        literal.update(objective(values).tolist(), None if violations is None else violations.tolist())
        froze, revived = froze + np.sum(before > state.live), revived + np.sum(before < state.live)
        assert state.live.tolist() == literal.live, generation
        assert (state.long[0], state.idle[0]) == (literal.g_long, literal.g_idle), generation
        live = state.live > 0
        for name in ("m", "sigma", "C", "p_sigma", "p_c", "A"):
            fast, expected = np.asarray(getattr(state, name)), np.asarray(getattr(literal, name))
            if name in ("A", "C"):
                fast, expected = (each[live] if name == "A" else each[np.ix_(live, live)] for each in (fast, expected))
            scale = np.abs(expected).max(initial=0.0)
            np.testing.assert_allclose(
                np.reshape(fast, expected.shape), expected, rtol=RTOL, atol=RTOL * scale,
                err_msg=f"{name} after generation {generation}",
            )  # fmt: skip
        if state.sigma[0] < 1e-6:
            break
    assert froze > 0


@given(st.integers(0, 10**6), st.floats(0.01, 1.0), st.integers(1, 8))
@settings(max_examples=50, deadline=None)
def test_the_covariance_stays_positive_definite_whatever_the_weights(seed: int, eta: float, n: int) -> None:
    """Also where x was made with an older C."""
    rng = np.random.default_rng(seed)
    root, older = rng.standard_normal((2, n, n))
    C = root @ root.T + 1e-6 * np.eye(n)
    y = rng.standard_normal((12, n)) @ root.T
    w, p_c, d = rng.standard_normal(12), rng.standard_normal(n), rng.standard_normal()
    x = y @ (older @ older.T)
    pace = CovariancePace._make(covariance_paces(strategy(n), n)[:, n])._replace(eta_C=eta)
    new = covariance(pace, C, w, y, x, np.array([d]), p_c)
    K = eta / 2 * ((y.T * w) @ x - d * np.eye(n))
    whole = (1 - pace.c_1) * (np.eye(n) + K) @ C @ (np.eye(n) + K).T + pace.c_1 * np.outer(p_c, p_c)
    np.testing.assert_allclose(new, whole, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    assert np.linalg.eigvalsh((new + new.T) / 2)[0] >= -1e-9 * np.abs(new).max()


def test_the_step_size_is_cautious_where_some_candidates_are_feasible() -> None:
    shares = np.array([[0.0], [0.1], [0.5], [1.0]])
    assert caution(shares)[:, 0].tolist() == [1.0, 0.0625, 0.25, 1.0]


@given(st.floats(-0.45, 4.45), st.floats(0.05, 20.0), st.floats(0.02, 1.0), st.sampled_from([0.01, 0.1]))
@settings(max_examples=200, deadline=None)
def test_the_probability_of_leaving_is_held_between_the_margin_and_what_it_was(
    m: float, sd: float, most: float, alpha: float
) -> None:
    coordinates = Encoding(Space({"x": Int(0, 4, std=1.0)})).coordinates
    most = max(most, alpha)
    before, cell = np.array([m]), max(0.0, np.ceil(m - 0.5))
    lower, upper = cell - 0.5, cell + 0.5
    after, deviation, p = held_margin(coordinates, alpha, np.array([most]), before, np.array([sd]))
    tails = [norm.cdf((lower - after) / deviation) if lower > 0 else 0.0, norm.sf((upper - after) / deviation)]
    if upper > 4:
        tails[1] = 0.0
    inner = lower > 0 and upper < 4
    assert sum(tails) == pytest.approx(p, rel=1e-9)
    assert alpha * (1 - 1e-9) <= p[0] <= most * (1 + 1e-9)
    assert all(tail >= (alpha / 2 if inner else 0.0) * (1 - 1e-9) for tail in tails)
    again = held_margin(coordinates, alpha, np.array([most]), after, deviation)
    np.testing.assert_allclose([again[0], again[1]], [after, deviation], rtol=1e-6)


def test_without_floats_the_first_candidate_is_the_mean() -> None:
    for space, same in ((INTEGERS, True), (MIXED, False)):
        optimizer = Optimizer(space, seed=3)
        latent = optimizer.ask()[0].latent
        assert (latent.tolist() == optimizer.state.m.tolist()) is same


def test_a_return_begins_at_the_best_point_with_its_integers_frozen() -> None:
    optimizer = Optimizer(MIXED, seed=3)
    best = None
    for _ in range(10):
        candidates = optimizer.ask()
        values = [float(c.latent @ c.latent) for c in candidates]
        optimizer.tell(candidates, values)
        best = min([*zip(values, [c.latent for c in candidates]), *([best] if best else [])], key=lambda pair: pair[0])
    coordinates = optimizer.setting.coordinates
    state = returned(coordinates, optimizer.state)
    discrete = coordinates.discrete
    np.testing.assert_allclose(state.m[~discrete], best[1][~discrete])
    assert cell_index(coordinates, state.m)[discrete].tolist() == cell_index(coordinates, best[1])[discrete].tolist()
    assert state.live.tolist() == (~discrete * 1.0).tolist()
    assert state.root.tolist() == np.diag(state.live).tolist()
    assert state.best.tolist() == [0.0, best[0]]


def test_centring_moves_the_sum_by_nothing_where_it_can() -> None:
    v = np.array([[0.2], [0.7], [-0.3], [0.1]])
    centre, left = np.round(v), np.array([[False], [True], [False], [False]])
    moves = centred(v, centre, left, np.ones_like(left))
    assert moves[1, 0] == pytest.approx(0.3)
    assert moves.sum() == pytest.approx(0.0)
    assert moves[2, 0] == 0.0  # its centre lies where the others already went


def test_jumps_stay_inside_and_change_the_cell() -> None:
    space = Space({"a": Int(0, 1), "b": Int(0, 4), "c": Int(0, 10**6), "d": Discrete([1, 2, 7])})
    coordinates = Encoding(space).coordinates
    uniform = np.linspace(1e-9, 1.0, 4001)[:, None] * np.ones(4)
    for cell in (np.zeros(4), np.minimum(coordinates.last, 1.0), coordinates.last):
        there = jumped(coordinates, cell, uniform)
        assert ((there >= 0) & (there <= coordinates.last) & (there != cell)).all()
    inner = jumped(coordinates, np.full(4, 1000.0), uniform)[:, 2] - 1000.0
    assert np.mean(np.abs(inner) == 1) == pytest.approx(0.75, abs=0.01)  # P(d >= 2) = 1/4
    assert np.mean(inner > 0) == pytest.approx(0.5, abs=0.01)


def test_the_centre_of_a_cell_is_its_value() -> None:
    encoding = Encoding(MIXED)
    u = np.random.default_rng(1).normal(size=(200, encoding.dimension)) * 3
    k = cell_index(encoding.coordinates, u)
    centre = cell_centre(encoding.coordinates, k)
    discrete = encoding.coordinates.discrete
    assert (cell_index(encoding.coordinates, centre)[:, discrete] == k[:, discrete]).all()
    decoded = values_at(encoding.coordinates, centre)[:, discrete]
    np.testing.assert_allclose(decoded, values_at(encoding.coordinates, u)[:, discrete])


def test_mutations_become_rarer_but_never_cease() -> None:
    table = paces(strategy(4, 12), 3)
    some_live, none_live = (Pace._make(table[:, n]) for n in (1, 0))
    rates = [float(mutation_rate(some_live, np.array([float(idle)]), np.zeros(1))[0]) for idle in (0, 1, 10, 10**6)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(1 - 0.73)
    assert rates[-1] == 0.05
    assert mutation_rate(some_live, np.array([1e6]), np.ones(1)) == 0.5  # the live ones gain nothing either
    assert mutation_rate(none_live, np.array([10.0]), np.zeros(1)) == 1.0  # nothing else would change


@pytest.mark.parametrize("popsize", [4, 8, 16, 64])
@pytest.mark.parametrize("seed", range(5))
def test_equal_values_do_no_harm(seed: int, popsize: int) -> None:
    space = Space({"n": Int(0, 9), "x": Float(-1, 1), "b": Bool(), "y": Float()})
    optimizer = Optimizer(space, method="mix", seed=seed, popsize=popsize)
    while not optimizer.stop:
        optimizer.tell(optimizer.ask(), [0.0] * popsize)
    assert optimizer.stop.name == "flat"


@pytest.mark.parametrize("name", ["bits", "integers", "set"])
def test_spaces_without_floats_are_solved_and_left(name: str) -> None:
    spaces = {
        "bits": Space({f"b{i}": Bool() for i in range(20)}),
        "integers": Space({f"n{i}": Int(-10, 10) for i in range(8)}),
        "set": Space({f"d{i}": Discrete([0, 1, 2, 5, 9, 30]) for i in range(6)}),
    }
    optimizer = Optimizer(spaces[name], method="mix", seed=3)
    while not optimizer.stop and optimizer.evaluations < 20_000:
        candidates = optimizer.ask()
        optimizer.tell(candidates, [sum((float(v) - 1) ** 2 for v in c.params.values()) for c in candidates])
    assert optimizer.best is not None
    assert optimizer.best.value == 0.0
    assert optimizer.stop is not None
