"""Runs of every kind that a report must be able to show; each takes only a moment."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor

from mixcma import Bool, Categorical, Discrete, Float, Int, Outcome, Space, minimize

EVIL = "<script>window.hacked = 1; alert(1)</script>"
EVIL_NAMES = (
    EVIL,
    "</script><script>window.hacked = 2</script>",
    "<img src=x onerror='window.hacked = 3'>",
    '"><svg onload=window.hacked=4>',
    "a%{y}<b>&amp;<a href='javascript:window.hacked=5'>x</a>",
)

MIXED = Space(
    {
        "x": Float(-5, 5),
        "rate": Float(1e-5, 1e-1, log=True),
        "free": Float(),
        "n": Int(0, 9),
        "even": Int(-4, 40, 2),
        "batch": Int(8, 4096, log=True),
        "wide": Int(0, 2**60),
        "on": Bool(),
        "wire": Discrete([0.1, 0.5, 0.2, 3.0]),
        "four": Int(4, 4),
    }
)
CHOICES = Space(
    {
        "alloy": Categorical(["steel", "brass", None, 4]),
        "x": Float(-5, 5),
        "on": Bool(),
        "n": Int(0, 9),
        "pair": Discrete([0.5, 2.0]),
        "wire": Discrete([0.1, 0.5, 0.2, 3.0]),
    }
)
BRANCHES = Space(
    {
        "alloy": Categorical(["steel", "brass", "wood"]),
        "carbon": Float(0.0, 2.0, when={"alloy": "steel"}),
        "welded": Bool(when={"alloy": ["steel", "brass"]}),
        "welds": Int(1, 9, when={"welded": True}),
        "x": Float(-5, 5),
    }
)
TWENTY = Space(
    {
        **{f"x{i}": Float(-5, 5) for i in range(8)},
        **{f"n{i}": Int(0, 9 + 5 * i) for i in range(6)},
        **{f"on{i}": Bool() for i in range(4)},
        "wire": Discrete([0.1, 0.2, 0.4, 0.8, 1.6]),
        "shell": Discrete([0.0625 * k for k in range(1, 100)]),
    }
)


def sphere(p):
    return sum(float(value) ** 2 for value in p.values())


def mixed(p):
    scaled = (p["wide"] / 2**60, math.log(p["rate"]) + 7, math.log(p["batch"]) - 5)
    return (
        p["x"] ** 2
        + p["free"] ** 2
        + p["n"]
        + p["even"] ** 2 / 10
        + p["on"]
        + p["wire"]
        + sphere(dict(enumerate(scaled)))
    )


def chosen(p):
    price = {"steel": 2.0, "brass": 1.0, None: 0.5, 4: 3.0}[p["alloy"]]
    return price + p["x"] ** 2 + p["on"] + p["n"] + p["pair"] + p["wire"]


def branching(p):
    price = {"steel": 2.0, "brass": 1.0, "wood": 0.5}[p["alloy"]]
    return price + p["x"] ** 2 + (p.get("carbon", 1.0) - 0.2) ** 2 + (p.get("welds", 9) - 4) ** 2


def decades(p):
    """Values over sixty powers of ten."""
    return 10 ** (30 * math.sin(40 * p["x"]) + p["n"] / 10)


def constrained(p):
    return Outcome(p["x"] ** 2 + p["n"], constraints=[3.5 - p["x"], 8 - p["n"]])


def sometimes_failing(p):
    if p["x0"] > 2.5:
        raise RuntimeError(f"no mesh at x0 = {p['x0']:.3f}\nsecond line")
    if p["on0"] and p["x1"] > 2.5:
        raise ValueError("exit status 137")
    return sphere(p)


def evil(p):
    if p[EVIL] > 0.6:
        raise RuntimeError(f"{EVIL}</pre><img src=x onerror='window.hacked = 6'>")
    return sphere(p)


def slow(p):
    time.sleep(1e-4 * abs(p["x"]))
    return constrained(p)


def divided(p):
    return 1 / 0


def interrupted(p):
    raise KeyboardInterrupt


PLANE = Space({"x": Float(-5, 5), "n": Int(0, 9)})
EVIL_SPACE = Space(
    {
        EVIL_NAMES[0]: Float(0, 1),
        EVIL_NAMES[1]: Bool(),
        EVIL_NAMES[2]: Int(0, 4),
        EVIL_NAMES[3]: Discrete([1, 2, 5]),
        EVIL_NAMES[4]: Float(1, 9, log=True),
        "\ud800 half": Int(0, 100_000),
    }
)

# name -> (objective, space, options)
RUNS = {
    "mixed": (mixed, MIXED, {"budget": 400}),
    "choices": (chosen, CHOICES, {"budget": 200, "method": "mix-without-model"}),
    "branches": (branching, BRANCHES, {"budget": 60}),
    "decades": (decades, PLANE, {"budget": 300}),
    "twenty": (sometimes_failing, TWENTY, {"budget": 2000, "method": "mix-without-model"}),
    "constrained": (constrained, PLANE, {"budget": 300}),
    "target": (sphere, PLANE, {"budget": 900, "target": 0.05, "threads": 2, "method": "mix-without-model"}),
    "asynchronous": (slow, PLANE, {"budget": 200, "threads": 2, "asynchronous": True}),
    "restarts": (sphere, Space({"n": Int(0, 9), "x": Float(-1, 1)}), {"budget": 4000, "method": "margin"}),
    "cached": (sphere, Space({"n": Int(0, 9), "m": Int(0, 9)}), {"budget": 200}),
    "floats": (sphere, Space({"x": Float(-5, 5), "y": Float()}), {"budget": 100}),
    "failing": (divided, PLANE, {"budget": 100}),
    "infeasible": (lambda p: Outcome(p["x"], constraints=[1 + p["x"] ** 2]), PLANE, {"budget": 80}),
    "infinite": (lambda p: math.inf, PLANE, {"budget": 30}),
    "one generation": (sphere, PLANE, {"budget": 6, "popsize": 6}),
    "one evaluation": (sphere, PLANE, {"budget": 1}),
    "nothing finished": (interrupted, PLANE, {"budget": 10}),
    "given points": (sphere, PLANE, {"budget": 60, "x0": [{"x": 1.0, "n": 2}, {"x": -3.0, "n": 7}]}),
    "integer mutation": (mixed, MIXED, {"budget": 200, "method": "im-box"}),
    "evil": (evil, EVIL_SPACE, {"budget": 200, "notes": {EVIL: EVIL}}),
    "sixty": (
        sphere,
        Space({f"v{i}": Int(0, 30) if i % 2 else Float(0, 9) for i in range(60)}),
        {"budget": 300, "method": "mix-without-model"},
    ),
}


def make(name, path, **options):
    """Make a run that is kept in a run file at `path`, and return its result."""
    objective, space, usual = RUNS[name]
    options = {**usual, **options}
    with ThreadPoolExecutor(options.pop("threads", 1)) as pool:
        workers = pool if "threads" in usual else 1
        return minimize(objective, space, seed=1, run_file=path, workers=workers, **options)
