"""The engineering designs: their best known solutions are right, and no feasible design beats them.

The functions are plain arithmetic, so the tests can evaluate whole grids at once.
"""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize

from mixcma.problems import DESIGNS
from mixcma.problems.engineering import MATERIALS, WIRES, coil_spring, gear_train, pressure_vessel, welded_beam
from mixcma.run.outcome import Outcome

DESIGN = pytest.mark.parametrize("design", DESIGNS.values(), ids=lambda design: design.name)


def value(outcome: Outcome | float) -> float:
    return outcome.value if isinstance(outcome, Outcome) else outcome


def feasible_values(outcome: Outcome, slack: float = 0.0) -> np.ndarray:
    """The values on a grid; infinite where a constraint is violated by more than `slack`."""
    worst = np.maximum.reduce(np.broadcast_arrays(*outcome.constraints))
    return np.where(worst <= slack, outcome.value, np.inf)


def test_the_list_of_designs():
    assert list(DESIGNS) == ["pressure_vessel", "gear_train", "coil_spring", "process_synthesis", "welded_beam"]
    assert all(name == design.name for name, design in DESIGNS.items())


@DESIGN
def test_the_best_known_design_is_feasible_and_has_the_best_known_value(design):
    assert design.space.check_params(design.best_params) == design.best_params
    outcome = design(design.best_params)
    assert value(outcome) == pytest.approx(design.best_known, rel=1e-10)
    assert value(outcome) <= design.target
    if isinstance(outcome, Outcome):
        assert outcome.feasible


@DESIGN
def test_a_design_survives_pickling(design):
    assert pickle.loads(pickle.dumps(design)) == design


def test_published_figures():
    best = {name: design.best_known for name, design in DESIGNS.items()}
    assert round(best["pressure_vessel"], 6) == 6059.714335
    assert round(best["gear_train"], 18) == 2.700857e-12
    assert round(best["coil_spring"], 5) == 2.65856
    assert round(best["process_synthesis"], 6) == 4.579582
    assert round(best["welded_beam"], 3) == 1.942


def test_pressure_vessel_by_hand():
    outcome = pressure_vessel({"shell": 1.0, "head": 2.0, "radius": 100.0, "length": 60.0})
    assert outcome.value == pytest.approx(3734.4 + 35562.0 + 189.966 + 1984.0)
    volume = math.pi * (600_000 + 4_000_000 / 3)
    by_hand = (0.93, -1.046, 1 - volume / 1_296_000, -0.75)
    assert outcome.constraints == pytest.approx(by_hand)


def test_nothing_beats_the_best_known_pressure_vessel():
    """All shells and heads, a grid of radii and the radii at the limits, each with the shortest feasible length."""
    design = DESIGNS["pressure_vessel"]
    plates = np.asarray(design.space["shell"].values)
    assert plates.size == 99
    shell, head = plates[:, None, None], plates[None, :, None]
    limits = np.concatenate([plates / 0.0193, plates / 0.00954])
    radius = np.concatenate([np.linspace(10, 200, 191), limits[(limits > 10) & (limits < 200)]])
    needed = 1_296_000 / (math.pi * radius**2) - 4 / 3 * radius
    length = np.maximum(needed, 10.0)
    grid = {"shell": shell, "head": head, "radius": radius, "length": length}
    values = np.where(length <= 200, feasible_values(pressure_vessel(grid), slack=1e-12), np.inf)
    assert values.min() == pytest.approx(design.best_known, rel=1e-9)
    i, j, _ = np.unravel_index(values.argmin(), values.shape)
    assert (plates[i], plates[j]) == (0.8125, 0.4375)


def test_gear_train_by_hand():
    assert gear_train({"a": 12, "b": 12, "c": 12, "d": 12}) == pytest.approx((1 - 1 / 6.931) ** 2)
    assert gear_train({"a": 12, "b": 30, "c": 20, "d": 60}) == pytest.approx((0.3 - 1 / 6.931) ** 2)


def test_nothing_beats_the_best_known_gear_train():
    """All 49^4 designs."""
    design = DESIGNS["gear_train"]
    a, b = (wheel.ravel()[:, None] for wheel in np.mgrid[12:61, 12:61])
    c, d = a.T, b.T
    values = gear_train({"a": a, "b": b, "c": c, "d": d})
    assert values.shape == (49**2, 49**2)
    assert values.min() == pytest.approx(design.best_known, rel=1e-9)
    assert np.sum(values <= design.target) == 4  # a and b, c and d may be swapped


