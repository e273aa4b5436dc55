"""Machines and structures from the engineering literature; see `Design` for what is given of each.

A design is feasible where all constraints are <= 0; most of them are divided by their limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mixcma.problems.engineering import Design
from mixcma.run.outcome import Outcome
from mixcma.space import Discrete, Float, Int, Space, Value

# Areas of reinforcing bars, in square inches; Amir & Hasegawa (1989).
BARS = (6.0, 6.16, 6.32, 6.6, 7.0, 7.11, 7.2, 7.8, 7.9, 8.0, 8.4)
# Cross sections of the bars of a truss, in square inches; Rajeev & Krishnamoorthy (1992).
SECTIONS = (
    *(1.62, 1.80, 1.99, 2.13, 2.38, 2.62, 2.63, 2.88, 2.93, 3.09, 3.13, 3.38, 3.47, 3.55, 3.63, 3.84, 3.87, 3.88),
    *(4.18, 4.22, 4.49, 4.59, 4.80, 4.97, 5.12, 5.74, 7.22, 7.97, 11.50, 13.50, 13.90, 14.20, 15.50, 16.00, 16.90),
    *(18.80, 19.90, 22.00, 22.90, 26.50, 30.00, 33.50),
)


def speed_reducer(params: Mapping[str, Value]) -> Outcome:
    """Weight of the gear box between an engine and a propeller.

    J. Golinski (1970), Optimal synthesis problems solved by means of nonlinear programming and random methods, Journal
    of Mechanisms 5(3): 287-309, with the coefficients of nearly all later work (7.4777; with 7.477 the best is
    2994.4245). Lengths in cm.

    Best known: 2994.471066 with 17 teeth, as in most papers on it since 2005.
    """
    width, module, teeth = params["width"], params["module"], params["teeth"]
    length_1, length_2 = params["length_1"], params["length_2"]  # between the bearings of each shaft
    shaft_1, shaft_2 = params["shaft_1"], params["shaft_2"]  # diameters
    pitch = module * teeth
    weight = (
        0.7854 * width * module**2 * (3.3333 * teeth**2 + 14.9334 * teeth - 43.0934)
        - 1.508 * width * (shaft_1**2 + shaft_2**2)
        + 7.4777 * (shaft_1**3 + shaft_2**3)
        + 0.7854 * (length_1 * shaft_1**2 + length_2 * shaft_2**2)
    )
    return Outcome(
        weight,
        constraints=(
            27.0 / (width * module**2 * teeth) - 1.0,  # bending of the teeth
            397.5 / (width * module**2 * teeth**2) - 1.0,  # stress of their surface
            1.93 * length_1**3 / (pitch * shaft_1**4) - 1.0,  # deflections of the shafts
            1.93 * length_2**3 / (pitch * shaft_2**4) - 1.0,
            ((745.0 * length_1 / pitch) ** 2 + 16.9e6) ** 0.5 / (110.0 * shaft_1**3) - 1.0,  # their stresses
            ((745.0 * length_2 / pitch) ** 2 + 157.5e6) ** 0.5 / (85.0 * shaft_2**3) - 1.0,
            pitch / 40.0 - 1.0,
            5.0 * module / width - 1.0,
            width / (12.0 * module) - 1.0,
            (1.5 * shaft_1 + 1.9) / length_1 - 1.0,
            (1.1 * shaft_2 + 1.9) / length_2 - 1.0,
        ),
    )


def rolling_bearing(params: Mapping[str, Value]) -> Outcome:
    """The dynamic load capacity of a ball bearing, negative since it is to be large.

    S. Gupta, R. Tiwari & S. B. Nair (2007), Multi-objective design optimisation of rolling bearings using genetic
    algorithms, Mechanism and Machine Theory 42(10): 1418-1443, as restated by R. V. Rao, V. J. Savsani & D. P.
    Vakharia (2011), Computer-Aided Design 43(3): 303-315. Lengths in mm; the bearing fits a bore of 90, an outer
    diameter of 160 and a width of 30. Five of the ten variables are limits of the others.

    Best known: -81859.74 with 11 balls; so in Rao, Savsani & Vakharia.
    """
    outer, bore, width = 160.0, 90.0, 30.0
    pitch, ball, balls = params["pitch"], params["ball"], params["balls"]  # the diameters of the pitch and of a ball
    inner_groove, outer_groove = params["inner_groove"], params["outer_groove"]
    gamma = ball / pitch
    grooves = inner_groove * (2.0 * outer_groove - 1.0) / (outer_groove * (2.0 * inner_groove - 1.0))
    ratio = 1.04 * ((1.0 - gamma) / (1.0 + gamma)) ** 1.72 * grooves**0.41
    factor = (
        37.91
        * (1.0 + ratio ** (10.0 / 3.0)) ** -0.3
        * gamma**0.3
        * (1.0 - gamma) ** 1.39
        / (1.0 + gamma) ** (1.0 / 3.0)
        * (2.0 * inner_groove / (2.0 * inner_groove - 1.0)) ** 0.41
    )
    load = balls ** (2.0 / 3.0) * (ball**1.8 if ball <= 25.4 else 3.647 * ball**1.4)
    return Outcome(
        -factor * load,
        constraints=(
            balls - 1.0 - assembly_angle(outer, bore, ball) / (2.0 * math.asin(gamma)),
            params["least_ball"] - 2.0 * ball / (outer - bore),
            2.0 * ball / (outer - bore) - params["greatest_ball"],
            ball / width - params["ball_width"],
            0.5 * (outer + bore) / pitch - 1.0,
            pitch / (outer + bore) - 0.5 - params["offset"],
            params["ring"] - 0.5 * (outer - pitch - ball) / ball,
        ),
    )


def assembly_angle(outer: float, bore: float, ball: float) -> float:
    """The angle over which the balls can be put between the rings."""
    gap = outer - bore - 2.0 * ball
    a, b, c = (outer - bore) / 2.0 - 3.0 * gap / 4.0, outer / 2.0 - gap / 4.0 - ball, bore / 2.0 + gap / 4.0
    cosine = (a**2 + b**2 - c**2) / (2.0 * a * b) if a > 0 else -1.0
    return 2.0 * math.pi - 2.0 * math.acos(min(1.0, max(-1.0, cosine)))


def clutch_brake(params: Mapping[str, Value]) -> Outcome:
    """Mass of a multiple-disc clutch brake, in kg.

    A. Osyczka (2002), Evolutionary algorithms for single and multicriteria design optimization, Physica, with the
    constants of R. V. Rao, V. J. Savsani & D. P. Vakharia (2011), Computer-Aided Design 43(3): 303-315: a stopping
    time of at most 15 s, with an inertia of 55 kg m^2.

    Best known, and optimal by enumeration: 0.313657 with radii of 70 and 90 mm, discs of 1 mm, four of them.
    """
    inner, outer, thickness = params["inner"], params["outer"], params["thickness"]  # mm
    force, surfaces = params["force"], params["surfaces"]  # N; one less than the discs
    area = max(outer**2 - inner**2, 1.0)  # without pi; the radii may be the wrong way round
    arm = (outer**3 - inner**3) / area  # mm, 3/2 of the mean radius
    pressure = force / (math.pi * area)  # N/mm^2
    speed = math.pi * 250.0 * arm / 45.0 / 1000.0  # m/s, at 250 turns per minute
    torque = 2.0 / 3.0 * 0.5 * force * surfaces * arm / 1000.0  # Nm, with a coefficient of friction of 0.5
    time = 55.0 * math.pi * 250.0 / (30.0 * (torque + 3.0))  # s
    return Outcome(
        math.pi * (outer**2 - inner**2) * thickness * (surfaces + 1) * 7.8e-6,
        constraints=(
            1.0 - (outer - inner) / 20.0,
            (surfaces + 1) * (thickness + 0.5) / 30.0 - 1.0,
            pressure - 1.0,
            pressure * speed / 10.0 - 1.0,
            speed / 10.0 - 1.0,
            time / 15.0 - 1.0,
            1.0 - torque / 60.0,  # 1.5 times 40 Nm
        ),
    )


def concrete_beam(params: Mapping[str, Value]) -> Outcome:
    """Cost of a reinforced concrete beam on two supports, 30 ft apart.

    H. M. Amir & T. Hasegawa (1989), Nonlinear mixed-discrete structural optimization, Journal of Structural
    Engineering 115(3): 626-646: bars from a catalogue, the height in whole inches, any width.

    Best known, and optimal by enumeration: 359.208 with bars of 6.32 in^2, 34 in high and 8.5 in wide; so in
    A. H. Gandomi, X.-S. Yang & A. H. Alavi (2011), Computers & Structures 89(23-24): 2325-2336.
    """
    bars, height, width = params["bars"], params["height"], params["width"]
    return Outcome(
        29.4 * bars + 0.6 * height * width,
        constraints=(
            height / (4.0 * width) - 1.0,
            1.0 + 7.375 * bars**2 / (180.0 * width) - bars * height / 180.0,  # the moment that it can bear
        ),
    )


def stepped_beam(params: Mapping[str, Value]) -> Outcome:
    """Volume of a cantilever of five steps, each 100 cm long, in cubic cm.

    P. B. Thanedar & G. N. Vanderplaats (1995), Survey of discrete variable optimization for structural design, Journal
    of Structural Engineering 121(2): 301-306. The first step, at the wall, comes in whole cm, the second and third
    from a list, the others in any size. A load of 50,000 N at the end, 14,000 N/cm^2, a deflection of 2.7 cm.

    Best known: 64578.19. No other sizes of the first three steps can be as light: already with the lightest fourth and
    fifth step that the stresses allow, the volume would be larger.
    """
    step, load, young = 100.0, 50_000.0, 2e7
    sizes = [(params[f"width_{i}"], params[f"height_{i}"]) for i in range(1, 6)]
    stresses = [
        6.0 * load * (5 - i) * step / (width * height**2) / 14_000.0 - 1.0 for i, (width, height) in enumerate(sizes)
    ]
    bends = [12.0 * shape / (width * height**3) for shape, (width, height) in zip((61, 37, 19, 7, 1), sizes)]
    return Outcome(
        step * sum(width * height for width, height in sizes),
        constraints=(
            *stresses,
            load * step**3 / (3.0 * young) * sum(bends) / 2.7 - 1.0,
            *(height / (20.0 * width) - 1.0 for width, height in sizes),
        ),
    )


# The nodes of the ten-bar truss in units of 360 in, those at the wall last, and which of them each bar connects.
_NODES = np.array([[2.0, 1.0], [2.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
_ENDS = np.array([[4, 2], [2, 0], [5, 3], [3, 1], [2, 3], [0, 1], [4, 3], [5, 2], [2, 1], [3, 0]])


def _truss() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lengths of the bars, (10,), and how much each becomes longer when a free node moves, (10, 8)."""
    along = 360.0 * (_NODES[_ENDS[:, 1]] - _NODES[_ENDS[:, 0]])
    lengths = np.sqrt(np.sum(along**2, axis=1))
    moves = np.zeros((10, 6, 2))
    bars = np.arange(10)
    moves[bars, _ENDS[:, 1]] = along / lengths[:, None]
    moves[bars, _ENDS[:, 0]] = -along / lengths[:, None]
    return lengths, moves[:, :4].reshape(10, 8)


