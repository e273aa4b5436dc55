"""Chemical processes: what to build, and how to run it. A design is feasible where all constraints are <= 0."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mixcma.problems.engineering import Design
from mixcma.run.outcome import Outcome
from mixcma.space import Bool, Categorical, Float, Int, Space, Value

# The multiproduct batch plant: two products, three stages.
_DEMAND = (40_000.0, 20_000.0)
_SIZES = ((2.0, 3.0, 4.0), (4.0, 6.0, 3.0))  # litres of each stage for a kg of each product
_TIMES = ((8.0, 20.0, 8.0), (16.0, 4.0, 4.0))  # hours


def flowsheet(params: Mapping[str, Value]) -> Outcome:
    """A small flowsheet: one unit that may be built or not.

    C. A. Floudas (1995), Nonlinear and mixed-integer optimization, Oxford University Press, in the form of problem
    12.2.2 in C. A. Floudas et al. (1999), Handbook of Test Problems in Local and Global Optimization, Kluwer (ex1222
    in MINLPLib).

    Best known, proven optimal: 1.0765 at x = (0.94194, -2.1), y = 1.
    """
    x1, x2, y = params["x1"], params["x2"], float(params["y"])
    return Outcome(
        -0.7 * y + 5.0 * (x1 - 0.5) ** 2 + 0.8,
        constraints=(-math.exp(x1 - 0.2) - x2, x2 + 1.1 * y + 1.0, x1 - 1.2 * y - 0.2),
    )


def three_units(params: Mapping[str, Value]) -> Outcome:
    """Cost of a system of up to three processing units, of which the first and the second exclude each other.

    M. A. Duran & I. E. Grossmann (1986), An outer-approximation algorithm for a class of mixed-integer nonlinear
    programs, Mathematical Programming 36: 307-339, example 1 (synthes1 in MINLPLib): x1 is the flow here, and x2 that
    part of it which goes through the first unit. There a unit that is not built has to have no flow; here it has none.

    Best known, proven optimal: 6.00976.
    """
    flow, product, third = params["flow"], params["product"], float(params["third"])
    first, second = (flow * (params["unit"] == unit) for unit in ("first", "second"))
    made = math.log(first + 1.0) + 1.2 * math.log(second + 1.0)
    return Outcome(
        {"none": 0.0, "first": 5.0, "second": 6.0}[params["unit"]]
        + 8.0 * third
        + 10.0 * (first + second)
        - 7.0 * product
        - 18.0 * math.log(first + 1.0)
        - 19.2 * math.log(second + 1.0)
        + 10.0,
        constraints=(product - made, product + 2.0 * third - 2.0 - made),
    )


def five_units(params: Mapping[str, Value]) -> Outcome:
    """Cost of a system of up to five processing units.

    M. A. Duran & I. E. Grossmann (1986), An outer-approximation algorithm for a class of mixed-integer nonlinear
    programs, Mathematical Programming 36: 307-339, example 2 (synthes2 in MINLPLib). Either the first or the second
    unit is built, and its flow is the variable; there a unit that is not built has to have no flow, here it has none.

    Best known, proven optimal: 73.0353.
    """
    second, third, fourth, fifth = (float(params[name]) for name in ("second", "third", "fourth", "fifth"))
    x1, x2 = params["flow"] * (1.0 - second), params["flow"] * second
    x3, x4, x5 = params["third_flow"] * third, params["fourth_flow"] * fourth, params["recycled"] * fourth
    x6 = x3 + params["fifth_flow"] * fifth
    costs = 5.0 * (1.0 - second) + 8.0 * second + 6.0 * third + 10.0 * fourth + 6.0 * fifth
    flows = -10.0 * x1 - 15.0 * x2 - 15.0 * x3 + 15.0 * x4 + 5.0 * x5 - 20.0 * x6
    return Outcome(
        costs + flows + math.exp(x1) + math.exp(x2 / 1.2) - 60.0 * math.log(x4 + x5 + 1.0) + 140.0,
        constraints=(
            x4 + 2.0 * x6 - x1 - x2 - 0.75 * x3,
            x5 - 0.5 * x4,
            0.2 * x4 - x5,
            (x4 + x5) / 10.0 - 1.0,
            x6 / 3.0 - 1.0,
            fourth + fifth - 1.0,
        ),
    )


def batch_plant(params: Mapping[str, Value]) -> Outcome:
    """Cost of a plant that makes two products in batches, in three stages of one to three parallel vessels.

    I. E. Grossmann & R. W. H. Sargent (1979), Optimum design of multipurpose chemical plants, Industrial & Engineering
    Chemistry Process Design and Development 18(2): 343-348, with the data of G. R. Kocis & I. E. Grossmann (1988),
    Global optimization of nonconvex mixed-integer nonlinear programming (MINLP) problems in process synthesis,
    Industrial & Engineering Chemistry Research 27(8): 1407-1421.

    Best known: 38499.8 with one vessel at each stage, of 480, 720 and 960 litres.
    """
    vessels = [params[f"vessels_{j}"] for j in range(1, 4)]
    volumes = [params[f"volume_{j}"] for j in range(1, 4)]
    cycles = [params[f"cycle_{i}"] for i in range(1, 3)]  # hours between two batches of a product
    batches = [params[f"batch_{i}"] for i in range(1, 3)]  # kg
    hours = sum(demand * cycle / batch for demand, cycle, batch in zip(_DEMAND, cycles, batches))
    pairs = [(i, j) for i in range(2) for j in range(3)]
    return Outcome(
        sum(250.0 * count * volume**0.6 for count, volume in zip(vessels, volumes)),
        constraints=(
            hours / 6000.0 - 1.0,
            *(_SIZES[i][j] * batches[i] / volumes[j] - 1.0 for i, j in pairs),
            *(_TIMES[i][j] / (vessels[j] * cycles[i]) - 1.0 for i, j in pairs),
        ),
    )


_DURAN = "Duran & Grossmann (1986), Mathematical Programming 36: 307-339"

PROCESSES = (
    Design(
        name="flowsheet",
        space=Space({"x1": Float(0.2, 1.0), "x2": Float(-2.22554, -1.0), "y": Bool()}),
        evaluate=flowsheet,
        best_known=1.0765430833350145,
        best_params={"x1": 0.94193734473, "x2": -2.1, "y": True},
        source="Floudas (1995), Nonlinear and mixed-integer optimization, Oxford University Press",
        typical=1.1232,
    ),
    Design(
        name="three_units",
        space=Space(
            {
                "unit": Categorical(["none", "first", "second"]),
                "third": Bool(),
                "flow": Float(0.0, 2.0),
                "product": Float(0.0, 1.0),
            }
        ),
        evaluate=three_units,
        best_known=6.009758909105702,
        best_params={"unit": "second", "third": False, "flow": 1.300975891, "product": 1.0},
        source=_DURAN,
        typical=7.6076,
    ),
    Design(
        name="five_units",
        space=Space(
            {
                "flow": Float(0.0, 2.0),
                "third_flow": Float(0.0, 2.0),
                "fourth_flow": Float(0.0, 10.0),
                "recycled": Float(0.0, 5.0),
                "fifth_flow": Float(0.0, 3.0),
                **{name: Bool() for name in ("second", "third", "fourth", "fifth")},
            }
        ),
        evaluate=five_units,
        best_known=73.03531605473506,
        best_params={
            "flow": 2.0,
            "third_flow": 1.078388264,
            "fourth_flow": 0.65201467,
            "recycled": 0.326007335,
            "fifth_flow": 0.0,
            "second": True,
            "third": True,
            "fourth": True,
            "fifth": False,
        },
        source=_DURAN,
        typical=101.21,
    ),
    Design(
        name="batch_plant",
        space=Space(
            {f"vessels_{j}": Int(1, 3) for j in range(1, 4)}
            | {f"volume_{j}": Float(250.0, 2500.0) for j in range(1, 4)}
            | {"cycle_1": Float(20.0 / 3.0, 20.0), "cycle_2": Float(16.0 / 3.0, 16.0)}
            | {"batch_1": Float(40.0, 700.0), "batch_2": Float(10.0, 450.0)}
        ),
        evaluate=batch_plant,
        best_known=38499.46511672663,
        best_params={
            "vessels_1": 1,
            "vessels_2": 1,
            "vessels_3": 1,
            "volume_1": 480.0,
            "volume_2": 720.0,
            "volume_3": 960.0,
            "cycle_1": 20.0,
            "cycle_2": 16.0,
            "batch_1": 240.0,
            "batch_2": 120.0,
        },
        source="Kocis & Grossmann (1988), Industrial & Engineering Chemistry Research 27(8): 1407-1421",
        typical=106440.0,
    ),
)
