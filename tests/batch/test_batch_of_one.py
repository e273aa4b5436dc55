"""Law: a batch of one is the Optimizer's run, generation by generation, on NumPy and on JAX; batches have no model."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Space, Stopping
from mixcma.batch import on_numpy, run_many
from mixcma.batch.task import generation, prepare
from mixcma.core.gaussian import map_arrays
from mixcma.core.methods import METHODS
from mixcma.core.sampling import Noise
from mixcma.latent.encoding import Encoding
from mixcma.run.outcome import NOTHING_YET
from tests.run.points import numbers_of
from tests.run.states import assert_close

SEED, TRIAL, GENERATIONS, RTOL = 3, 5, 30, 1e-9
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}  # to compile
ENDLESS = Stopping(flat_tolerance=None, min_variance=0.0, max_condition=1e300)
FLOATS = {"x": Float(-3, 3), "rate": Float(1e-4, 1.0, log=True), "free": Float(mean=2.0, std=1.0)}
INTEGERS = {"n": Int(-10, 10), "log": Int(1, 500, log=True), "wide": Int(0, 10**5), "steps": Int(0, 70, 7)}
BOOLEANS = {"on": Bool(mean=0.2), "off": Bool(), "sure": Bool(mean=1.0), "pair": Categorical(["no", "yes"])}
SETS = {"uneven": Discrete([0.01, 0.1, 1.0]), "powers": Discrete([1, 2, 4, 8, 16]), "ends": Discrete([-3, 0, 50])}
PAIRS = {"two": Int(3, 4), "numbers": Discrete([0.5, 2.0])}
CATEGORIES = {"kernel": Categorical(list("pqr")), "solver": Categorical(range(5)), "none": Categorical([None, 1])}
BRANCHES = {
    "model": Categorical(list("abc")),
    "on": Bool(mean=0.2),
    "x": Float(-3, 3, when={"model": "a"}),
    "n": Int(-10, 10, when={"model": ["a", "b"]}),
    "kernel": Categorical(list("pqr"), when={"model": "b", "on": True}),
    "uneven": Discrete([0.01, 0.1, 1.0], when={"kernel": ["p", "q"]}),
    "free": Float(mean=2.0, std=1.0),
}
NUMBERS = {
    "floats": FLOATS,
    "ints": INTEGERS,
    "booleans": BOOLEANS,
    "sets": SETS,
    "pairs": PAIRS,
    "one int": {"n": Int(-10, 10)},
    "floats and ints": FLOATS | INTEGERS,
    "all numbers": SETS | BOOLEANS | INTEGERS | FLOATS,
    "wider ints": {"wider": Int(0, 2**40), "widest": Int(0, 2**62), "log": Int(1, 2**48, log=True)},
}
WHOLE = [name for name, method in METHODS.items() if not method.guided]  # whose generations are whole
# the difference of two probabilities close to 1/2 decides about A: rounding shows after a generation
ILL_CONDITIONED = ("catmargin", "wider ints")
CHOICES = {
    "categories": CATEGORIES,
    "one category": {"kernel": Categorical(list("pqr"))},
    "categories and booleans": BOOLEANS | CATEGORIES,
    "categories and a float": CATEGORIES | {"x": Float(-3, 3)},
    "branches": BRANCHES,
    "all kinds": CATEGORIES | SETS | BOOLEANS | PAIRS | INTEGERS | FLOATS,
}
ON_JAX = {False: ["all numbers"], True: ["all kinds", "categories", "branches"]}
# Initial means by name, for the variables that a space has: those of the variables themselves, and others.
STARTS = [
    {},
    {"x": 2.9, "rate": 2e-4, "n": 7, "log": 3, "on": 0.9, "off": 0.1, "uneven": 0.9, "two": 3.1, "free": -4.0},
    {"x": -1.0, "n": -10, "wide": 1e5, "steps": 0, "on": 0.5, "off": 1.0, "powers": 16, "ends": 40, "numbers": 2},
]


class Valley:
    """A problem for a batch: the distance from a point inside, with weights; `seen` is what it was evaluated at."""

    success = -1.0

    def __init__(self, kinds, method, start):
        self.space, self.means = Space(kinds), start
        self.encoding = Encoding(self.space, METHODS[method].takes_categories)
        variables = [self.space[name] for name in self.encoding.names]
        hulls = [(0, v.size - 1) if isinstance(v, Categorical) else v.hull for v in variables]
        self.low, high = np.array([(-5, 5) if np.isinf(low) else (low, high) for low, high in hulls], dtype=float).T
        self.width = high - self.low
        self.weights = 1 + np.random.default_rng(0).random(len(variables))
        self.seen = []

    def start(self, trial):
        return {name: mean for name, mean in self.means.items() if name in self.space}

    def function(self, x):
        if isinstance(x, np.ndarray):
            self.seen.append(x)
        distances = self.weights * abs((x - self.low) / self.width - 0.3)
        xp = x.__array_namespace__()
        return xp.where(xp.isnan(distances), 0.1, distances).sum(axis=-1)  # what does not exist

    def optimizer(self, method):
        return Optimizer(self.space, method=method, seed=SEED, run=TRIAL, mean=self.start(TRIAL), stopping=ENDLESS)

    def points(self, candidates):
        return np.array([numbers_of(self.encoding, candidate.params) for candidate in candidates])


def told(optimizer, valley):
    """A generation of the Optimizer: what was evaluated, (L, N)."""
    candidates = optimizer.ask()
    x = valley.points(candidates)
    optimizer.tell(candidates, valley.function(x).tolist())
    return x


def goes_on(optimizer):
    """Runs of a batch do not go back to their best point, so they are no longer the same."""
    return optimizer.monitor.returned_to == NOTHING_YET


def only(state):
    return map_arrays(lambda part: np.asarray(part)[0], state)


def cases(of_numbers, of_choices):
    every = itertools.product(WHOLE, of_numbers | of_choices)
    taken = [(method, name) for method, name in every if name in of_numbers or METHODS[method].takes_categories]
    return [case for case in taken if case != ILL_CONDITIONED]


@pytest.mark.parametrize("start", range(len(STARTS)))
@pytest.mark.parametrize(("method", "name"), cases(NUMBERS, CHOICES), ids=lambda part: part)
def test_on_numpy(method, name, start, monkeypatch):
    valley, states = Valley((NUMBERS | CHOICES)[name], method, STARTS[start]), []

    def watched(rules, method, state, noise, which):
        states.append(only(state))
        return generation(rules, method, state, noise, which)

    monkeypatch.setattr(on_numpy, "generation", watched)
    optimizer = valley.optimizer(method)
    run_many(valley, method, [TRIAL], SEED, stopping=ENDLESS, budget=GENERATIONS * optimizer.popsize)
    evaluated, valley.seen = valley.seen, []
    assert len(states) == len(evaluated) == GENERATIONS
    for number, (state, (x,)) in enumerate(zip(states, evaluated)):
        assert_close(state, optimizer.state, RTOL, f"before generation {number}")
        np.testing.assert_allclose(told(optimizer, valley), x, rtol=RTOL, atol=RTOL, err_msg=f"generation {number}")
        if not goes_on(optimizer):
            break


def test_a_batch_is_without_a_model():
    guided, whole = (Valley(CHOICES["all kinds"], method, {}) for method in ("mix", "mix-without-model"))
    for valley, method in ((guided, "mix"), (whole, "mix-without-model")):
        run_many(valley, method, [TRIAL], SEED, stopping=ENDLESS, budget=200)
    assert len(guided.seen) == len(whole.seen) > 5
    assert all(np.array_equal(one, other) for one, other in zip(guided.seen, whole.seen))


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, name) for method, name in cases(NUMBERS, CHOICES) if name in ON_JAX[METHODS[method].takes_categories]],
    ids=lambda part: part,
)
def test_on_jax(method, name):
    """The generations of a batch of one, compiled, with the noise of the Optimizer."""
    valley = Valley((NUMBERS | CHOICES)[name], method, STARTS[1])
    fixed = {"popsize": None, "alpha": None, "stopping": ENDLESS, "budget": 1000}
    rules, runs = prepare([valley], method, [TRIAL], SEED, **fixed)

    def step(state, noise):
        return generation(rules, rules.method, state, noise, runs.which)[0]

    optimizer, state = valley.optimizer(method), rules.method.initial_state(rules.setting, runs.start)
    with jax.enable_x64(True):
        step, decomposed = (jax.jit(part, compiler_options=QUICKLY) for part in (step, rules.method.decomposed))
        for number in range(GENERATIONS):
            state = map_arrays(np.asarray, state)._replace(generation=number)  # of the same types, to compile it once
            assert_close(only(state), optimizer.state, RTOL, f"before generation {number}")
            noise = Noise._make(None if part is None else part[None] for part in optimizer.noise(number))
            told(optimizer, valley)
            if not goes_on(optimizer):
                break
            state = step(state, noise)
            if (number + 1) % rules.setting.eigen_interval == 0:
                state = decomposed(state)