_LENGTHS, _MOVES = _truss()
_LOADS = np.array([0.0, 0.0, 0.0, -1e5, 0.0, 0.0, 0.0, -1e5])


def ten_bar_truss(params: Mapping[str, Value]) -> Outcome:
    """Weight of a plane truss of ten bars with sections from a catalogue, in lb.

    S. Rajeev & C. S. Krishnamoorthy (1992), Discrete optimization of structures using genetic algorithms, Journal of
    Structural Engineering 118(5): 1233-1250. Aluminium; 100,000 lb at each of the two lower nodes, stresses of at most
    25,000 psi, displacements of at most 2 in.

    Best known: 5490.74, as in many papers on this catalogue.
    """
    sections = np.array([params[f"bar_{i}"] for i in range(1, 11)])
    stiffness = 1e7 * sections / _LENGTHS
    displacements = np.linalg.solve((_MOVES.T * stiffness) @ _MOVES, _LOADS)
    stresses = 1e7 / _LENGTHS * (_MOVES @ displacements)
    return Outcome(
        0.1 * float(sections @ _LENGTHS),
        constraints=(
            *(np.abs(displacements) / 2.0 - 1.0).tolist(),
            *(np.abs(stresses) / 25_000.0 - 1.0).tolist(),
        ),
    )


