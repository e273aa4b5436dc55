"""Machines and structures: figures that were published, and enumerations."""

from __future__ import annotations

import itertools
import math

import pytest

from mixcma.problems.practice import PRACTICE
from mixcma.problems.practice.designs import (
    BARS,
    SECTIONS,
    clutch_brake,
    concrete_beam,
    planetary_gears,
    rolling_bearing,
    speed_reducer,
    stepped_beam,
    ten_bar_truss,
)


def test_published_figures():
    best = {name: design.best_known for name, design in PRACTICE.items()}
    assert round(best["speed_reducer"], 6) == 2994.471066
    assert round(best["clutch_brake"], 6) == 0.313657
    assert round(best["concrete_beam"], 4) == 359.208
    assert round(best["ten_bar_truss"], 2) == 5490.74
    assert best["side_impact"] == pytest.approx(22.84298, abs=1e-4)


def test_the_published_speed_reducer_is_at_its_limits():
    """In the digits of Mezura-Montes & Coello Coello."""
    published = {"width": 3.5, "module": 0.7, "teeth": 17, "length_1": 7.3, "length_2": 7.715320}
    outcome = speed_reducer(published | {"shaft_1": 3.350215, "shaft_2": 5.286655})
    assert outcome.value == pytest.approx(2994.4711, abs=2e-3)
    assert [i for i, g in enumerate(outcome.constraints) if abs(g) < 1e-6] == [4, 5, 7, 10]


def test_the_published_bearing_has_the_published_capacity():
    """The design of Rao, Savsani & Vakharia, 81859.74, at two limits."""
    grooves = {"inner_groove": 0.515, "outer_groove": 0.515}
    limits = {
        "least_ball": 0.424266,
        "greatest_ball": 0.633948,
        "ring": 0.3,
        "offset": 0.068858,
        "ball_width": 0.799498,
    }
    outcome = rolling_bearing({"pitch": 125.7191, "ball": 21.42559, "balls": 11, **grooves, **limits})
    assert outcome.value == pytest.approx(-81859.74, abs=0.01)
    assert max(outcome.constraints) < 1e-5
    assert [i for i, g in enumerate(outcome.constraints) if abs(g) < 1e-5] == [0, 6]


def test_nothing_beats_the_best_known_clutch():
    """All designs: the mass does not depend on the force, and the largest force breaks no limit of the pressure."""
    radii = itertools.product(range(60, 81), range(90, 111))
    sizes = itertools.product(radii, (1.0, 1.5, 2.0, 2.5, 3.0), range(2, 10))
    outcomes = [
        clutch_brake({"inner": inner, "outer": outer, "thickness": t, "force": 1000.0, "surfaces": s})
        for (inner, outer), t, s in sizes
        if outer - inner < 24 and s < 6  # a wider or thicker one weighs more
    ]
    assert max(outcome.constraints[2] for outcome in outcomes) < 0
    lowest = min(outcome.value for outcome in outcomes if outcome.feasible)
    assert lowest == pytest.approx(PRACTICE["clutch_brake"].best_known, rel=1e-12)


def test_nothing_beats_the_best_known_concrete_beam():
    """All bars and heights, each with the least width that a limit allows."""
    values = []
    for bars, height in itertools.product(BARS, range(28, 41)):
        spare = bars * height - 180.0
        width = max(5.0, height / 4.0, 7.375 * bars**2 / spare if spare > 0 else math.inf)
        if width <= 10.0:
            values.append(29.4 * bars + 0.6 * height * width)
            assert concrete_beam({"bars": bars, "height": height, "width": width * (1 + 1e-12)}).feasible
    assert min(values) == pytest.approx(PRACTICE["concrete_beam"].best_known, rel=1e-12)


def test_a_beam_of_one_section_bends_as_it_should():
    """P L^3 / (3 E I) for a load at the end of a cantilever."""
    beam = {f"width_{i}": 4.0 for i in range(1, 6)} | {f"height_{i}": 60.0 for i in range(1, 6)}
    outcome = stepped_beam(beam)
    inertia = 4.0 * 60.0**3 / 12.0
    assert outcome.value == pytest.approx(500 * 240)
    assert outcome.constraints[0] == pytest.approx(50_000 * 500 * 30 / inertia / 14_000 - 1)
    assert outcome.constraints[5] == pytest.approx(50_000 * 500**3 / (3 * 2e7 * inertia) / 2.7 - 1)


def test_the_forces_of_a_truss_carry_its_loads():
    """Cut between the wall and the first nodes: the two diagonals carry 200,000 lb, and the moments balance."""
    assert len(SECTIONS) == 42
    assert list(SECTIONS) == sorted(SECTIONS)
    sections = {f"bar_{i}": 10.0 for i in range(1, 11)} | {"bar_7": 7.97, "bar_8": 22.9}
    outcome = ten_bar_truss(sections)
    # constraints have no sign: bar 7 falls from the wall and is pulled, bar 8 rises and is pressed
    pulled, pressed = ((1 + outcome.constraints[7 + k]) * 25_000 * sections[f"bar_{k}"] for k in (7, 8))
    assert (pulled + pressed) / math.sqrt(2) == pytest.approx(200_000, rel=1e-9)


def test_the_gears_of_simionescu_can_be_assembled():
    gears = PRACTICE["planetary_gears"].best_params
    assert (gears["teeth_6"] - gears["teeth_4"]) % gears["planets"] == 0
    outcome = planetary_gears(gears)
    ratio = gears["teeth_6"] / gears["teeth_4"]
    assert outcome.value >= abs(ratio - 3.11)
    worse = planetary_gears(gears | {"teeth_6": gears["teeth_6"] + 1})
    assert worse.constraints[10] == pytest.approx(1 / gears["planets"])
