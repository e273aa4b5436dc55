"""Choices with parameters of their own: two to six branches, of which the best is not the best on average.

What a learner, a solver or a profile needs to be told depends on which it is. Each function says what its numbers
stand for; they are made up, apart from the mechanics of the `profile` and of the `cooler`. The least values were found
by minimising each branch on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mixcma.problems.engineering import Design
from mixcma.run.outcome import Outcome
from mixcma.space import Bool, Categorical, Discrete, Float, Int, Params, Space, Value


def classifier(p: Mapping[str, Value]) -> float:
    """The error of a support vector machine, which needs the right C, or of a forest, which is never bad."""
    if p["classifier"] == "svm":
        return 0.05 + 0.45 * (1.0 - math.exp(-(((math.log10(p["C"]) - 2.2) / 0.6) ** 2)))
    return 0.11 + 0.1 * (math.log(p["depth"]) - math.log(14)) ** 2 / 4


def kernels(p: Mapping[str, Value]) -> float:
    """The error of a support vector machine: radial kernels are best with C and gamma on a narrow ridge."""
    c = math.log10(p["C"])
    if p["kernel"] == "linear":
        return 0.047 + 0.004 * (c + 0.5) ** 2
    g = math.log10(p["gamma"])
    if p["kernel"] == "rbf":
        ridge, along = c + 1.3 * g + 1.7, c - 1.5
        return 0.9 - 0.873 * math.exp(-0.8 * ridge**2 - 0.1 * along**2 - 0.3 * (g + 2.2) ** 2)
    if p["kernel"] == "sigmoid":
        return 0.9 - 0.839 * math.exp(-0.4 * (c - 1) ** 2 - 0.6 * (g + 3) ** 2)
    return 0.6 - 0.57 * math.exp(-0.3 * (c + p["degree"] * g + 1) ** 2 - 0.4 * (p["degree"] - 3) ** 2)


def boosting(p: Mapping[str, Value]) -> float:
    """The error of trees that are boosted in one of three ways, after a budget of rounds."""
    rate = math.log10(p["rate"])
    if p["booster"] == "linear":
        return 0.31 + 0.005 * (rate + 1) ** 2 + 0.003 * (math.log10(p["lambda"]) - 0.5) ** 2
    if p["booster"] == "trees":
        leaves = math.log2(p["leaves"])
        fit = (rate + 1.4) ** 2 * 0.12 + 0.01 * (leaves - 5) ** 2 + 0.05 * (rate + 1.4) * (leaves - 5) / 4
        return float(0.24 + fit + 0.08 * (p["subsample"] - 0.7) ** 2 + 0.002 * abs(p["least"] - 20) ** 0.5)
    # trees that drop others: best by far with few dropped, but bad with the usual shares
    fit = 0.15 * (rate + 0.6) ** 2 + 0.015 * (p["depth"] - 7) ** 2
    return float(0.20 + fit + 0.25 * (1 - math.exp(-((math.log10(p["drop"]) + 2) ** 2))) + 0.04 * (1 - p["one"]))


def network(p: Mapping[str, Value]) -> float:
    """The loss of a network: every layer has its width, and each optimiser its own parameters."""
    layers, rate = p["layers"], math.log10(p["rate"])
    widths = [math.log2(p[f"units {k}"]) for k in range(1, layers + 1)]
    best = (6.0, 7.0, 5.0, 4.0)
    size = sum((w - b) ** 2 for w, b in zip(widths, best)) / layers
    depth = {1: 0.35, 2: 0.28, 3: 0.20, 4: 0.22}[layers]
    if p["optimiser"] == "sgd":
        ideal = -1.0 + 1.5 * (p["momentum"] - 0.9)
        training = 0.10 * (rate - ideal) ** 2 + 0.5 * (p["momentum"] - 0.93) ** 2 - 0.03 + 0.02 * (not p["nesterov"])
    else:
        training = 0.04 * (rate + 3) ** 2 + 0.01 * (math.log10(1 - p["beta"]) + 2) ** 2
    return float(depth + 0.02 * layers * size + training + 0.1 * (math.log10(p["decay"]) + 4) ** 2 / 9)


def pipeline(p: Mapping[str, Value]) -> float:
    """The error of a pipeline: what is kept of the data, and which model follows."""
    kept = {"all": 0.03, "components": 0.0, "selected": 0.0}[p["reduction"]]
    if p["reduction"] == "components":
        kept += 0.08 * (1 - math.exp(-(((p["components"] - 11) / 4) ** 2)))
    if p["reduction"] == "selected":
        kept += 0.06 * (p["share"] - 0.4) ** 2 + 0.012
    if p["model"] == "ridge":
        model = 0.20 + 0.004 * (math.log10(p["alpha"]) - 0.3) ** 2
    elif p["model"] == "neighbours":
        model = 0.16 + 0.2 * (math.log(p["k"] / 9) / 2) ** 2 + 0.03 * (p["weights"] == "uniform")
    else:
        model = 0.12 + 0.4 * (1 - math.exp(-((math.log10(p["width"]) + 0.8) ** 2) / 0.15))
    return float(kept + model + 0.02 * (not p["scaled"]) * (p["model"] != "ridge"))


def solver(p: Mapping[str, Value]) -> float:
    """The seconds that a linear system takes with one of four solvers."""
    if p["solver"] == "direct":
        return {"natural": 20.0, "amd": 9.0, "metis": 7.5}[p["ordering"]]
    if p["solver"] == "gradients":
        if p["preconditioner"] == "none":
            return 25.0
        if p["preconditioner"] == "cholesky":
            return float(4.0 + 2.0 * (math.log10(p["drop"]) + 3.5) ** 2 + 0.1 * p["fill"])
        return float(12.0 + 5 * abs(p["omega"] - 1.6))
    if p["solver"] == "multigrid":
        work = 1.2 * p["smoothing"] + 0.3 * p["levels"] + (3.0 if p["cycle"] == "W" else 0.0)
        rate = 0.1 + 0.5 * abs(p["strength"] - 0.25) * 4 + 0.8 / p["smoothing"] + 2.5 * math.exp(-p["levels"] / 1.5)
        return float(work * (1 + 3 * rate**2) / 4)
    return float(8.0 + 0.05 * (p["restart"] - 40) ** 2 / 10)


# Mechanics of the profile: steel, N, mm.
LOAD, LENGTH, YOUNG, STRENGTH, DENSITY = 8e3, 3e3, 210e3, 160.0, 7.85e-6


def profile(p: Mapping[str, Value]) -> Outcome:
    """The mass in kg of a cantilever of 3 m with a load of 8 kN at its end: a bar, a tube, a box or an I-beam.

    Its stress must stay below 160 MPa, its deflection below 15 mm, and walls must not buckle (at most 40 times as wide
    as thick). Standard formulas of beams; an I-beam is lightest, and the hardest to get right.
    """
    kind = p["profile"]
    slender = 0.0
    if kind == "bar":
        width, height = p["bar width"], p["bar height"]
        area, inertia = width * height, width * height**3 / 12
    elif kind == "tube":
        height, wall = p["diameter"], p["tube wall"]
        inner = max(height - 2 * wall, 0.0)
        area, inertia = math.pi / 4 * (height**2 - inner**2), math.pi / 64 * (height**4 - inner**4)
        slender = height / wall / 40
    elif kind == "box":
        width, height, wall = p["box width"], p["box height"], p["box wall"]
        b, h = max(width - 2 * wall, 0.0), max(height - 2 * wall, 0.0)
        area, inertia = width * height - b * h, (width * height**3 - b * h**3) / 12
        slender = max(b, h) / wall / 40
    else:
        width, height, flange, web = p["flange width"], p["beam height"], p["flange"], p["web"]
        h = max(height - 2 * flange, 0.0)
        area, inertia = 2 * width * flange + h * web, (width * height**3 - (width - web) * h**3) / 12
        slender = max(h / web / 40, width / 2 / flange / 15)
    stress = LOAD * LENGTH * height / 2 / inertia
    deflection = LOAD * LENGTH**3 / (3 * YOUNG * inertia)
    mass = area * LENGTH * DENSITY
    return Outcome(mass, constraints=[stress / STRENGTH - 1, deflection / 15 - 1, slender - 1])


def cooler(p: Mapping[str, Value]) -> float:
    """The yearly cost of keeping a chip of 200 W cool, with fins in air, a fan, or a liquid.

    A resistance to the heat is the inverse of area times coefficient; every kelvin above 60 costs.
    """
    fins, height = p["fins"], p["height"]
    area = fins * height * 2e-5 * 0.1 * 2
    gap = 100.0 / fins
    if p["cooling"] == "air":
        h, cost = 6.0 * min(1.0, gap / 8) ** 1.5, 0.0
    elif p["cooling"] == "fan":
        h = 25.0 * (p["speed"] / 1000) ** 0.6 * min(1.0, gap / 2.5)
        cost = 4.0 + 3.0 * (p["speed"] / 1000) ** 2.5
    else:
        h = 150.0 * p["flow"] ** 0.7 * {"water": 1.0, "glycol": 0.7}[p["liquid"]]
        h *= math.exp(-(((p["channel"] - 1.2) / 0.5) ** 2))
        cost = 6.0 + 1.5 * p["flow"] ** 2.5 + (2.0 if p["liquid"] == "water" else 0.5)
    temperature = 25.0 + 200.0 / (h * area * 100 + 0.5)
    return float(cost + 0.02 * fins + 0.03 * height + 0.4 * max(0.0, temperature - 60.0))


# Of each way: how many numbers it has, its least value, how steep it is, and where it is least.
WAYS = {
    "a": (1, 3.0, 0.1, 1.0),
    "b": (2, 2.5, 0.3, -2.0),
    "c": (3, 2.0, 0.5, 2.0),
    "d": (4, 1.0, 1.0, -1.5),
    "e": (5, 0.0, 1.2, 1.8),
    "f": (5, 2.2, 0.2, 0.5),
}


def six_ways(p: Mapping[str, Value]) -> float:
    """Six branches of one to five numbers: the more numbers, the lower the least value and the higher the mean."""
    way = p["way"]
    count, least, steep, centre = WAYS[way]
    x = [p[f"{way}{k}"] for k in range(1, count + 1)]
    return float(least + steep * sum((value - centre) ** 2 * (1 + 0.5 * k) for k, value in enumerate(x)))


def stock(p: Mapping[str, Value]) -> float:
    """The weekly cost of a store under one of three rules of ordering; the rule with most numbers is best."""
    rule, safety = p["rule"], p["safety"]
    shortage = 120.0 * math.exp(-safety / 9)
    if rule == "weekly":
        return float(40.0 + 0.9 * safety + shortage + 0.02 * (p["lot"] - 120) ** 2 / 5)
    if rule == "level":
        late = 60.0 * math.exp(-max(p["level"] - 40, 0) / 25)
        return float(30.0 + 0.6 * safety + shortage + late + 0.12 * p["level"] + 0.004 * (p["fixed lot"] - 80) ** 2)
    spread = p["upper"] - p["lower"]
    late = 80.0 * math.exp(-max(p["lower"] - 30, 0) / 12)
    wrong = 0.03 * (spread - 75) ** 2 if spread > 0 else 300.0 - spread
    return float(12.0 + 0.4 * safety + shortage + late + 0.25 * p["lower"] + wrong + 8.0 * (p["review"] - 3) ** 2 / 4)


_SPACES: dict[str, Space] = {
    "classifier": Space(
        {
            "classifier": Categorical(["svm", "forest"]),
            "C": Float(1e-4, 1e4, log=True, when={"classifier": "svm"}),
            "depth": Int(1, 40, when={"classifier": "forest"}),
        }
    ),
    "kernels": Space(
        {
            "kernel": Categorical(["linear", "poly", "rbf", "sigmoid"]),
            "C": Float(1e-3, 1e3, log=True),
            "gamma": Float(1e-5, 1e1, log=True, when={"kernel": ["poly", "rbf", "sigmoid"]}),
            "degree": Int(2, 5, when={"kernel": "poly"}),
        }
    ),
    "boosting": Space(
        {
            "booster": Categorical(["trees", "linear", "dart"]),
            "rate": Float(1e-3, 1.0, log=True),
            "lambda": Float(1e-3, 1e2, log=True, when={"booster": "linear"}),
            "leaves": Int(4, 512, log=True, when={"booster": "trees"}),
            "subsample": Float(0.2, 1.0, when={"booster": "trees"}),
            "least": Int(1, 100, when={"booster": "trees"}),
            "depth": Int(2, 12, when={"booster": "dart"}),
            "drop": Float(1e-4, 0.5, log=True, when={"booster": "dart"}),
            "one": Bool(when={"booster": "dart"}),
        }
    ),
    "network": Space(
        {
            "layers": Int(1, 4),
            "units 1": Int(8, 512, log=True),
            "units 2": Int(8, 512, log=True, when={"layers": [2, 3, 4]}),
            "units 3": Int(8, 512, log=True, when={"layers": [3, 4]}),
            "units 4": Int(8, 512, log=True, when={"layers": 4}),
            "optimiser": Categorical(["adam", "sgd"]),
            "rate": Float(1e-5, 1.0, log=True),
            "momentum": Float(0.0, 0.99, when={"optimiser": "sgd"}),
            "nesterov": Bool(when={"optimiser": "sgd"}),
            "beta": Float(0.8, 0.999, when={"optimiser": "adam"}),
            "decay": Float(1e-7, 1e-1, log=True),
        }
    ),
    "pipeline": Space(
        {
            "scaled": Bool(),
            "reduction": Categorical(["all", "components", "selected"]),
            "components": Int(2, 60, when={"reduction": "components"}),
            "share": Float(0.05, 1.0, when={"reduction": "selected"}),
            "model": Categorical(["ridge", "neighbours", "process"]),
            "alpha": Float(1e-4, 1e4, log=True, when={"model": "ridge"}),
            "k": Int(1, 100, log=True, when={"model": "neighbours"}),
            "weights": Categorical(["uniform", "distance"], when={"model": "neighbours"}),
            "width": Float(1e-3, 1e2, log=True, when={"model": "process"}),
        }
    ),
    "solver": Space(
        {
            "solver": Categorical(["direct", "gradients", "multigrid", "residuals"]),
            "ordering": Categorical(["natural", "amd", "metis"], when={"solver": "direct"}),
            "preconditioner": Categorical(["none", "cholesky", "relaxation"], when={"solver": "gradients"}),
            "drop": Float(1e-7, 1e-1, log=True, when={"preconditioner": "cholesky"}),
            "fill": Int(0, 20, when={"preconditioner": "cholesky"}),
            "omega": Float(0.1, 1.9, when={"preconditioner": "relaxation"}),
            "cycle": Categorical(["V", "W"], when={"solver": "multigrid"}),
            "levels": Int(1, 12, when={"solver": "multigrid"}),
            "smoothing": Int(1, 10, when={"solver": "multigrid"}),
            "strength": Float(0.0, 1.0, when={"solver": "multigrid"}),
            "restart": Int(5, 200, when={"solver": "residuals"}),
        }
    ),
    "profile": Space(
        {
            "profile": Categorical(["bar", "tube", "box", "I"]),
            "bar width": Float(10, 200, when={"profile": "bar"}),
            "bar height": Float(10, 300, when={"profile": "bar"}),
            "diameter": Float(50, 400, when={"profile": "tube"}),
            "tube wall": Discrete([2, 3, 4, 5, 6, 8, 10, 12, 16, 20], when={"profile": "tube"}),
            "box width": Float(20, 300, when={"profile": "box"}),
            "box height": Float(20, 400, when={"profile": "box"}),
            "box wall": Discrete([2, 3, 4, 5, 6, 8, 10, 12, 16, 20], when={"profile": "box"}),
            "flange width": Float(20, 300, when={"profile": "I"}),
            "beam height": Float(20, 400, when={"profile": "I"}),
            "flange": Discrete([4, 5, 6, 8, 10, 12, 16, 20], when={"profile": "I"}),
            "web": Discrete([3, 4, 5, 6, 8, 10, 12, 16], when={"profile": "I"}),
        }
    ),
    "cooler": Space(
        {
            "fins": Int(5, 80),
            "height": Float(10, 100),
            "cooling": Categorical(["air", "fan", "liquid"]),
            "speed": Float(300, 5000, when={"cooling": "fan"}),
            "flow": Float(0.1, 5.0, when={"cooling": "liquid"}),
            "liquid": Categorical(["water", "glycol"], when={"cooling": "liquid"}),
            "channel": Float(0.2, 5.0, when={"cooling": "liquid"}),
        }
    ),
    "six_ways": Space(
        {
            "way": Categorical(list(WAYS)),
            **{
                f"{way}{k}": Float(-5, 5, when={"way": way})
                for way, (count, *_) in WAYS.items()
                for k in range(1, count + 1)
            },
        }
    ),
    "stock": Space(
        {
            "safety": Int(0, 100),
            "rule": Categorical(["weekly", "level", "band"]),
            "lot": Int(10, 400, 10, when={"rule": "weekly"}),
            "level": Int(0, 300, when={"rule": "level"}),
            "fixed lot": Int(10, 400, when={"rule": "level"}),
            "lower": Int(0, 200, when={"rule": "band"}),
            "upper": Int(0, 400, when={"rule": "band"}),
            "review": Int(1, 10, when={"rule": "band"}),
        }
    ),
}


def _branches(evaluate: Callable[[Mapping[str, Value]], float | Outcome], best: Params, typical: float) -> Design:
    found = evaluate(best)
    value = found.value if isinstance(found, Outcome) else found
    name = evaluate.__name__
    return Design(name, _SPACES[name], evaluate, value, best, "mixcma.problems.branches", typical=typical)


_ALL = (
    _branches(classifier, {"classifier": "svm", "C": 10.0**2.2}, 0.11),
    _branches(
        kernels,
        {"kernel": "poly", "C": 0.001024991994457076, "gamma": 4.603553271750133, "degree": 3},
        0.0475,
    ),
    _branches(boosting, {"booster": "dart", "rate": 10.0**-0.6, "depth": 7, "drop": 0.01, "one": True}, 0.275),
    _branches(
        network,
        {
            "layers": 3,
            "units 1": 64,
            "units 2": 128,
            "units 3": 32,
            "optimiser": "sgd",
            "rate": 10.0**-0.955,
            "momentum": 0.93,
            "nesterov": True,
            "decay": 1e-4,
        },
        0.3595,
    ),
    _branches(
        pipeline,
        {"scaled": True, "reduction": "components", "components": 11, "model": "process", "width": 10.0**-0.8},
        0.2042,
    ),
    _branches(solver, {"solver": "multigrid", "cycle": "V", "levels": 6, "smoothing": 2, "strength": 0.25}, 4.45),
    _branches(
        profile,
        {"profile": "I", "flange width": 23.541057367830128, "beam height": 279.99999999999955, "flange": 20, "web": 6},
        102.4,
    ),
    _branches(cooler, {"fins": 39, "height": 26.03483305581841, "cooling": "fan", "speed": 329.32847935052797}, 8.85),
    _branches(six_ways, {"way": "e", **{f"e{k}": 1.8 for k in range(1, 6)}}, 3.055),
    _branches(stock, {"safety": 32, "rule": "band", "lower": 69, "upper": 144, "review": 3}, 79.39),
)
BRANCHES: dict[str, Design] = {design.name: design for design in _ALL}
