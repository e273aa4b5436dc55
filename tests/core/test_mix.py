"""mix: the fast text is the literal one, and what has settled freezes, is tried, and comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Space
from mixcma.core.centring import centring_moves
from mixcma.core.coordinates import cell_centre, cell_index, values_at
from mixcma.core.gaussian import Start, start_at
from mixcma.core.methods import Mix
from mixcma.core.mix.constants import MixConstants, MutationConstants, mix_constants, mutation_constants
from mixcma.core.mix.gaussian import by_direction, caution, covariance
from mixcma.core.mix.margin import margin
from mixcma.core.mix.sampling import jump, mutation_rate
from mixcma.core.mix.state import MixState
from mixcma.core.ranking import ranks_of, weights_of
from mixcma.core.strategy import strategy
from mixcma.latent.encoding import Encoding
from tests.core.runs import (
    BINARY,
    BOUNDED,
    BOUNDED_INTEGERS,
    INTEGERS,
    MIXED,
    PAPER_LIKE,
    Array,
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
from tests.reference import cma, mix
from tests.reference.catmargin import Category
from tests.reference.mix import Mix as Literal

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
    "bounded": Space({**BOUNDED, **CATEGORIES}),
    "bounded integers": Space({**BOUNDED_INTEGERS, **CATEGORIES}),
    "wide integers": Space({"x": Float(-9, 9)} | {f"n{i}": Int(-3, 5, std=4.0) for i in range(4)}),
    "branches": Space(
        {
            "five": Categorical([1, 2, 3, 4, 5]),
            "two": Bool(),
            **FLOATS,
            "z": Float(-3, 3, when={"five": [1, 2, 3]}),
            **{name: replace(variable, when={"two": True}) for name, variable in WHOLE.items()},
            "w": Float(-3, 3, when={"k": [4, 5, 6]}),
            "three": Categorical(list("pqr"), when={"five": [1, 5]}),
            "last": Int(-5, 5, when={"three": ["p", "r"]}),
        }
    ),
    "bounded floats": Space({name: variable for name, variable in BOUNDED.items() if isinstance(variable, Float)}),
}
TO_THE_LETTER = Mix(keep_inside=False)


@pytest.mark.parametrize("popsize", [4, 12, 50])
def test_the_constants_are_those_of_the_document(popsize: int) -> None:
    fixed = strategy(20, popsize)
    table = MixConstants._make(mix_constants(fixed, 10))
    for n in range(10, 21):  # the floats are always live
        literal = mix.mix_constants(n, popsize, fixed.mu_w, fixed.mu_w_minus)
        for name in ("c_sigma", "chi", "c_1", "c_c", "c_mu", "a_minus", "eta_C", "eta_sigma"):
            np.testing.assert_allclose(getattr(table, name)[n], getattr(literal, name), rtol=1e-12, err_msg=name)
    alone = MixConstants._make(mix_constants(fixed, 20))
    literal = mix.mix_constants(0, popsize, fixed.mu_w, fixed.mu_w_minus)
    assert (alone.c_1[0], alone.chi[0], alone.c_c[0]) == pytest.approx((literal.c_1, literal.chi, literal.c_c))


@pytest.mark.parametrize("popsize", [4, 12, 50])
def test_the_rate_of_mutations_is_that_of_the_document(popsize: int) -> None:
    D = 6
    table, alpha = mutation_constants(D, popsize), mix.default_alpha([[0.0, 1.0, 2.0]] * D)
    for n_F in range(1, D + 1):
        constants = MutationConstants._make(table[:, n_F])
        for active, idle, level in np.ndindex(3, 200, 2):
            fast = mutation_rate(constants, np.int64(active), np.float64(idle), np.float64(level))
            literal = mix.mutation_rate(active, n_F, alpha, popsize, idle, bool(level))
            assert fast == pytest.approx(literal, rel=1e-12)


@pytest.mark.parametrize("objective", [ellipsoid, plateaus])
@pytest.mark.parametrize("name", SPACES)
def test_a_whole_run_is_the_literal_one(name: str, objective: Objective) -> None:
    # with seed 7 two choices become equally probable up to rounding
    run = assert_same_run(SPACES[name], TO_THE_LETTER, objective, seed=8)
    assert run.froze > 0 or name == "bounded floats"


@pytest.mark.parametrize("violation", [None, constraint])
@pytest.mark.parametrize("objective", [beyond, at_the_bounds])
@pytest.mark.parametrize("name", ["bounded", "bounded integers", "bounded floats"])
def test_a_run_that_is_kept_inside_is_the_literal_one(
    name: str, objective: Objective, violation: Objective | None
) -> None:
    run = assert_same_run(SPACES[name], Mix(), objective, violation)
    assert run.outside > 5
    assert run.froze > 0 or name == "bounded floats"


@pytest.mark.parametrize("name", ["bounded", "bounded integers", "all", "branches"])
def test_a_run_with_failures_is_the_literal_one(name: str) -> None:
    """They are neither feasible nor do they violate a constraint."""
    rng = np.random.default_rng(12)

    def violation(values: Array) -> Array:
        some = constraint(values) if rng.random() < 0.5 else 0.0
        return np.where(rng.random(len(values)) < 0.2, np.inf, some)

    run = assert_same_run(SPACES[name], Mix(), beyond, violation)
    assert run.froze > 0
    assert run.outside > 5 or name in ("all", "branches")


@pytest.mark.parametrize(
    "name", ["mixed", "int", "all", "integers and categories", "categories", "booleans", "branches"]
)
def test_a_run_with_lazy_decompositions_and_a_constraint_is_the_literal_one(name: str) -> None:
    for method in (TO_THE_LETTER, Mix()):
        assert assert_same_run(SPACES[name], method, ellipsoid, constraint, interval=2, popsize=13).froze > 0


@pytest.mark.parametrize(
    "name", ["paper", "mixed", "all", "integers and categories", "many categories", "booleans", "branches"]
)
def test_a_run_in_which_the_settled_is_unsettled_again_is_the_literal_one(name: str) -> None:
    """The noise makes integers and categories freeze and come back."""
    rng = np.random.default_rng(12)

    def noisy(values: Array) -> Array:
        return np.asarray(np.sum(np.abs(values - 0.7), axis=-1) + rng.standard_normal(values.shape[:-1]))

    run = assert_same_run(SPACES[name], Mix(), noisy, interval=2, popsize=10)
    assert run.froze > 0
    assert run.revived > 0 or name not in ("paper", "mixed", "all")
    assert run.opened > 0 or name == "paper"


@pytest.mark.parametrize("name", ["mixed", "all", "categories", "branches"])
def test_a_run_with_candidates_of_older_states_is_the_literal_one(name: str) -> None:
    assert assert_same_run(SPACES[name], Mix(), ellipsoid, some_are_older=True).froze > 0


@pytest.mark.parametrize("name", ["all", "integers and categories", "categories"])
def test_a_run_that_starts_with_uneven_probabilities_is_the_literal_one(name: str) -> None:
    theta = [[0.2, 0.5, 0.3], [0.25, 0.75], [0.1, 0.2, 0.15, 0.15, 0.4]]
    assert assert_same_run(SPACES[name], Mix(), ellipsoid, theta={len(row): row for row in theta}).froze > 0


def test_a_run_on_a_long_way_is_the_literal_one() -> None:
    """There the rank-one update rests while the path is long."""

    def far(values: Array) -> Array:
        return np.asarray(np.sum((values - 1e4) ** 2, axis=-1))

    assert assert_same_run(PAPER_LIKE, TO_THE_LETTER, far).rested > 0


@pytest.mark.parametrize("method", [TO_THE_LETTER, Mix()], ids=["wanders", "inside"])
def test_a_run_to_the_ends_of_integers_is_the_literal_one(method: Mix) -> None:
    """In the first and the last cell they do not freeze while the Gaussian is wider than the cell."""
    run = assert_same_run(SPACES["wide integers"], method, beyond)
    assert run.wide > 0
    assert run.froze > 0


def test_an_integer_whose_cells_floats_cannot_tell_apart_counts_as_a_float() -> None:
    """Alone with integers it makes a space with floats: the first candidate is not the mean."""
    method = Mix()
    encoding = Encoding(Space({"n": Int(0, 9), "vast": Int(-(2**61), 2**61)}), True)
    setting = method.setting(encoding.coordinates, None)
    literal = Literal([latent_values(Encoding(Space({"n": Int(0, 9)})))[0], None], encoding.initial_mean.tolist())
    literal.limits = [(line.latent(line.low), line.latent(line.high)) for line in encoding.axes]
    state = method.initial_state(setting, start_at(encoding.initial_mean))
    for step in in_step(method, setting, state, literal, lambda v: np.sum(v**2, axis=-1), generations=20):
        assert_close(step.after.m, literal.m, f"m {step.when}")


def started(encoding: Encoding, theta: dict[int, list[float]]) -> Start:
    """The start of a run; `theta` are the probabilities of a category with that many choices, else they are even."""
    choices = encoding.coordinates.choices
    n = encoding.dimension - len(choices)
    start = start_at(np.concatenate([encoding.initial_mean[:n], np.zeros(len(choices))]), choices)
    given = [np.pad(theta[K], (0, max(choices) - K)) if K in theta else start.theta[c] for c, K in enumerate(choices)]
    if not given:
        return start
    modes = np.argmax(given, axis=-1)
    return start._replace(m=np.concatenate([start.m[:n], modes]), theta=np.array(given))


class Seen(NamedTuple):
    """What happened in a run, so that a test can say that it has seen it."""

    froze: int  # coordinates that froze
    revived: int  # integers that lived again
    opened: int  # categories that were opened again
    outside: int  # generations with candidates outside the bounds
    rested: int  # generations in which the rank-one update rested
    wide: int  # integers in their first or last cell that are wider than it, and so live


def assert_same_run(
    space: Space,
    method: Mix,
    objective: Objective,
    violation: Objective | None = None,
    interval: int = 1,
    popsize: int | None = None,
    theta: dict[int, list[float]] | None = None,
    some_are_older: bool = False,
    seed: int = 7,
) -> Seen:
    encoding = Encoding(space, True)
    setting = method.setting(encoding.coordinates, popsize)
    n, choices = setting.strategy.dimension, [int(K) for K in encoding.coordinates.choices]
    state = method.initial_state(setting, started(encoding, theta or {}))
    literal = Literal(
        [*latent_values(encoding), *map(Category, choices)],
        encoding.initial_mean[:n].tolist(),
        popsize,
        theta=[state.categories.theta[c, :K].tolist() for c, K in enumerate(choices)],
        eigen_interval=interval,
        limits=latent_limits(encoding) if method.keep_inside else None,
        conditions=[mix.Condition(*each) for each in encoding.coordinates.conditions],
    )

    def older(generation: int) -> Array | None:
        which = np.arange(setting.strategy.popsize) % 3 < generation % 4
        return which if some_are_older and which.any() else None

    froze = revived = opened = outside = rested = wide = 0
    run = in_step(
        method,
        setting,
        state,
        literal,
        objective,
        violation,
        generations=100,
        interval=interval,
        older=older,
        rtol=RTOL,
        seed=seed,
    )
    for step in run:
        before, state = step.before, step.after
        assert_same_state(state, literal, n, step.when)
        froze += int(np.sum(before.live > state.live) + np.sum(before.is_open > state.is_open))
        revived += int(np.sum(before.live < state.live))
        opened += int(np.sum(before.is_open < state.is_open))
        outside += step.outside
        rested += cma.euclidean_norm(literal.p_sigma) >= 2 * setting.partition(before).constants.chi
        wide += int(np.sum(encoding.coordinates.margin & (state.p == 1.0)))
        if state.sigma[0] < 1e-6:
            break
    return Seen(froze, revived, opened, outside, rested, wide)


def assert_same_state(state: MixState, literal: Literal, n: int, when: str) -> None:
    assert state.live.tolist() == literal.live, when
    assert state.is_open.tolist() == literal.is_open, when
    assert (state.g_idle, state.level) == (literal.g_idle, literal.level), when
    assert (state.best.violation, state.best.value) == literal.best, when
    assert state.m[n:].tolist() == literal.m[n:], when
    live, learnt = state.live > 0, state.categories
    integers = [j for j in range(n) if live[j] and literal.coordinates[j] is not None]
    pairs = {
        "m": (state.m, literal.m),
        "sigma": (state.sigma, [literal.sigma]),
        "C": (state.C[np.ix_(live, live)], np.asarray(literal.C)[np.ix_(live, live)]),
        "A": (state.A[live], np.asarray(literal.A)[live]),
        "p_sigma": (state.p_sigma, literal.p_sigma),
        "p_c": (state.p_c, literal.p_c),
        "p": (state.p[integers], np.asarray(literal.p)[integers]),
        "best": (state.best.point, literal.best_point),
    }
    if literal.K:
        pairs["s"] = np.concatenate([learnt.s[c, :K] for c, K in enumerate(literal.K)]), literal.s
        pairs["rate"] = learnt.rate, [literal.gamma, literal.Delta, literal.delta]
    for c, K in enumerate(literal.K):
        pairs[f"theta of {c}"] = learnt.theta[c, :K], literal.theta[c]
        assert not learnt.theta[c, K:].any(), when
        assert not learnt.s[c, K:].any(), when
    for name, (fast, slow) in pairs.items():
        assert_close(fast, slow, f"{name} {when}", RTOL)
    assert_sound(state, literal, n, when)


def assert_sound(state: MixState, literal: Literal, n: int, when: str) -> None:
    """Probabilities sum to 1, each choice keeps its margin, open categories are not sure of any; m is the mode, or the
    best point where nothing varies; what is frozen has nothing to do with others in C, no roots and no paths."""
    settled = not state.live.any() and not state.is_open.any()
    for c, K in enumerate(literal.K):
        theta = state.categories.theta[c, :K]
        assert theta.sum() == pytest.approx(1.0, rel=1e-12), when
        assert theta.min() >= literal.q[c] * (1 - 1e-9), when
        assert (state.is_open[c] == 1) == mix.unsure(theta.tolist(), literal.alpha), when
        assert state.m[n + c] == (state.best.point[n + c] if settled else theta.argmax()), when
    for j in np.flatnonzero(state.live == 0):
        assert state.p_sigma[j] == state.p_c[j] == 0.0, when
        assert not np.delete(state.C[j], j).any(), when
        assert not np.delete(state.C[:, j], j).any(), when
        assert not state.root[j].any(), when
        assert not state.inverse_root[:, j].any(), when


@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from([4, 12, 60]), st.sampled_from([0.0, 1.0]))
@settings(max_examples=100, deadline=None)
def test_the_covariance_stays_positive_definite(seed: int, n: int, popsize: int, h: float) -> None:
    """Whichever candidates are the better half, and whichever share their ranks."""
    rng, of = np.random.default_rng(seed), strategy(n, popsize)
    root = rng.standard_normal((n, n)) + 0.1 * np.eye(n)
    z = rng.standard_normal((popsize, n))
    y, C, p_c = z @ root.T, root @ root.T, rng.standard_normal(n)
    ranks = ranks_of(np.round(z[:, 0] ** 2, int(rng.integers(0, 3))))  # the worst lie in one direction
    w_plus, w_minus = (weights_of(weights, ranks) for weights in (of.positive_weights, of.negative_weights))
    c, norm_sq = MixConstants._make(mix_constants(of, n)[:, n]), np.vecdot(z, z)
    w = by_direction(c, w_plus, w_minus, norm_sq, c.n)
    new, c_1 = covariance(c, C, w, y, norm_sq, p_c, np.float64(h), c.n), h * c.c_1
    rank_mu = (y.T * w) @ y - w @ norm_sq / n * C
    np.testing.assert_allclose(new, (1 - c_1) * C + c_1 * np.outer(p_c, p_c) + c.eta_C * rank_mu, atol=1e-12)
    assert np.linalg.eigvalsh(np.linalg.solve(root, np.linalg.solve(root, new).T))[0] >= -1e-9


def test_the_step_size_is_cautious_where_some_candidates_are_feasible() -> None:
    shares = np.array([0.0, 0.1, 0.5, 1.0])
    assert caution(shares).tolist() == [caution(share) for share in shares.tolist()] == [1.0, 0.0625, 0.25, 1.0]


@given(st.floats(-0.45, 4.45), st.floats(0.05, 20.0), st.floats(0.02, 1.0), st.sampled_from([0.01, 0.1]))
@settings(max_examples=200, deadline=None)
def test_the_probability_of_leaving_is_held_between_the_margin_and_what_it_was(
    m: float, s: float, most: float, alpha: float
) -> None:
    coordinates = Encoding(Space({"x": Int(0, 4, std=1.0)}), True).coordinates
    most, cell = max(most, alpha), max(0.0, np.ceil(m - 0.5))
    lower, upper = cell - 0.5, cell + 0.5
    after, s_after, p = margin(coordinates, alpha, np.array([most]), np.array([m]), np.array([s]))
    low = norm.cdf((lower - after[0]) / s_after[0]) if cell > 0 else 0.0
    up = norm.sf((upper - after[0]) / s_after[0]) if cell < 4 else 0.0
    at_end = cell in (0, 4)
    assert alpha * (1 - 1e-9) <= low + up <= most * (1 + 1e-9)
    assert at_end or min(low, up) >= alpha / 2 * (1 - 1e-9)
    if at_end and s_after[0] > 0.5 / -norm.ppf(alpha) * (1 + 2e-9):
        assert p == 1.0  # wider than the cell: its only tail says nothing
    else:
        assert p == pytest.approx(low + up, rel=1e-9)
    again = margin(coordinates, alpha, np.array([most]), after, s_after)
    np.testing.assert_allclose([again[0], again[1]], [after, s_after], rtol=1e-6, atol=1e-12)


@given(st.floats(-20, 30), st.floats(-3, 3), st.floats(0.0, 1.0), st.sampled_from([0.01, 0.1, 0.3]))
@settings(max_examples=200, deadline=None)
def test_the_margin_is_the_literal_one(m: float, log_s: float, part: float, alpha: float) -> None:
    encoding = Encoding(Space({"n": Int(0, 9, std=1.0), "set": Discrete([0.0, 1.0, 1.5, 8.0], std=1.0)}), True)
    most, s = alpha + part * (1 - alpha), 10.0**log_s
    fast = margin(encoding.coordinates, alpha, np.full(2, most), np.full(2, m), np.full(2, s))
    for j, values in enumerate(latent_values(encoding)):
        literal = mix.held_margin(m, s, values, alpha, most)
        np.testing.assert_allclose([each[j] for each in fast], literal, rtol=1e-9, atol=1e-9 * (s + abs(m)))


def test_the_scale_of_C_goes_into_A_and_leaves_the_distribution_as_it_is() -> None:
    method, encoding = Mix(), Encoding(PAPER_LIKE, True)
    setting, rng = method.setting(encoding.coordinates, None), np.random.default_rng(3)
    root = rng.standard_normal((8, 8)) * np.geomspace(1e-9, 1e9, 8)[:, None]
    state = method.initial_state(setting, start_at(encoding.initial_mean))
    state = state._replace(C=root @ root.T, A=np.geomspace(0.1, 10, 8), p_c=rng.standard_normal(8))
    scaled = method.decomposed(state)
    np.testing.assert_allclose(scaled.C.diagonal(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(scaled.root @ scaled.root, scaled.C, atol=1e-12)
    np.testing.assert_allclose(scaled.A * scaled.p_c, state.A * state.p_c, rtol=1e-12)
    covariances = [one.A[:, None] * one.C * one.A for one in (state, scaled)]
    np.testing.assert_allclose(covariances[1], covariances[0], rtol=1e-12)


def test_without_floats_the_first_candidate_is_the_mean_from_the_second_generation_on() -> None:
    many = SPACES["many categories"]
    for space, same in ((INTEGERS, True), (Space({**INTEGERS, **many}), True), (many, True), (PAPER_LIKE, False)):
        optimizer = Optimizer(space, seed=3, popsize=20, method="mix-without-model")
        for generation in range(2):
            candidates = optimizer.ask()
            assert optimizer.setting.partition(optimizer.state).nothing_frozen  # else it may be mutated
            at_mean = candidates[0].latent.tolist() == optimizer.state.m.tolist()
            assert at_mean is (same and generation > 0)
            optimizer.tell(candidates, [0.0] * 20)


def test_where_nothing_varies_the_mean_is_the_best_point() -> None:
    optimizer = Optimizer(
        Space({f"n{i}": Int(-10, 10) for i in range(3)} | CATEGORIES), seed=2, method="mix-without-model"
    )
    settled = 0
    for _ in range(100):
        candidates = optimizer.ask()
        optimizer.tell(candidates, [float((c.latent - 1.3) @ (c.latent - 1.3)) for c in candidates])
        if optimizer.method.varying(optimizer.setting, optimizer.state) == 0:
            settled += 1
            m, coordinates = optimizer.state.m, optimizer.encoding.coordinates
            assert optimizer.encoding.decode(m[None]) == [optimizer.best.params]
            assert m.tolist() == cell_centre(coordinates, cell_index(coordinates, m)).tolist()
    assert settled > 50


def test_a_return_begins_at_the_best_point_with_its_integers_frozen() -> None:
    optimizer = Optimizer(MIXED, seed=3, method="mix-without-model")
    best = None
    for _ in range(10):
        candidates = optimizer.ask()
        values = [float(c.latent @ c.latent) for c in candidates]
        optimizer.tell(candidates, values)
        best = min([*zip(values, [c.latent for c in candidates]), *([best] if best else [])], key=lambda pair: pair[0])
    coordinates, before = optimizer.setting.coordinates, optimizer.state
    state = optimizer.method.back_at_best(optimizer.setting, before)
    discrete = coordinates.discrete
    np.testing.assert_allclose(state.m[~discrete], best[1][~discrete])
    centres = cell_centre(coordinates, cell_index(coordinates, best[1]))
    assert state.m[discrete].tolist() == centres[discrete].tolist()
    assert state.live.tolist() == (~discrete * 1.0).tolist()
    assert state.is_open.tolist() == [0.0, 0.0]  # the booleans
    assert state.root.tolist() == np.diag(state.live).tolist()
    assert state.sigma.tolist() == [0.03]
    assert (state.best.violation, state.best.value) == (0.0, best[0])
    assert state.categories.theta.tolist() == before.categories.theta.tolist()
    assert state.categories.rate.tolist() == [0.0, 1.0, 1.0]
    assert (state.g_idle, state.level, state.generation) == (0.0, 0.0, before.generation)


def test_centring_moves_the_sum_by_nothing_where_it_can() -> None:
    v = np.array([[0.2], [0.7], [-0.3], [0.1]])
    centre, left = np.round(v), np.array([[False], [True], [False], [False]])
    moves = centring_moves(v, centre, left, np.ones_like(left))
    assert moves[1, 0] == pytest.approx(0.3)
    assert moves.sum() == pytest.approx(0.0)
    assert moves[2, 0] == 0.0  # its centre lies where the others already went


def test_jumps_stay_inside_and_change_the_cell() -> None:
    space = Space({"a": Int(0, 1), "b": Int(0, 4), "c": Int(0, 10**6), "d": Discrete([1, 2, 7])})
    coordinates = Encoding(space).coordinates
    uniform = np.linspace(1e-9, 1.0, 4001)[:, None] * np.ones(4)
    for cell in (np.zeros(4), np.minimum(coordinates.last, 1.0), coordinates.last):
        there = jump(coordinates, cell, uniform)
        assert ((there >= 0) & (there <= coordinates.last) & (there != cell)).all()
    inner = jump(coordinates, np.full(4, 1000.0), uniform)[:, 2] - 1000.0
    assert np.mean(np.abs(inner) == 1) == pytest.approx(0.75, abs=0.01)  # P(d >= 2) = 1/4
    assert np.mean(inner > 0) == pytest.approx(0.5, abs=0.01)


def test_jumps_are_the_literal_ones() -> None:
    space = Space({"a": Int(0, 2), "b": Int(0, 4), "c": Int(0, 10**6), "d": Categorical(range(5)), "e": Bool()})
    coordinates = Encoding(space, True).coordinates
    uniform = np.concatenate([np.linspace(1e-9, 1.0, 997), 0.5 + np.geomspace(1e-6, 0.4, 50), [0.5 - 1e-9, 0.5]])
    for place in (0, 1, 2, 4):
        cell = np.minimum(np.full(5, float(place)), coordinates.last)
        there = jump(coordinates, cell, uniform[:, None] * np.ones(5))
        for j in range(5):
            count, k = int(coordinates.last[j]) + 1, int(cell[j])
            literal = [mix.jump(k + 1, count, t) - 1 if j < 3 else mix.another_choice(k, count, t) for t in uniform]
            assert there[:, j].tolist() == literal


def test_a_mutated_category_takes_every_other_choice_as_often() -> None:
    space = Space({"n": Int(0, 4), "a": Bool(), "b": Categorical(list("xyz")), "c": Categorical(range(5))})
    coordinates = Encoding(space, True).coordinates
    uniform = (np.arange(1200)[:, None] + 0.5) / 1200 * np.ones(4)
    for place in range(5):
        cell = np.minimum(np.full(4, float(place)), coordinates.last)
        there = jump(coordinates, cell, uniform)
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
    constants, none, some = MutationConstants._make(mutation_constants(3, 12)[:, 3]), np.int64(0), np.int64(1)
    idle = [np.float64(generations) for generations in (0, 1, 10, 10**6)]
    rates = [float(mutation_rate(constants, some, generations, np.float64(0))) for generations in idle]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(1 - 0.73)
    assert rates[-1] == 0.05
    assert mutation_rate(constants, some, idle[-1], np.float64(1)) == 0.5  # the live ones gain nothing either
    assert mutation_rate(constants, none, idle[-1], np.float64(0)) == 1.0  # nothing else would change


@pytest.mark.parametrize("popsize", [4, 8, 16, 64])
@pytest.mark.parametrize("seed", range(5))
def test_equal_values_do_no_harm(seed: int, popsize: int) -> None:
    space = Space({"n": Int(0, 9), "x": Float(-1, 1), "b": Bool(), "y": Float(), "c": Categorical(list("pqr"))})
    optimizer = Optimizer(space, method="mix-without-model", seed=seed, popsize=popsize)
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
    optimizer = Optimizer(spaces[name], method="mix-without-model", seed=3)
    while not optimizer.stop and optimizer.evaluations < 20_000:
        candidates = optimizer.ask()
        optimizer.tell(candidates, [sum((float(v) - 1) ** 2 for v in c.params.values()) for c in candidates])
    assert optimizer.best is not None
    assert optimizer.best.value == 0.0
    assert optimizer.stop is not None
