"""Sanity of the transcription of docs/catmargin.md: steps by hand, laws, short runs, the package of the authors."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.stats import norm

from . import catmargin, margin
from .catmargin import Category, CatMargin
from .cma import Vector
from .constants import constants
from .run import Noise

Objective = Callable[[Vector], float]
Space = Sequence[Vector | Category | None]

FIVE = [0.0, 1.0, 2.0, 3.0, 4.0]
NINE = [float(z) for z in range(-4, 5)]

# lambda = 4: w+ = (ln 2.5, ln 1.25, 0, 0) / their sum
W1 = math.log(2.5) / (math.log(2.5) + math.log(1.25))
W2 = 1 - W1


def draw(run: CatMargin, rng: np.random.Generator) -> Noise:
    shape = (run.constants.popsize, run.n + len(run.K))
    return Noise(normal=rng.standard_normal(shape).tolist(), sign=(1 - rng.random(shape)).tolist())


def generation(run: CatMargin, rng: np.random.Generator, objective: Objective) -> float:
    """One generation; the best value in it."""
    values = [objective(x) for x in run.encode(run.sample(draw(run, rng)))]
    run.update(values)
    return min(values)


def tails(run: CatMargin, j: int) -> tuple[float, float]:
    """The probabilities of leaving the cell of the mean downward and upward, 0 where there is no cell."""
    values = run.coordinates[j]
    assert values is not None
    deviation = run.sigma * run.A[j] * math.sqrt(run.C[j][j])
    cell = margin.cell(run.m[j], values)
    low = 0.0 if cell == 1 else norm.cdf((margin.l_low(run.m[j], values) - run.m[j]) / deviation)
    up = 0.0 if cell == len(values) else norm.sf((margin.l_up(run.m[j], values) - run.m[j]) / deviation)
    return float(low), float(up)


# Constants


def test_constants() -> None:
    assert catmargin.default_alpha(0, 0) == 0.0
    assert catmargin.default_alpha(1, 0) == pytest.approx(0.27, rel=1e-13)
    assert catmargin.default_alpha(1, 1) == pytest.approx(1 - math.sqrt(0.73), rel=1e-13)
    run = CatMargin([None, FIVE, Category(2), Category(4)], [0.0, 2.0])
    assert run.constants.popsize == 4 + math.floor(3 * math.log(4))
    assert run.alpha == pytest.approx(1 - 0.73 ** (1 / 3), rel=1e-13)
    assert run.q == pytest.approx([run.alpha, run.alpha / 3], rel=1e-13)
    assert run.constants == catmargin.numeric_constants(2, 8)
    assert run.n_theta == 4


@pytest.mark.parametrize(("n", "popsize"), [(1, 4), (5, 9), (20, 12), (3, 2)])
def test_the_constants_are_those_of_table_1(n: int, popsize: int) -> None:
    k, table = catmargin.numeric_constants(n, popsize), constants(n, popsize)
    assert k.w == pytest.approx(table.w, rel=1e-13)
    assert (k.c_1, k.c_mu, k.c_c, k.c_sigma, k.d_sigma) == (
        table.c_1,
        table.c_mu,
        table.c_c,
        table.c_sigma,
        table.d_sigma,
    )


def test_without_numbers_there_are_no_negative_weights() -> None:
    k = catmargin.numeric_constants(0, 6)
    assert k.w[:3] == constants(7, 6).w[:3]
    assert k.w[3:] == [0.0] * 3


def test_bad_coordinates() -> None:
    with pytest.raises(ValueError, match="last"):
        CatMargin([Category(2), None], [0.0])
    with pytest.raises(ValueError, match="at least 2"):
        CatMargin([Category(1)], [])
    with pytest.raises(ValueError, match="mean of 2"):
        CatMargin([None, Category(3)], [0.0, 0.0])
    with pytest.raises(ValueError, match="sign"):
        CatMargin([Category(3)], []).sample(Noise(normal=[[0.0]] * 4))


# Sampling


@pytest.mark.parametrize(("u", "k"), [(1e-9, 0), (0.25, 0), (0.26, 1), (0.75, 1), (0.76, 2), (1.0, 2)])
def test_choices(u: float, k: int) -> None:
    assert catmargin.choice([0.25, 0.5, 0.25], u) == k


def test_where_rounding_leaves_no_choice_it_is_the_last() -> None:
    assert sum([0.1] * 10) < 1
    assert catmargin.choice([0.1] * 10, 1.0) == 9


def test_a_sample() -> None:
    run = CatMargin([None, FIVE, Category(2)], [0.5, 1.2], popsize=4)
    run.state.sigma = 2.0
    run.state.A = [1.0, 0.5]
    points = run.sample(
        Noise(
            normal=[[1.0, -1.0, 9.0], [-1.0, 0.5, 9.0], [0.0, 0.0, 9.0], [0.0, 2.0, 9.0]],
            sign=[[0.9, 0.9, 0.1], [0.1, 0.1, 0.9], [0.1, 0.1, 0.5], [0.1, 0.1, 1.0]],
        )
    )
    expected = [[2.5, 0.2, 0.0], [-1.5, 1.7, 1.0], [0.5, 1.2, 0.0], [0.5, 3.2, 1.0]]
    np.testing.assert_allclose(points, expected, rtol=1e-13)
    assert [x[1:] for x in run.encode(points)] == [[0.0, 0.0], [2.0, 1.0], [1.0, 0.0], [3.0, 1.0]]


# Update


def test_centring_sums_to_zero_where_it_can() -> None:
    w_plus = [0.4, 0.3, 0.2, 0.1, 0.0, 0.0]
    # the mean is in the cell of 2; the first left it and moves by +0.4, the others' ways are -0.3, -0.1, +0.2
    v_j = [2.6, 2.3, 2.1, 1.8, 3.3, 2.4]
    assert catmargin.succeeded(w_plus, v_j, 2.0, FIVE)
    assert catmargin.centred(w_plus, v_j, 2.0, FIVE) == pytest.approx([3.0, 2.0, 2.0, 1.8, 3.3, 2.4])
    # a quarter of the way is enough
    v_j = [2.9, 2.3, 2.1, 1.8, 3.3, 2.4]
    moved = catmargin.centred(w_plus, v_j, 2.0, FIVE)
    assert moved == pytest.approx([3.0, 2.225, 2.075, 1.8, 3.3, 2.4])
    assert sum(moved) == pytest.approx(sum(v_j))
    # nobody of the better half left
    v_j = [2.1, 2.3, 2.1, 1.8, 3.3, 2.4]
    assert not catmargin.succeeded(w_plus, v_j, 2.0, FIVE)
    assert catmargin.centred(w_plus, v_j, 2.0, FIVE) == v_j


def test_the_margin_at_the_edge() -> None:
    # far out: the tail becomes alpha; A_j is large enough for the value itself to be that far from the threshold
    m, A, P = catmargin.edge_margin(-5.0, 1.0, 1e-3, 4.0, FIVE, 0.1, False, 0.3)
    assert P == 0.1
    assert pytest.approx(0.5) == A * 2 * -norm.ppf(0.1)
    assert m == pytest.approx(0.0)
    # in the last cell, with a tail of 0.3: the cap is at work without success, not with it
    m_j = 3.5 - float(norm.ppf(0.3))
    assert catmargin.edge_margin(m_j, 1.0, 1.0, 1.0, FIVE, 0.1, True, 0.2) == pytest.approx((m_j, 1.0, 0.3))
    expected = (3.5 - float(norm.ppf(0.2)), 1.0, 0.2)
    assert catmargin.edge_margin(m_j, 1.0, 1.0, 1.0, FIVE, 0.1, False, 0.2) == pytest.approx(expected)
    # on the threshold it is in the lower cell
    m, A, P = catmargin.edge_margin(0.5, 1.0, 1.0, 1.0, FIVE, 0.1, True, 0.2)
    assert 0.5 - 1e-7 < m < 0.5
    assert (A, P) == (1.0, 0.5 - 1e-8)


def test_the_margin_inside() -> None:
    # with success and no bound active nothing changes; the sum of the tails is kept
    m, A, P = catmargin.inner_margin(2.1, 0.5, 1.2, 1.0, FIVE, 0.1, True, 0.01)
    assert (m, A) == pytest.approx((2.1, 1.2))
    assert pytest.approx(norm.cdf(-0.6 / 0.6) + norm.cdf(-0.4 / 0.6)) == P
    # it is that of CMA-ES with Margin
    found = catmargin.inner_margin(2.3, 0.1, 1.2, 1.0, FIVE, 0.1, True, 0.01)
    assert found[:2] == pytest.approx(margin.correct_inside(2.3, 0.1, 1.2, 1.0, FIVE, 0.1))
    # without success the tails may not sum to more than before
    m, A, P = catmargin.inner_margin(2.1, 0.5, 1.2, 1.0, FIVE, 0.1, False, 0.25)
    assert pytest.approx(0.25) == P
    assert norm.cdf((1.5 - m) / (0.5 * A)) + norm.cdf((m - 2.5) / (0.5 * A)) == pytest.approx(0.25)
    # with the cap at alpha both tails are alpha / 2, and the mean is in the middle
    m, A, P = catmargin.inner_margin(2.1, 0.5, 1.2, 1.0, FIVE, 0.1, False, 0.1)
    assert (m, P) == pytest.approx((2.0, 0.1))
    assert pytest.approx(0.5) == 0.5 * A * -norm.ppf(0.05)


def test_nothing_to_share_out_between_the_tails() -> None:
    # up to rounding the tails are alpha/2, the middle is 1 - P_j, and both the dividend and the divisor 0
    deviation = 0.5 / -float(norm.ppf(0.125))
    m, A, P = catmargin.inner_margin(2.0, deviation, 1.0, 1.0, FIVE, 0.25, False, 0.25)
    assert (m, A, P) == pytest.approx((2.0, 1.0, 0.25))


def test_the_root_of_the_fisher_information() -> None:
    theta = [0.2, 0.5, 0.3]
    g = [0.1, -0.3, 0.2]
    for pole in (catmargin.equal(3), catmargin.last(3)):
        r = catmargin.fisher_root(g, theta, pole)
        # of the same length, and tangent to the sphere at the pole
        assert sum(value**2 for value in r) == pytest.approx(sum(g[k] ** 2 / theta[k] for k in range(3)), rel=1e-13)
        assert sum(pole[k] * r[k] for k in range(3)) == pytest.approx(0.0, abs=1e-15)


def test_the_first_generation_of_one_category() -> None:
    run = CatMargin([Category(2)], [], popsize=4)
    # the best two, the second and the first, choose 1
    run.sample(Noise(normal=[[0.0]] * 4, sign=[[0.9], [0.8], [0.1], [0.2]]))
    assert run.points == [[1.0], [1.0], [0.0], [0.0]]
    run.update([2.0, 1.0, 3.0, 4.0])
    # g = (-1/2, 1/2), ||r|| = 1: the step is 1/2, and the margin brings it back
    assert run.q == pytest.approx([0.27])
    assert run.theta[0] == pytest.approx([0.27, 0.73])
    # beta = 1
    assert run.s == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)])
    assert (run.gamma, run.delta) == (1.0, 1.0)
    assert run.Delta == pytest.approx(math.exp(1 - 1 / 1.5))
    # the second step is made with delta = 1 still
    run.sample(Noise(normal=[[0.0]] * 4, sign=[[0.1], [0.9], [0.9], [0.9]]))
    run.update([1.0, 2.0, 3.0, 4.0])
    g = W1 - 0.27
    r = g / math.sqrt(0.27 * 0.73)
    assert run.theta[0] == pytest.approx([min(0.73, 0.27 + g / r), max(0.27, 0.73 - g / r)])
    assert run.delta == pytest.approx(math.exp(-1 / 3))
    assert run.generation == 2


def test_the_margin_of_a_category() -> None:
    theta = catmargin.category_margin([1.2, -0.4, 0.15, 0.05], 0.1)
    # 1.2, 0.1, 0.15, 0.1: T = 1.55, and 0.55 is taken in proportion 1.1 : 0 : 0.05 : 0
    assert theta == pytest.approx([1.2 - 0.55 * 1.1 / 1.15, 0.1, 0.15 - 0.55 * 0.05 / 1.15, 0.1])
    assert catmargin.category_margin([0.5, 0.3, 0.2], 0.1) == pytest.approx([0.5, 0.3, 0.2])


def test_equal_candidates_share_their_weights() -> None:
    # half of equal candidates choose 0: the gradient is 0, up to rounding, and so is what is added to s
    run = CatMargin([None, Category(2)], [3.0], popsize=4)
    normal = [[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0], [-2.0, 0.0]]
    run.sample(Noise(normal=normal, sign=[[0.5, u] for u in (0.1, 0.9, 0.9, 0.1)]))
    run.update([7.0] * 4)
    assert run.m == pytest.approx([3.0])
    assert run.theta[0] == pytest.approx([0.5, 0.5])
    assert run.s == [0.0, 0.0]
    # the best one is as it was, and the three others have the mean of theirs: W2 / 3 each for the mean
    run = CatMargin([None, Category(2)], [3.0], popsize=4)
    run.sample(Noise(normal=normal, sign=[[0.5, u] for u in (0.1, 0.9, 0.9, 0.1)]))
    run.update([7.0, 7.0, 6.0, 7.0])
    assert run.m == pytest.approx([3.0 + 2 * W1 - 2 * W2 / 3])


def test_violations_come_before_values() -> None:
    results = []
    for values, violations in (([-9.0, 7.0, 8.0, 9.0], [1.0, 0.0, 0.0, 0.0]), ([4.0, 1.0, 2.0, 3.0], None)):
        run = CatMargin([None, FIVE, Category(3)], [0.0, 2.0], popsize=4)
        run.sample(draw(run, np.random.default_rng(5)))
        run.update(values, violations)
        results.append((run.m, run.sigma, run.C, run.A, run.theta))
    assert results[0] == results[1]


def test_the_step_size_and_the_eigenvalues_have_a_floor() -> None:
    C, eigenvalues = catmargin.repaired([[1.0, 2.0], [2.0, 1.0]])
    assert eigenvalues == pytest.approx([1e-8, 3.0])
    assert C[0] == pytest.approx([1.5 + 5e-9, 1.5 - 5e-9])
    # the root of an eigenvalue of 1e-12 is 1e-6: sqrt(1e-24)
    assert catmargin.floored_sigma(1e-20, [1e-12, 1.0]) == pytest.approx(1e-12)
    assert catmargin.floored_sigma(1.0, [1e-12, 1.0]) == 1.0


def test_roots_are_taken_anew_after_the_interval() -> None:
    rng = np.random.default_rng(3)
    run = CatMargin([None] * 4 + [Category(3)], [1.0] * 4, eigen_interval=2)
    for t in range(5):
        before, C = run.state.root, run.C
        points = run.sample(draw(run, rng))
        if t % 2 == 0:
            root = np.array(run.state.root)
            np.testing.assert_allclose(root @ root, C, atol=1e-12)
        else:
            assert run.state.root is before
        run.update([sum(value * value for value in x) for x in points])
    assert run.generation == 5


# Laws


SPACES: dict[str, tuple[Space, Vector]] = {
    "all": ([None, None, NINE, [0.0, 1.0], [0.1, 1.0, 10.0], Category(2), Category(5)], [3.0, -2.0, 3.0, 0.5, 9.0]),
    "no categories": ([None, NINE, NINE], [3.0, 3.0, -3.0]),
    "no integers": ([None, None, Category(3), Category(4)], [1.0, 2.0]),
    "no floats": ([NINE, NINE, Category(3)], [0.0, 3.9]),
    "integers": ([NINE, FIVE, [0.0, 1.0]], [0.0, 2.0, 0.5]),
    "floats": ([None, None, None], [3.0, 2.0, 1.0]),
    "categories": ([Category(2), Category(3), Category(6)], []),
    "one category": ([Category(2)], []),
    "one float": ([None], [3.0]),
    "one integer": ([NINE], [3.0]),
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("noisy", [False, True])
def test_the_margin_holds_after_every_update(name: str, noisy: bool) -> None:
    space, mean = SPACES[name]
    rng = np.random.default_rng(7)
    run = CatMargin(space, mean)

    def objective(x: Vector) -> float:
        return float(rng.random()) if noisy else sum(value * value for value in x)

    for _ in range(60):
        P = list(run.P)
        generation(run, rng, objective)
        for j in run.discrete:
            low, up = tails(run, j)
            edge = low == 0 or up == 0
            floor = run.alpha if edge else run.alpha / 2
            assert max(low, up) >= floor * (1 - 1e-9)
            assert edge or min(low, up) >= floor * (1 - 1e-9)
            assert run.P[j] == pytest.approx(low + up, rel=1e-7)
            assert run.P[j] >= run.alpha * (1 - 1e-9)
        for j in range(run.n):
            assert j in run.discrete or (run.A[j] == 1.0 and run.P[j] == P[j])
        for theta, q in zip(run.theta, run.q, strict=True):
            assert min(theta) >= q * (1 - 1e-12)
            assert sum(theta) == pytest.approx(1.0, rel=1e-14)
    assert run.generation == 60


def test_an_integer_that_nobody_moves_does_not_become_more_restless() -> None:
    rng = np.random.default_rng(11)
    run = CatMargin([None, NINE], [3.0, 0.2])
    capped = 0
    for _ in range(80):
        before, m = run.P[1], run.m[1]
        points = run.sample(draw(run, rng))
        values = [x[0] ** 2 + 100 * x[1] ** 2 for x in run.encode(points)]
        run.update(values)
        best = np.argsort(values)[: run.constants.mu]
        if not any(catmargin.left_cell(points[i][1], m, NINE) for i in best):
            capped += 1
            assert run.P[1] <= before * (1 + 1e-9)
    assert capped > 20


# The label of each choice of one run in the other.
@pytest.mark.parametrize("labels", [[1, 0], [2, 0, 3, 1], [0, 1], [5, 2, 3, 4, 0, 1]])
def test_relabelling_choices_changes_nothing_but_labels(labels: list[int]) -> None:
    rng = np.random.default_rng(13)
    K = len(labels)
    space: Space = [None, NINE, Category(3), Category(K)]
    one, other = CatMargin(space, [2.0, 2.0]), CatMargin(space, [2.0, 2.0])

    def objective(x: Vector) -> float:
        return x[0] ** 2 + x[1] ** 2 + (x[2] - 1) ** 2 * (1 + x[3]) + 3 * math.cos(x[3])

    for _ in range(25):
        points = one.sample(draw(one, rng))
        values = [objective(x) for x in one.encode(points)]
        one.update(values)
        other.sample(draw(other, rng))
        other.points = [[*point[:3], float(labels[int(point[3])])] for point in points]
        other.update(values)
        assert other.m == one.m
        assert other.theta[0] == pytest.approx(one.theta[0], rel=1e-9)
        assert [other.theta[1][labels[k]] for k in range(K)] == pytest.approx(one.theta[1], rel=1e-9)
        assert pytest.approx(one.Delta, rel=1e-9) == other.Delta


def test_with_the_pole_of_the_package_the_last_label_matters_from_the_second_rate_on() -> None:
    rng = np.random.default_rng(13)
    one, other = (CatMargin([Category(3)], [], popsize=6, pole=catmargin.last) for _ in range(2))
    for t in range(4):
        points = one.sample(draw(one, rng))
        values = rng.random(6).tolist()
        one.update(values)
        other.sample(draw(other, rng))
        other.points = [[2.0 - point[0]] for point in points]
        other.update(values)
        if t == 0:
            assert other.theta[0][::-1] == pytest.approx(one.theta[0], rel=1e-12)
            assert pytest.approx(one.Delta, rel=1e-12) == other.Delta
    assert pytest.approx(one.Delta, rel=1e-6) != other.Delta


# Short runs


def test_a_mixed_problem_is_solved() -> None:
    rng = np.random.default_rng(1)
    integers = [float(z) for z in range(-10, 11)]
    space: Space = [None, None, integers, integers, Category(3), Category(5)]
    run = CatMargin(space, [3.0, -2.0, 6.0, -4.0])

    def objective(x: Vector) -> float:
        return sum(value * value for value in x[:4]) + (x[4] != 1.0) + (x[5] != 3.0) * (1 + abs(x[0]))

    best = min(generation(run, rng, objective) for _ in range(250))
    assert best < 1e-8
    assert run.theta[0][1] > 0.75
    assert run.theta[1][3] > 0.75


def test_categories_alone_are_solved() -> None:
    rng = np.random.default_rng(2)
    run = CatMargin([Category(4)] * 5 + [Category(2)] * 5, [])
    best = min(generation(run, rng, lambda x: sum(value != 1.0 for value in x)) for _ in range(150))
    assert best == 0
    assert (run.m, run.sigma, run.C) == ([], 1.0, [])


def test_numbers_alone_are_solved() -> None:
    rng = np.random.default_rng(4)
    run = CatMargin([None, None, NINE, NINE], [3.0, -2.0, 3.0, -3.0])
    best = min(generation(run, rng, lambda x: sum(value * value for value in x)) for _ in range(250))
    assert best < 1e-8
    assert run.theta == run.s == []


# The package of the paper's authors


def package_run(run: CatMargin, popsize: int | None = None):  # type: ignore[no-untyped-def]  # it may be missing
    """The package's object for the same space (floats before integers) and the same start."""
    cmaes = pytest.importorskip("cmaes")
    floats = run.n - len(run.discrete)
    assert run.discrete == list(range(floats, run.n))
    numbers = {}
    if run.n > 0:
        numbers = {"mean": np.array(run.m), "sigma": run.sigma, "cov": np.array(run.C)}
    return cmaes.CatCMAwM(
        x_space=[[-np.inf, np.inf]] * floats if floats else None,
        z_space=[run.coordinates[j] for j in run.discrete] or None,
        c_space=run.K or None,
        population_size=popsize,
        **numbers,
    )


