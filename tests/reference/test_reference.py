"""Sanity of the reference itself: Table 1, and cases of each section that can be worked out by hand."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from . import integer_mutation, margin
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


# Section 4


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
    run.update([sphere(x) for x in run.encode(run.sample(draw(run, rng)))])
    assert run.sigma == 0.01  # every coordinate is masked


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
