"""Conditions: variables that exist only where others have certain values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mixcma.space.errors import Words, invalid, nearest

if TYPE_CHECKING:
    from mixcma.space.variables import Value, Variable

# Points are counted where their parents have at most so many combinations of values.
MOST_COMBINATIONS = 5000
PARENTS = "a Categorical, a Bool, an Int or a Discrete"


class When(Mapping[str, tuple["Value", ...]]):
    """The condition of a variable: for each of its parents, the values with which the variable exists.

    Examples
    --------
    >>> When({"model": "svm", "layers": [2, 3]})
    {'model': ('svm',), 'layers': (2, 3)}
    """

    def __init__(self, condition: Mapping[str, Any]) -> None:
        self._allowed = {parent: _listed(values) for parent, values in condition.items()}

    def __getitem__(self, parent: str) -> tuple[Value, ...]:
        return self._allowed[parent]

    def __iter__(self) -> Iterator[str]:
        return iter(self._allowed)

    def __len__(self) -> int:
        return len(self._allowed)

    def __repr__(self) -> str:
        return repr(self._allowed)

    def __hash__(self) -> int:
        return hash(tuple(self._allowed.items()))

    def to_dict(self) -> dict[str, list[Value]]:
        """The same in plain dicts and lists."""
        return {parent: list(values) for parent, values in self._allowed.items()}


def _listed(values: Any) -> tuple[Value, ...]:
    """One value, or several."""
    several = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
    return tuple(values) if several else (values,)


def checked_conditions(variables: Mapping[str, Variable]) -> dict[str, Variable]:
    """The variables with their conditions in the types of their parents, or a ValueError that says what is wrong."""
    return {name: _with_checked_condition(name, variable, variables) for name, variable in variables.items()}


def _with_checked_condition(name: str, variable: Variable, variables: Mapping[str, Variable]) -> Variable:
    if variable.when is None:
        return variable
    allowed: dict[str, tuple[Value, ...]] = {}
    for parent, values in variable.when.items():
        if parent == name:
            invalid(name, "a condition on another variable", dict(variable.when), "remove its own name from when")
        if parent not in variables:
            expected = f"a variable of the space in when{nearest(parent, [n for n in variables if n != name])}"
            invalid(name, expected, parent, f"add {parent!r} to the space, or correct the name")
        if variables[parent].size is None:
            remedy = f"make {parent!r} one of these, or add a Bool that says whether {name!r} exists"
            invalid(name, f"{PARENTS} as the parent in when", Words(f"{parent!r}, a Float"), remedy)
        allowed[parent] = tuple(_value_of_parent(name, parent, variables[parent], value) for value in values)
        if not values:
            invalid(name, f"at least one value of {parent!r} in when", list(values), "list the values, or remove it")
    return variable.with_condition(When(allowed))


def _value_of_parent(name: str, parent: str, variable: Variable, value: object) -> Value:
    try:
        return variable.check_value(parent, value)
    except ValueError:
        expected = f"values in when that {parent!r} can take"
        return invalid(name, expected, value, f"use {_possible(variable)}")


def _possible(variable: Variable) -> str:
    """The values of a variable that is no float, in words."""
    low, high = variable.hull
    listed = getattr(variable, "choices", getattr(variable, "values", (False, True)))
    return f"integers from {low:g} to {high:g}" if variable.kind == "int" else f"some of {list(listed)!r:.60}"


def flattened(variables: Mapping[str, Variable]) -> dict[str, dict[str, tuple[Value, ...]]]:
    """For every variable that has a condition: all that must hold for it to exist, those of its parents included.

    A ValueError if conditions go in a circle, or can never hold together.
    """
    found: dict[str, dict[str, tuple[Value, ...]]] = {}
    for name in variables:
        _flatten(name, variables, found, ())
    return {name: condition for name in variables if (condition := found[name])}


def _flatten(
    name: str,
    variables: Mapping[str, Variable],
    found: dict[str, dict[str, tuple[Value, ...]]],
    path: Sequence[str],
) -> dict[str, tuple[Value, ...]]:
    if name in path:
        circle = " -> ".join([*path[path.index(name) :], name])
        invalid(name, "conditions that do not go in a circle", Words(circle), "remove one of these conditions")
    if name not in found:
        own = variables[name].when or {}
        condition: dict[str, tuple[Value, ...]] = {}
        for parent, values in own.items():
            for ancestor, allowed in [*_flatten(parent, variables, found, (*path, name)).items(), (parent, values)]:
                both = tuple(value for value in condition.get(ancestor, allowed) if value in allowed)
                if not both:
                    given = Words(f"{condition[ancestor]!r:.40} and {allowed!r:.40} for {ancestor!r}")
                    invalid(name, "a condition that can hold", given, "remove one of the two from when")
                condition[ancestor] = both
        found[name] = condition
    return found[name]


def count_points(
    variables: Mapping[str, Variable],
    conditions: Mapping[str, Mapping[str, tuple[Value, ...]]],
    sizes: Mapping[str, int],
) -> int:
    """The number of points of a space without floats; an upper bound if its parents have too many combinations."""
    parents = sorted({parent for condition in conditions.values() for parent in condition if parent in sizes})
    if math.prod(sizes[parent] for parent in parents) > MOST_COMBINATIONS:
        return math.prod(sizes.values())
    constants = {name: variable.only[0] for name, variable in variables.items() if variable.only}
    total = 0
    for values in itertools.product(*(variables[parent].listed for parent in parents)):
        given = {**constants, **dict(zip(parents, values))}
        exists = {n for n in sizes if all(given[p] in allowed for p, allowed in conditions.get(n, {}).items())}
        # a parent that does not exist has no value: one combination stands for all
        if all(parent in exists or given[parent] == variables[parent].listed[0] for parent in parents):
            total += math.prod(sizes[name] for name in exists.difference(parents))
    return total
