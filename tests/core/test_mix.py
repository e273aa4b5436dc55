"""mix: the fast text is the literal one, and what has settled freezes, is tried, and comes back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Space
from mixcma.core.coordinates import cell_centre, cell_index, values_at
from mixcma.core.freezing import centred, held_margin, returned, tails_of
from mixcma.core.methods import Mix, tell
from mixcma.core.mutating import jumped, mutation_rate
from mixcma.core.natural import caution, covariance
from mixcma.core.state import State, decompose, initial_state
from mixcma.core.strategy import MutationPace, Pace, mutation_paces, paces, strategy
from mixcma.latent.encoding import Encoding
from mixcma.run.noise import NoiseSource
from mixcma.run.optimizer import setting_of
from tests.core.test_against_reference import BINARY, INTEGERS, MIXED, PAPER_LIKE, ellipsoid, latent_values, plateaus
from tests.reference.catmargin import Category
from tests.reference.mix import Mix as Literal
from tests.reference.mix import mix_constants
from tests.reference.run import Noise as LiteralNoise

Array = NDArray[np.float64]
RTOL = 1e-8

FLOATS = {"x": Float(-3, 3, mean=1.5), "y": Float(mean=2.0, std=1.0)}
WHOLE = {"n": Int(-5, 5, std=1.0), "k": Int(0, 10, std=2.0)}
CATEGORIES = {"three": Categorical(list("pqr")), "two": Bool(), "five": Categorical([1, 2, 3, 4, 5])}
SPACES = {
    "mixed": MIXED,
    "int": INTEGERS,
    "paper": PAPER_LIKE,
    "binary": BINARY,
    "all": Space(FLOATS | WHOLE | CATEGORIES),
    "floats and categories": Space(FLOATS | CATEGORIES),
    "integers and categories": Space(WHOLE | CATEGORIES),
    "categories": Space(CATEGORIES),
    "many categories": Space({f"{name}{i}": variable for i in range(3) for name, variable in CATEGORIES.items()}),
    "one category": Space({"five": Categorical([1, 2, 3, 4, 5])}),
    "booleans": Space({f"b{i}": Bool() for i in range(8)}),
    "one boolean": Space({"b": Bool()}),
}


def violation(values: Array) -> Array:
    return np.maximum(0.0, 1.0 - np.abs(values[..., 0]))


@pytest.mark.parametrize("popsize", [4, 12, 50])
def test_the_constants_are_those_of_the_document(popsize: int) -> None:
    fixed = strategy(20, popsize)
    mu_w, table = fixed.mu_w, Pace._make(paces(fixed, 10))
    for n in range(21):
        literal = mix_constants(n, 10, popsize, mu_w)
        if n >= 10:  # the floats are always live
            np.testing.assert_allclose(table.eta_C[n], literal.eta_C, rtol=1e-12)
        for name in ("c_1", "chi", "eta_sigma"):
            np.testing.assert_allclose(getattr(table, name)[n], getattr(literal, name), rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(1 - table.keeps_sigma[n], literal.c_sigma, rtol=1e-12)
        np.testing.assert_allclose(1 - table.keeps_c[n], literal.c_c, rtol=1e-12)
        np.testing.assert_allclose(table.adds_c[n] ** 2, literal.c_c * (2 - literal.c_c) * mu_w, rtol=1e-12)
        np.testing.assert_allclose(table.distance[n], literal.a, rtol=1e-9)


@pytest.mark.parametrize("objective", [ellipsoid, plateaus])
@pytest.mark.parametrize("name", SPACES)
def test_a_whole_run_is_the_literal_one(name: str, objective: Callable[[Array], Array]) -> None:
    froze, _, _ = assert_same_run(SPACES[name], objective)
    assert froze > 0


@pytest.mark.parametrize("name", ["mixed", "int", "all", "integers and categories", "categories", "booleans"])
def test_a_run_with_lazy_decompositions_and_a_constraint_is_the_literal_one(name: str) -> None:
    froze, _, _ = assert_same_run(SPACES[name], ellipsoid, violation, interval=4, popsize=13)
    assert froze > 0


@pytest.mark.parametrize("name", ["paper", "mixed", "all", "integers and categories", "many categories", "booleans"])
def test_a_run_in_which_the_settled_is_unsettled_again_is_the_literal_one(name: str) -> None:
    """The noise makes integers and categories freeze and come back."""
    rng = np.random.default_rng(12)

    def noisy(values: Array) -> Array:
        return np.asarray(np.sum(np.abs(values - 0.7), axis=-1) + rng.standard_normal(values.shape[:-1]))

    froze, revived, opened = assert_same_run(SPACES[name], noisy, interval=2, popsize=10)
    assert froze > 0
    assert (revived > 0) == (name in ("paper", "mixed", "all", "integers and categories"))
    assert (opened > 0) == (name != "paper")


@pytest.mark.parametrize("name", ["mixed", "all", "categories"])
def test_a_run_with_candidates_of_older_states_is_the_literal_one(name: str) -> None:
    froze, _, _ = assert_same_run(SPACES[name], ellipsoid, some_are_older=True)
    assert froze > 0


@pytest.mark.parametrize("name", ["all", "integers and categories", "categories"])
def test_a_run_that_starts_with_uneven_probabilities_is_the_literal_one(name: str) -> None:
    theta = [[0.2, 0.5, 0.3], [0.25, 0.75], [0.1, 0.2, 0.15, 0.15, 0.4]]
    froze, _, _ = assert_same_run(SPACES[name], ellipsoid, theta={len(row): row for row in theta})
    assert froze > 0


def started(encoding: Encoding, theta: dict[int, list[float]]) -> State:
    """The start of a run; `theta` are the probabilities of a category with so many choices, else they are even."""
    choices = encoding.coordinates.choices
    n = encoding.dimension - len(choices)
    state = initial_state(np.concatenate([encoding.initial_mean[:n], np.zeros(len(choices))]), choices)
    given = [np.pad(theta[K], (0, max(choices) - K)) if K in theta else state.theta[c] for c, K in enumerate(choices)]
    if not given:
        return state
    modes = np.argmax(given, axis=-1)
    return state._replace(m=np.concatenate([state.m[:n], modes]), theta=np.array(given))


def assert_same_run(
    space: Space,
    objective: Callable[[Array], Array],
    constraint: Callable[[Array], Array] | None = None,
    interval: int = 1,
    popsize: int | None = None,
    theta: dict[int, list[float]] | None = None,
    some_are_older: bool = False,
) -> tuple[int, int, int]:
    """How many coordinates froze, how many integers lived again, and how many categories were opened again."""
    encoding, method = Encoding(space, "categories"), Mix(keep_inside=False)
    setting = setting_of(encoding, popsize)
    n, choices = setting.strategy.dimension, [int(K) for K in encoding.coordinates.choices]
    state = started(encoding, theta or {})
    numeric = [values for values, line in zip(latent_values(encoding), encoding.axes) if not line.category]
    literal = Literal(
        [*numeric, *map(Category, choices)],
        encoding.initial_mean[:n].tolist(),
        popsize,
        theta=[state.theta[c, :K].tolist() for c, K in enumerate(choices)],
        eigen_interval=interval,
    )
    assert literal.constants.popsize == setting.strategy.popsize
    source = NoiseSource(7, 0, setting.strategy.popsize, encoding.dimension, uniforms=True)
    froze = revived = opened = 0
    for generation in range(100):
        noise, before = source(generation), state
        sample = method.sample(setting, state, noise)
        points = literal.sample(LiteralNoise(*(part.tolist() for part in noise)))
        np.testing.assert_allclose(sample.v, points, rtol=RTOL, atol=1e-11, err_msg=f"generation {generation}")
        decoded = values_at(encoding.coordinates, sample.v)
        values = objective(decoded)
        violations = None if constraint is None else constraint(decoded)
        older = np.arange(len(values)) % 3 < generation % 4 if some_are_older and generation % 4 else None
        state = tell(method, setting, state, sample._replace(older=older), values, violations)
        if state.generation % interval == 0:
            state = decompose(state)
        literal.update(
            values.tolist(),
            None if violations is None else violations.tolist(),
            None if older is None else older.tolist(),
        )
        froze += int(np.sum(before.live > state.live) + np.sum(before.open > state.open))
        revived += int(np.sum(before.live < state.live))
        opened += int(np.sum(before.open < state.open))
        assert_same_state(state, literal, n, f"after generation {generation}")
        if state.sigma[0] < 1e-6:
            break
    return froze, revived, opened


def assert_same_state(state: State, literal: Literal, n: int, when: str) -> None:
    assert state.live.tolist() == literal.live, when
    assert state.open.tolist() == literal.is_open, when
    assert (state.long, state.idle, state.level) == (literal.g_long, literal.g_idle, literal.level), when
    assert state.best.tolist() == list(literal.best or ()), when
    assert state.m[n:].tolist() == literal.m[n:], when
    live = state.live > 0
    integers = [j for j in range(n) if live[j] and literal.coordinates[j] is not None]
    pairs = {
        "m": (state.m, literal.m),
        "sigma": (state.sigma, [literal.sigma]),
        "C": (state.C[np.ix_(live, live)], np.asarray(literal.C)[np.ix_(live, live)]),
        "A": (state.A[live], np.asarray(literal.A)[live]),
        "p_sigma": (state.p_sigma, literal.p_sigma),
        "p_c": (state.p_c, literal.p_c),
        "p": (state.leaving[integers], np.asarray(literal.p)[integers]),
    }
    if literal.K:
        signals = [state.signal[c, :K] for c, K in enumerate(literal.K)]
        pairs["s"] = np.concatenate(signals), literal.s
        pairs["rate"] = state.rate, [literal.gamma, literal.Delta, literal.delta]
    for c, K in enumerate(literal.K):
        pairs[f"theta of {c}"] = state.theta[c, :K], literal.theta[c]
        assert not state.theta[c, K:].any(), when
        assert not state.signal[c, K:].any(), when
    for name, (fast, slow) in pairs.items():
        expected = np.asarray(slow)
        scale = np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(fast, expected, rtol=RTOL, atol=RTOL * scale, err_msg=f"{name} {when}")


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
    pace = Pace._make(paces(strategy(n), n)[:, n])._replace(eta_C=eta)
    new = covariance(pace, C, w, y, x, np.float64(d), p_c)
    K = eta / 2 * ((y.T * w) @ x - d * np.eye(n))
    whole = (1 - pace.c_1) * (np.eye(n) + K) @ C @ (np.eye(n) + K).T + pace.c_1 * np.outer(p_c, p_c)
    np.testing.assert_allclose(new, whole, rtol=1e-9, atol=1e-9 * np.abs(whole).max())
    assert np.linalg.eigvalsh((new + new.T) / 2)[0] >= -1e-9 * np.abs(new).max()


def test_the_step_size_is_cautious_where_some_candidates_are_feasible() -> None:
    shares = np.array([0.0, 0.1, 0.5, 1.0])
    assert caution(shares).tolist() == [1.0, 0.0625, 0.25, 1.0]


@given(st.floats(-0.45, 4.45), st.floats(0.05, 20.0), st.floats(0.02, 1.0), st.sampled_from([0.01, 0.1]))
@settings(max_examples=200, deadline=None)
def test_the_probability_of_leaving_is_held_between_the_margin_and_what_it_was(
    m: float, sd: float, most: float, alpha: float
) -> None:
    coordinates = Encoding(Space({"x": Int(0, 4, std=1.0)})).coordinates
    most = max(most, alpha)
    before, cell = np.array([m]), max(0.0, np.ceil(m - 0.5))
    lower, upper = cell - 0.5, cell + 0.5
    tails = tails_of(coordinates, cell_index(coordinates, before), alpha, before, np.array([sd]))
    after, deviation, p = held_margin(tails, alpha, np.array([most]), np.array([sd]))
    tails = [norm.cdf((lower - after) / deviation) if lower > 0 else 0.0, norm.sf((upper - after) / deviation)]
    if upper > 4:
        tails[1] = 0.0
    inner = lower > 0 and upper < 4
    assert sum(tails) == pytest.approx(p, rel=1e-9)
    assert alpha * (1 - 1e-9) <= p[0] <= most * (1 + 1e-9)
    assert all(tail >= (alpha / 2 if inner else 0.0) * (1 - 1e-9) for tail in tails)
    tails = tails_of(coordinates, cell_index(coordinates, after), alpha, after, deviation)
    again = held_margin(tails, alpha, np.array([most]), deviation)
    np.testing.assert_allclose([again[0], again[1]], [after, deviation], rtol=1e-6, atol=1e-12)


def test_without_floats_the_first_candidate_is_the_mean() -> None:
    spaces = ((INTEGERS, True), (SPACES["integers and categories"], True), (SPACES["categories"], True), (MIXED, False))
    for space, same in spaces:
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
    assert state.open.tolist() == [0.0, 0.0]  # the booleans
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


def test_a_mutated_category_takes_every_other_choice_as_often() -> None:
    space = Space({"n": Int(0, 4), "a": Bool(), "b": Categorical(list("xyz")), "c": Categorical(range(5))})
    coordinates = Encoding(space, "categories").coordinates
    uniform = (np.arange(1200)[:, None] + 0.5) / 1200 * np.ones(4)
    for place in range(5):
        cell = np.minimum(np.full(4, float(place)), coordinates.last)
        there = jumped(coordinates, cell, uniform)
        for j, K in enumerate(coordinates.choices, start=1):
            counts = [int(np.sum(there[:, j] == k)) for k in range(K)]
            assert counts == [0 if k == cell[j] else 1200 // (K - 1) for k in range(K)]


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
    some_live = MutationPace._make(mutation_paces(3, 12)[:, 3])
    none_live = some_live._replace(mutates_always=1.0)
    rates = [float(mutation_rate(some_live, np.float64(idle), np.float64(0))) for idle in (0, 1, 10, 10**6)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(1 - 0.73)
    assert rates[-1] == 0.05
    assert mutation_rate(some_live, np.float64(1e6), np.float64(1)) == 0.5  # the live ones gain nothing either
    assert mutation_rate(none_live, np.float64(10), np.float64(0)) == 1.0  # nothing else would change


@pytest.mark.parametrize("popsize", [4, 8, 16, 64])
@pytest.mark.parametrize("seed", range(5))
def test_equal_values_do_no_harm(seed: int, popsize: int) -> None:
    space = Space({"n": Int(0, 9), "x": Float(-1, 1), "b": Bool(), "y": Float(), "c": Categorical(list("pqr"))})
    optimizer = Optimizer(space, method="mix", seed=seed, popsize=popsize)
    while not optimizer.stop:
        optimizer.tell(optimizer.ask(), [0.0] * popsize)
    assert optimizer.stop.name == "flat"


@pytest.mark.parametrize("name", ["bits", "integers", "set", "categories"])
def test_spaces_without_floats_are_solved_and_left(name: str) -> None:
    spaces = {
        "bits": Space({f"b{i}": Bool() for i in range(20)}),
        "integers": Space({f"n{i}": Int(-10, 10) for i in range(8)}),
        "set": Space({f"d{i}": Discrete([0, 1, 2, 5, 9, 30]) for i in range(6)}),
        "categories": Space({f"c{i}": Categorical([4, 3, 2, 1, 0]) for i in range(5)}),
    }
    optimizer = Optimizer(spaces[name], method="mix", seed=3)
    while not optimizer.stop and optimizer.evaluations < 20_000:
        candidates = optimizer.ask()
        optimizer.tell(candidates, [sum((float(v) - 1) ** 2 for v in c.params.values()) for c in candidates])
    assert optimizer.best is not None
    assert optimizer.best.value == 0.0
    assert optimizer.stop is not None
