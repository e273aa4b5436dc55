"""Sanity of the transcription of docs/catmargin.md: steps by hand, laws, the package of the authors."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import norm

from . import catmargin, margin
from .catmargin import Category, CatMargin
from .cma import Vector
from .run import Noise

Space = Sequence[Vector | Category | None]

FIVE = [0.0, 1.0, 2.0, 3.0, 4.0]
NINE = [float(z) for z in range(-4, 5)]


def draw(run: CatMargin, rng: np.random.Generator) -> Noise:
    shape = (run.constants.popsize, run.n + len(run.K))
    return Noise(normal=rng.standard_normal(shape).tolist(), sign=(1 - rng.random(shape)).tolist())


def tails(run: CatMargin, j: int) -> tuple[float, float]:
    """The probabilities of leaving the cell of the mean downward and upward, 0 where there is no cell."""
    values = run.coordinates[j]
    assert values is not None
    deviation = run.sigma * run.A[j] * math.sqrt(run.C[j][j])
    cell = margin.cell(run.m[j], values)
    low = 0.0 if cell == 1 else norm.cdf((margin.l_low(run.m[j], values) - run.m[j]) / deviation)
    up = 0.0 if cell == len(values) else norm.sf((margin.l_up(run.m[j], values) - run.m[j]) / deviation)
    return float(low), float(up)


# Steps


def test_where_rounding_leaves_no_choice_it_is_the_last() -> None:
    assert sum([0.1] * 10) < 1
    assert catmargin.choice([0.1] * 10, 1.0) == 9


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
        run.update([objective(x) for x in run.encode(run.sample(draw(run, rng)))])
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
