"""Spaces of ConfigSpace, in both directions."""

from __future__ import annotations

import pytest

pytest.importorskip("ConfigSpace")
from ConfigSpace import (
    AndConjunction,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    ForbiddenEqualsClause,
    GreaterThanCondition,
    InCondition,
    Integer,
    LessThanCondition,
    NotEqualsCondition,
    OrConjunction,
    OrdinalHyperparameter,
)
from ConfigSpace import (
    Categorical as CategoricalOf,
)
from ConfigSpace import (
    Float as FloatOf,
)

from mixcma import Bool, Categorical, Discrete, Float, Int, Space, minimize
from mixcma.integrations.configspace import from_configspace, to_configspace


def learners():
    space = ConfigurationSpace(seed=1)
    space.add(
        CategoricalOf("model", ["svm", "forest", "knn"]), CategoricalOf("scaled", [True, False]),
        FloatOf("C", (1e-3, 1e3), log=True), Integer("layers", (1, 4)), Integer("k", (1, 50), log=True),
        FloatOf("last", (0.0, 1.0)), FloatOf("middle", (0.0, 1.0)), FloatOf("other", (0.0, 1.0)),
        OrdinalHyperparameter("wire", [0.1, 0.5, 2.0]), OrdinalHyperparameter("size", ["small", "large"]),
        Constant("fixed", 7),
    )  # fmt: skip
    equals = {(c, p, v): EqualsCondition(space[c], space[p], v) for c, p, v in (
        ("C", "model", "svm"), ("C", "scaled", True), ("other", "model", "svm"), ("other", "model", "knn"),
    )}  # fmt: skip
    more, less = GreaterThanCondition(space["middle"], space["layers"], 1), LessThanCondition
    space.add(
        AndConjunction(equals["C", "model", "svm"], equals["C", "scaled", True]),
        InCondition(space["k"], space["model"], ["knn", "forest"]),
        GreaterThanCondition(space["last"], space["layers"], 2),
        AndConjunction(more, less(space["middle"], space["layers"], 4)),
        OrConjunction(equals["other", "model", "svm"], equals["other", "model", "knn"]),
        NotEqualsCondition(space["wire"], space["size"], "small"),
    )
    return space


def test_a_space_is_read():
    assert dict(from_configspace(learners())) == dict(
        Space(
            {
                "C": Float(1e-3, 1e3, log=True, when={"model": "svm", "scaled": True}),
                "fixed": Categorical([7]),
                "k": Int(1, 50, log=True, when={"model": ["forest", "knn"]}),
                "last": Float(0, 1, when={"layers": [3, 4]}),
                "layers": Int(1, 4),
                "middle": Float(0, 1, when={"layers": [2, 3]}),
                "model": Categorical(["svm", "forest", "knn"]),
                "other": Float(0, 1, when={"model": ["svm", "knn"]}),
                "scaled": Bool(),
                "size": Categorical(["small", "large"]),
                "wire": Discrete([0.1, 0.5, 2.0], when={"size": "large"}),
            }
        )
    )


def test_points_of_both_are_the_same():
    space = from_configspace(learners())
    for configuration in learners().sample_configuration(200):
        point = {name: value.item() if hasattr(value, "item") else value for name, value in dict(configuration).items()}
        assert space.check_params(point) == {name: point[name] for name in space if name in point}
    there = to_configspace(space, seed=2)
    assert from_configspace(there) == Space({name: space[name] for name in from_configspace(there)})
    for configuration in there.sample_configuration(200):
        assert set(space.check_params(dict(configuration))) == set(dict(configuration))


def test_a_search_over_such_a_space():
    def error(p):
        return (p["layers"] - 3) ** 2 + (p.get("last", 2.0) - 0.25) ** 2 + (p["model"] != "knn")

    result = minimize(error, from_configspace(learners()), budget=100, seed=1)
    assert result.value < 1e-6
    assert "C" not in result.params


def test_what_cannot_be_read_is_refused():
    forbidden, either = learners(), ConfigurationSpace({"a": (0, 1), "b": (0, 1), "x": (0.0, 1.0)})
    forbidden.add(ForbiddenEqualsClause(forbidden["model"], "knn"))
    either.add(
        OrConjunction(EqualsCondition(either["x"], either["a"], 1), EqualsCondition(either["x"], either["b"], 1))
    )
    with pytest.raises(ValueError, match=r"forbidden clauses.*constraint"):
        from_configspace(forbidden)
    with pytest.raises(ValueError, match=r"one parent only.*Categorical"):
        from_configspace(either)
    with pytest.raises(ValueError, match="x without; give it both"):
        to_configspace(Space({"x": Float()}))