def side_impact(params: Mapping[str, Value]) -> Outcome:
    """Weight of a car that has to stand a side impact: response surfaces of crash simulations.

    L. Gu, R. J. Yang, C. H. Tho, M. Makowskit, O. Faruquet & Y. Li (2001), Optimisation and robustness for
    crashworthiness of side impact, International Journal of Vehicle Design 26(4): 348-360, in the form of A. H.
    Gandomi, X.-S. Yang & A. H. Alavi (2011), Computers & Structures 89(23-24): 2325-2336. Seven thicknesses, two
    materials, the barrier's height and where it hits.

    Best known: 22.84297 (22.84298 there).
    """
    x1, x2, x3, x4, x5, x6, x7 = (params[f"thickness_{i}"] for i in range(1, 8))
    x8, x9, x10, x11 = (params[name] for name in ("material_1", "material_2", "barrier", "place"))
    dummy = (
        1.16 - 0.3717 * x2 * x4 - 0.00931 * x2 * x10 - 0.484 * x3 * x9 + 0.01343 * x6 * x10,  # the abdomen's load
        0.261 - 0.0159 * x1 * x2 - 0.188 * x1 * x8 - 0.019 * x2 * x7 + 0.0144 * x3 * x5  # three viscous criteria
        + 0.0008757 * x5 * x10 + 0.08045 * x6 * x9 + 0.00139 * x8 * x11 + 0.00001575 * x10 * x11,
        0.214 + 0.00817 * x5 - 0.131 * x1 * x8 - 0.0704 * x1 * x9 + 0.03099 * x2 * x6 - 0.018 * x2 * x7
        + 0.0208 * x3 * x8 + 0.121 * x3 * x9 - 0.00364 * x5 * x6 + 0.0007715 * x5 * x10 - 0.0005354 * x6 * x10
        + 0.00121 * x8 * x11 + 0.00184 * x9 * x10 - 0.02 * x2**2,
        0.74 - 0.61 * x2 - 0.163 * x3 * x8 + 0.001232 * x3 * x10 - 0.166 * x7 * x9 + 0.227 * x2**2,
        28.98 + 3.818 * x3 - 4.2 * x1 * x2 + 0.0207 * x5 * x10 + 6.63 * x6 * x9 - 7.7 * x7 * x8  # three ribs
        + 0.32 * x9 * x10,
        33.86 + 2.95 * x3 + 0.1792 * x10 - 5.057 * x1 * x2 - 11.0 * x2 * x8 - 0.0215 * x5 * x10 - 9.98 * x7 * x8
        + 22.0 * x8 * x9,
        46.36 - 9.9 * x2 - 12.9 * x1 * x8 + 0.1107 * x3 * x10,
        4.72 - 0.5 * x4 - 0.19 * x2 * x3 - 0.0122 * x4 * x10 + 0.009325 * x6 * x10 + 0.000191 * x11**2,  # the pelvis
        10.58 - 0.674 * x1 * x2 - 1.95 * x2 * x8 + 0.02054 * x3 * x10 - 0.0198 * x4 * x10 + 0.028 * x6 * x10,
        16.45 - 0.489 * x3 * x7 - 0.843 * x5 * x6 + 0.0432 * x9 * x10 - 0.0556 * x9 * x11 - 0.000786 * x11**2,
    )  # fmt: skip
    limits = (1.0, 0.32, 0.32, 0.32, 32.0, 32.0, 32.0, 4.0, 9.9, 15.7)  # the last two are velocities
    return Outcome(
        1.98 + 4.9 * x1 + 6.67 * x2 + 6.98 * x3 + 4.01 * x4 + 1.78 * x5 + 2.73 * x7,
        constraints=tuple(response / limit - 1.0 for response, limit in zip(dummy, limits)),
    )


