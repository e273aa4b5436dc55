"""Sanity of the transcription of docs/mix.md: each step on a case that can be worked out by hand, short runs."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from . import margin, mix
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
    assert mix.mix_constants(0, 6, 2.0) == mix.mix_constants(1, 6, 2.0)
    k = mix.mix_constants(3, 8, 2.0)
    assert k.c_sigma == pytest.approx(4 / 10 / (2 * math.log(4)), rel=1e-13)
    k_C = mix.covariance_constants(3, 2, 8, 2.0)
    assert k_C.c_1 == pytest.approx(2 / 20.49, rel=1e-13)
    assert k_C.c_c == pytest.approx((14 / 3) / (25 / 3), rel=1e-13)
    assert k_C.c_mu == pytest.approx(1 / 27, rel=1e-13)
    assert k_C.eta_C == pytest.approx(1.5 * (2 / 20.49 + 1 / 27), rel=1e-13)
    assert mix.covariance_constants(3, 3, 8, 2.0).eta_C == pytest.approx(2 * (2 / 20.49 + 1 / 27), rel=1e-13)
    assert mix.covariance_constants(0, 0, 6, 2.0).c_1 == mix.covariance_constants(1, 0, 6, 2.0).c_1
    assert k.eta_sigma == pytest.approx(math.tanh(22.292 / 15), rel=1e-13)
    # a = h where lambda >= n, and half of it where lambda = n / 4
    assert (1 + k.a**2) * math.exp(k.a**2 / 2) == pytest.approx(0.24 * 13, rel=1e-13)
    assert mix.mix_constants(40, 10, 2.0).a == pytest.approx(mix.solve_h(40) / 2, rel=1e-13)


# Sampling


def test_the_rate_falls_with_idle_generations_down_to_a_floor() -> None:
    alpha, popsize = 0.1, 5
    assert mix.mutation_rate(3, 1, alpha, popsize, 0, False) == pytest.approx(0.1)
    # T = 4 / (5 * 0.1) = 8
    assert mix.mutation_rate(3, 1, alpha, popsize, 2, False) == pytest.approx(0.08)
    assert mix.mutation_rate(3, 1, alpha, popsize, 1000, False) == pytest.approx(0.05)
    assert mix.mutation_rate(3, 1, 0.01, popsize, 1000, False) == pytest.approx(0.01)
    assert mix.mutation_rate(3, 1, alpha, popsize, 1000, True) == 0.5
    assert mix.mutation_rate(0, 1, alpha, popsize, 1000, False) == 1.0


@pytest.mark.parametrize(("u", "count"), [(0.51, 0), (0.49, 1), (0.26, 1), (0.24, 2), (0.01, 2)])
def test_the_number_of_mutations(u: float, count: int) -> None:
    # q = 1/2 and two frozen coordinates, 0 and 2: only their normals count
    half = float(norm.ppf(u)) * math.sqrt(2) / 2
    assert mix.mutation_count([half, 17.0, half], [0, 2], 0.5) == count


def test_which_coordinates_are_mutated() -> None:
    s = [0.5, 0.01, 0.2, 0.7, 0.4]
    frozen = [0, 2, 3, 4]
    assert mix.mutated(s, frozen, 0) == []
    assert mix.mutated(s, frozen, 1) == [2]
    assert mix.mutated(s, frozen, 2) == [2]  # below 1/4
    assert mix.mutated(s, frozen, 3) == [2, 4]  # below 2/4
    assert mix.mutated(s, frozen, 4) == [0, 2, 3, 4]  # below 3/4
    assert mix.mutated([0.3, 0.1, 0.1], [0, 1, 2], 1) == [1]


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
        (3, 10, 0.5, 10),  # infinitely far
        (10, 10, 0.5, 9),
        (1, 2, 0.2, 2),
        (2, 2, 0.8, 1),
    ],
)
def test_jumps(c: int, count: int, t: float, expected: int) -> None:
    assert mix.jump(c, count, t) == expected


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


def test_centring_sums_to_zero_where_it_can() -> None:
    w_plus = [0.4, 0.3, 0.2, 0.1, 0.0, 0.0]
    # the mean is in cell 2; the first left it and moves by +0.4, the others' ways are -0.3, -0.1, +0.2
    moves = mix.centring_moves(w_plus, [2.6, 2.3, 2.1, 1.8, 3.3, 2.4], 2.0, FIVE)
    assert moves == pytest.approx([0.4, -0.3, -0.1, 0.0, 0.0, 0.0])
    # a part of the way is enough
    moves = mix.centring_moves(w_plus, [2.9, 2.3, 2.1, 1.8, 3.3, 2.4], 2.0, FIVE)
    assert moves == pytest.approx([0.1, -0.075, -0.025, 0.0, 0.0, 0.0])
    assert sum(moves) == pytest.approx(0.0, abs=1e-15)
    # all of it is not
    moves = mix.centring_moves(w_plus, [-0.7, 2.3, 2.1, 1.8, 3.3, 2.4], 2.0, FIVE)
    assert moves == pytest.approx([0.7, -0.3, -0.1, 0.0, 0.0, 0.0])
    # nobody left, or those who left were in their centres
    assert mix.centring_moves(w_plus, [2.1, 2.3, 2.1, 1.8, 3.3, 2.4], 2.0, FIVE) == [0.0] * 6
    assert mix.centring_moves(w_plus, [3.0, 2.3, 2.1, 1.8, 3.3, 2.4], 2.0, FIVE) == [0.0] * 6


def test_the_weights_of_a_moving_search() -> None:
    k = mix.mix_constants(2, 4, 1.5)
    z = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.0, 100.0]]
    w = mix.moving_weights([0.5, 0.25, 0.0, 0.25], z, k)
    assert sum(w) == pytest.approx(0.0, abs=1e-15)
    assert w[2] == -0.25
    assert (w[1] + 0.25) / (w[0] + 0.25) == pytest.approx(math.exp(k.a) / 2)
    assert (w[3] + 0.25) / (w[0] + 0.25) == pytest.approx(math.exp(k.a * (2 * k.chi - 1)) / 2)


def test_the_first_generation_of_one_float() -> None:
    # z_i = y_i = xi_i; only the first two have positive weights
    run = Mix([None], [10.0], popsize=4)
    run.sample(Noise(normal=[[1.0], [-2.0], [0.5], [2.0]]))
    run.update([3.0, 1.0, 2.0, 4.0])
    mu_w = 1 / (W1**2 + W2**2)
    k, k_C = mix.mix_constants(1, 4, mu_w), mix.covariance_constants(1, 1, 4, mu_w)
    r_z = -2.0 * W1 + 0.5 * W2 - 1.5 / 4
    d = 4.0 * W1 + 0.25 * W2 - 9.25 / 4
    p_sigma = math.sqrt(k.c_sigma * (2 - k.c_sigma) * mu_w) * r_z
    p_c = math.sqrt(k_C.c_c * (2 - k_C.c_c) * mu_w) * r_z if abs(p_sigma) < 2 * k.chi else 0.0
    assert run.m == pytest.approx([10.0 + r_z])
    assert run.p_sigma == pytest.approx([p_sigma])
    assert run.p_c == pytest.approx([p_c])
    assert run.sigma == pytest.approx(math.exp(k.eta_sigma / 2 * d))
    # with one coordinate the sum is d itself: only c_1 changes C
    assert run.C[0] == pytest.approx([1 - k_C.c_1 + k_C.c_1 * p_c**2])
    assert (run.g_long, run.g_idle, run.live, run.generation) == (1, 1, [1], 1)
    assert run.best == (0.0, 1.0)


def test_groups_of_step_sizes() -> None:
    # the first left the cell of the mean and is centred: its y of the integer is 1; nobody else is moved
    run = Mix([None, FIVE], [0.0, 2.0], popsize=4)
    run.sample(Noise(normal=[[1.0, 1.2], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    run.update([1.0, 2.0, 3.0, 4.0])
    k = mix.mix_constants(2, 4, run.constants.mu_w)
    # d_x = d_z = (w+ - 1/4) 1^2, so A is changed by the margin only, and there no bound is active
    assert run.sigma == pytest.approx(math.exp(k.eta_sigma / 2 * (W1 - 0.25)))
    assert run.A[0] == 1.0
    assert run.A[1] == pytest.approx(1.0)
    assert run.m == pytest.approx([W1 - 0.25, 2.0 + W1 - 0.25])
    assert run.g_idle == 0  # a live one succeeded


def test_freezing() -> None:
    run = Mix([None, FIVE], [0.0, 2.0], popsize=4)
    run.state.A = [1.0, 0.01]
    run.state.C = [[2.0, 0.5], [0.5, 1.0]]
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


def test_violations_come_before_values() -> None:
    run = Mix([FIVE], [2.0], popsize=4)
    run.live = [0]
    run.best = (0.5, -100.0)
    run.sample(Noise(normal=[[NEVER]] * 4, geometric=[[0.9], [0.1], [0.9], [0.9]], sign=[[0.5]] * 4))
    run.update([-9.0, 7.0, -9.0, -9.0], [1.0, 0.0, 1.0, 1.0])
    assert run.best == (0.0, 7.0)
    assert run.m == [1.0]
    assert run.live == [0]


def test_with_nothing_live_only_a_new_best_changes_anything() -> None:
    run = Mix([FIVE, FIVE], [2.0, 2.0], popsize=4)
    run.live = [0, 0]
    run.best = (0.0, 0.5)
    sign = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]  # k_i = 1 each, the smallest s_ij
    noise = Noise(normal=[[NEVER] * 2] * 4, geometric=[[0.9, 0.9]] * 4, sign=sign)
    run.sample(noise)
    run.update([1.0, 2.0, 3.0, 4.0])
    assert (run.m, run.live, run.sigma, run.g_long, run.g_idle) == ([2.0, 2.0], [0, 0], 1.0, 0, 1)
    assert run.C == [[1.0, 0.0], [0.0, 1.0]]
    run.sample(noise)
    run.update([4.0, 3.0, 2.0, 0.25])
    assert (run.m, run.live, run.g_idle) == ([3.0, 2.0], [0, 0], 0)


def test_roots_are_taken_anew_after_the_interval() -> None:
    rng = np.random.default_rng(3)
    run = Mix([None] * 6, [1.0] * 6, eigen_interval=2)
    for t in range(5):
        before = run.state.root
        C = run.C
        points = run.sample(draw(run, rng))
        if t % 2 == 0:
            root = np.array(run.state.root)
            np.testing.assert_allclose(root @ root, C, atol=1e-12)
        else:
            assert run.state.root is before
        run.update([sum(value * value for value in x) for x in points])
    assert run.generation == 5


def test_a_mixed_sphere_is_solved() -> None:
    rng = np.random.default_rng(1)
    integers = [float(z) for z in range(-10, 11)]
    run = Mix([None, None, integers, integers], [3.0, -2.0, 6.0, -4.0])
    frozen = False
    for _ in range(150):
        points = run.encode(run.sample(draw(run, rng)))
        run.update([sum(value * value for value in x) for x in points])
        frozen = frozen or 0 in run.live
        for j in run.frozen:
            assert run.p_sigma[j] == run.p_c[j] == 0.0
            assert run.C[j] == [1.0 if b == j else 0.0 for b in range(4)]
    assert frozen
    assert run.best is not None
    assert run.best[1] < 1e-6


def test_integers_alone_are_solved() -> None:
    rng = np.random.default_rng(2)
    integers = [float(z) for z in range(21)]
    run = Mix([integers] * 3 + [[0.0, 1.0]], [10.0, 10.0, 10.0, 0.5])
    for _ in range(60):
        points = run.encode(run.sample(draw(run, rng)))
        run.update([abs(x[0] - 3) + abs(x[1] - 17) + abs(x[2] - 11) + x[3] for x in points])
    assert run.best == (0.0, 0.0)
