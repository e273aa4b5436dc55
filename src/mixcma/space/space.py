"""Space: the named variables that a search may vary, in a fixed order, and their conversion to and from JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from mixcma.space.conditions import When, checked_conditions, count_points, flattened
from mixcma.space.errors import Words, invalid, nearest
from mixcma.space.variables import Bool, Categorical, Discrete, Float, Int, Value, Variable

Params = dict[str, Value]
# What stands in a row for a variable that does not exist at a point; no variable has such a value.
ABSENT: tuple[()] = ()
KINDS: dict[str, type[Variable]] = {cls.kind: cls for cls in (Float, Int, Bool, Discrete, Categorical)}


class Space(Mapping[str, Variable]):
    """Named variables in a fixed order.

    A variable with `when` exists only where its condition holds; a point has values for the variables that exist.

    Examples
    --------
    >>> space = Space({"ribs": Int(1, 12), "lined": Bool(), "radius": Float(10, 200)})
    >>> space.names
    ('ribs', 'lined', 'radius')
    >>> Space.from_json(space.to_json()) == space
    True
    >>> models = Space({"model": Categorical(["svm", "forest"]), "depth": Int(1, 30, when={"model": "forest"})})
    >>> models.active({"model": "svm", "depth": 7})
    {'model': 'svm'}
    """

    def __init__(self, variables: Mapping[str, Variable]) -> None:
        if not isinstance(variables, Mapping) or not variables:
            raise ValueError(
                f"a Space: expected a mapping from names to variables with at least one entry, "
                f'but got {variables!r}; write Space({{"x": Float(0, 1)}})'
            )
        self._variables = checked_conditions({name: _checked(name, given) for name, given in variables.items()})
        self._conditions = flattened(self._variables)

    def __getitem__(self, name: str) -> Variable:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        return f"Space({self._variables!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return list(self._variables.items()) == list(other._variables.items())

    def __hash__(self) -> int:
        return hash(tuple(self._variables.items()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._variables)

    @property
    def free(self) -> dict[str, Variable]:
        """The variables that can take more than one value, in order."""
        return {n: v for n, v in self._variables.items() if not v.only}

    @property
    def constants(self) -> Params:
        """The values of those variables that can take only one."""
        return {n: v.only[0] for n, v in self._variables.items() if v.only}

    @property
    def conditions(self) -> Mapping[str, Mapping[str, tuple[Value, ...]]]:
        """For every variable that has a condition: all that must hold, the conditions of its parents included."""
        return self._conditions

    @property
    def size(self) -> int | None:
        """The number of points, or None if it is infinite because a variable is a float.

        With conditions on more than a few thousand combinations of values it is an upper bound: the number of points
        if all variables existed everywhere.
        """
        sizes = {name: variable.size for name, variable in self.free.items()}
        finite = {name: size for name, size in sizes.items() if size is not None}
        if len(finite) < len(sizes):
            return None
        return count_points(self._variables, self._conditions, finite)

    def where(self, name: str) -> str:
        """The condition of a variable in words, such as "model is svm or svr and scaled is True"; "" without one."""
        needed = self._conditions.get(name, {}).items()
        return " and ".join(f"{parent} is {' or '.join(map(str, values))}" for parent, values in needed)

    def active(self, params: Params) -> Params:
        """Of values for all variables, or for all that exist: those of the variables that exist."""
        if not self._conditions:
            return params
        return {name: value for name, value in params.items() if self._exists(name, params)}

    def _exists(self, name: str, params: Mapping[str, Value]) -> bool:
        condition = self._conditions.get(name, {})
        return all(parent in params and params[parent] in allowed for parent, allowed in condition.items())

    def row(self, params: Params) -> list[Value]:
        """The values of a point in the order of the variables, `ABSENT` for those that do not exist there."""
        if not self._conditions:
            return list(params.values())
        return [params.get(name, ABSENT) for name in self._variables]

    def from_row(self, row: Sequence[Value]) -> Params:
        """The point that `row` has written down."""
        return {name: value for name, value in zip(self._variables, row) if not is_absent(value)}

    def check_params(self, params: Mapping[str, Any]) -> Params:
        """Return `params` in this space's order and with its types, or raise a ValueError that says what is wrong.

        Values of variables that do not exist there are left out.
        """
        if not isinstance(params, Mapping):
            raise ValueError(f"params: expected a mapping from names to values, but got {params!r:.80}; pass a dict")
        for name in params:
            if name not in self._variables:
                invalid(str(name), f"a variable of the space{nearest(name, self)}", name, "remove it")
        checked = {n: v.check_value(n, params[n]) for n, v in self._variables.items() if n in params and not v.when}
        for name in self._variables:
            self._check_existing(name, params, checked)
        return {name: checked[name] for name in self._variables if name in checked}

    def _check_existing(self, name: str, params: Mapping[str, Any], checked: Params) -> None:
        """Put the value of a variable into `checked`, and before it those of its parents, if it exists."""
        variable = self._variables[name]
        for parent in variable.when or {}:
            self._check_existing(parent, params, checked)
        if name not in checked and self._exists(name, checked):
            if name not in params:
                expected = f"a value, since {self.where(name)}" if variable.when else "a value"
                invalid(name, expected, Words("nothing"), "add it to the parameters")
            checked[name] = variable.check_value(name, params[name])

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Describe the space in plain dicts, lists, numbers and strings."""
        return {name: _describe(variable) for name, variable in self._variables.items()}

    @classmethod
    def from_dict(cls, description: Mapping[str, Mapping[str, Any]]) -> Space:
        """Make the space that `to_dict` described."""
        if not isinstance(description, Mapping):
            raise ValueError(f"a Space: expected a mapping from names to tables, but got {description!r};"
                             " describe each variable by a table with a type")  # fmt: skip
        return cls({name: _construct(name, table) for name, table in description.items()})

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Space:
        try:
            description = json.loads(text)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"a Space: expected a JSON text, but got {text!r:.80}; correct the text: {error}"
            ) from error
        return cls.from_dict(description)


