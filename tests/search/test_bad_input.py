"""Bad input is refused by a ValueError that says who, what was expected, what was given, and what to do."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from mixcma import Bool, Cma, Discrete, Float, Int, Margin, Optimizer, Outcome, Space, minimize
from mixcma.latent.encoding import Encoding

SPACE = Space({"x": Float(0, 1), "ribs": Int(1, 12), "lined": Bool(), "wire": Discrete([0.1, 0.2])})
GOOD = {"x": 0.5, "ribs": 3, "lined": True, "wire": 0.1}
NAN, INF = math.nan, math.inf


def variable(given):
    return lambda: Space({"x": given})


def table(**given):
    return lambda: Space.from_dict({"x": given})


def text(given):
    return lambda: Space.from_json(given)


def params(**given):
    return lambda: SPACE.check_params(GOOD | given)


def mean(**given):
    return lambda: Encoding(SPACE).encode_mean(given)


def optimizer(space=SPACE, **settings):
    return lambda: Optimizer(space, **settings)


def search(objective=lambda p: 1.0, space=SPACE, **settings):
    return lambda: minimize(objective, space, **{"budget": 10, "seed": 1} | settings)


def told(outcome):
    def tell():
        asked = Optimizer(SPACE, seed=1)
        candidates = asked.ask()
        asked.tell(candidates, [1.0] * (len(candidates) - 1) + [outcome])

    return tell


# what is wrong: (the call, the name in the message, what was given, and what else the message says)
CASES = {
    # spaces
    "a space of nothing": (lambda: Space({}), "Space", "{}", ""),
    "a space of None": (lambda: Space(None), "Space", "None", ""),
    "a space of a list": (lambda: Space([("x", Float())]), "Space", "[('x'", ""),
    "a space of a variable": (lambda: Space(Float(0, 1)), "Space", "Float(", ""),
    "a number as a name": (lambda: Space({5: Float()}), "'5'", "5", "string"),
    "an empty name": (lambda: Space({"": Float()}), "''", "''", "string"),
    "None as a name": (lambda: Space({None: Float()}), "'None'", "None", "string"),
    "a tuple as a variable": (variable((0, 1)), "'x'", "(0, 1)", "Float(0, 1)"),
    "a list as a variable": (variable([1, 2]), "'x'", "[1, 2]", "Discrete"),
    "a number as a variable": (variable(3.0), "'x'", "3.0", ""),
    "None as a variable": (variable(None), "'x'", "None", ""),
    "a class as a variable": (variable(Float), "'x'", "Float", ""),
    "a second variable that is bad": (lambda: Space({"x": Float(), "y": Int(3, 1)}), "'y'", "low=3", ""),
    "nothing but constants": (
        optimizer(Space({"x": Float(1, 1), "n": Int(2, 2)})),
        "space",
        "'x': 1.0",
        "widen",
    ),
    # floats
    "float: low above high": (variable(Float(3, 1)), "'x'", "low=3.0, high=1.0", "low <= high"),
    "float: NaN as low": (variable(Float(NAN, 1)), "'x'", "nan", "low"),
    "float: NaN as high": (variable(Float(0, NAN)), "'x'", "nan", "high"),
    "float: a string as low": (variable(Float("0", 1)), "'x'", "'0'", "low"),
    "float: a bool as high": (variable(Float(0, True)), "'x'", "True", "high"),
    "float: a list as low": (variable(Float([0], 1)), "'x'", "[0]", "low"),
    "float: a complex high": (variable(Float(0, 1j)), "'x'", "1j", "high"),
    "float: infinity as low": (variable(Float(INF)), "'x'", "inf", ""),
    "float: minus infinity as high": (variable(Float(None, -INF)), "'x'", "-inf", ""),
    "float: an int beyond floats": (variable(Float(0, 10**400)), "'x'", "1000", "high"),
    "float: a range beyond floats": (variable(Float(-1.7e308, 1.7e308)), "'x'", "-1.7e+308", ""),
    "float: log from zero": (variable(Float(0, 1, log=True)), "'x'", "0", "low > 0"),
    "float: log below zero": (variable(Float(-1, 1, log=True)), "'x'", "-1", "low > 0"),
    "float: log without low": (variable(Float(None, 1, log=True)), "'x'", "", "low > 0"),
    "float: a number as log": (variable(Float(1, 2, log=1)), "'x'", "1", "log"),
    "float: a string as log": (variable(Float(1, 2, log="yes")), "'x'", "'yes'", "log"),
    "float: mean outside": (variable(Float(0, 1, mean=2)), "'x'", "2.0", "[0.0, 1.0]"),
    "float: NaN as mean": (variable(Float(0, 1, mean=NAN)), "'x'", "nan", "mean"),
    "float: infinite mean": (variable(Float(mean=INF)), "'x'", "inf", "mean"),
    "float: a string as mean": (variable(Float(mean="0")), "'x'", "'0'", "mean"),
    "float: std of zero": (variable(Float(std=0)), "'x'", "0.0", "std"),
    "float: negative std": (variable(Float(std=-1)), "'x'", "-1.0", "std"),
    "float: NaN as std": (variable(Float(std=NAN)), "'x'", "nan", "std"),
    "float: infinite std": (variable(Float(std=INF)), "'x'", "inf", "std"),
    "float: a bool as std": (variable(Float(std=True)), "'x'", "True", "std"),
    # ints
    "int: low above high": (variable(Int(3, 1)), "'x'", "low=3, high=1", "low <= high"),
    "int: a float as low": (variable(Int(1.0, 5)), "'x'", "1.0", "low"),
    "int: a string as high": (variable(Int(1, "5")), "'x'", "'5'", "high"),
    "int: None as high": (variable(Int(1, None)), "'x'", "None", "high"),
    "int: a bool as low": (variable(Int(True, 5)), "'x'", "True", "low"),
    "int: NaN as low": (variable(Int(NAN, 5)), "'x'", "nan", "low"),
    "int: infinity as high": (variable(Int(0, INF)), "'x'", "inf", "high"),
    "int: beyond 64 bits": (variable(Int(0, 2**63)), "'x'", str(2**63), "2**62"),
    "int: too wide": (variable(Int(-(2**62), 2**62)), "'x'", str(2**62), "wide"),
    "int: step of zero": (variable(Int(0, 9, 0)), "'x'", "0", "step"),
    "int: negative step": (variable(Int(0, 9, -3)), "'x'", "-3", "step"),
    "int: a float as step": (variable(Int(0, 9, 1.5)), "'x'", "1.5", "step"),
    "int: a step that does not divide": (variable(Int(1, 10, 4)), "'x'", "step=4", "high=9"),
    "int: log from zero": (variable(Int(0, 9, log=True)), "'x'", "0", "low > 0"),
    "int: mean outside": (variable(Int(0, 9, mean=9.5)), "'x'", "9.5", "[0, 9]"),
    "int: std of zero": (variable(Int(0, 9, std=0.0)), "'x'", "0.0", "std"),
    # bools
    "bool: mean outside": (variable(Bool(mean=2)), "'x'", "2.0", "mean"),
    "bool: a bool as mean": (variable(Bool(mean=True)), "'x'", "True", "mean"),
    "bool: negative std": (variable(Bool(std=-0.1)), "'x'", "-0.1", "std"),
    # sets
    "set: empty": (variable(Discrete([])), "'x'", "[]", "at least one"),
    "set: a number": (variable(Discrete(3)), "'x'", "3", "list"),
    "set: None": (variable(Discrete(None)), "'x'", "None", "list"),
    "set: a string": (variable(Discrete("12")), "'x'", "'12'", "list"),
    "set: bytes": (variable(Discrete(b"12")), "'x'", "b'12'", "list"),
    "set: of strings": (variable(Discrete(["a", "b"])), "'x'", "'a'", ""),
    "set: of bools": (variable(Discrete([False, True])), "'x'", "False", ""),
    "set: with None": (variable(Discrete([1, None])), "'x'", "None", ""),
    "set: with NaN": (variable(Discrete([1.0, NAN])), "'x'", "nan", ""),
    "set: with infinity": (variable(Discrete([1.0, INF])), "'x'", "inf", "finite"),
    "set: duplicates": (variable(Discrete([1, 2, 1.0])), "'x'", "[1.0]", "distinct"),
    "set: duplicates as floats": (
        variable(Discrete([2**53, 2**53 + 1])),
        "'x'",
        "9007199254740992",
        "distinct",
    ),
    "set: too close to tell apart": (variable(Discrete([-1.0, 0.0, 1e-20])), "'x'", "(0.0, 1e-20)", "apart"),
    "set: an int beyond floats": (variable(Discrete([0, 10**400])), "'x'", "1000", ""),
    "set: a range beyond floats": (variable(Discrete([-1.7e308, 1.7e308])), "'x'", "-1.7e+308", ""),
    "set: two axes": (variable(Discrete(np.zeros((2, 2)))), "'x'", "array", ""),
    "set: mean outside": (variable(Discrete([1, 2], mean=3)), "'x'", "3.0", "[1, 2]"),
    "set: NaN as std": (variable(Discrete([1, 2], std=NAN)), "'x'", "nan", "std"),
    # descriptions
    "description: a list": (lambda: Space.from_dict([1]), "Space", "[1]", "mapping"),
    "description: empty": (lambda: Space.from_dict({}), "Space", "{}", ""),
    "description: a list as a table": (lambda: Space.from_dict({"x": [0, 1]}), "'x'", "[0, 1]", "table"),
    "description: no type": (table(low=0, high=1), "'x'", "None", '"type"'),
    "description: a type misspelt": (table(type="flaot"), "'x'", "'flaot'", "did you mean 'float'?"),
    "description: a type in capitals": (
        table(type="Int", low=1, high=2),
        "'x'",
        "'Int'",
        "did you mean 'int'?",
    ),
    "description: an unknown type": (table(type="string"), "'x'", "'string'", "float, int, bool, discrete"),
    "description: a list as a type": (table(type=["int"]), "'x'", "['int']", '"type"'),
    "description: a key misspelt": (table(type="float", hihg=1), "'x'", "'hihg'", "did you mean 'high'?"),
    "description: a key of another type": (table(type="float", step=2), "'x'", "'step'", "low, high, log"),
    "description: an int without high": (table(type="int", low=1), "'x'", "'low': 1", "add low and high"),
    "description: a set without values": (table(type="discrete"), "'x'", "'discrete'", "add values"),
    "description: a bad bound": (table(type="float", low="0"), "'x'", "'0'", "low"),
    "description: a number as values": (table(type="discrete", values=5), "'x'", "5", "list"),
    "description: a number as a name": (lambda: Space.from_dict({5: {"type": "bool"}}), "'5'", "5", "string"),
    "json: not json": (text("{x: 1"), "Space", "{x: 1", ""),
    "json: a list": (text("[1, 2]"), "Space", "[1, 2]", "mapping"),
    "json: None": (text(None), "Space", "None", ""),
    "json: NaN": (text(json.dumps({"x": {"type": "float", "low": NAN}})), "'x'", "nan", "low"),
    # parameters
    "params: None": (lambda: SPACE.check_params(None), "params", "None", ""),
    "params: a list": (lambda: SPACE.check_params([0.5, 3, True, 0.1]), "params", "[0.5, 3", ""),
    "params: one missing": (lambda: SPACE.check_params({"x": 0.5}), "'ribs'", "nothing", "add it"),
    "params: one too many": (params(colour=1), "'colour'", "'colour'", "remove it"),
    "params: one misspelt": (params(rib=1), "'rib'", "'rib'", "did you mean 'ribs'?"),
    "params: a float outside": (params(x=1.5), "'x'", "1.5", "[0.0, 1.0]"),
    "params: a float NaN": (params(x=NAN), "'x'", "nan", ""),
    "params: a float string": (params(x="0.5"), "'x'", "'0.5'", ""),
    "params: a float bool": (params(x=True), "'x'", "True", ""),
    "params: an int float": (params(ribs=3.0), "'ribs'", "3.0", "integer"),
    "params: an int outside": (params(ribs=13), "'ribs'", "13", "1, 2, ..., 12"),
    "params: an int between steps": (
        lambda: Space({"n": Int(0, 9, 3)}).check_params({"n": 4}),
        "'n'",
        "4",
        "0, 3, ..., 9",
    ),
    "params: an infinite float": (
        lambda: Space({"x": Float()}).check_params({"x": INF}),
        "'x'",
        "inf",
        "finite",
    ),
    "params: a number as a bool": (params(lined=1), "'lined'", "1", "True or False"),
    "params: None as a bool": (params(lined=None), "'lined'", "None", "True or False"),
    "params: not in the set": (params(wire=0.15), "'wire'", "0.15", ""),
    "params: None of a set": (params(wire=None), "'wire'", "None", ""),
    # initial means
    "mean: unknown": (mean(y=1.0), "'y'", "'y'", ""),
    "mean: outside": (mean(x=2.0), "'x'", "2.0", "[0.0, 1.0]"),
    "mean: a string": (mean(x="0"), "'x'", "'0'", "mean"),
    "mean: NaN": (mean(ribs=NAN), "'ribs'", "nan", "mean"),
    "mean: a bool": (mean(lined=True), "'lined'", "True", "mean"),
    # settings of an optimizer
    "optimizer: a dict as the space": (optimizer({"x": Float(0, 1)}), "space", "{'x'", "Space("),
    "optimizer: an unknown method": (optimizer(method="margins"), "method", "'margins'", "'margin'"),
    "optimizer: None as the method": (optimizer(method=None), "method", "None", "'margin'"),
    "optimizer: a class as the method": (optimizer(method=Cma), "method", "Cma", ""),
    "optimizer: alpha of zero": (optimizer(method=Margin(alpha=0.0)), "alpha", "0.0", "0.5"),
    "optimizer: alpha of a half": (optimizer(method=Margin(alpha=0.5)), "alpha", "0.5", ""),
    "optimizer: NaN as alpha": (optimizer(method=Margin(alpha=NAN)), "alpha", "nan", ""),
    "optimizer: a string as alpha": (optimizer(method=Margin(alpha="0.1")), "alpha", "'0.1'", ""),
    "optimizer: a negative seed": (optimizer(seed=-1), "seed", "-1", ""),
    "optimizer: a float as the seed": (optimizer(seed=1.0), "seed", "1.0", ""),
    "optimizer: a string as the seed": (optimizer(seed="1"), "seed", "'1'", ""),
    "optimizer: a bool as the seed": (optimizer(seed=True), "seed", "True", ""),
    "optimizer: popsize too small": (optimizer(popsize=3), "popsize", "3", "4"),
    "optimizer: a float as popsize": (optimizer(popsize=8.0), "popsize", "8.0", ""),
    "optimizer: a bool as popsize": (optimizer(popsize=True), "popsize", "True", ""),
    "optimizer: a mean of the wrong length": (optimizer(mean=np.zeros(7)), "mean", "", "4"),
    "optimizer: a mean with NaN": (optimizer(mean=np.full(4, NAN)), "mean", "nan", ""),
    "optimizer: a string as the mean": (optimizer(mean="middle"), "mean", "'middle'", ""),
    "optimizer: a mean outside": (optimizer(mean={"x": -1}), "'x'", "-1", "[0.0, 1.0]"),
    "optimizer: a negative run": (optimizer(run=-1), "run", "-1", ""),
    "optimizer: a dict as stopping": (
        optimizer(stopping={"flat_tolerance": 1}),
        "stopping",
        "flat_tolerance",
        "",
    ),
    # settings of a search
    "minimize: no objective": (search(None), "objective", "None", "callable"),
    "minimize: a dict as the space": (search(space={"x": Float(0, 1)}), "space", "{'x'", "Space("),
    "minimize: budget of zero": (search(budget=0), "budget", "0", ""),
    "minimize: a float as the budget": (search(budget=1e3), "budget", "1000.0", ""),
    "minimize: None as the budget": (search(budget=None), "budget", "None", ""),
    "minimize: a bool as the budget": (search(budget=True), "budget", "True", ""),
    "minimize: NaN as the target": (search(target=NAN), "target", "nan", ""),
    "minimize: a string as the target": (search(target="0"), "target", "'0'", ""),
    "minimize: a bool as the target": (search(target=True), "target", "True", ""),
    "minimize: negative restarts": (search(restarts=-1), "restarts", "-1", ""),
    "minimize: None as restarts": (search(restarts=None), "restarts", "None", ""),
    "minimize: a string as restarts": (search(restarts="yes"), "restarts", "'yes'", ""),
    "minimize: unknown on_error": (search(on_error="ignore"), "on_error", "'ignore'", '"fail" or "raise"'),
    "minimize: unknown method": (search(method="im-bax"), "method", "'im-bax'", "'im-box'"),
    "minimize: a negative seed": (search(seed=-1), "seed", "-1", ""),
    "minimize: popsize too small": (search(popsize=2), "popsize", "2", "4"),
    "minimize: a number as the callback": (search(callback=5), "callback", "5", ""),
    "minimize: a dict as stopping": (search(stopping={}), "stopping", "{}", ""),
    # values
    "tell: minus infinity": (told(-INF), "value", "-inf", "beat"),
    "tell: an outcome of minus infinity": (told(Outcome(-INF, [1.0])), "value", "-inf", "beat"),
    "minimize: minus infinity": (search(lambda p: -INF, on_error="raise"), "value", "-inf", "beat"),
}


@pytest.mark.parametrize(("call", "name", "given", "says"), CASES.values(), ids=CASES)
def test_bad_input_is_refused_with_its_name_the_expected_the_given_and_a_remedy(call, name, given, says):
    with pytest.raises(ValueError, match="expected") as caught:
        call()
    message = str(caught.value)
    sentence, _, remedy = message.rpartition(";")
    before, _, after = sentence.partition(" got ")
    assert name in before, message
    assert "expected" in before, message
    assert after, message
    assert given in after, message
    assert remedy.strip(), message
    assert says in message
    assert len(message) < 400, message