def package_solution(run: CatMargin, package, point: Vector):  # type: ignore[no-untyped-def]
    """A latent point as a solution of the package."""
    floats = run.n - len(run.discrete)
    x = np.array(point[:floats]) if floats else None
    z = np.array(run.encode([point])[0][floats : run.n]) if run.discrete else None
    c = None
    if run.K:
        c = np.zeros((len(run.K), max(run.K)), dtype=bool)
        for row, index in enumerate(point[run.n :]):
            c[row, int(index)] = True
    return type(package).Solution(x, z, c, np.array(point[: run.n]) if run.n else None)


def assert_same_state(run: CatMargin, package) -> None:  # type: ignore[no-untyped-def]
    def close(ours: object, theirs: object) -> None:
        np.testing.assert_allclose(np.array(ours, dtype=float), theirs, rtol=1e-7, atol=1e-11)

    if run.n > 0:
        close(run.m, package._mean)
        close(run.sigma, package._sigma)
        close(run.C, package._C)
        close(run.A, package._A)
        close(run.p_sigma, package._p_sigma)
        close(run.p_c, package._pc)
    if run.discrete:
        close([run.P[j] for j in run.discrete], package._pmut)
    for c, K in enumerate(run.K):
        close(run.theta[c], package._q[c, :K])
    if run.K:
        kept = [1.0 - e for K in run.K for e in catmargin.last(K)]  # the package has no place for the last choice
        close([s for s, keep in zip(run.s, kept, strict=True) if keep], package._s)
        close([run.gamma, run.Delta, run.delta], [package._gamma, package._Delta, package._delta])