def planetary_gears(params: Mapping[str, Value]) -> Outcome:
    """The largest error of the three ratios of an automatic transmission with planetary gears.

    P. Simionescu, D. Beale & G. V. Dozier (2006), Teeth-number synthesis of a multispeed planetary transmission using
    an estimation of distribution algorithm, Journal of Mechanical Design 128(1): 108-115; as restated by R. V. Rao
    & V. J. Savsani (2012), Mechanical design optimization using advanced optimization techniques, Springer. Modules in
    mm, an outer diameter of at most 220 mm, clearances of half a module.

    Best known, and optimal by enumeration: 0.52325, with 19 and 69 teeth for the first ratio.
    """
    n1, n2, n3, n4, n5, n6 = (params[f"teeth_{i}"] for i in range(1, 7))
    planets, m1, m3 = params["planets"], params["module_1"], params["module_3"]
    ratios = (n6 / n4, n6 * (n1 * n3 + n2 * n4) / (n1 * n3 * (n6 - n4)) if n6 != n4 else math.inf, -n2 * n6 / (n1 * n3))
    errors = [abs(ratio - wanted) for ratio, wanted in zip(ratios, (3.11, 1.84, -3.11))]
    apart = math.sin(math.pi / planets)
    a, b = n6 - n3, n4 + n5  # the radii on which two kinds of planets turn
    cosine = (a**2 + b**2 - (n3 + n5) ** 2) / (2.0 * a * b) if a > 0 else 1.0
    between = 2.0 * math.pi / planets - math.acos(min(1.0, max(-1.0, cosine)))
    left_over = (n6 - n4) % planets
    return Outcome(
        min(max(errors), 100.0),
        constraints=(
            m3 * (n6 + 2.5) / 220.0 - 1.0,
            m1 * (n1 + 2 * n2 + 2) / 220.0 - 1.0,
            m3 * (n4 + 2 * n5 + 2) / 220.0 - 1.0,
            (abs(m1 * (n1 + n2) - m3 * (n6 - n3)) - m1 - m3) / 220.0,
            (n2 + 2.5 - (n1 + n2) * apart) / 100.0,
            (n3 + 2.5 - (n6 - n3) * apart) / 100.0,
            (n5 + 2.5 - (n4 + n5) * apart) / 100.0,
            ((n3 + n5 + 2.5) ** 2 - a**2 - b**2 + 2.0 * a * b * math.cos(between)) / 10_000.0,
            (n4 - n6 + 2 * n5 + 5) / 100.0,
            (2 * n3 - n6 + n4 + 5) / 100.0,
            min(left_over, planets - left_over) / planets,  # so that the planets can be assembled
        ),
    )