def test_the_table_of_wires():
    assert len(WIRES) == 42
    assert list(WIRES) == sorted(WIRES)
    assert math.fsum(WIRES) == pytest.approx(5.3517, abs=1e-9)  # guards against misprints


def test_coil_spring_by_hand():
    # index 4, Wahl's factor 1.40375, stiffness 561.5234375 lb/in, deflection 1000 / stiffness
    outcome = coil_spring({"coils": 10, "wire": 0.25, "diameter": 1.0})
    assert outcome.value == pytest.approx(math.pi**2 * 0.1875)
    assert outcome.constraints == pytest.approx(
        (
            11230 / (math.pi * 0.015625) / 189_000 - 1,
            (1.780869565 + 3.15) / 14 - 1,
            -0.25,
            -2 / 3,
            -1 / 3,
            0.5342608696 / 6 - 1,
            0.0,
            1 - 1.246608696 / 1.25,
        )
    )


def test_the_deflections_of_a_coil_spring_always_fit_its_free_length():
    rng = np.random.default_rng(3)
    wire = rng.choice(WIRES, 10_000)
    coils, diameter = rng.integers(1, 71, 10_000), rng.uniform(0.6, 3.0, 10_000)
    outcome = coil_spring({"coils": coils, "wire": wire, "diameter": diameter})
    assert len(outcome.constraints) == 8
    assert np.all(outcome.constraints[6] == 0.0)
    assert all(np.all(np.isfinite(g)) for g in outcome.constraints)


def test_nothing_beats_the_best_known_coil_spring():
    """All coils and wires over a grid of diameters, then a finer one where the best is."""
    design = DESIGNS["coil_spring"]
    assert design.space["wire"].values == WIRES
    coils, diameter = np.arange(1, 71)[:, None], np.linspace(0.6, 3.0, 4801)
    lowest = {}
    for wire in WIRES:
        values = feasible_values(coil_spring({"coils": coils, "wire": wire, "diameter": diameter}))
        lowest |= {(int(n), wire): row.min() for n, row in zip(coils[:, 0], values, strict=True)}
    first, second = sorted(lowest, key=lowest.__getitem__)[:2]
    assert first == (9, 0.283)
    assert design.best_known <= lowest[first] < 1.001 * design.best_known
    assert lowest[second] > 1.01 * design.best_known  # so only one pair needs the finer grid
    fine = np.linspace(1.222, 1.224, 200_001)
    values = feasible_values(coil_spring({"coils": 9, "wire": 0.283, "diameter": fine}))
    assert values.min() == pytest.approx(design.best_known, rel=2e-8)


def test_process_synthesis_by_hand():
    design = DESIGNS["process_synthesis"]
    y = {"y1": False, "y2": True, "y3": True, "y4": False}
    outcome = design({"x1": 2.0, "x2": 3.0, "x3": 4.0, **y})
    assert outcome.value == pytest.approx(1 + 1 + 0 - 0 + 1 + 1 + 1)
    assert outcome.constraints == pytest.approx((6, 24.5, 0.8, 2.2, 2.5, 0.8, 8.36, 12.75, 12.36))
    other = design({"x1": 0.0, "x2": 0.0, "x3": 0.0, "y1": True, "y2": 0, "y3": 0, "y4": True})
    assert other.value == pytest.approx(0 + 4 + 1 - math.log(2) + 1 + 4 + 9)
    assert other.constraints == pytest.approx((-4, -5.5, -0.2, -1.8, -2.5, -0.2, -1.64, -4.25, -4.64))


def cheapest_process(choice: tuple[bool, ...]) -> float:
    """The value at the best x for a given y. The problem is convex, so a local solution is the best."""
    fixed = dict(zip(("y1", "y2", "y3", "y4"), choice, strict=True))

    def outcome(x: np.ndarray) -> Outcome:
        return DESIGNS["process_synthesis"](dict(zip(("x1", "x2", "x3"), x, strict=True)) | fixed)

    def slack(x: np.ndarray) -> np.ndarray:
        return np.concatenate([x, -np.asarray(outcome(x).constraints)])

    solution = minimize(
        lambda x: outcome(x).value,
        np.zeros(3),
        jac=lambda x: 2.0 * (x - np.asarray([1.0, 2.0, 3.0])),
        method="SLSQP",
        constraints={"type": "ineq", "fun": slack},
        options={"ftol": 1e-10},
    )
    assert solution.success
    assert slack(solution.x).min() > -1e-8
    return float(solution.fun)