@pytest.mark.parametrize(
    ("space", "popsize"),
    [
        ([None, None, FIVE, FIVE, Category(3), Category(7)], None),
        ([None] * 20, None),
        ([None, Category(2)], 7),
        ([FIVE], 4),
        ([None], 2000),  # c_mu = 1 - c_1 - e
        ([Category(2), Category(9)], None),
        ([Category(5)], 5),
    ],
)
def test_the_constants_are_those_of_the_package(space: Space, popsize: int | None) -> None:
    mean = [0.0] * sum(not isinstance(values, Category) for values in space)
    run = CatMargin(space, mean, popsize)
    package = package_run(run, popsize)
    k = run.constants
    assert (k.popsize, k.mu) == (package.population_size, package._mu)
    assert k.mu_w == pytest.approx(package._mu_eff, rel=1e-12)
    np.testing.assert_allclose(k.w, package._weights, rtol=1e-6 if popsize == 2000 else 1e-12, atol=1e-17)
    if run.n > 0:
        ours = [k.c_1, k.c_mu, k.c_c, k.c_sigma, k.d_sigma, k.chi_n, k.c_m]
        theirs = [package._c1, package._cmu, package._cc, package._c_sigma, package._d_sigma, package._chi_n, 1.0]
        assert ours == pytest.approx(theirs, rel=1e-12)
    if run.discrete:
        assert run.alpha == pytest.approx(package._alpha, rel=1e-12)
    if run.K:
        assert run.q == pytest.approx(list(package._qmin), rel=1e-12)
        assert run.n_theta == package._param_sum
    assert_same_state(run, package)


