"""Proposals under constraints: what they are where the models are exact, and what holds everywhere."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from mixcma import Bool, Categorical, Float, Int, Optimizer, Outcome, Space
from mixcma.core.coordinates import cell_centre, cell_index
from mixcma.core.methods import Mix
from mixcma.core.model.constrained import proposals
from mixcma.core.model.features import Features
from mixcma.core.model.local import Local, fit_local
from mixcma.core.model.region import Region
from mixcma.core.model.surrogate import Evaluated
from mixcma.latent.encoding import Encoding

FloatArray = NDArray[np.float64]
RADIUS = 2.0


class Problem:
    """A convex quadratic of latent numbers under linear constraints A v <= b, evaluated at random points."""

    def __init__(self, seed: int, floats: int, integers: int, constraints: int = 3, curved: bool = True) -> None:
        rng = np.random.default_rng(seed)
        N = floats + integers
        space = Space({f"x{j}": Float(-6, 6, std=1.0) for j in range(floats)} | self._integers(integers))
        self.encoding = Encoding(space, True)
        self.coordinates = self.encoding.coordinates
        root = rng.normal(size=(N, N))
        self.H = curved * (root @ root.T / N + 0.5 * np.eye(N))
        self.g, self.A = rng.normal(size=N), rng.normal(size=(constraints, N))
        self.b = self.A @ self._settled(rng.normal(size=N)) + 0.1
        size = 3 * (1 + 2 * N + N * (N - 1) // 2)
        self.points = self._settled(rng.normal(size=(size, N)))

    @staticmethod
    def _integers(count: int) -> dict[str, Int]:
        return {f"n{j}": Int(-4, 4, std=1.0) for j in range(count)}

    def _settled(self, v: FloatArray) -> FloatArray:
        v = np.clip(v + self.middle, self.coordinates.latent_low, self.coordinates.latent_high)
        return np.where(self.coordinates.discrete, cell_centre(self.coordinates, cell_index(self.coordinates, v)), v)

    @property
    def middle(self) -> FloatArray:
        return (self.coordinates.latent_low + self.coordinates.latent_high) / 2

    def value(self, v: FloatArray) -> float:
        return float(self.g @ v + v @ self.H @ v / 2)

    def violation(self, v: FloatArray) -> float:
        return float(np.maximum(self.A @ v - self.b, 0.0).sum())

    def model(self, points: FloatArray | None = None) -> Local:
        points = self.points if points is None else points
        values = np.array([self.value(v) for v in points])
        model = fit_local(Features(self.coordinates), Evaluated(points, values, points @ self.A.T - self.b), RADIUS)
        assert model is not None
        return model

    def box(self, model: Local) -> list[tuple[float, float]]:
        low = np.maximum(model.centre - model.reach, self.coordinates.latent_low)
        high = np.minimum(model.centre + model.reach, self.coordinates.latent_high)
        return list(zip(low, high))

    def least(self, start: FloatArray, box: list[tuple[float, float]], method: str = "SLSQP") -> FloatArray:
        """The minimiser of the true problem; by "trust-constr" less exactly, but not by the proposals' own method."""
        precision = {"ftol": 1e-13} if method == "SLSQP" else {"gtol": 1e-10, "xtol": 1e-12}
        return minimize(
            self.value,
            start,
            jac=lambda v: self.g + self.H @ v,
            hess=None if method == "SLSQP" else lambda _: self.H,
            bounds=box,
            constraints=LinearConstraint(self.A, ub=self.b),
            method=method,
            options={"maxiter": 1000, **precision},
        ).x


