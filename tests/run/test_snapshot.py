"""Law: a run that is restored from a snapshot goes on as if nothing had been in between, from any generation."""

from __future__ import annotations

import json

import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Outcome, Space
from mixcma.core.methods import METHODS
from mixcma.run.snapshot import Snapshot
from mixcma.store.schema import pack, unpack
from tests.run.states import same_state

GENERATIONS, EVALUATIONS = 60, 300
NUMBERS = {"far": Float(mean=300.0, std=1.0), "x": Float(-5, 5), "n": Int(0, 40), "wire": Discrete([0.1, 0.5, 3.0])}
SPACES = {
    "numbers": Space(NUMBERS),
    "booleans": Space({"on": Bool(), "off": Bool(mean=0.8), "n": Int(0, 3)}),
    "categories": Space({**NUMBERS, "kind": Categorical(["a", "b", None])}),
}


def outcome(params):
    """Infeasible where n is large."""
    value = sum(float(v is not None and v != "a") if name == "kind" else v**2 for name, v in params.items())
    return Outcome(value, [params["n"] - 35.0])


def generation(optimizer, at_least=1):
    candidates = optimizer.ask(at_least=at_least)
    optimizer.tell(candidates, [outcome(candidate.params) for candidate in candidates])
    return [candidate.params for candidate in candidates]


def through_a_file(snapshot):
    return Snapshot(json.loads(json.dumps(snapshot.numbers)), unpack(*pack(snapshot.arrays)))


RUNS = [
    (kinds, name)
    for kinds in SPACES
    for name, method in METHODS.items()
    if kinds != "categories" or method.takes_categories
]


WITHOUT_MODEL = [(kinds, name) for kinds, name in RUNS if not METHODS[name].guided]


@pytest.mark.parametrize(("kinds", "method"), WITHOUT_MODEL)
def test_a_restored_run_goes_on(kinds, method):
    options = {"space": SPACES[kinds], "method": method, "seed": 2}
    optimizer = Optimizer(**options)
    while not optimizer.stop and optimizer.generation < GENERATIONS:
        restored = Optimizer(**options)
        restored.restore(through_a_file(optimizer.snapshot()))
        assert same_state(restored.state, optimizer.state)
        assert generation(restored) == generation(optimizer)
        assert same_state(restored.state, optimizer.state)
        assert (restored.stop, restored.best) == (optimizer.stop, optimizer.best)
        assert restored.snapshot().numbers == optimizer.snapshot().numbers


@pytest.mark.parametrize("at_least", [1, 4])
@pytest.mark.parametrize("kinds", SPACES)
def test_a_restored_run_with_a_model_goes_on_once_it_remembers_what_was_evaluated(kinds, at_least):
    """While exploring, where that ends, and after; however many are asked for at once."""
    options = {"space": SPACES[kinds], "method": "mix", "seed": 2}
    optimizer, seen, exploring = Optimizer(**options), [], []
    while not optimizer.stop and optimizer.evaluations < EVALUATIONS:
        exploring.append(not optimizer.guide.explorer.over)
        compared = exploring[-2:] == [True, False] or optimizer.generation % 7 == 0
        before = optimizer.snapshot()
        asked = generation(optimizer, at_least)
        if compared:
            restored = Optimizer(**options)
            restored.restore(through_a_file(before))
            for params in seen:
                restored.remember(params, outcome(params))
            assert generation(restored, at_least) == asked
            assert same_state(restored.state, optimizer.state)
            assert (restored.stop, restored.best) == (optimizer.stop, optimizer.best)
            assert restored.snapshot().numbers == optimizer.snapshot().numbers
        seen += asked
    assert set(exploring) == {True, False}