def test_nothing_beats_the_best_known_process():
    """All 16 choices of what to build."""
    cheapest = {c: cheapest_process(c) for c in itertools.product((False, True), repeat=4)}
    best = min(cheapest, key=cheapest.__getitem__)
    assert best == (True, True, False, True)
    assert cheapest[best] == pytest.approx(DESIGNS["process_synthesis"].best_known, rel=1e-7)
    assert sorted(cheapest.values())[1] > 1.01 * cheapest[best]


def test_welded_beam_by_hand():
    # welds of 2 in, a beam of 10 in by 1 in: throat 0.707107 / 2, radius (4 + 110.25)^(1/2) / 2 = 5.344390
    beam = {"weld": 0.5, "joint": 2.0, "height": 10.0, "thickness": 1.0}
    outcome = welded_beam(beam | {"material": "cast iron", "sides": 2})
    assert outcome.value == pytest.approx(1.0489 * 0.25 * 2 + 0.0224 * 10 * 16)
    direct, torsion = 6000 / 1.41421356, 90_000 * 5.34438958 / (1.41421356 * (1 / 3 + 27.5625))
    shear = math.sqrt(direct**2 + torsion**2 + 2 * direct * torsion * 2 / 10.68877916)
    buckling = 4.013 * 10 * math.sqrt(14e6 * 6e6) / (6 * 196) * (1 - 10 / 56 * math.sqrt(14 / 6))
    by_hand = (shear / 4616 - 1, 5040 / 8000 - 1, -0.5, 1 - buckling / 6000, 4.70400 / 1000 / 0.25 - 1)
    assert outcome.constraints == pytest.approx(by_hand)
    around = welded_beam(beam | {"material": "cast iron", "sides": 4})
    assert around.value == pytest.approx(1.0489 * 0.25 * 12 + 0.0224 * 10 * 16)
    direct, torsion = 6000 / 8.48528137, 90_000 * 5.34438958 / (0.35355339 * 12.5**3 / 6)
    shear = math.sqrt(direct**2 + torsion**2 + 2 * direct * torsion * 2 / 10.68877916)
    assert around.constraints == pytest.approx((shear / 4616 - 1, *by_hand[1:]))


def test_the_published_welded_beam_is_at_its_shear_limit():
    """Deb & Goyal's design, in their digits."""
    published = {"weld": 0.1875, "joint": 1.6849, "height": 8.25, "thickness": 0.25}
    outcome = welded_beam(published | {"material": "steel", "sides": 4})
    assert outcome.value == pytest.approx(1.9422, abs=4e-4)  # steel's coefficients are rounded here
    assert -2e-4 < outcome.constraints[0] < 0


def test_nothing_beats_the_best_known_welded_beam():
    """All discrete designs over a grid of joints; then a finer grid for the best ones."""
    design = DESIGNS["welded_beam"]
    weld, height, thickness = (design.space[name].values for name in ("weld", "height", "thickness"))
    shape = dict(zip(("weld", "height", "thickness"), np.meshgrid(weld, height, thickness, indexing="ij"), strict=True))
    lowest = {}
    for material, sides, joint in itertools.product(MATERIALS, (2, 4), np.linspace(0.1, 10.0, 100)):
        values = feasible_values(welded_beam(shape | {"material": material, "sides": sides, "joint": joint}))
        for place in np.flatnonzero(values < 1.02 * design.best_known):
            lowest[material, sides, place] = min(values.flat[place], lowest.get((material, sides, place), np.inf))
    assert {(material, sides) for material, sides, _ in lowest} == {("steel", 4)}
    best = {}
    for material, sides, place in lowest:
        one = {name: grid.flat[place] for name, grid in shape.items()}
        fine = np.linspace(0.1, 10.0, 990_001)
        values = feasible_values(welded_beam(one | {"material": material, "sides": sides, "joint": fine}))
        best[values.min()] = one
    assert min(best) == pytest.approx(design.best_known, rel=3e-6)
    assert best[min(best)].items() <= design.best_params.items()
    assert sorted(best)[1] > 1.003 * design.best_known
