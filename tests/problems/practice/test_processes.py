"""Processes: figures that were published, and the forms of the constraints that differ from the published ones."""

from __future__ import annotations

import math

import pytest

from mixcma.problems.practice import PRACTICE
from mixcma.problems.practice.processes import batch_plant, five_units, flowsheet, three_units


def test_published_figures():
    best = {name: design.best_known for name, design in PRACTICE.items()}
    assert round(best["flowsheet"], 4) == 1.0765
    assert round(best["three_units"], 5) == 6.00976
    assert round(best["five_units"], 4) == 73.0353
    assert best["batch_plant"] == pytest.approx(38499.8, abs=0.4)


def test_flowsheet_by_hand():
    outcome = flowsheet({"x1": 0.7, "x2": -2.0, "y": True})
    assert outcome.value == pytest.approx(-0.7 + 0.2 + 0.8)
    assert outcome.constraints == pytest.approx((2 - math.exp(0.5), 0.1, -0.7))


def test_three_units_are_those_of_duran_and_grossmann():
    """Their x1, x2, x3 and y, where a unit has a flow only if it is built."""
    flow, product = 1.2, 0.5
    for unit, y1, y2, x2 in (("first", 1, 0, flow), ("second", 0, 1, 0.0)):
        outcome = three_units({"unit": unit, "third": True, "flow": flow, "product": product})
        log_1, log_2 = math.log(x2 + 1), math.log(flow - x2 + 1)
        theirs = 5 * y1 + 6 * y2 + 8 + 10 * flow - 7 * product - 18 * log_1 - 19.2 * log_2 + 10
        assert outcome.value == pytest.approx(theirs)
        assert 0.8 * outcome.constraints[0] == pytest.approx(0.8 * product - 0.8 * log_1 - 0.96 * log_2)
        assert outcome.constraints[1] == pytest.approx(product + 2 - 2 - log_1 - 1.2 * log_2)
    nothing = three_units({"unit": "none", "third": False, "flow": flow, "product": 0.0})
    assert (nothing.value, nothing.feasible) == (10.0, True)


def test_five_units_are_those_of_duran_and_grossmann():
    """Their optimum: x = (0, 2, 1.078, 0.652, 0.326, 1.078), y = (0, 1, 1, 1, 0)."""
    built = {"second": True, "third": True, "fourth": True, "fifth": False}
    flows = {"flow": 2.0, "third_flow": 1.078388, "fourth_flow": 0.652015, "recycled": 0.326007, "fifth_flow": 1.0}
    outcome = five_units(flows | built)
    assert outcome.value == pytest.approx(73.0353, abs=1e-3)
    assert outcome.constraints[:2] == pytest.approx((0, 0), abs=1e-5)
    assert max(outcome.constraints) < 1e-5
    assert five_units(flows | built | {"fifth": True}).constraints[-1] == 1.0


def test_the_best_batch_plant_works_all_the_time():
    plant = {"vessels_1": 1, "vessels_2": 1, "vessels_3": 1, "volume_1": 480.0, "volume_2": 720.0, "volume_3": 960.0}
    outcome = batch_plant(plant | {"cycle_1": 20.0, "cycle_2": 16.0, "batch_1": 240.0, "batch_2": 120.0})
    assert outcome.value == pytest.approx(250 * (480**0.6 + 720**0.6 + 960**0.6))
    assert outcome.constraints[0] == pytest.approx(0, abs=1e-12)
    assert len(outcome.constraints) == 13
