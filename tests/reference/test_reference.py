"""Sanity of the reference itself: Table 1, the laws of each section, two short runs."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from . import cma, integer_mutation, margin
from .constants import constants
from .integer_mutation import Choices
from .run import Noise, Reference


def draw(run: Reference, rng: np.random.Generator) -> Noise:
    shape = (run.constants.popsize, run.constants.n)
    return Noise(
        normal=rng.standard_normal(shape).tolist(),
        order=rng.random(shape[1]).tolist(),
        geometric=(1 - rng.random(shape)).tolist(),
        sign=rng.random(shape).tolist(),
    )


def integers(low: int, high: int) -> list[float]:
    return [float(z) for z in range(low, high + 1)]


def sphere(x: list[float]) -> float:
    return sum(value * value for value in x)


def generation(run: Reference, rng: np.random.Generator, objective: Callable[[list[float]], float]) -> float:
    """One generation; the best penalised value in it."""
    points = run.sample(draw(run, rng))
    values = [objective(x) for x in run.encode(points)]
    penalties = run.penalties(points)
    run.update(values)
    return min(f + p for f, p in zip(values, penalties, strict=True))


# Table 1. The numbers come from the formulas of the table (with mu_w put right), evaluated to
# 40 decimals in another language, with the logarithms taken as ln((lambda + 1) / (2 i)).


def test_table_1_at_twenty_dimensions() -> None:
    k = constants(20)
    assert (k.popsize, k.mu, k.c_m) == (12, 6, 1.0)
    assert k.mu_w == pytest.approx(3.729458934303066754, rel=1e-13)
    assert k.mu_w_minus == pytest.approx(4.774595099002213524, rel=1e-13)
    assert k.c_sigma == pytest.approx(0.199428013851735797, rel=1e-13)
    assert k.c_c == pytest.approx(0.171767211276812100, rel=1e-13)
    assert k.c_1 == pytest.approx(0.004372354435160245, rel=1e-13)
    assert k.c_mu == pytest.approx(0.008191403277354668, rel=1e-13)
    assert k.d_sigma == pytest.approx(1.199428013851735797, rel=1e-13)
    assert k.chi_n == pytest.approx(4.416766652699584600, rel=1e-13)
    assert k.w == pytest.approx(
        [
            0.402402942818712706,
            0.253389084032886620,
            0.166221564555420562,
            0.104375225247060533,
            0.056403477576325099,
            0.017207705769594476,
            -0.052208086804735886,
            -0.146279187857636918,
            -0.229255779592173277,
            -0.303480870191677333,
            -0.370625632030222296,
            -0.431923996981448997,
        ],
        rel=1e-13,
    )


def test_table_1_at_three_dimensions_with_an_odd_population() -> None:
    # here 1 + 2 mu_w^- / (mu_w + 2) is the least of the three, and w_4 = 0
    k = constants(3)
    assert (k.popsize, k.mu) == (7, 3)
    assert k.mu_w == pytest.approx(2.254815082201604763, rel=1e-13)
    assert k.mu_w_minus == pytest.approx(2.677230753771890924, rel=1e-13)
    assert k.c_sigma == pytest.approx(0.414909001098061646, rel=1e-13)
    assert k.c_c == pytest.approx(0.558801322886018879, rel=1e-13)
    assert k.c_1 == pytest.approx(0.096409632579272145, rel=1e-13)
    assert k.c_mu == pytest.approx(0.051243087013586167, rel=1e-13)
    assert k.d_sigma == pytest.approx(1.414909001098061646, rel=1e-13)
    assert k.chi_n == pytest.approx(1.596877530258607769, rel=1e-13)
    assert k.w == pytest.approx(
        [
            0.585645106509764999,
            0.292822553254882499,
            0.121532340235352501,
            0.0,
            -0.424126941843174218,
            -0.770663885705922420,
            -1.063656696984255767,
        ],
        rel=1e-13,
    )


def test_table_1_with_a_large_population_in_two_dimensions() -> None:
    # here (1 - c_1 - c_mu) / (N c_mu) is the least, and the maximum in d_sigma is not 0
    k = constants(2, 40)
    assert k.c_mu == pytest.approx(0.688252046460969933, rel=1e-13)
    assert k.d_sigma == pytest.approx(3.434474076954702834, rel=1e-13)
    assert sum(k.w) == pytest.approx(1 - 0.161028044012704206, rel=1e-13)
    # ten times as large, and c_mu = 1 - c_1
    assert constants(2, 400).c_mu == pytest.approx(0.982494887752090584, rel=1e-13)


# Section 2.1


def test_equal_values_share_the_weights_of_their_ranks() -> None:
    shared = cma.shared_weights([1.0, 2.0, 2.0, 2.0, 5.0], [0.7, 0.3, 0.0, -0.6, -0.4])
    assert shared == pytest.approx([0.7, -0.1, -0.1, -0.1, -0.4], rel=1e-14)


def test_three_generations_equal_the_equations_in_matrix_form() -> None:
    # roots every second generation, so the second and third use different ones
    rng = np.random.default_rng(5)
    n, interval = 4, 2
    run = Reference("cma", [None] * n, [2.0, 1.0, -1.0, 3.0], popsize=9, eigen_interval=interval)
    k = constants(n, 9)
    w = np.array(k.w)
    positive = np.maximum(w, 0)
    m, sigma, C = np.array(run.m), 1.0, np.eye(n)
    p_sigma, p_c = np.zeros(n), np.zeros(n)
    for t in range(3):
        if t % interval == 0:
            eigenvalues, B = np.linalg.eigh(C)
            root = B @ np.diag(np.sqrt(eigenvalues)) @ B.T
            inverse = np.linalg.inv(root)
        noise = draw(run, rng)
        values = [10 * x[0] ** 2 + sphere(x) for x in run.sample(noise)]
        run.update(values)
        y = (np.array(noise.normal) @ root)[np.argsort(values)]
        step = positive @ y
        m = m + sigma * step
        p_sigma = (1 - k.c_sigma) * p_sigma
        p_sigma += math.sqrt(k.c_sigma * (2 - k.c_sigma) * k.mu_w) * inverse @ step
        length = np.linalg.norm(p_sigma)
        limit = (1.4 + 2 / (n + 1)) * k.chi_n
        h = float(length / math.sqrt(1 - (1 - k.c_sigma) ** (2 * t + 2)) < limit)
        p_c = (1 - k.c_c) * p_c + h * math.sqrt(k.c_c * (2 - k.c_c) * k.mu_w) * step
        w_deg = np.where(w >= 0, w, w * n / np.sum((y @ inverse) ** 2, axis=1))
        C = C * (1 - k.c_1 - k.c_mu * w.sum() + (1 - h) * k.c_1 * k.c_c * (2 - k.c_c))
        C = C + k.c_1 * np.outer(p_c, p_c) + k.c_mu * (y.T * w_deg) @ y
        sigma *= math.exp(k.c_sigma / k.d_sigma * (length / k.chi_n - 1))
        assert run.t == t + 1
        np.testing.assert_allclose(run.m, m, rtol=1e-11)
        np.testing.assert_allclose(run.p_sigma, p_sigma, rtol=1e-11)
        np.testing.assert_allclose(run.p_c, p_c, rtol=1e-11)
        np.testing.assert_allclose(run.C, C, rtol=1e-11, atol=1e-14)
        assert run.sigma == pytest.approx(sigma, rel=1e-12)


# Section 4


def test_a_point_on_a_threshold_belongs_to_the_lower_cell() -> None:
    coordinates = [None, [0.0, 1.0], [1.0, 2.0, 4.0]]
    assert margin.encode([0.3, 0.5, 3.0], coordinates) == [0.3, 0.0, 2.0]
    assert margin.encode([0.3, 0.5000001, 3.0000001], coordinates) == [0.3, 1.0, 4.0]
    assert margin.encode([-9.0, -9.0, -9.0], coordinates) == [-9.0, 0.0, 1.0]


def marginal_of_leaving(run: Reference, j: int) -> list[float]:
    """Probabilities of [v]_j below and above the cell of the mean, where there is such a side."""
    values = run.coordinates[j]
    assert values is not None
    deviation = run.sigma * run.A[j] * math.sqrt(run.C[j][j])
    limits = [(a + b) / 2 for a, b in pairwise(values)]
    below = [ell for ell in limits if ell < run.m[j]]
    above = [ell for ell in limits if ell >= run.m[j]]
    result = []
    if below:
        result.append(float(norm.sf((run.m[j] - below[-1]) / deviation)))
    if above:
        result.append(float(norm.sf((above[0] - run.m[j]) / deviation)))
    return result


def test_margin_holds_after_every_update_and_is_attained() -> None:
    rng = np.random.default_rng(1)
    coordinates = [None, [0.0, 1.0], integers(-10, 10), integers(0, 5), [1.0, 2.0, 4.0]]
    run = Reference("margin", coordinates, [2.0, 0.5, 2.2, 0.3, 2.0])
    alpha = 1 / (5 * 8)
    attained = {"edge": 0, "inside": 0}
    for _ in range(120):
        generation(run, rng, sphere)
        for j in range(1, 5):
            sides = marginal_of_leaving(run, j)
            kind, bound = ("edge", alpha) if len(sides) == 1 else ("inside", alpha / 2)
            assert min(sides) >= bound * (1 - 1e-9)
            attained[kind] += min(sides) <= bound * (1 + 1e-9)
        assert run.A[0] == 1.0  # continuous
        assert run.A[1] == 1.0  # two values: only the mean moves
    assert attained["edge"] > 50
    assert attained["inside"] > 50


def test_margin_is_the_identity_where_no_bound_is_active() -> None:
    coordinates = [None, [0.0, 1.0], integers(-10, 10), integers(0, 5)]
    m, A = [7.0, 0.9, 2.3, 0.2], [1.0, 1.0, 1.7, 0.6]
    new_m, new_A = margin.correct_all(m, 1.1, np.eye(4).tolist(), A, coordinates, 0.02)
    assert new_m == pytest.approx(m, rel=1e-12)
    assert new_A == pytest.approx(A, rel=1e-12)


def test_a_mean_on_a_threshold_is_corrected_as_of_the_lower_cell() -> None:
    coordinates = [[0.0, 1.0], integers(0, 5), integers(0, 5), integers(0, 5)]
    m, A = [0.5, 0.5, 1.5, 4.5], [1.0, 1.0, 1.0, 1.0]
    for sigma in (1e-8, 1.0, 1e8):
        new_m, new_A = margin.correct_all(m, sigma, np.eye(4).tolist(), A, coordinates, 0.02)
        assert new_m[:2] == [0.5, 0.5]  # edges: exactly
        assert new_A[:2] == [1.0, 1.0]
        if sigma > 0.1:  # no bound is active
            assert new_m[2:] == pytest.approx([1.5, 4.5], rel=1e-7)
            assert new_A[2:] == pytest.approx([1.0, 1.0], rel=1e-7)
        else:  # p = (0, 1/2, 1/2) for low, mid, up; p'' = 0.01 and 1/2 - 0.01 / 0.98 * 0.49
            q_low, q_up = norm.isf(0.01), norm.isf(0.495)
            inside = q_low / (q_low + q_up)
            assert new_m[2:] == pytest.approx([0.5 + inside, 3.5 + inside], rel=1e-12)
            assert new_A[2:] == pytest.approx([1e8 / (q_low + q_up)] * 2, rel=1e-12)


def test_margin_without_discrete_coordinates_is_the_cma() -> None:
    plain = Reference("cma", [None] * 3, [1.0, 2.0, 3.0])
    with_margin = Reference("margin", [None] * 3, [1.0, 2.0, 3.0])
    rng = np.random.default_rng(2)
    for _ in range(5):
        noise = draw(plain, rng)
        for run in (plain, with_margin):
            run.update([sphere(x) for x in run.encode(run.sample(noise))])
    assert with_margin.m == plain.m
    assert with_margin.C == plain.C


def test_margin_solves_a_sphere_with_two_integers() -> None:
    rng = np.random.default_rng(3)
    coordinates = [None, None, None, integers(-10, 10), integers(-10, 10)]
    run = Reference("margin", coordinates, [1.5, 2.0, 2.5, 2.6, 1.8])
    best = math.inf
    while best >= 1e-10 and run.t < 400:
        best = min(best, generation(run, rng, sphere))
    assert best < 1e-10


# Sections 2.2 and 3


@pytest.mark.parametrize(
    ("popsize", "size_of_J", "n", "expected"),
    [
        (12, 0, 20, 0),
        (12, 1, 20, 3),  # 1 + 1 + 1
        (12, 5, 20, 5),  # 6 - 1
        (40, 3, 20, 8),  # 4 + 3 + 1
        (12, 20, 20, 6),
    ],
)
def test_number_of_mutated_candidates(popsize: int, size_of_J: int, n: int, expected: int) -> None:
    assert integer_mutation.step_2(popsize, size_of_J, n) == expected


def test_geometric_numbers_have_the_geometric_law() -> None:
    p = 0.3
    uniforms = (np.arange(100_000) + 0.5) / 100_000  # the middle of every percentile's share
    drawn = [integer_mutation.geometric(float(u), p, 1) for u in uniforms]
    for value in (1, 2, 3, 7):
        share = drawn.count(value) / len(drawn)
        assert share == pytest.approx(p * (1 - p) ** (value - 1), abs=2e-5)
    assert integer_mutation.geometric(0.9, p, 0) == integer_mutation.geometric(0.9, p, 1) - 1 == 0


def test_mutation_vectors_on_given_noise() -> None:
    # J = {1, 2} in the order 2, 1; p = sqrt(0.7), so G = 1, 2, 3 above 0.1633, 0.0267, 0.0044
    coordinates = [None, [0.0, 1.0], integers(-5, 5), integers(-5, 5)]
    C = np.diag([1.0, 0.01, 0.01, 1.0]).tolist()
    m = [0.3, 0.2, 1.4, -0.6]
    last_best = [0.1, 1.7, 2.6, 0.9]
    order = [0.9, 0.8, 0.1, 0.0]
    uniforms = [[0.9, 0.5, 0.1, 0.9]] * 8
    signs = [[0.9, 0.1, 0.9, 0.9]] * 8

    def r(choices: Choices) -> list[list[int]]:
        return integer_mutation.mutation_vectors(1.0, C, m, last_best, 8, coordinates, order, uniforms, signs, choices)

    still = [0, 0, 0, 0]
    # lambda_int = min(0 + 2 + 1, 4 - 1) = 3. Step 6: the binary's floors are 1 and -1 about 0.5;
    # the integers' 2 and 1, 0 and -1 (floor), 3 and 1, 1 and -1 (round)
    mutated = [[0, 1, -3, 0], [0, 2, -2, 0], [0, 1, -3, 0]]
    assert r(Choices()) == [*mutated, still, still, still, still, [0, 2, -2, -2]]
    assert r(Choices(recall="floor"))[7] == [0, 2, -1, -1]
    assert r(Choices(recall="round"))[7] == [0, 2, -2, -2]
    assert r(Choices(geometric_start=0))[:3] == [[0, 0, -2, 0], [0, 1, -1, 0], [0, 0, -2, 0]]
    assert r(Choices(sign_per="vector"))[0] == [0, -1, -3, 0]


def test_penalty_is_the_squared_distance_to_the_box_in_grid_units() -> None:
    coordinates = [None, [0.0, 1.0], integers(-10, 10), [0.0, 2.0, 4.0]]
    x = [99.0, 2.5, -13.0, 5.0]  # outside by nothing, 1, 3 and 1/2 spacings
    run = Reference("im-box", coordinates, [0.0] * 4)
    assert run.penalties([x, [0.0, -0.5, 10.0, 4.0]]) == pytest.approx([10.25 / 4, 0.0])
    whole = Reference("im-box", coordinates, [0.0] * 4, penalty_weight=1.0)
    assert whole.penalties([x]) == pytest.approx([10.25])
    assert Reference("im", coordinates, [0.0] * 4).penalties([x]) == [0.0]


def test_masked_coordinates_do_not_move_the_step_size() -> None:
    coordinates = [None, [0.0, 1.0]]
    masks = integer_mutation.mask(0.01, np.eye(2).tolist(), 0.25, coordinates)
    assert masks == [1, 0]  # 5 * 0.01 / 0.5 = 0.1 < 1
    assert integer_mutation.masked_length(masks, [3.0, 4.0]) == 3.0
    rng = np.random.default_rng(4)
    run = Reference("im", [[0.0, 1.0]] * 3, [0.5] * 3)
    run.state.sigma = 0.01
    generation(run, rng, sphere)
    assert run.sigma == 0.01  # every coordinate is masked


def sphere_one_max(x: list[float]) -> float:
    return sphere(x[:3]) + 3 - sum(x[3:])


@pytest.mark.parametrize("seed", [8, 10, 17])
def test_integer_mutation_solves_sphere_one_max_where_the_cma_stagnates(seed: int) -> None:
    best = {}
    for method in ("cma", "im", "im-box"):
        rng = np.random.default_rng(seed)
        coordinates = [None] * 3 + [[0.0, 1.0]] * 3
        run = Reference(method, coordinates, [1.5, 2.0, 2.5, 0.5, 0.5, 0.5])
        best[method] = math.inf
        while best[method] >= 1e-10 and run.t < 250:
            best[method] = min(best[method], generation(run, rng, sphere_one_max))
    assert best["cma"] >= 1  # a bit is wrong for good
    assert best["im"] < 1e-10
    assert best["im-box"] < 1e-10


# Which of x, v and y goes where


@pytest.mark.parametrize("negative_norm", ["mutated", "unmutated"])
@pytest.mark.parametrize("method", ["im", "im-box", "margin"])
def test_each_update_takes_its_own_vectors(method: str, negative_norm: str) -> None:
    # a step size at which every discrete coordinate is in J and masked, and A is not the identity
    rng = np.random.default_rng(7)
    coordinates = [None, None, [0.0, 1.0], integers(-10, 10)]
    run = Reference(method, coordinates, [1.0, 2.0, 0.7, 2.3], negative_norm=negative_norm)
    run.state.sigma = 0.05
    if method == "margin":
        run.state.A = [1.0, 1.0, 3.0, 2.0]
    noise = draw(run, rng)
    points = run.sample(noise)
    values = [sphere(x) for x in run.encode(points)]
    run.update(values)

    k = constants(4)
    w = np.array(k.w)
    start = np.array([1.0, 2.0, 0.7, 2.3])
    order = np.argsort(np.array(values) + run.penalties(points))
    y = np.array(noise.normal)[order]  # C = I
    drawn = np.array(points)[order]
    x = start + 0.05 * y if method == "margin" else drawn
    positive = np.maximum(w, 0)
    m = positive @ x
    length_of = y
    if method != "margin":
        assert np.abs(drawn - start - 0.05 * y).max() >= 1  # it was mutated
        if negative_norm == "mutated":
            length_of = (drawn - start) / 0.05
    p_sigma = math.sqrt(k.c_sigma * (2 - k.c_sigma) * k.mu_w) * positive @ y
    w_deg = np.where(w >= 0, w, w * 4 / np.sum(length_of**2, axis=1))
    h = float(np.linalg.norm(p_sigma) / math.sqrt(1 - (1 - k.c_sigma) ** 2) < 1.8 * k.chi_n)
    assert h == (0.0 if method == "margin" else 1.0)  # both cases of h_sigma are seen
    p_c = h * math.sqrt(k.c_c * (2 - k.c_c) * k.mu_w) * positive @ y
    decay = 1 - k.c_1 - k.c_mu * w.sum() + (1 - h) * k.c_1 * k.c_c * (2 - k.c_c)
    C = decay * np.eye(4) + k.c_1 * np.outer(p_c, p_c)
    C += k.c_mu * (y.T * w_deg) @ y
    count = 4 if method == "margin" else 2  # unmasked
    expected = math.sqrt(count) * (1 - 1 / (4 * count) + 1 / (21 * count**2))
    change = k.c_sigma / k.d_sigma * (np.linalg.norm(p_sigma[:count]) / expected - 1)
    np.testing.assert_allclose(run.p_c, p_c, rtol=1e-11)
    np.testing.assert_allclose(run.p_sigma, p_sigma, rtol=1e-11)
    np.testing.assert_allclose(run.C, C, rtol=1e-11, atol=1e-14)
    assert run.sigma == pytest.approx(0.05 * math.exp(change), rel=1e-12)
    if method == "margin":
        new_m, A = margin.correct_all(
            m.tolist(), run.sigma, run.C, [1.0, 1.0, 3.0, 2.0], coordinates, 1 / (4 * k.popsize)
        )
        np.testing.assert_allclose(run.m, new_m, rtol=1e-11)
        np.testing.assert_allclose(run.A, A, rtol=1e-11)
    else:
        np.testing.assert_allclose(run.m, m, rtol=1e-11)
        assert run.last_best == points[order[0]]


def test_the_last_candidate_recalls_the_last_best() -> None:
    rng = np.random.default_rng(9)
    run = Reference("im", [None, integers(-10, 10)], [0.0, 0.2], sign_per="coordinate")
    run.state.sigma = 1e-3
    noise = draw(run, rng)
    plus = [[0.1, 0.1]] * run.constants.popsize
    first = run.sample(Noise(noise.normal, noise.order, noise.geometric, plus))
    assert first[-1][1] == pytest.approx(0.2, abs=0.01)  # nothing to recall
    run.update([-x[1] for x in first])  # the best is the one mutated farthest upwards
    second = run.sample(Noise(noise.normal, noise.order, noise.geometric, plus))
    recalled = round(max(x[1] for x in first))
    assert recalled >= 2
    assert second[-1][1] == pytest.approx(run.m[1] + recalled - math.floor(run.m[1]), abs=0.02)
