"""Variables and spaces: defaults, plain Python numbers, equality, constants, sizes, JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixcma import Bool, Discrete, Float, Int, Space

FINITE = st.floats(-1e100, 1e100)
MIXED = {
    "radius": Float(10, 200),
    "fixed": Int(7, 7),
    "ribs": Int(1, 12),
    "lined": Bool(),
    "wire": Discrete([0.4, 0.1, 0.2]),
    "teeth": Discrete([30, 10, 20]),
}


@st.composite
def floats_(draw):
    low, high = sorted(bound + 0.0 for bound in draw(st.tuples(FINITE, FINITE)))  # no -0.0
    mean = draw(st.none() | st.floats(low, high))
    return Float(
        draw(st.sampled_from([low, None])) if mean is None else low,
        high,
        mean=mean,
        std=draw(st.none() | st.floats(1e-9, 1e9)),
    )


@st.composite
def integers_(draw):
    low, step, count = draw(st.tuples(st.integers(1, 2**50), st.integers(1, 1000), st.integers(0, 2**40)))
    high = low + step * count
    return Int(low, high, step, log=draw(st.booleans()), mean=draw(st.none() | st.integers(low, high)))


BOOLS = st.builds(Bool, mean=st.none() | st.floats(0, 1), std=st.none() | st.floats(0.01, 9))
STEPS = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=8, unique=True)
SETS = st.builds(
    lambda steps, scale: Discrete([step * scale for step in steps]),
    STEPS,
    st.sampled_from([1, 2**30, 1e-9, 0.1, 1e90]),
)
VARIABLES = floats_() | integers_() | BOOLS | SETS
SPACES = st.dictionaries(st.text(min_size=1, max_size=5), VARIABLES, min_size=1, max_size=5).map(Space)


def test_a_float_without_arguments_is_unbounded_and_linear():
    variable = Space({"x": Float()})["x"]
    assert (variable.low, variable.high, variable.log, variable.mean, variable.std) == (
        None,
        None,
        False,
        None,
        None,
    )


def test_an_int_moves_in_steps_of_one_on_a_linear_scale_by_default():
    variable = Space({"n": Int(1, 5)})["n"]
    assert (variable.step, variable.log, variable.mean, variable.std) == (1, False, None, None)


def test_infinite_bounds_are_no_bounds():
    assert Space({"x": Float(-math.inf, math.inf)}) == Space({"x": Float()})


def test_only_the_first_arguments_of_a_variable_may_be_positional():
    for make in (
        lambda: Float(1, 2, True),
        lambda: Int(1, 5, 2, True),
        lambda: Bool(0.5),
        lambda: Discrete([1], 2),
    ):
        with pytest.raises(TypeError, match="positional"):
            make()


@pytest.mark.parametrize("number", [np.float32, np.float64, np.int16, Fraction])
def test_float_bounds_of_any_real_type_become_python_floats(number):
    variable = Space({"x": Float(number(1), number(4), mean=number(2), std=number(3))})["x"]
    assert [type(v) for v in (variable.low, variable.high, variable.mean, variable.std)] == [float] * 4
    assert variable == Float(1.0, 4.0, mean=2.0, std=3.0)


@pytest.mark.parametrize("number", [np.int8, np.uint16, np.int64])
def test_int_bounds_of_any_integer_type_become_python_ints(number):
    variable = Space({"n": Int(number(1), number(9), number(2))})["n"]
    assert [type(v) for v in (variable.low, variable.high, variable.step)] == [int] * 3
    assert variable == Int(1, 9, 2)


def test_the_values_of_a_set_are_sorted():
    assert Space({"d": Discrete([3.5, -1.0, 2.0])})["d"].values == (-1.0, 2.0, 3.5)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, 1, 2], int),
        ([3, 1.0, 2], float),
        ([0.5, 1.5], float),
        (np.array([3, 1]), int),
        (np.array([3.0, 1.0]), float),
        (range(3), int),
        ({4, 9}, int),
    ],
)
def test_a_set_holds_ints_if_all_its_values_are_ints_otherwise_floats(values, kind):
    assert {type(value) for value in Space({"d": Discrete(values)})["d"].values} == {kind}


def test_a_set_may_be_given_by_a_generator():
    space = Space({"d": Discrete(0.5 * k for k in range(4))})
    assert space["d"].values == (0.0, 0.5, 1.0, 1.5)
    assert space["d"].size == 4
    assert space == Space({"d": Discrete([0.0, 0.5, 1.0, 1.5])})


@pytest.mark.parametrize("variable", MIXED.values(), ids=lambda v: v.kind)
def test_variables_cannot_be_changed(variable):
    with pytest.raises(dataclasses.FrozenInstanceError):
        variable.mean = 3.0


def test_a_space_is_a_mapping_in_the_order_given():
    space = Space(MIXED)
    assert list(space) == list(space.names) == list(MIXED)
    assert len(space) == len(MIXED)
    assert "ribs" in space
    assert "spokes" not in space
    assert dict(space)["ribs"] == Int(1, 12)


def test_a_space_is_independent_of_what_it_was_made_of():
    values, variables = [2.0, 1.0], {}
    variables["d"] = Discrete(values)
    space = Space(variables)
    assert values == [2.0, 1.0]
    values.append(3.0)
    variables["x"] = Float()
    assert space == Space({"d": Discrete([1.0, 2.0])})


def test_a_space_of_a_space_is_the_same_space():
    space = Space(MIXED)
    assert Space(space) == space


# Equality


def test_spaces_of_the_same_variables_are_equal_and_hash_alike():
    one = Space({"x": Float(0, 1), "d": Discrete([2, 1])})
    other = Space({"x": Float(np.float64(0), 1.0), "d": Discrete(np.array([1, 2]))})
    assert one == other
    assert hash(one) == hash(other)
    assert {one: "found"}[other] == "found"


@pytest.mark.parametrize(
    "other",
    [
        {"y": Float(0, 1), "n": Int(0, 1)},
        {"n": Int(0, 1), "x": Float(0, 1)},
        {"x": Float(0, 2), "n": Int(0, 1)},
        {"x": Float(0, 1, mean=0.5), "n": Int(0, 1)},
        {"x": Float(0, 1), "n": Bool()},
        {"x": Float(0, 1), "n": Discrete([0, 1])},
        {"x": Float(0, 1)},
    ],
    ids=["name", "order", "bound", "mean", "bool", "set", "fewer"],
)
def test_spaces_that_differ_in_anything_are_unequal(other):
    assert Space({"x": Float(0, 1), "n": Int(0, 1)}) != Space(other)


def test_a_space_is_not_a_dict():
    assert Space({"x": Float(0, 1)}) != {"x": Float(0, 1)}


# Constants and sizes


@pytest.mark.parametrize(
    ("variable", "constant"),
    [
        (Float(2, 2), 2.0),
        (Float(0, 0), 0.0),
        (Int(7, 7), 7),
        (Int(0, 0), 0),
        (Int(3, 3, 5), 3),
        (Discrete([0.5]), 0.5),
        (Discrete([0]), 0),
    ],
)
def test_a_variable_with_one_value_is_a_constant_of_its_type(variable, constant):
    space = Space({"c": variable, "x": Float(0, 1)})
    assert space.constants == {"c": constant}
    assert type(space.constants["c"]) is type(constant)
    assert list(space.free) == ["x"]


@pytest.mark.parametrize(
    "variable", [Float(0, 1), Float(0), Float(None, 0), Float(), Int(0, 1), Bool(), Discrete([0, 1])]
)
def test_a_variable_with_several_values_is_free(variable):
    space = Space({"v": variable})
    assert list(space.free) == ["v"]
    assert space.constants == {}


@pytest.mark.parametrize(
    ("variables", "size"),
    [
        ({"n": Int(1, 12)}, 12),
        ({"n": Int(0, 20, 5)}, 5),
        ({"b": Bool()}, 2),
        ({"d": Discrete([1, 5, 9])}, 3),
        ({"n": Int(1, 12), "b": Bool(), "d": Discrete([1, 5, 9])}, 72),
        ({"n": Int(-(2**61), 2**61), "m": Int(0, 2**62)}, (2**62 + 1) ** 2),
        ({"n": Int(1, 12), "c": Float(3, 3)}, 12),
        ({"c": Float(3, 3)}, 1),
        ({"n": Int(1, 12), "x": Float(0, 1)}, None),
    ],
)
def test_the_size_of_a_space_is_the_number_of_its_points(variables, size):
    assert Space(variables).size == size


# Parameters


def test_checked_parameters_have_the_order_and_the_types_of_the_space():
    space = Space(MIXED)
    given_ = {
        "teeth": np.int64(20),
        "wire": np.float64(0.2),
        "lined": np.bool_(True),
        "ribs": np.int8(3),
        "fixed": 7,
        "radius": 42,
    }
    checked = space.check_params(given_)
    assert list(checked.items()) == [
        ("radius", 42.0),
        ("fixed", 7),
        ("ribs", 3),
        ("lined", True),
        ("wire", 0.2),
        ("teeth", 20),
    ]
    assert [type(value) for value in checked.values()] == [float, int, int, bool, float, int]


def test_checking_parameters_leaves_them_as_they_are():
    given_ = {"n": np.int64(3)}
    assert Space({"n": Int(1, 5)}).check_params(given_) is not given_
    assert type(given_["n"]) is np.int64


def test_a_set_of_ints_gives_the_int_for_a_float_of_the_same_value():
    value = Space({"d": Discrete([10, 20])}).check_params({"d": 20.0})["d"]
    assert (value, type(value)) == (20, int)


# To and from JSON


def test_a_description_holds_the_type_and_what_differs_from_the_defaults():
    space = Space({"x": Float(0, 1), "n": Int(1, 8, log=True), "b": Bool(mean=0.9), "d": Discrete([2, 1])})
    assert space.to_dict() == {
        "x": {"type": "float", "low": 0.0, "high": 1.0},
        "n": {"type": "int", "low": 1, "high": 8, "log": True},
        "b": {"type": "bool", "mean": 0.9},
        "d": {"type": "discrete", "values": [1, 2]},
    }


@given(SPACES)
def test_a_space_survives_json(space):
    restored = Space.from_json(space.to_json())
    assert restored == space
    assert hash(restored) == hash(space)
    assert repr(restored) == repr(space)  # the types too: 1 == 1.0


@given(SPACES)
def test_the_json_of_a_space_is_strict(space):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    assert list(json.loads(space.to_json(), parse_constant=refuse)) == list(space)


@given(SPACES)
def test_a_space_survives_pickle_and_its_own_repr(space):
    assert pickle.loads(pickle.dumps(space)) == space
    names = {cls.__name__: cls for cls in (Space, Float, Int, Bool, Discrete)}
    assert eval(repr(space), names) == space


def test_a_description_is_left_as_it_is():
    description = {"d": {"type": "discrete", "values": [3, 1, 2]}, "n": {"type": "int", "low": 1, "high": 5}}
    before = json.dumps(description)
    Space.from_dict(description)
    assert json.dumps(description) == before


def test_a_description_and_its_space_share_nothing():
    space = Space({"d": Discrete([1, 2])})
    space.to_dict()["d"]["values"].append(3)
    assert space.to_dict() == {"d": {"type": "discrete", "values": [1, 2]}}


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (Float(5, 1), "variable 'v': expected low <= high, but got low=5.0, high=1.0; swap the two bounds"),
        (Int(12, 1), "variable 'v': expected low <= high, but got low=12, high=1; swap the two bounds"),
        (
            Int(0, 9, 2),
            "variable 'v': expected a step that divides high - low, but got low=0, high=9, step=2; use high=8",
        ),
    ],
)
def test_bounds_are_shown_as_they_are_written(variable, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Space({"v": variable})


def test_a_missing_value_is_not_the_word_nothing():
    space = Space({"a": Float(0, 1), "b": Float(0, 1)})
    with pytest.raises(ValueError, match="variable 'b': expected a value, but got nothing; add it"):
        space.check_params({"a": 0.5})
    with pytest.raises(ValueError, match="but got 'nothing'"):
        space.check_params({"a": "nothing", "b": 0.5})