_RAO = "Rao, Savsani & Vakharia (2011), Computer-Aided Design 43(3): 303-315"
_GANDOMI = "Gandomi, Yang & Alavi (2011), Computers & Structures 89(23-24): 2325-2336"
_STEP_WIDTHS, _STEP_HEIGHTS = (2.4, 2.6, 2.8, 3.1), (45.0, 50.0, 55.0, 60.0)
_MODULES = (1.75, 2.0, 2.25, 2.5, 2.75, 3.0)

MACHINES = (
    Design(
        name="speed_reducer",
        space=Space(
            {
                "width": Float(2.6, 3.6),
                "module": Float(0.7, 0.8),
                "teeth": Int(17, 28),
                "length_1": Float(7.3, 8.3),
                "length_2": Float(7.3, 8.3),
                "shaft_1": Float(2.9, 3.9),
                "shaft_2": Float(5.0, 5.5),
            }
        ),
        evaluate=speed_reducer,
        best_known=2994.471066160767,
        best_params={
            "width": 3.5,
            "module": 0.7,
            "teeth": 17,
            "length_1": 7.3,
            "length_2": 7.7153199115,
            "shaft_1": 3.3502146661,
            "shaft_2": 5.286654465,
        },
        source="Golinski (1970), Journal of Mechanisms 5(3): 287-309",
        typical=3174.4,
    ),
    Design(
        name="rolling_bearing",
        space=Space(
            {
                "pitch": Float(125.0, 150.0),
                "ball": Float(10.5, 31.5),
                "balls": Int(4, 50),
                "inner_groove": Float(0.515, 0.6),
                "outer_groove": Float(0.515, 0.6),
                "least_ball": Float(0.4, 0.5),
                "greatest_ball": Float(0.6, 0.7),
                "ring": Float(0.3, 0.4),
                "offset": Float(0.02, 0.1),
                "ball_width": Float(0.6, 0.85),
            }
        ),
        evaluate=rolling_bearing,
        best_known=-81859.74159156515,
        best_params={
            "pitch": 125.71905561467132,
            "ball": 21.42559024,
            "balls": 11,
            "inner_groove": 0.515,
            "outer_groove": 0.515,
            "least_ball": 0.4026,
            "greatest_ball": 0.6678,
            "ring": 0.3,
            "offset": 0.07981,
            "ball_width": 0.8443,
        },
        source=f"Gupta, Tiwari & Nair (2007), Mechanism and Machine Theory 42(10): 1418-1443; {_RAO}",
        typical=-42631,
    ),
    Design(
        name="clutch_brake",
        space=Space(
            {
                "inner": Int(60, 80),
                "outer": Int(90, 110),
                "thickness": Discrete([1.0, 1.5, 2.0, 2.5, 3.0]),
                "force": Discrete([10.0 * k for k in range(60, 101)]),
                "surfaces": Int(2, 9),
            }
        ),
        evaluate=clutch_brake,
        best_known=0.31365661053440497,
        best_params={"inner": 70, "outer": 90, "thickness": 1.0, "force": 820.0, "surfaces": 3},
        source=f"Osyczka (2002), Physica; {_RAO}",
        typical=0.58918,
    ),
    Design(
        name="concrete_beam",
        space=Space({"bars": Discrete(BARS), "height": Int(28, 40), "width": Float(5.0, 10.0)}),
        evaluate=concrete_beam,
        best_known=359.20799999999997,
        best_params={"bars": 6.32, "height": 34, "width": 8.5},
        source="Amir & Hasegawa (1989), Journal of Structural Engineering 115(3): 626-646",
        typical=372.42,
    ),
    Design(
        name="stepped_beam",
        space=Space(
            {
                "width_1": Int(1, 5),
                "height_1": Int(30, 65),
                "width_2": Discrete(_STEP_WIDTHS),
                "height_2": Discrete(_STEP_HEIGHTS),
                "width_3": Discrete(_STEP_WIDTHS),
                "height_3": Discrete(_STEP_HEIGHTS),
                "width_4": Float(1.0, 5.0),
                "height_4": Float(30.0, 65.0),
                "width_5": Float(1.0, 5.0),
                "height_5": Float(30.0, 65.0),
            }
        ),
        evaluate=stepped_beam,
        best_known=64578.19401865021,
        best_params={
            "width_1": 3,
            "height_1": 60,
            "width_2": 3.1,
            "height_2": 55.0,
            "width_3": 2.6,
            "height_3": 50.0,
            "width_4": 2.280887416799768,
            "height_4": 45.61774833549758,
            "width_5": 1.749757012179455,
            "height_5": 34.995140238961945,
        },
        source="Thanedar & Vanderplaats (1995), Journal of Structural Engineering 121(2): 301-306",
        typical=80791,
    ),
    Design(
        name="ten_bar_truss",
        space=Space({f"bar_{i}": Discrete(SECTIONS) for i in range(1, 11)}),
        evaluate=ten_bar_truss,
        best_known=5490.737892493558,
        best_params={
            "bar_1": 33.5,
            "bar_2": 1.62,
            "bar_3": 22.9,
            "bar_4": 14.2,
            "bar_5": 1.62,
            "bar_6": 1.62,
            "bar_7": 7.97,
            "bar_8": 22.9,
            "bar_9": 22.0,
            "bar_10": 1.62,
        },
        source="Rajeev & Krishnamoorthy (1992), Journal of Structural Engineering 118(5): 1233-1250",
        typical=6340.4,
    ),
    Design(
        name="side_impact",
        space=Space(
            {f"thickness_{i}": Float(0.5, 1.5) for i in range(1, 8)}
            | {f"material_{i}": Discrete([0.192, 0.345]) for i in range(1, 3)}
            | {"barrier": Float(-30.0, 30.0), "place": Float(-30.0, 30.0)}
        ),
        evaluate=side_impact,
        best_known=22.84296920016077,
        best_params={
            "thickness_1": 0.5,
            "thickness_2": 1.116365580231,
            "thickness_3": 0.5,
            "thickness_4": 1.302197202,
            "thickness_5": 0.5,
            "thickness_6": 1.5,
            "thickness_7": 0.5,
            "material_1": 0.345,
            "material_2": 0.192,
            "barrier": -19.5615313,
            "place": -6.76e-07,
        },
        source=f"Gu et al. (2001), International Journal of Vehicle Design 26(4): 348-360; {_GANDOMI}",
        typical=28.687,
    ),
    Design(
        name="planetary_gears",
        space=Space(
            {
                "teeth_1": Int(17, 96),
                "teeth_2": Int(14, 54),
                "teeth_3": Int(14, 51),
                "teeth_4": Int(17, 46),
                "teeth_5": Int(14, 51),
                "teeth_6": Int(48, 124),
                "planets": Discrete([3, 4, 5]),
                "module_1": Discrete(_MODULES),
                "module_3": Discrete(_MODULES),
            }
        ),
        evaluate=planetary_gears,
        best_known=0.5232499999999998,
        best_params={
            "teeth_1": 25,
            "teeth_2": 15,
            "teeth_3": 16,
            "teeth_4": 19,
            "teeth_5": 14,
            "teeth_6": 69,
            "planets": 5,
            "module_1": 2.25,
            "module_3": 1.75,
        },
        source="Simionescu, Beale & Dozier (2006), Journal of Mechanical Design 128(1): 108-115",
        typical=0.74429,
    ),
)
