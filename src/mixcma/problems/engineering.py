"""Mixed-integer designs from the engineering literature, with the best known solutions.

Each is a plain function of a design, whose docstring gives the source; `DESIGNS` adds the space and the best known
design. A design is feasible where all constraints are <= 0; most of them are divided by their limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mixcma.run.outcome import Outcome
from mixcma.space import Bool, Categorical, Discrete, Float, Int, Params, Space, Value

# Commercial wire diameters, in inches; Sandgren (1990) as tabulated by Lampinen & Zelinka (1999).
WIRES = (
    *(0.009, 0.0095, 0.0104, 0.0118, 0.0128, 0.0132, 0.014, 0.015, 0.0162, 0.0173, 0.018),
    *(0.020, 0.023, 0.025, 0.028, 0.032, 0.035, 0.041, 0.047, 0.054, 0.063, 0.072, 0.080, 0.092),
    *(0.105, 0.120, 0.135, 0.148, 0.162, 0.177, 0.192, 0.207, 0.225, 0.244, 0.263, 0.283, 0.307),
    *(0.331, 0.362, 0.394, 0.4375, 0.500),
)


class Material(NamedTuple):
    """A material for the welded beam."""

    welding: float  # dollars per cubic inch of weld, on top of 1 dollar for labour
    bar: float  # dollars per cubic inch of bar
    strength: float  # psi, in tension
    young: float  # psi, Young's modulus
    shear: float  # psi, the shear modulus


# Deb & Goyal (1996), with the coefficients to four digits as restated by Tran, Tran & Wang (2019). The literature
# gives two shear moduli for brass, 6e6 and 10e6; the second would be more than half of Young's modulus.
MATERIALS = {
    "steel": Material(0.1047, 0.0481, 30e3, 30e6, 12e6),
    "cast iron": Material(0.0489, 0.0224, 8e3, 14e6, 6e6),
    "aluminium": Material(0.5235, 0.2405, 5e3, 10e6, 4e6),
    "brass": Material(0.5584, 0.2566, 8e3, 16e6, 6e6),
}


@dataclass(frozen=True)
class Design:
    """A design problem: its variables, its objective, and the best known design.

    Parameters
    ----------
    name
        Its key in `DESIGNS`.
    space
        The variables and their ranges.
    evaluate
        Maps a design to its `Outcome`, or to a float if there are no constraints.
    best_known
        The lowest value of any feasible design in the literature.
    best_params
        A feasible design with that value; its numbers are rounded towards the feasible side.
    source
        Where the problem was published.
    tolerance
        A run has solved the problem if it finds a feasible value that is within this fraction of `best_known`.
    typical
        What chance finds: the median of the best of 20 random feasible designs; None where it was not measured.

    Examples
    --------
    >>> vessel = DESIGNS["pressure_vessel"]
    >>> outcome = vessel({"shell": 1.0, "head": 0.5, "radius": 50.0, "length": 120.0})
    >>> round(outcome.value, 2), outcome.feasible
    (7328.96, True)
    """

    name: str
    space: Space
    evaluate: Callable[[Mapping[str, Value]], Outcome | float]
    best_known: float
    best_params: Params
    source: str
    tolerance: float = 1e-6
    typical: float | None = None

    def __call__(self, params: Mapping[str, Value]) -> Outcome | float:
        """Evaluate one design."""
        return self.evaluate(params)

    @property
    def target(self) -> float:
        """The value at which a feasible design counts as solved."""
        return self.best_known + self.tolerance * abs(self.best_known)


def pressure_vessel(params: Mapping[str, Value]) -> Outcome:
    """Cost of a cylindrical pressure vessel with hemispherical heads, in dollars.

    E. Sandgren (1990), Nonlinear integer and discrete programming in mechanical design
    optimization, Journal of Mechanical Design 112(2): 223-229. Rolled plates come in multiples of
    0.0625 in. Coefficients and ranges as restated by C. A. Coello Coello (2000), Computers in
    Industry 41(2): 113-127, which nearly all later work follows: with a length of at most 200 in,
    the limit of 240 in can never be active.

    Best known: 6059.714335 at shell 0.8125, head 0.4375, radius 42.0984456, length 176.6365958;
    proven optimal by X.-S. Yang et al. (2013), Int. J. of Bio-Inspired Computation 5(6): 329-335.
    """
    shell, head = params["shell"], params["head"]
    radius, length = params["radius"], params["length"]
    cost = (
        0.6224 * shell * radius * length
        + 1.7781 * head * radius**2
        + 3.1661 * shell**2 * length
        + 19.84 * shell**2 * radius
    )
    volume = math.pi * radius**2 * length + 4.0 / 3.0 * math.pi * radius**3
    return Outcome(
        cost,
        constraints=(
            0.0193 * radius - shell,  # in inches; the stress in the shell
            0.00954 * radius - head,  # in inches; the stress in the heads
            1.0 - volume / 1_296_000.0,
            length / 240.0 - 1.0,
        ),
    )


def gear_train(params: Mapping[str, Value]) -> float:
    """Squared error of a gear train's ratio a b / (c d) against 1 / 6.931.

    E. Sandgren (1990), Nonlinear integer and discrete programming in mechanical design
    optimization, Journal of Mechanical Design 112(2): 223-229. Four wheels of 12 to 60 teeth.

    Best known, and optimal by enumeration: 2.700857e-12 at {16, 19} over {43, 49}.
    """
    ratio: float = (params["a"] * params["b"]) / (params["c"] * params["d"])
    return (1.0 / 6.931 - ratio) ** 2


def coil_spring(params: Mapping[str, Value]) -> Outcome:
    """Volume of wire in a helical compression spring, in cubic inches.

    E. Sandgren (1990), Nonlinear integer and discrete programming in mechanical design
    optimization, Journal of Mechanical Design 112(2): 223-229, in the form of J. Lampinen &
    I. Zelinka (1999), Mixed integer-discrete-continuous optimization by differential evolution,
    part 2, Mendel 99: 77-81: 42 wires, eight constraints, 3 in as the limit of the coil diameter
    itself. The seventh constraint says that the deflections fit the free length. It holds with
    equality for every design, because the deflections define the free length; its terms are arranged
    so that it is exactly 0.

    Best known: 2.6585592 at 9 coils, wire 0.283, diameter 1.2230410.
    """
    coils, wire, diameter = params["coils"], params["wire"], params["diameter"]
    largest_load, preload = 1000.0, 300.0  # lb
    working_load = largest_load - preload
    index = diameter / wire
    correction = (4.0 * index - 1.0) / (4.0 * index - 4.0) + 0.615 / index  # Wahl's factor
    stress = 8.0 * correction * largest_load * diameter / (math.pi * wire**3)
    stiffness = 11.5e6 * wire**4 / (8.0 * coils * diameter**3)  # lb/in
    free_length = largest_load / stiffness + 1.05 * (coils + 2) * wire
    return Outcome(
        math.pi**2 * diameter * wire**2 * (coils + 2) / 4.0,
        constraints=(
            stress / 189_000.0 - 1.0,
            free_length / 14.0 - 1.0,
            1.0 - wire / 0.2,
            diameter / 3.0 - 1.0,
            1.0 - index / 3.0,
            preload / stiffness / 6.0 - 1.0,
            (preload + working_load - largest_load) / stiffness,
            1.0 - working_load / stiffness / 1.25,
        ),
    )


def process_synthesis(params: Mapping[str, Value]) -> Outcome:
    """A small process synthesis problem: three continuous variables, four yes-or-no choices.

    X. Yuan, S. Zhang, L. Pibouleau & S. Domenech (1988), Une méthode d'optimisation non linéaire
    en variables mixtes pour la conception de procédés, RAIRO Recherche opérationnelle 22(4):
    331-346, in the form of problem 12.2.3 in C. A. Floudas et al. (1999), Handbook of Test Problems
    in Local and Global Optimization, Kluwer (ex1223 in MINLPLib): natural logarithm, x in
    [0, 10].

    Best known, proven optimal: 4.579582 at x = (0.2, 0.8, 1.907878), y = (1, 1, 0, 1).
    """
    x1, x2, x3 = (params[name] for name in ("x1", "x2", "x3"))
    y1, y2, y3, y4 = (float(params[name]) for name in ("y1", "y2", "y3", "y4"))
    return Outcome(
        (y1 - 1) ** 2
        + (y2 - 2) ** 2
        + (y3 - 1) ** 2
        - math.log(y4 + 1)
        + (x1 - 1) ** 2
        + (x2 - 2) ** 2
        + (x3 - 3) ** 2,
        constraints=(
            y1 + y2 + y3 + x1 + x2 + x3 - 5.0,
            y3**2 + x1**2 + x2**2 + x3**2 - 5.5,
            y1 + x1 - 1.2,
            y2 + x2 - 1.8,
            y3 + x3 - 2.5,
            y4 + x1 - 1.2,
            y2**2 + x2**2 - 1.64,
            y3**2 + x3**2 - 4.25,
            y2**2 + x3**2 - 4.64,
        ),
    )


def welded_beam(params: Mapping[str, Value]) -> Outcome:
    """Cost of a beam welded to a wall, in dollars; the material and the kind of joint are variables too.

    K. Deb & M. Goyal (1996), A combined genetic adaptive search (GeneAS) for engineering design, Computer Science and
    Informatics 26(4): 30-45; the table of materials, and the ranges, as in A. Tran, M. Tran & Y. Wang (2019),
    Constrained mixed-integer Gaussian mixture Bayesian optimization, Structural and Multidisciplinary Optimization
    59: 2131-2154 (doi 10.1007/s00158-018-2182-1). Thicknesses and the beam's height come in multiples of 0.0625 in.
    The moments of inertia are those of the welds' throats, h / sqrt(2) wide; with them the shear stress of Deb &
    Goyal's design is 0.9998 of its limit. Some published formulas have twice these moments, which leaves half of the
    limit unused.

    Best known, and optimal by enumeration: 1.941783 for steel welded on four sides, with a weld of 0.1875 in by
    1.684178 in and a beam of 8.25 in by 0.25 in. (1.9422 in print, with two more digits of steel's coefficients.)
    """
    material, four_sides = MATERIALS[params["material"]], params["sides"] == 4
    weld, joint = params["weld"], params["joint"]  # the weld's thickness; the length of the upper and lower weld
    height, thickness = params["height"], params["thickness"]  # of the beam
    load, arm = 6000.0, 14.0  # lb, in
    throat = weld / math.sqrt(2.0)
    run = joint + height if four_sides else joint  # half of the total length of all welds
    if four_sides:
        inertia = throat * (weld + height + joint) ** 3 / 6.0
    else:
        inertia = 2.0 * throat * joint * (joint**2 / 12.0 + (weld + height) ** 2 / 4.0)
    radius = (joint**2 + (weld + height) ** 2) ** 0.5 / 2.0
    direct = load / (2.0 * throat * run)
    torsion = load * (arm + joint / 2.0) * radius / inertia
    shear = (direct**2 + direct * torsion * joint / radius + torsion**2) ** 0.5
    stiffness = (material.young * material.shear) ** 0.5 / (6.0 * arm**2)
    slenderness = height / (4.0 * arm) * (material.young / material.shear) ** 0.5
    buckling_load = 4.013 * stiffness * height * thickness**3 * (1.0 - slenderness)
    return Outcome(
        (1.0 + material.welding) * weld**2 * run + material.bar * height * thickness * (arm + joint),
        constraints=(
            shear / (0.577 * material.strength) - 1.0,
            6.0 * load * arm / (height**2 * thickness) / material.strength - 1.0,  # bending
            weld - thickness,  # in inches
            1.0 - buckling_load / load,
            4.0 * load * arm**3 / (material.young * height**3 * thickness) / 0.25 - 1.0,  # deflection
        ),
    )


_SANDGREN = "Sandgren (1990), Journal of Mechanical Design 112(2): 223-229"
_PLATES = [0.0625 * k for k in range(1, 100)]

_ALL = (
    Design(
        name="pressure_vessel",
        space=Space(
            {
                "shell": Discrete(_PLATES),
                "head": Discrete(_PLATES),
                "radius": Float(10.0, 200.0),
                "length": Float(10.0, 200.0),
            }
        ),
        evaluate=pressure_vessel,
        best_known=6059.714335048436,
        best_params={
            "shell": 0.8125,
            "head": 0.4375,
            "radius": 42.0984455958,
            "length": 176.6365958432,
        },
        source=_SANDGREN,
    ),
    Design(
        name="gear_train",
        space=Space({name: Int(12, 60) for name in "abcd"}),
        evaluate=gear_train,
        best_known=2.700857148886513e-12,
        best_params={"a": 16, "b": 19, "c": 43, "d": 49},
        source=_SANDGREN,
    ),
    Design(
        name="coil_spring",
        space=Space(
            {"coils": Int(1, 70), "wire": Discrete(WIRES), "diameter": Float(0.6, 3.0)},
        ),
        evaluate=coil_spring,
        best_known=2.6585591659696,
        best_params={"coils": 9, "wire": 0.283, "diameter": 1.22304101},
        source=f"{_SANDGREN}; form of Lampinen & Zelinka (1999), Mendel 99: 77-81",
    ),
    Design(
        name="process_synthesis",
        space=Space({f"x{j}": Float(0.0, 10.0) for j in range(1, 4)} | {f"y{k}": Bool() for k in range(1, 5)}),
        evaluate=process_synthesis,
        best_known=4.57958240243671,
        best_params={
            "x1": 0.2,
            "x2": 0.79999999999,
            "x3": 1.9078784028,
            "y1": True,
            "y2": True,
            "y3": False,
            "y4": True,
        },
        source="Yuan et al. (1988), RAIRO Recherche opérationnelle 22(4): 331-346",
    ),
    Design(
        name="welded_beam",
        space=Space(
            {
                "material": Categorical(list(MATERIALS)),
                "sides": Categorical([2, 4]),
                "weld": Discrete([k / 16 for k in range(1, 33)]),
                "joint": Float(0.1, 10.0),
                "height": Discrete([k / 16 for k in range(32, 321)]),
                "thickness": Discrete([k / 16 for k in range(1, 33)]),
            }
        ),
        evaluate=welded_beam,
        best_known=1.941783226198643,
        best_params={
            "material": "steel",
            "sides": 4,
            "weld": 0.1875,
            "joint": 1.68417789098,
            "height": 8.25,
            "thickness": 0.25,
        },
        source="Deb & Goyal (1996), Computer Science and Informatics 26(4): 30-45",
    ),
)
DESIGNS: dict[str, Design] = {design.name: design for design in _ALL}