def _checked(name: object, variable: object) -> Variable:
    if not isinstance(name, str) or not name:
        invalid(str(name), "a non-empty string as its name", name, "rename it")
    if not isinstance(variable, Variable):
        invalid(name, "Float(...), Int(...), Bool(), Discrete([...]) or Categorical([...])", variable,
                "use one of these, for example Float(0, 1)")  # fmt: skip
    variable.check_condition(name)
    return variable.checked(name)


def is_absent(value: object) -> bool:
    """Whether an entry of a row, which JSON may have made a list, says that the variable does not exist."""
    return isinstance(value, tuple | list) and not value


def _describe(variable: Variable) -> dict[str, Any]:
    """The type of a variable, and those of its fields that differ from their defaults."""
    table: dict[str, Any] = {"type": variable.kind}
    for item in fields(variable):
        value = getattr(variable, item.name)
        if value != item.default:
            table[item.name] = _plain(value)
    return table


def _plain(value: Value | tuple[Value, ...] | When) -> Any:
    if isinstance(value, When):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


def _construct(name: str, table: object) -> Variable:
    if not isinstance(table, Mapping):
        invalid(name, "a table that describes the variable", table, 'write {"type": "float", ...}')
    options = dict(table)
    kind = options.pop("type", None)
    if not isinstance(kind, str) or kind not in KINDS:
        remedy = f'set "type" to one of {", ".join(KINDS)}'
        invalid(name, f"a known type{nearest(kind, KINDS)}", kind, remedy)
    known = [item.name for item in fields(KINDS[kind])]
    for key in options:
        if key not in known:
            remedy = f"remove it; {kind} takes {', '.join(known)}"
            invalid(name, f"a known key{nearest(key, known)}", key, remedy)
    try:
        return KINDS[kind](**options)
    except TypeError:
        needed = {"int": "low and high", "discrete": "values", "categorical": "choices"}[kind]
        invalid(name, f"{needed} of the {kind}", dict(table), f"add {needed}")
