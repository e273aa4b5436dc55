"""Sanity of the transcription of docs/mix.md: each step on a case that can be worked out by hand."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from . import bounds, catmargin, margin, mix
from .catmargin import Category
from .mix import Mix
from .run import Noise

FIVE = [0.0, 1.0, 2.0, 3.0, 4.0]
LOW = float(norm.ppf(1e-9))  # a normal that makes u_i small: all frozen coordinates may be mutated
NEVER = 3.0  # one that makes u_i large: none is, unless nothing is live

# lambda = 4: w+ = (ln 2.5, ln 1.25, 0, 0) / their sum
W1 = math.log(2.5) / (math.log(2.5) + math.log(1.25))
W2 = 1 - W1


def draw(run: Mix, rng: np.random.Generator) -> Noise:
    shape = (run.constants.popsize, len(run.m))
    return Noise(
        normal=rng.standard_normal(shape).tolist(),
        geometric=(1 - rng.random(shape)).tolist(),
        sign=(1 - rng.random(shape)).tolist(),
    )


# Constants


def test_constants() -> None:
    assert mix.default_alpha([None, FIVE]) == pytest.approx(0.27, rel=1e-13)
    assert mix.default_alpha([FIVE, None, FIVE]) == pytest.approx(1 - math.sqrt(0.73), rel=1e-13)
    # integers and categories count
    assert mix.default_alpha([FIVE, None, Category(4)]) == pytest.approx(1 - math.sqrt(0.73), rel=1e-13)
    assert mix.mix_constants(0, 6, 2.0, 1.0).c_1 == mix.mix_constants(1, 6, 2.0, 1.0).c_1
    assert mix.mix_constants(0, 6, 2.0, 1.0).chi == mix.mix_constants(1, 6, 2.0, 1.0).chi
    k = mix.mix_constants(3, 8, 2.0, 1.0)
    assert k.c_sigma == pytest.approx(4 / 10 / (2 * math.log(4)), rel=1e-13)
    assert k.c_1 == pytest.approx(2 / 20.49, rel=1e-13)
    assert k.c_c == pytest.approx((14 / 3) / (25 / 3), rel=1e-13)
    assert k.c_mu == pytest.approx(1 / 27, rel=1e-13)
    assert k.eta_C == pytest.approx(2 / 20.49 + 1 / 27, rel=1e-13)
    assert mix.mix_constants(80, 17, 5.0, 1.0).eta_C == pytest.approx(0.005, rel=1e-13)
    assert mix.mix_constants(8, 17, 5.0, 1.0, without_floats=80).eta_C == pytest.approx(0.005, rel=1e-13)
    assert k.eta_sigma == pytest.approx(math.tanh(22.292 / 15), rel=1e-13)


# Sampling


@pytest.mark.parametrize(("u", "count"), [(0.51, 0), (0.49, 1), (0.13, 1), (0.12, 2), (0.01, 2)])
def test_the_number_of_mutations(u: float, count: int) -> None:
    # q = 1/2 and two frozen coordinates, 0 and 2: only their normals count
    half = float(norm.ppf(u)) * math.sqrt(2) / 2
    assert mix.mutation_count([half, 17.0, half], [0, 2], 0.5) == count


def test_which_coordinates_are_mutated() -> None:
    s = [0.5, 0.01, 0.2, 0.7, 0.4]
    frozen = [0, 2, 3, 4]
    assert mix.mutated(s, frozen, 0, 4) == []
    assert mix.mutated(s, frozen, 1, 4) == [2]
    assert mix.mutated(s, frozen, 2, 4) == [2]  # up to 1/4
    assert mix.mutated(s, frozen, 3, 4) == [0, 2, 4]  # up to 2/4
    assert mix.mutated(s, frozen, 4, 4) == [0, 2, 3, 4]  # up to 3/4
    assert mix.mutated([0.3, 0.1, 0.1], [0, 1, 2], 1, 3) == [1]
    assert mix.mutated(s, [0, 3], 4, 4) == [0, 3]  # the others do not exist there
    assert mix.mutated(s, [], 2, 4) == []


@pytest.mark.parametrize(
    ("c", "count", "t", "expected"),
    [
        (3, 10, 1.0, 4),
        (3, 10, 0.9, 4),  # 0.8^(-1/2) = 1.1
        (3, 10, 0.6, 5),  # 0.2^(-1/2) = 2.2
        (3, 10, 1e-9, 2),
        (3, 10, 0.4, 1),
        (3, 10, 0.45, 1),  # 3 down: there are 2
        (9, 10, 0.6, 10),  # 2 up: there is one
        (3, 10, 0.4949, 1),
        (10, 10, 0.5051, 9),  # up, where there is none: the neighbour below
        (10, 10, 0.501, 9),
        (3, 10, 0.5, 10),  # up, infinitely far
        (10, 10, 0.5, 9),
        (1, 2, 0.2, 2),
        (2, 2, 0.8, 1),
    ],
)
def test_jumps(c: int, count: int, t: float, expected: int) -> None:
    assert mix.jump(c, count, t) == expected


def test_a_sample_draws_open_categories_and_mutates_frozen_ones() -> None:
    run = Mix([None, Category(3), Category(4)], [0.5], popsize=4, theta=[[0.2, 0.5, 0.3], [0.1, 0.1, 0.7, 0.1]])
    assert run.m == [0.5, 1.0, 2.0]
    run.is_open = [1, 0]
    assert run.frozen == [2]
    v = run.sample(
        Noise(
            normal=[[1.0, LOW, LOW], [-1.0, LOW, NEVER], [0.0, NEVER, LOW], [0.0, LOW, NEVER]],
            geometric=[[0.1, 0.1, 0.3], [0.1, 0.1, 0.3], [0.1, 0.1, 0.9], [0.1, 0.1, 0.9]],
            sign=[[0.5, 0.2, 0.9], [0.5, 0.21, 0.9], [0.5, 0.71, 0.9], [0.5, 1.0, 0.9]],
        )
    )
    # s_ij draws the open one; the frozen one is mutated by its own normal, and stays at its choice otherwise
    assert v == [[1.5, 0.0, 3.0], [-0.5, 1.0, 2.0], [0.5, 2.0, 1.0], [0.5, 2.0, 2.0]]
    assert run.encode(v) == v
    assert [y[1:] for y in run.y] == [[0.0, 0.0]] * 4
    with pytest.raises(ValueError, match="geometric and sign"):
        run.sample(Noise(normal=[[0.0] * 3] * 4))


def test_a_sample_mutates_frozen_coordinates_and_draws_live_ones() -> None:
    run = Mix([None, FIVE, FIVE], [0.5, 1.2, 2.0], popsize=4)
    run.live = [1, 0, 1]
    run.state.sigma = 2.0
    v = run.sample(
        Noise(
            normal=[[1.0, LOW, -1.0], [-1.0, NEVER, 0.5], [0.0, LOW, 0.0], [0.0, NEVER, 0.0]],
            geometric=[[1.0, 0.9, 1.0], [1.0, 0.9, 1.0], [1.0, 0.6, 1.0], [1.0, 0.1, 1.0]],
            sign=[[0.5] * 3] * 4,
        )
    )
    assert v == [[2.5, 2.0, 0.0], [-1.5, 1.2, 3.0], [0.5, 3.0, 2.0], [0.5, 1.2, 2.0]]
    assert [y[1] for y in run.y] == [0.0] * 4
    with pytest.raises(ValueError, match="geometric and sign"):
        run.sample(Noise(normal=[[0.0] * 3] * 4))


# Update


def test_sigma_grows_while_the_path_is_long() -> None:
    k = mix.mix_constants(2, 4, 1.5, 1.0)
    assert mix.growth([0.0, 1.7 * k.chi], 2, k) == 0.0
    assert mix.growth([3 * k.chi, 0.0], 2, k) == pytest.approx(6 * k.c_sigma * (2 - math.sqrt(1 / 2)), rel=1e-13)


def test_c_learns_from_directions_alone() -> None:
    k = mix.mix_constants(2, 3, 1.5, 1.0)
    z = [[1.0, 1.0], [2.0, 0.0], [0.0, 0.0]]
    w = mix.by_direction([0.5, 0.25, 0.25], [0.0, 0.5, 0.5], z, [2, 2, 2], k)
    assert w == [pytest.approx(0.5), pytest.approx((0.25 - k.a_minus / 2) / 2), 0.0]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 20, 300])
@pytest.mark.parametrize("mu_w", [1.2, 3.0, 20.0])
def test_c_stays_positive_definite(n: int, mu_w: float) -> None:
    # the worst that can happen: all that is bad lies in one direction, and nothing good does
    k = mix.mix_constants(n, 10, mu_w, mu_w)
    assert k.a_minus > 0
    assert 0 < k.eta_C <= (1 - k.c_1) / 2
    assert 1 - k.c_1 - k.eta_C * (1 - k.a_minus) - k.eta_C * k.a_minus * n >= -1e-12


def test_the_first_generation_of_one_float() -> None:
    # z_i = y_i = xi_i; only the first two have positive weights
    run = Mix([None], [10.0], popsize=4)
    run.sample(Noise(normal=[[1.0], [-2.0], [0.5], [2.0]]))
    run.update([3.0, 1.0, 2.0, 4.0])
    mu_w = 1 / (W1**2 + W2**2)
    k = mix.mix_constants(1, 4, mu_w, 1.0)
    r_z = -2.0 * W1 + 0.5 * W2 - 1.5 / 4
    d = 4.0 * W1 + 0.25 * W2 - 9.25 / 4
    p_sigma = math.sqrt(k.c_sigma * (2 - k.c_sigma) * mu_w) * r_z
    assert abs(p_sigma) > 2 * k.chi  # so long that the rank-one update rests, and p_c stays 0
    assert run.m == pytest.approx([10.0 + r_z])
    assert run.p_sigma == pytest.approx([p_sigma])
    assert run.p_c == [0.0]
    g = 6 * k.c_sigma * (abs(p_sigma) / k.chi - 2)
    assert run.sigma == pytest.approx(math.exp(min(1.0, k.eta_sigma / 2 * d + g)))
    # with one coordinate the sum is d itself: nothing changes C, and so A
    assert (run.C[0], run.A) == (pytest.approx([1.0]), pytest.approx([1.0]))
    assert (run.g_idle, run.live, run.generation) == (1, [1], 1)
    assert (run.best, run.best_point) == ((0.0, 1.0), [8.0])


def test_the_rank_one_update_and_the_scale_of_one_float() -> None:
    # as above, but a shorter way: p_c changes C, whose root goes into A
    run = Mix([None], [10.0], popsize=4)
    run.sample(Noise(normal=[[1.0], [-0.5], [0.5], [0.5]]))
    run.update([3.0, 1.0, 2.0, 4.0])
    mu_w = 1 / (W1**2 + W2**2)
    k = mix.mix_constants(1, 4, mu_w, 1.0)
    r_z = -0.5 * W1 + 0.5 * W2 - 1.5 / 4
    p_c = math.sqrt(k.c_c * (2 - k.c_c) * mu_w) * r_z
    C = 1 - k.c_1 + k.c_1 * p_c**2
    assert [[pytest.approx(1.0)]] == run.C
    assert [pytest.approx(math.sqrt(C))] == run.A
    assert run.p_c == [pytest.approx(p_c / math.sqrt(C))]


def test_groups_of_step_sizes() -> None:
    # the first left the cell of the mean and is centred: the mean goes toward 3, not 3.2; nobody else is moved, and all
    # else learns from 3.2
    run = Mix([None, FIVE], [0.0, 2.0], popsize=4, eigen_interval=2)
    run.sample(Noise(normal=[[1.0, 1.2], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    run.update([1.0, 2.0, 3.0, 4.0])
    k = mix.mix_constants(2, 4, run.constants.mu_w, run.constants.mu_w_minus)
    w = W1 - 0.25
    d_x, d_z, d = w, w * 1.2**2, w * (1 + 1.2**2) / 2
    rho = k.eta_sigma / 2 / 5
    assert run.sigma == pytest.approx(math.exp(k.eta_sigma / 2 * d + rho * (d_x - d)))
    assert [1.0, pytest.approx(math.exp(rho * (d_z - d_x)))] == run.A  # no limit of the margin is active
    assert run.m == pytest.approx([w, 2.0 + w])
    assert run.g_idle == 0  # a live one succeeded
    # y_1 = z_1 = (1, 1.2), and so w°_1 = 2 / ||y_1||^2 w_1; the path is short
    y = np.array([1.0, 1.2])
    rank_mu = W1 * (2 / (1 + 1.2**2) * np.outer(y, y) - np.eye(2))
    p_c = math.sqrt(k.c_c * (2 - k.c_c) * run.constants.mu_w) * w * y
    np.testing.assert_allclose(run.p_c, p_c)
    np.testing.assert_allclose(run.C, (1 - k.c_1) * np.eye(2) + k.c_1 * np.outer(p_c, p_c) + k.eta_C * rank_mu)


@pytest.mark.parametrize(
    ("violations", "share"),
    [([0.0] * 4, 1.0), ([0.0, 0.0, 1.0, 1.0], 0.5), ([1.0] * 4, 1.0), ([0.0, 0.0, 1.0, math.inf], 2 / 3)],
)
def test_the_step_size_is_cautious_where_only_some_are_feasible(violations: list[float], share: float) -> None:
    run = Mix([None], [0.0], popsize=4)
    run.sample(Noise(normal=[[1.0], [0.0], [0.0], [0.0]]))
    run.update([1.0, 2.0, 3.0, 4.0], violations)
    k = mix.mix_constants(1, 4, run.constants.mu_w, 1.0)
    assert run.sigma == pytest.approx(math.exp(share**2 * k.eta_sigma / 2 * (W1 - 0.25)))


def test_the_diagonal_of_C_goes_into_A() -> None:
    run = Mix([None, FIVE], [0.0, 2.0])
    run.state.C = [[4.0, 3.0], [3.0, 9.0]]
    run.state.A = [1.0, 0.5]
    run.state.p_c = [1.0, -6.0]
    run.decompose()
    assert (run.C, run.A, run.p_c) == ([[1.0, 0.5], [0.5, 1.0]], [2.0, 1.5], [0.5, -2.0])
    np.testing.assert_allclose(np.array(run.state.root) @ run.state.root, run.C)


ALPHA = 0.1
X = -float(norm.ppf(ALPHA))


@pytest.mark.parametrize(
    ("m", "s", "c", "expected"),
    [
        # between two cells, with tails of 0.2 each: no limit is active, or both together have more than c
        (2.0, 0.5 / -norm.ppf(0.2), 1.0, (2.0, 0.5 / -norm.ppf(0.2), 0.4)),
        (2.0, 0.5 / -norm.ppf(0.2), 0.4 + 1e-9, (2.0, 0.5 / -norm.ppf(0.2), 0.4)),
        (2.0, 0.5 / -norm.ppf(0.2), 0.3, (2.0, 0.5 / -norm.ppf(0.15), 0.3)),
        # too narrow: both tails are alpha / 2
        (2.0, 1e-9, 1.0, (2.0, 0.5 / -norm.ppf(0.05), ALPHA)),
        # one tail too small, the other 0.3: it stays 0.3
        (2.4, 0.1 / -norm.ppf(0.3), 1.0, (1.5 + norm.ppf(0.05) / (norm.ppf(0.05) + norm.ppf(0.3)), None, 0.35)),
        # the first cell, as narrow as itself or narrower: from a tail of 0.3 down to 0.2; up to alpha
        (0.5 + 0.3 * norm.ppf(0.3), 0.3, 1.0, (0.5 + 0.3 * norm.ppf(0.3), 0.3, 0.3)),
        (0.5 + 0.3 * norm.ppf(0.3), 0.3, 0.2, (0.5 + 0.3 * norm.ppf(0.2), 0.3, 0.2)),
        (-7.0, 0.3, 0.2, (0.5 - 0.3 * X, 0.3, ALPHA)),
        (-7.0, 0.5 / X, 0.2, (0.0, 0.5 / X, ALPHA)),
        # wider: its only tail says nothing
        (-7.0, 0.51 / X, 0.2, (0.5 - 0.51, 0.51 / X, 1.0)),
        (-7.0, 100.0, 1.0, (-7.0, 100.0, 1.0)),
        (-7.0, 100.0, 0.2, (0.5 + 100 * norm.ppf(0.2), 100.0, 1.0)),
        # the last cell likewise
        (11.0, 0.3, 0.2, (3.5 + 0.3 * X, 0.3, ALPHA)),
        (11.0, 100.0, 1.0, (11.0, 100.0, 1.0)),
    ],
)
def test_the_margin(m: float, s: float, c: float, expected: tuple[float, float | None, float]) -> None:
    found = mix.held_margin(m, s, FIVE, ALPHA, c)
    for value, wanted in zip(found, expected, strict=True):
        assert wanted is None or value == pytest.approx(wanted, rel=1e-6, abs=1e-12)


def test_in_the_last_cell_an_integer_lives_while_the_gaussian_is_wider() -> None:
    # the mean is far outside, so that its only tail is the margin; the float keeps all else going
    for A, lives in ((3.0, 1), (0.3, 0)):
        run = Mix([None, FIVE], [0.0, 8.0], popsize=4)
        run.state.A = [1.0, A]
        run.sample(Noise(normal=[[0.1, 0.1], [-0.1, -0.1], [0.1, 0.0], [0.0, 0.1]]))
        run.update([1.0, 2.0, 3.0, 4.0])
        assert run.live[1] == lives
        assert run.p[1] == (1.0 if lives else run.alpha)


def test_once_nothing_varies_the_mean_is_the_best_point() -> None:
    # the best of the run was at 3.2, in the cell of 3, when the integer freezes at 2
    run = Mix([FIVE], [2.0], popsize=4)
    run.state.A = [0.01]
    run.best, run.best_point = (0.0, -1.0), [3.2]
    noise = Noise(normal=[[0.1], [-0.1], [0.2], [0.3]], geometric=[[0.9]] * 4, sign=[[0.5]] * 4)
    run.sample(noise)
    run.update([1.0, 2.0, 3.0, 4.0])
    assert (run.live, run.m) == ([0], [3.0])
    # from there on candidates are mutated, and a new best is taken
    assert run.sample(noise) == [[4.0]] * 4
    run.update([-2.0, 2.0, 3.0, 4.0])
    assert (run.live, run.m, run.best_point) == ([0], [4.0], [4.0])


def test_outside_the_bounds_candidates_lose_ranks() -> None:
    limits = [(-1.0, 1.0), bounds.outer_ends(FIVE)]
    assert limits[1] == (-0.5, 4.5)
    assert bounds.outer_ends([0.0, 1.0, 4.0]) == (-1.0, 5.0)
    assert bounds.outer_ends([0.0, 1.0]) == bounds.NOWHERE
    # outside by nothing, by 3 and 2 standard deviations, by 2
    v = [[0.5, 4.5], [-2.5, 5.5], [2.0, 2.0]]
    outcomes = [(0.0, 3.0), (0.0, 1.0), (0.0, 2.0)]
    assert bounds.penalised(outcomes, v, limits, [0.5, 0.5]) == [(0.0, 2.0), (0.0, 3 * 13.0), (0.0, 1 + 3 * 4.0)]
    assert bounds.penalised(outcomes, v, limits, [0.5, 0.5], 2.0) == [(0.0, 2.0), (0.0, 3 * 1.0), (0.0, 1.0)]
    violated = [(0.0, 3.0), (1.0, 1.0), (0.5, 2.0)]
    ranks = [bounds.rank(violated, i) for i in range(3)]
    assert ranks == [0, 2, 1]


def test_two_standard_deviations_outside_cost_nothing_where_there_are_floats() -> None:
    assert mix.slack([None, FIVE], [(0.0, 1.0), (0.0, 2.0)]) == 2.0
    assert mix.slack([None, FIVE], [(0.0, 1.0), (0.1, 2.0)]) == 0.0
    assert mix.slack([None, FIVE], [(0.0, 1.0), (math.inf, math.inf)]) == 2.0  # a failure is no violation
    assert mix.slack([FIVE, Category(3)], [(0.0, 1.0), (0.0, 2.0)]) == 0.0
    # the best point is the best, wherever it lies; what is learnt goes by the ranks
    run = Mix([None], [0.0], popsize=4, limits=[(-1.0, 1.0)])
    run.sample(Noise(normal=[[-5.0], [0.5], [0.6], [-2.0]]))
    run.update([1.0, 3.0, 4.0, 2.0])
    assert (run.best, run.best_point) == ((0.0, 1.0), [-5.0])
    # outside by 4, 0, 0 and 1: ranks 0 + 4 * 2^2, 2, 3 and 1
    k = mix.mix_constants(1, 4, run.constants.mu_w, 1.0)
    r_z = -2.0 * W1 + 0.5 * W2 + 5.9 / 4
    assert run.p_sigma == pytest.approx([math.sqrt(k.c_sigma * (2 - k.c_sigma) * run.constants.mu_w) * r_z])


def test_freezing() -> None:
    run = Mix([None, FIVE], [0.0, 2.0], popsize=4)
    run.state.A = [1.0, 0.01]
    run.state.C = [[2.0, 0.5], [0.5, 1.0]]
    run.decompose()
    run.state.p_sigma = [0.1, 0.1]
    run.state.p_c = [0.1, 0.1]
    run.sample(Noise(normal=[[1.0, 0.3], [-1.0, 0.2], [0.4, -0.5], [0.3, 1.0]]))
    run.update([1.0, 2.0, 3.0, 4.0])
    assert run.live == [1, 0]
    assert run.C[1] == [0.0, 1.0]
    assert run.C[0][1] == 0.0
    assert run.C[0][0] != 2.0
    assert run.p_sigma[1] == run.p_c[1] == 0.0
    assert run.p_sigma[0] != 0.1
    assert run.A[1] > 0.1  # the margin was at work
    assert run.g_idle == 1


def test_thawing() -> None:
    # the frozen coordinate is mutated in every candidate: up, down, up, down, and no best of the run
    run = Mix([None, FIVE], [0.0, 2.0], popsize=4)
    run.live = [1, 0]
    run.best = (0.0, -1.0)
    run.g_idle = 7
    v = run.sample(
        Noise(normal=[[0.0, LOW]] * 4, geometric=[[0.5, t] for t in (0.9, 0.1, 0.9, 0.1)], sign=[[0.5] * 2] * 4)
    )
    assert [v_i[1] for v_i in v] == [3.0, 1.0, 3.0, 1.0]
    run.update([1.0, 2.0, 3.0, 4.0])
    m = 2 + W1 - W2
    deviation = 0.5 / -float(norm.ppf(0.27))
    expected = margin.correct_inside(m, 1.0, deviation, 1.0, FIVE, run.alpha)
    assert run.live == [1, 1]
    assert (run.m[1], run.A[1] * run.sigma) == pytest.approx(expected)
    assert (run.C[1], run.p_sigma[1], run.p_c[1]) == ([0.0, 1.0], 0.0, 0.0)
    assert run.g_idle == 0


def test_a_success_that_leaves_the_coordinate_frozen() -> None:
    # three candidates share W2; one of them jumps four cells and counts as if it were one, S. At the edge the
    # margin allows m_j to be 1/2 from the threshold, and 0.07 above the centre p_j < 2 alpha = 0.54 still.
    run = Mix([None, FIVE], [0.0, 0.0], popsize=4)
    run.live = [1, 0]
    run.best = (0.0, -1.0)
    normal = [[0.0, LOW], [0.0, NEVER], [0.0, NEVER], [0.0, NEVER]]
    v = run.sample(Noise(normal=normal, geometric=[[1.0, 0.525]] * 4, sign=[[0.5] * 2] * 4))
    assert [v_i[1] for v_i in v] == [4.0, 0.0, 0.0, 0.0]
    run.update([5.0, 1.0, 5.0, 5.0])
    assert run.live == [1, 0]
    assert run.m[1] == pytest.approx(W2 / 3)
    assert run.A[1] == 1.0


def test_adoption() -> None:
    run = Mix([None, FIVE, FIVE], [0.0, 2.0, 1.1], popsize=4)
    run.live = [1, 0, 0]
    run.best = (0.0, 1.5)
    run.g_idle = 3
    normal = [[0.0, LOW, LOW], [0.0, NEVER, NEVER], [0.0, NEVER, NEVER], [0.0, NEVER, NEVER]]
    noise = Noise(normal=normal, geometric=[[1.0, 0.6, 0.6]] * 4, sign=[[0.1, 0.2, 0.9]] * 4)
    v = run.sample(noise)
    assert v[0] == [0.0, 4.0, 1.1]
    assert v[1] == [0.0, 2.0, 1.1]
    run.update([1.0, 2.0, 3.0, 4.0])
    assert run.m[1:] == [4.0, 1.1]
    assert run.live == [1, 0, 0]
    assert (run.g_idle, run.best) == (0, (0.0, 1.0))
    # an equally good one is not adopted, but succeeds; 4 is the last cell: one down
    v = run.sample(noise)
    assert v[0][1] == 3.0
    run.update([1.0, 2.0, 3.0, 4.0])
    assert 3.0 < run.m[1] < 4.0
    assert run.m[2] == 1.1


def test_with_nothing_live_only_a_new_best_changes_anything() -> None:
    run = Mix([FIVE, FIVE], [2.0, 2.0], popsize=4)
    run.live = [0, 0]
    run.best = (0.0, 0.5)
    sign = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]  # k_i = 1 each, the smallest s_ij
    noise = Noise(normal=[[NEVER] * 2] * 4, geometric=[[0.9, 0.9]] * 4, sign=sign)
    run.sample(noise)
    run.update([1.0, 2.0, 3.0, 4.0])
    assert (run.m, run.live, run.sigma, run.g_idle) == ([2.0, 2.0], [0, 0], 1.0, 1)
    assert run.C == [[1.0, 0.0], [0.0, 1.0]]
    run.sample(noise)
    run.update([4.0, 3.0, 2.0, 0.25])
    assert (run.m, run.live, run.g_idle) == ([3.0, 2.0], [0, 0], 0)


# Update, Step 11


def test_the_first_generation_of_a_category() -> None:
    # the choices 0, 1, 2, 2 of equal probabilities; K = 3, so the margin is 0.27 / 2 and 1 - max theta <= 0.54 freezes
    run = Mix([None, Category(3)], [0.0], popsize=4)
    sign = [[0.5, u] for u in (0.1, 0.5, 0.9, 1.0)]
    v = run.sample(Noise(normal=[[0.0, 0.0]] * 4, geometric=[[0.5, 0.5]] * 4, sign=sign))
    assert [v_i[1] for v_i in v] == [0.0, 1.0, 2.0, 2.0]
    run.update([2.0, 1.0, 3.0, 4.0])
    # g = f - theta, f = (W2, W1, 0), and ||r||^2 = sum g^2 / theta
    g = [W2 - 1 / 3, W1 - 1 / 3, -1 / 3]
    r = math.sqrt(3 * sum(value**2 for value in g))
    theta = [1 / 3 + value / (r + 1e-8) for value in g]
    assert run.theta[0] == pytest.approx(catmargin.category_margin(theta, 0.27 / 2))
    assert 1 - max(run.theta[0]) < 0.54
    assert (run.is_open, run.m[1], run.frozen) == ([0], 1.0, [1])
    # beta = 1 / sqrt(2), and s is sqrt(beta (2 - beta)) long
    beta = 1 / math.sqrt(2)
    gain = beta * (2 - beta)
    assert (run.gamma, run.delta) == pytest.approx((gain, 1.0))
    assert run.Delta == pytest.approx(math.exp(beta * (gain - gain / 1.5)))
    assert run.g_idle == 0  # it left the first choice


def test_an_open_category_that_stays_open() -> None:
    # ten categories make the margin small
    run = Mix([None, *[Category(4)] * 10], [0.0], popsize=4)
    sign = [[0.5] + [u] * 10 for u in (0.1, 0.3, 0.6, 0.8)]
    run.sample(Noise(normal=[[0.0] * 11] * 4, geometric=[[0.5] * 11] * 4, sign=sign))
    run.update([1.0, 1.0, 1.0, 1.0])
    # each choice was drawn once: no gradient, and no direction
    assert run.theta == [pytest.approx([0.25] * 4)] * 10
    assert run.s == [0.0] * 40
    assert run.is_open == [1] * 10
    assert run.m[1:] == [0.0] * 10  # of equal ones the first


def test_a_gradient_of_frozen_categories_is_nothing() -> None:
    # the frozen one is mutated in all candidates
    run = Mix([None, Category(3), Category(3)], [0.0], popsize=4, theta=[[0.8, 0.1, 0.1], [0.3, 0.3, 0.4]])
    run.is_open = [0, 1]
    run.level = True
    run.best = (0.0, -1.0)
    run.s = [0.5] * 6
    normal = [[0.0, LOW, 0.0]] * 4
    sign = [[0.5, 0.9, u] for u in (0.1, 0.5, 0.9, 0.9)]
    v = run.sample(Noise(normal=normal, geometric=[[0.5, 0.5, 0.5]] * 4, sign=sign))
    assert [v_i[1:] for v_i in v] == [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 2.0]]
    run.update([1.0, 2.0, 3.0, 4.0])
    # it does not succeed, since the search was level; s keeps its places, n_theta = 4 counts it
    assert run.theta[0] == [0.8, 0.1, 0.1]
    assert (run.is_open[0], run.m[1]) == (0, 0.0)
    beta = 1 / math.sqrt(4)
    assert run.s[:3] == pytest.approx([0.5 * (1 - beta)] * 3)
    assert run.s[3:] != pytest.approx([0.5 * (1 - beta)] * 3)
    assert run.theta[1][0] > 0.3


def test_a_frozen_category_that_succeeds_opens_with_the_frequencies_of_its_choices() -> None:
    # all candidates are mutated: to the choices 1, 2, 1, 2; no best of the run
    run = Mix([None, *[Category(4)] * 3], [0.0], popsize=4)
    run.theta[0] = [0.9, 0.1 / 3, 0.1 / 3, 0.1 / 3]
    run.is_open = [0, 1, 1]
    run.best = (0.0, -1.0)
    run.g_idle = 7
    normal = [[0.0, LOW, 0.0, 0.0]] * 4
    geometric = [[0.5, t, 0.5, 0.5] for t in (0.3, 0.6, 0.3, 0.6)]
    v = run.sample(Noise(normal=normal, geometric=geometric, sign=[[0.5, 0.9, 0.1, 0.1]] * 4))
    assert [v_i[1] for v_i in v] == [1.0, 2.0, 1.0, 2.0]
    run.update([2.0, 1.0, 3.0, 4.0])
    assert run.theta[0] == pytest.approx(catmargin.category_margin([0.0, W2, W1, 0.0], run.alpha / 3))
    assert run.m[1] == 2.0
    assert 1 - max(run.theta[0]) > 2 * run.alpha
    assert run.is_open[0] == 1
    assert run.g_idle == 0


def test_a_frozen_category_that_succeeds_may_stay_frozen() -> None:
    # the second best leaves: W2 = 0.196 is less than 2 alpha = 0.54
    run = Mix([None, Category(4)], [0.0], popsize=4, theta=[[0.1, 0.7, 0.1, 0.1]])
    run.is_open = [0]
    run.best = (0.0, -1.0)
    normal = [[0.0, NEVER], [0.0, LOW], [0.0, NEVER], [0.0, NEVER]]
    v = run.sample(Noise(normal=normal, geometric=[[0.5, 1.0]] * 4, sign=[[0.5] * 2] * 4))
    assert [v_i[1] for v_i in v] == [1.0, 0.0, 1.0, 1.0]
    run.update([1.0, 2.0, 3.0, 4.0])
    assert run.theta[0] == pytest.approx(catmargin.category_margin([W2, W1, 0.0, 0.0], 0.09))
    assert (run.is_open, run.m[1], run.g_idle) == ([0], 1.0, 0)
    # where it leaves to no avail, nothing changes
    theta = run.theta[0]
    run.sample(Noise(normal=normal, geometric=[[0.5, 1.0]] * 4, sign=[[0.5] * 2] * 4))
    run.update([1.0, 4.0, 3.0, 2.0])
    assert (run.theta[0], run.is_open, run.m[1], run.g_idle) == (theta, [0], 1.0, 1)


def test_adoption_sets_the_mode_and_all_but_the_margin_of_its_probability() -> None:
    run = Mix([None, Category(4), Category(3)], [0.0], popsize=4)
    run.is_open = [0, 0]
    run.best = (0.0, 1.5)
    run.g_idle = 3
    normal = [[0.0, LOW, LOW], [0.0, NEVER, NEVER], [0.0, NEVER, NEVER], [0.0, NEVER, NEVER]]
    noise = Noise(normal=normal, geometric=[[0.5, 0.6, 0.5]] * 4, sign=[[0.5, 0.2, 0.9]] * 4)
    v = run.sample(noise)
    assert v == [[0.0, 2.0, 0.0]] + [[0.0, 0.0, 0.0]] * 3
    run.update([1.0, 2.0, 3.0, 4.0])
    alpha = 1 - math.sqrt(0.73)
    assert run.m[1:] == [2.0, 0.0]
    assert run.theta[0] == pytest.approx([alpha / 3, alpha / 3, 1 - alpha, alpha / 3])
    assert run.theta[1] == [1 / 3] * 3
    assert run.is_open == [0, 0]
    assert (run.g_idle, run.best) == (0, (0.0, 1.0))
    # an equally good one is not adopted, but succeeds: it has the frequencies, and the mode among them
    v = run.sample(noise)
    assert [v_i[1] for v_i in v] == [0.0, 2.0, 2.0, 2.0]
    run.update([1.0, 2.0, 3.0, 4.0])
    assert run.m[1] == 0.0
    assert run.theta[0] == pytest.approx(catmargin.category_margin([W1, 0.0, W2, 0.0], alpha / 3))
    assert run.is_open == [0, 0]


def test_with_nothing_live_or_open_only_a_new_best_changes_anything() -> None:
    run = Mix([Category(3), Category(2)], [], popsize=4)
    run.is_open = [0, 0]
    run.best = (0.0, 0.5)
    theta = [list(row) for row in run.theta]
    sign = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]  # the smallest s_ij
    noise = Noise(normal=[[NEVER] * 2] * 4, geometric=[[0.9, 0.9]] * 4, sign=sign)
    assert run.sample(noise)[1:] == [[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]]  # q = 1: all are mutated
    run.update([1.0, 2.0, 3.0, 4.0])
    assert (run.m, run.theta, run.is_open, run.g_idle) == ([0.0, 0.0], theta, [0, 0], 1)
    run.sample(noise)
    run.update([4.0, 3.0, 2.0, 0.25])
    assert (run.m, run.is_open, run.g_idle) == ([2.0, 0.0], [0, 0], 0)
    assert (run.theta[1], run.sigma, run.C) == (theta[1], 1.0, [[1.0, 0.0], [0.0, 1.0]])


def cost(x: list[float], wanted: list[list[float]]) -> float:
    # each number is best at 1; of the choices of a category each has its cost
    n = len(x) - len(wanted)
    return sum((value - 1) ** 2 for value in x[:n]) + sum(wanted[c][int(x[n + c])] for c in range(len(wanted)))


def test_relabelled_choices_make_the_same_run() -> None:
    # The order of the choices changes nothing but their names. Draws go by the order, so the
    # uniforms have to follow: those of a choice are mapped to where it lies in the other order.
    rng = np.random.default_rng(5)
    wanted = [[3.0, 0.0, 1.0, 2.0], [0.5, 0.0, 0.2]]
    names = [[2, 3, 1, 0], [1, 2, 0]]  # the choice k of the second run is the choice names[k] of the first
    start = [[0.28, 0.24, 0.26, 0.22], [0.35, 0.34, 0.31]]  # no two are equal
    coordinates = [None, FIVE, Category(4), Category(3)]
    first = Mix(coordinates, [2.0, 3.0], popsize=8, theta=start)
    renamed = [[start[c][k] for k in names[c]] for c in range(2)]
    second = Mix(coordinates, [2.0, 3.0], popsize=8, theta=renamed)

    def relabelled(point: list[float]) -> list[float]:
        return point[:2] + [float(names[c][int(point[2 + c])]) for c in range(2)]

    frozen = False
    for _ in range(60):
        noise = draw(first, rng)
        points = first.sample(noise)
        sign = [list(row) for row in noise.sign]
        geometric = [list(row) for row in noise.geometric]
        for i in range(8):
            for c in range(2):
                chosen = names[c].index(int(points[i][2 + c]))
                if second.is_open[c] == 1:
                    theta = second.theta[c]
                    sign[i][2 + c] = sum(theta[:chosen]) + theta[chosen] / 2
                elif points[i][2 + c] != first.m[2 + c]:
                    K = len(names[c])
                    geometric[i][2 + c] = ((chosen - int(second.m[2 + c])) % K - 0.5) / (K - 1)
        others = second.sample(Noise(normal=noise.normal, geometric=geometric, sign=sign))
        assert [relabelled(point) for point in others] == [pytest.approx(point) for point in points]
        first.update([cost(x, wanted) for x in first.encode(points)])
        second.update([cost(relabelled(x), wanted) for x in second.encode(others)])
        for c in range(2):
            assert second.theta[c] == pytest.approx([first.theta[c][k] for k in names[c]])
            assert names[c][int(second.m[2 + c])] == int(first.m[2 + c])
        assert second.is_open == first.is_open
        assert (second.gamma, second.Delta, second.delta) == pytest.approx((first.gamma, first.Delta, first.delta))
        frozen = frozen or 0 in first.is_open
    assert frozen