PACKAGE_SPACES: dict[str, tuple[Space, Vector, int | None]] = {
    "all": ([None, None, NINE, NINE, NINE, Category(2), Category(5)], [3.0, -2.0, 3.0, -1.1, 0.3], None),
    "bits": ([None, None, [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], [3.0, 2.0, 0.4, 0.6, 0.3], None),
    "uneven values": ([None, [0.1, 1.0, 10.0], [-1.0, 0.0, 7.0], Category(3)], [1.0, 9.0, 0.2], 7),
    "no integers": ([None, None, Category(3), Category(4), Category(2)], [1.0, 2.0], 12),
    "no floats": ([NINE, NINE, Category(3)], [0.1, 3.9], 20),
    "integers": ([NINE, NINE], [0.1, 3.9], 9),
    "floats": ([None, None, None], [3.0, 2.0, 1.0], None),
    "categories": ([Category(2), Category(3), Category(6), Category(6)], [], None),
    "one category": ([Category(2)], [], None),
}


@pytest.mark.parametrize("name", PACKAGE_SPACES)
@pytest.mark.parametrize("noise", [0.001, 10.0])
def test_fifty_updates_are_those_of_the_package(name: str, noise: float) -> None:
    space, mean, popsize = PACKAGE_SPACES[name]
    rng = np.random.default_rng(17)
    run = CatMargin(space, mean, popsize, pole=catmargin.last)
    run.state.sigma = 0.7
    if run.n > 0:
        half = rng.standard_normal((run.n, run.n)) / 3
        run.state.C = (half @ half.T + np.eye(run.n)).tolist()
    package = package_run(run, popsize)
    scale = 10.0 ** np.linspace(0, 2, len(space))
    for _ in range(50):
        points = run.sample(draw(run, rng))
        # a little noise, so that no two are equal
        values = [float(scale @ np.square(np.array(x) - 1)) + noise * rng.random() for x in run.encode(points)]
        run.update(values)
        solutions = [package_solution(run, package, point) for point in points]
        package.tell(list(zip(solutions, values, strict=True)))
        assert_same_state(run, package)


@pytest.mark.parametrize("exponent", [1, 3, 5])
def test_the_stall_of_the_path_is_that_of_the_package(exponent: int) -> None:
    # ||p_sigma|| is half way below, and between, what 2 (t + 1), 2 (t + 2) and 2 (t + 3) would ask for
    run = CatMargin([None] * 3, [1.0] * 3, popsize=6)
    k = run.constants
    wanted = math.sqrt(1 - (1 - k.c_sigma) ** exponent) * (1.4 + 2 / 4) * k.chi_n
    run.state.p_sigma = [wanted / (1 - k.c_sigma), 0.0, 0.0]
    package = package_run(run, 6)
    package._p_sigma = np.array(run.p_sigma)
    points = run.sample(Noise(normal=[[0.0] * 3] * 6))
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    run.update(values)
    package.tell(list(zip([package_solution(run, package, point) for point in points], values, strict=True)))
    assert_same_state(run, package)
    assert catmargin.h_sigma([wanted, 0.0, 0.0], 0, k) == (1.0 if exponent < 4 else 0.0)


@pytest.mark.parametrize("indefinite", [False, True])
def test_the_floors_are_those_of_the_package(indefinite: bool) -> None:
    rng = np.random.default_rng(19)
    run = CatMargin([None] * 3, [0.0] * 3)
    run.state.sigma = 1e-20
    run.state.C = np.diag([1e-8, 1.0, 1.0]).tolist()
    points = run.sample(draw(run, rng))
    package = package_run(run)
    package._eigen_decomposition()
    if indefinite:
        # the sample was drawn with another C; the update makes no positive one of this
        run.state.C = [[9.0, 50.0, 0.0], [50.0, 9.0, 0.0], [0.0, 0.0, 1.0]]
        package._C = np.array(run.C)
    values = rng.random(run.constants.popsize).tolist()
    run.update(values)
    package.tell(list(zip([package_solution(run, package, point) for point in points], values, strict=True)))
    assert_same_state(run, package)
    lowest = min(np.linalg.eigvalsh(run.C))
    if indefinite:
        assert lowest == pytest.approx(1e-8, rel=1e-5)
    # so far below 1e-11 the state is compared by the digits
    assert run.sigma == pytest.approx(package._sigma, rel=1e-7)
    assert run.sigma == pytest.approx(1e-15 / lowest**0.25)
