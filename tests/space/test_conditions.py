"""Variables that exist only where others have certain values."""

from __future__ import annotations

import itertools

import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Space

MODELS = Space(
    {
        "depth": Int(1, 30, when={"model": "forest"}),  # before its parent
        "model": Categorical(["svm", "forest", "knn"]),
        "scaled": Bool(),
        "C": Float(1e-3, 1e3, log=True, when={"model": ["svm", "knn"], "scaled": True}),
        "kernel": Categorical(["rbf", "linear"], when={"model": "svm"}),
        "gamma": Float(0, 1, when={"kernel": "rbf"}),
        "fixed": Int(3, 3, when={"model": "knn"}),
    }
)
POINTS = {
    "a branch": {"depth": 7, "model": "forest", "scaled": True},
    "two conditions": {"model": "svm", "scaled": True, "C": 1.0, "kernel": "linear"},
    "nested": {"model": "svm", "scaled": False, "kernel": "rbf", "gamma": 0.5},
    "a constant": {"model": "knn", "scaled": False, "fixed": 3},
}


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_a_point_has_what_exists(point):
    everything = {"depth": 1, "C": 2.0, "kernel": "linear", "gamma": 0.1, "fixed": 3, **point}
    assert MODELS.check_params(point) == point
    assert list(MODELS.check_params(everything)) == list(point)
    assert MODELS.active({name: everything[name] for name in MODELS}) == point
    assert MODELS.from_row(MODELS.row(point)) == point
    for missing in set(point) - {"fixed"}:
        with pytest.raises(ValueError, match=f"'{missing}': expected a value"):
            MODELS.check_params({name: value for name, value in point.items() if name != missing})


def test_json_and_words():
    assert Space.from_json(MODELS.to_json()) == MODELS
    assert hash(Space.from_json(MODELS.to_json())) == hash(MODELS)
    assert MODELS.where("C") == "model is svm or knn and scaled is True"
    assert MODELS.where("gamma") == "model is svm and kernel is rbf"
    assert MODELS.where("model") == ""


SIDES = Categorical(["left", "right"])
WRONG = {
    "unknown parent": ({"a": Float(0, 1, when={"sied": "left"}), "side": SIDES}, ["'a'", "did you mean 'side'", "add"]),
    "itself": ({"a": Bool(when={"a": True})}, ["'a'", "another variable", "remove"]),
    "a float": ({"a": Float(0, 1), "b": Bool(when={"a": 1})}, ["'b'", "'a', a Float", "make 'a' one of these"]),
    "a circle": ({"a": Bool(when={"b": True}), "b": Bool(when={"a": True})}, ["a -> b -> a", "remove one"]),
    "no such value": ({"s": SIDES, "a": Bool(when={"s": "top"})}, ["'a'", "'top'", "['left', 'right']"]),
    "no such integer": ({"n": Int(1, 9, 2), "a": Bool(when={"n": 4})}, ["'a'", "4", "integers from 1 to 9"]),
    "1 is no bool": ({"on": Bool(), "a": Bool(when={"on": 1})}, ["'a'", "got 1", "[False, True]"]),
    "no value": ({"on": Bool(), "a": Bool(when={"on": []})}, ["'a'", "at least one value", "list the values"]),
    "no dict": ({"a": Bool(when="on")}, ["'a'", "a dict", 'write when={"model": "svm"}']),
    "contradiction": (
        {"s": SIDES, "b": Bool(when={"s": "left"}), "c": Bool(when={"b": True, "s": "right"})},
        ["'c'", "can hold", "'left'", "'right'", "remove one"],
    ),
}


@pytest.mark.parametrize(("variables", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(variables, words):
    with pytest.raises(ValueError, match=r"^variable ") as caught:
        Space(variables)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_parents_of_all_kinds():
    space = Space(
        {
            "layers": Int(1, 3),
            "wire": Discrete([0.1, 0.5, 2]),
            "second": Float(0, 1, when={"layers": [2, 3]}),
            "third": Float(0, 1, when={"layers": 3}),
            "coil": Int(1, 5, when={"wire": 2}),
        }
    )
    assert list(space.active({"layers": 2, "wire": 2, "second": 0.5, "third": 0.5, "coil": 1})) == [
        "layers",
        "wire",
        "second",
        "coil",
    ]


COUNTED = {
    "one branch": {"on": Bool(), "n": Int(0, 9, when={"on": True})},
    "nested": {
        "kind": Categorical(list("abc")),
        "on": Bool(when={"kind": ["a", "b"]}),
        "n": Int(1, 4, when={"on": True}),
        "m": Discrete([1, 2, 5], when={"n": [1, 4], "kind": "a"}),
        "one": Int(3, 3, when={"kind": "c"}),
        "free": Int(0, 1),
    },
}


@pytest.mark.parametrize("variables", COUNTED.values(), ids=COUNTED)
def test_points_are_counted(variables):
    space = Space(variables)
    everywhere = [dict(zip(space, values)) for values in itertools.product(*(v.listed for v in space.values()))]
    assert space.size == len({tuple(space.active(values).items()) for values in everywhere})


def test_the_size_of_spaces_with_many_combinations_is_a_bound():
    many = Space({"n": Int(0, 10**6), "m": Int(0, 9, when={"n": [1, 2]})})
    assert many.size == (10**6 + 1) * 10
    assert Space({"on": Bool(), "x": Float(0, 1, when={"on": True})}).size is None