@pytest.mark.parametrize("curved", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_with_exact_models_the_proposal_is_the_constrained_minimiser(seed: int, curved: bool) -> None:
    problem = Problem(seed, floats=4, integers=0, curved=curved)
    model = problem.model()
    expected = problem.least(model.centre, problem.box(model))
    inside = problem.least(model.centre, problem.box(model), "trust-constr")
    point = proposals(model, margin=0.0)[0]
    assert problem.violation(point) <= 1e-9
    assert problem.value(point) == pytest.approx(problem.value(expected), abs=1e-6)
    assert problem.value(inside) - 5e-3 <= problem.value(point) <= problem.value(inside) + 1e-6
    np.testing.assert_allclose(point, expected, atol=1e-3)


def brute_force(problem: Problem, model: Local) -> float:
    """The least value over all integers within reach, with the best floats for each."""
    discrete = np.asarray(problem.coordinates.discrete)
    box = problem.box(model)
    last = int(problem.coordinates.last[discrete][0])
    best = np.inf
    for cells in itertools.product(range(last + 1), repeat=int(discrete.sum())):
        v = model.centre.copy()
        centres = cell_centre(problem.coordinates, _placed(discrete, cells))
        v[discrete] = centres[discrete]
        if any(not low <= x <= high for x, (low, high), d in zip(v, box, discrete) if d):
            continue
        fixed = [(x, x) if d else side for x, side, d in zip(v, box, discrete)]
        floats = problem.least(v, fixed)
        if problem.violation(floats) < 1e-6:
            best = min(best, problem.value(floats))
    return best


def _placed(discrete: NDArray[np.bool_], cells: tuple[int, ...]) -> FloatArray:
    placed = np.zeros(len(discrete))
    placed[discrete] = cells
    return placed


def test_integers_are_those_of_a_brute_force_search() -> None:
    """Rounding is no exact method: never better, and nearly always as good."""
    as_good = 0
    for seed in range(12):
        problem = Problem(seed, floats=2, integers=2)
        model = problem.model()
        expected, point = brute_force(problem, model), proposals(model, margin=0.0)[0]
        assert problem.violation(point) <= 1e-6
        assert problem.value(point) >= expected - 1e-5
        as_good += problem.value(point) <= expected + 1e-4
    assert as_good >= 10


@pytest.mark.parametrize("seed", range(5))
def test_proposals_are_points_of_the_space_within_reach(seed: int) -> None:
    problem = Problem(seed, floats=2, integers=3)
    model, coordinates = problem.model(), problem.coordinates
    discrete = np.asarray(coordinates.discrete)
    found = proposals(model, margin=1.0)
    assert found
    for point in found:
        assert (point >= coordinates.latent_low).all()
        assert (point <= coordinates.latent_high).all()
        np.testing.assert_array_equal(
            point[discrete], cell_centre(coordinates, cell_index(coordinates, point))[discrete]
        )
        assert (np.abs(point - model.centre) <= model.reach * (1 + 1e-9))[~discrete].all()


def test_the_same_evaluations_give_the_same_proposals() -> None:
    first, second = (proposals(Problem(3, 3, 2).model(), margin=1.0) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("seed", range(5))
def test_a_feasible_point_is_proposed_where_all_evaluations_were_infeasible(seed: int) -> None:
    problem = Problem(seed, floats=4, integers=0, constraints=2)
    infeasible = problem.points[np.array([problem.violation(v) > 0.0 for v in problem.points])]
    assert problem.violation(proposals(problem.model(infeasible), margin=0.0)[0]) <= 1e-6


def test_constraints_that_exclude_each_other_are_broken_evenly() -> None:
    """v_0 <= -a and v_0 >= a: nothing is feasible, and everything in between breaks them by the same sum."""
    problem = Problem(0, floats=2, integers=0, constraints=2)
    problem.A = np.array([[1.0, 0.0], [-1.0, 0.0]])
    problem.b = np.array([problem.middle[0] - 0.2, -problem.middle[0] - 0.2])
    for point in proposals(problem.model(), margin=0.0):
        assert problem.violation(point) == pytest.approx(0.4, abs=1e-3)


def test_choices_are_changed_where_that_is_better() -> None:
    space = Space({"x": Float(-6, 6, std=1.0), "c": Categorical(["a", "b", "c"]), "d": Bool()})
    encoding = Encoding(space, True)
    rng = np.random.default_rng(0)
    params = [
        {"x": float(rng.uniform(-2, 2)), "c": "abc"[rng.integers(3)], "d": bool(rng.integers(2))} for _ in range(60)
    ]
    params = [p for p in params if p["c"] != "b" or abs(p["x"]) > 1.0]  # the best choice is not that of the best point
    values = np.array([p["x"] ** 2 - 0.9 * (p["c"] == "b") for p in params])
    constraints = np.array([[0.3 - p["x"]] for p in params])
    points = np.array([encoding.encode(p) for p in params])
    model = fit_local(Features(encoding.coordinates), Evaluated(points, values, constraints), RADIUS)
    assert model is not None
    (best,) = encoding.decode(*(np.array([proposals(model, 0.0)[0]]),) * 2)
    assert best["c"] == "b"
    assert best["x"] == pytest.approx(0.3, abs=1e-3)


def test_the_region_survives_as_json() -> None:
    region, again = Region(), Region()
    for k in range(40):
        region.attempts()
        region.judge(succeeded=k % 17 == 3, feasible=k % 2 == 0)
    again.restore(json.loads(json.dumps(region.snapshot())))
    assert again.snapshot() == region.snapshot()
    assert again.attempts() == region.attempts()


def test_failing_proposals_pause_for_longer_and_longer() -> None:
    region, made = Region(), []
    for _ in range(300):
        made.append(bool(region.attempts()))
        if made[-1]:
            region.judge(succeeded=False, feasible=True)
        else:
            region.rest()
    pauses = [len(list(group)) for proposed, group in itertools.groupby(made) if not proposed]
    assert pauses[:4] == [4, 8, 16, 32]


def test_a_run_with_constraints_goes_on_from_its_snapshot_as_if_unbroken() -> None:
    space = Space({"x": Float(-3, 3), "y": Float(-3, 3), "n": Int(0, 9), "c": Categorical(["a", "b"])})

    def outcome(params: dict[str, object]) -> Outcome:
        x, y, n = float(params["x"]), float(params["y"]), int(params["n"])  # type: ignore[arg-type]
        return Outcome(x + y + 0.3 * n + (params["c"] == "a"), constraints=[x**2 + y**2 - 4.0, 2.5 - n - 0.1 * x])

    def advance(optimizer: Optimizer, generations: int) -> list[dict[str, object]]:
        asked = []
        for _ in range(generations):
            candidates = optimizer.ask()
            asked += [candidate.params for candidate in candidates]
            optimizer.tell(candidates, [outcome(candidate.params) for candidate in candidates])
        return asked

    unbroken, broken = (Optimizer(space, method=Mix(model=True), seed=5) for _ in range(2))
    earlier = advance(unbroken, 12)
    snapshot = unbroken.snapshot()
    assert broken.guide is not None
    for params in earlier:
        broken.guide.add(broken.encoding.encode(params), outcome(params))
    broken.restore(snapshot)
    assert advance(broken, 8) == advance(unbroken, 8)
    assert unbroken.best is not None
    assert unbroken.best.value == pytest.approx(0.9 - 2 * 2**0.5, abs=1e-2)
