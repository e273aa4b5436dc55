"""Law: params are what the latent point stands for; whatever the method, the kind of variable, and where the run is."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np
import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Outcome, Space
from mixcma.core.coordinates import values_at
from mixcma.core.methods import METHODS
from mixcma.run.stream import Stream
from tests.run.points import numbers_of

GENERATIONS = 45
KINDS = {
    "float": Float(),
    "bounded float": Float(-1, 3),
    "log float": Float(1e-6, 1e3, log=True),
    "int": Int(-7, 20),
    "steps": Int(-7, 21, 4),
    "pair of ints": Int(3, 4),
    "int of 2**40": Int(0, 2**40),
    "int of 2**52": Int(0, 2**52),
    "int of 2**62": Int(0, 2**62),
    "log int": Int(1, 1000, log=True),
    "log int of 2**48": Int(1, 2**48, log=True),
    "bool": Bool(mean=0.8),
    "set": Discrete([-9, -0.5, 0.25, 4, 100]),
    "pair of numbers": Discrete([0.5, 2.0]),
    "pair": Categorical(["no", "yes"]),
    "category": Categorical(["a", None, 2.5, True]),
}
PLACES = {"low end": 0.0, "inside": 0.37, "high end": 1.0}


def space_of(kind):
    """One variable, alone or beside a float; or all that the method takes."""
    beside = {"x": Float(mean=2.0, std=1.0)}
    return {"alone": Space({"v": KINDS[kind]}), "beside a float": Space({**beside, "v": KINDS[kind]})}


def all_kinds(method):
    return Space({kind: v for kind, v in KINDS.items() if kind != "category" or METHODS[method].takes_categories})


def position(variable, value, place):
    """How far a value is from the one at `place`, a part of the range: the cost of a variable."""
    if isinstance(variable, Categorical):
        return float(variable.listed.index(value) != round(place * (variable.size - 1)))
    low, high = variable.hull if math.isfinite(variable.hull[0]) else (-5.0, 5.0)
    if getattr(variable, "log", False):
        low, high, value = math.log(low), math.log(high), math.log(value)
    return ((value - low) / (high - low) - place) ** 2


def cost(space, place):
    return lambda params: sum(position(space[name], value, place) for name, value in params.items())


def check(encoding, latents, params):
    latents = np.array(latents)
    assert encoding.decode(latents) == params
    assert values_at(encoding.coordinates, latents).tolist() == [numbers_of(encoding, each) for each in params]


def check_run(space, method, place, seed=1, generations=GENERATIONS):
    optimizer, objective = Optimizer(space, method=method, seed=seed), cost(space, place)
    while not optimizer.stop and optimizer.generation < generations:
        candidates = optimizer.ask()
        check(optimizer.encoding, [c.latent for c in candidates], [c.params for c in candidates])
        optimizer.tell(candidates, [objective(c.params) for c in candidates])


def taken_by(kind, method):
    return METHODS[method].takes_categories or kind != "category"


RUNS = [(kind, method) for kind, method in itertools.product(KINDS, METHODS) if taken_by(kind, method)]


@pytest.mark.parametrize("beside", ["alone", "beside a float"])
@pytest.mark.parametrize(("kind", "method"), RUNS, ids=lambda part: part)
def test_one_variable(kind, method, beside):
    for place in PLACES.values():
        check_run(space_of(kind)[beside], method, place)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["int of 2**40", "int of 2**62", "log int of 2**48"])
def test_wide_ranges_at_their_ends(kind, method):
    """Runs long enough for integers to settle, where cells are as narrow as floats can tell apart."""
    for place in (0.0, 1.0):
        check_run(space_of(kind)["alone"], method, place, seed=2, generations=160)


@pytest.mark.parametrize("method", METHODS)
def test_all_kinds_at_once(method):
    for place in PLACES.values():
        check_run(all_kinds(method), method, place)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("space", [all_kinds, lambda _: space_of("log int of 2**48")["alone"]], ids=["all", "log int"])
def test_draws_of_a_stream(space, method):
    """Three workers that take their time, so that some results are of older states."""
    space, lasting = space(method), np.random.default_rng(2)
    stream, objective = Stream(Optimizer(space, method=method, seed=1)), cost(space, PLACES["inside"])
    flying = [(float(number), number, stream.draw()) for number in range(3)]
    for number in range(3, GENERATIONS * 4):
        if stream.optimizer.stop:
            break
        now, _, drawn = heapq.heappop(flying)
        check(stream.optimizer.encoding, drawn.latents[:1], [drawn.params])
        stream.take(drawn, Outcome(objective(drawn.params)))
        heapq.heappush(flying, (now + lasting.exponential(), number, stream.draw()))
