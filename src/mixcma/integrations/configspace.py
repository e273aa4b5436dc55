"""ConfigSpace: its spaces as spaces of mixcma, and back. Needs ConfigSpace: pip install "mixcma[configspace]"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    GreaterThanCondition,
    InCondition,
    LessThanCondition,
    NotEqualsCondition,
    OrConjunction,
    OrdinalHyperparameter,
)
from ConfigSpace.hyperparameters import FloatHyperparameter, IntegerHyperparameter

from mixcma.space import Bool, Categorical, Discrete, Float, Int, Space, Value, Variable

# Which values of its parent a simple condition allows.
ALLOWS: dict[type, Callable[[Any, Value], bool]] = {
    EqualsCondition: lambda condition, value: bool(value == condition.value),
    NotEqualsCondition: lambda condition, value: bool(value != condition.value),
    InCondition: lambda condition, value: value in list(condition.values),
    LessThanCondition: lambda condition, value: bool(value < condition.value),
    GreaterThanCondition: lambda condition, value: bool(value > condition.value),
}
# An integer with more values than this decides about no other variable.
MOST_VALUES = 1000


def from_configspace(space: ConfigurationSpace) -> Space:
    """The hyperparameters and conditions of a ConfigurationSpace as a `Space`.

    Orders of numbers become Discrete, other orders Categorical. Of normal and beta distributions, the bounds are kept.
    Forbidden clauses are refused: return a constraint above 0 where a combination is not allowed.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace, EqualsCondition
    >>> learners = ConfigurationSpace({"model": ["svm", "forest"], "depth": (1, 30)})
    >>> _ = learners.add(EqualsCondition(learners["depth"], learners["model"], "forest"))
    >>> from_configspace(learners).where("depth")
    'model is forest'
    """
    if space.forbidden_clauses:
        _refuse("no forbidden clauses", space.forbidden_clauses[0], "return a constraint above 0 for such points")
    variables = {name: _variable(hyperparameter) for name, hyperparameter in space.items()}
    conditions: dict[str, dict[str, list[Value]]] = {}
    for condition in space.conditions:
        for child, parent, allowed in _simple(condition, variables):
            own = conditions.setdefault(child, {})
            own[parent] = [value for value in own.get(parent, allowed) if value in allowed]
    return Space({name: _with(variable, conditions.get(name)) for name, variable in variables.items()})


def to_configspace(space: Space, seed: int | None = None) -> ConfigurationSpace:
    """A `Space` as a ConfigurationSpace; floats without bounds are refused, and number sets become orders."""
    found = ConfigurationSpace(seed=seed)
    for name, variable in space.items():
        found.add(_hyperparameter(name, variable))
    for name, variable in space.items():
        when = (variable.when or {}).items()
        parts = [InCondition(found[name], found[parent], list(values)) for parent, values in when]
        if parts:
            found.add(parts[0] if len(parts) == 1 else AndConjunction(*parts))
    return found


def _variable(hyperparameter: Any) -> Variable:
    if isinstance(hyperparameter, Constant):
        return Categorical([_plain(hyperparameter.value)])
    if isinstance(hyperparameter, CategoricalHyperparameter):
        choices = list(map(_plain, hyperparameter.choices))
        return Bool() if sorted(map(repr, choices)) == ["False", "True"] else Categorical(choices)
    if isinstance(hyperparameter, OrdinalHyperparameter):
        sequence = list(map(_plain, hyperparameter.sequence))
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in sequence)
        return Discrete(sequence) if numbers else Categorical(sequence)
    log = bool(getattr(hyperparameter, "log", False))
    low, high = getattr(hyperparameter, "lower", None), getattr(hyperparameter, "upper", None)
    if isinstance(hyperparameter, IntegerHyperparameter) and low is not None and high is not None:
        return Int(int(low), int(high), log=log and low >= 1)
    if isinstance(hyperparameter, FloatHyperparameter):
        return Float(_bound(low), _bound(high), log=log)
    return _refuse("hyperparameters with bounds", hyperparameter, "use a uniform one")


def _bound(end: float | None) -> float | None:
    return None if end is None or math.isinf(end) else float(end)


def _plain(value: Any) -> Value:
    return value.item() if hasattr(value, "item") else value


def _simple(condition: Any, variables: dict[str, Variable]) -> Iterable[tuple[str, str, list[Value]]]:
    """Conditions with one parent each, all of which must hold: child, parent, and the parent's values."""
    if isinstance(condition, AndConjunction):
        return [each for part in condition.components for each in _simple(part, variables)]
    if isinstance(condition, OrConjunction):
        parts = [each for part in condition.components for each in _simple(part, variables)]
        if len({parent for _, parent, _ in parts}) > 1:
            _refuse("alternatives on one parent only", condition, "add a Categorical that says which of them holds")
        return [(parts[0][0], parts[0][1], [value for _, _, allowed in parts for value in allowed])]
    parent = condition.parent.name
    if variables[parent].size is None or (variables[parent].size or 0) > MOST_VALUES:
        _refuse(f"parents with at most {MOST_VALUES} values", condition, "add a Bool that says whether it holds")
    allowed = [value for value in variables[parent].listed if ALLOWS[type(condition)](condition, value)]
    return [(condition.child.name, parent, allowed)]


def _with(variable: Variable, when: dict[str, list[Value]] | None) -> Variable:
    return variable if when is None else replace(variable, when=when)


def _hyperparameter(name: str, variable: Variable) -> Any:
    from ConfigSpace import Float as FloatOf
    from ConfigSpace import Integer

    if isinstance(variable, Float):
        if variable.low is None or variable.high is None:
            _refuse("floats with bounds", f"{name} without", "give it both")
        return FloatOf(name, (variable.low, variable.high), log=variable.log)
    if isinstance(variable, Int) and variable.step == 1 and variable.size > 1:
        return Integer(name, (variable.low, variable.high), log=variable.log)
    if isinstance(variable, Categorical | Bool):
        return CategoricalHyperparameter(name, list(variable.listed))
    return OrdinalHyperparameter(name, list(variable.listed))


def _refuse(expected: str, given: object, remedy: str) -> NoReturn:
    raise ValueError(f"a ConfigurationSpace: expected {expected}, but got {given!s:.120}; {remedy}")
