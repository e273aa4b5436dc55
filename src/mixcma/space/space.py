"""Space: the named variables that a search may vary, in a fixed order, and their conversion to and from JSON."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from mixcma.space.variables import Bool, Categorical, Discrete, Float, Int, Value, Variable, Words, invalid

Params = dict[str, Value]
KINDS: dict[str, type[Variable]] = {cls.kind: cls for cls in (Float, Int, Bool, Discrete, Categorical)}


class Space(Mapping[str, Variable]):
    """Named variables in a fixed order.

    Examples
    --------
    >>> space = Space({"ribs": Int(1, 12), "lined": Bool(), "radius": Float(10, 200)})
    >>> space.names
    ('ribs', 'lined', 'radius')
    >>> Space.from_json(space.to_json()) == space
    True
    """

    def __init__(self, variables: Mapping[str, Variable]) -> None:
        if not isinstance(variables, Mapping) or not variables:
            raise ValueError(
                f"a Space: expected a mapping from names to variables with at least one entry, "
                f'but got {variables!r}; write Space({{"x": Float(0, 1)}})'
            )
        self._variables = {name: _checked(name, given) for name, given in variables.items()}

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
    def size(self) -> int | None:
        """The number of points, or None if it is infinite because a variable is a float."""
        sizes = [variable.size for variable in self.free.values()]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    def check_params(self, params: Mapping[str, Any]) -> Params:
        """Return `params` in this space's order and with its types, or raise a ValueError that says what is wrong."""
        if not isinstance(params, Mapping):
            raise ValueError(f"params: expected a mapping from names to values, but got {params!r:.80}; pass a dict")
        for name in params:
            if name not in self._variables:
                invalid(str(name), f"a variable of the space{_nearest(name, self)}", name, "remove it")
        for name in self._variables:
            if name not in params:
                invalid(name, "a value", Words("nothing"), "add it to the parameters")
        return {n: v.check_value(n, params[n]) for n, v in self._variables.items()}

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
    return variable.checked(name)


def _describe(variable: Variable) -> dict[str, Any]:
    """The type of a variable, and those of its fields that differ from their defaults."""
    table: dict[str, Any] = {"type": variable.kind}
    for item in fields(variable):
        value = getattr(variable, item.name)
        if value != item.default:
            table[item.name] = list(value) if isinstance(value, tuple) else value
    return table


def _construct(name: str, table: object) -> Variable:
    if not isinstance(table, Mapping):
        invalid(name, "a table that describes the variable", table, 'write {"type": "float", ...}')
    options = dict(table)
    kind = options.pop("type", None)
    if not isinstance(kind, str) or kind not in KINDS:
        remedy = f'set "type" to one of {", ".join(KINDS)}'
        invalid(name, f"a known type{_nearest(kind, KINDS)}", kind, remedy)
    known = [item.name for item in fields(KINDS[kind])]
    for key in options:
        if key not in known:
            remedy = f"remove it; {kind} takes {', '.join(known)}"
            invalid(name, f"a known key{_nearest(key, known)}", key, remedy)
    try:
        return KINDS[kind](**options)
    except TypeError:
        needed = {"int": "low and high", "discrete": "values", "categorical": "choices"}[kind]
        invalid(name, f"{needed} of the {kind}", dict(table), f"add {needed}")


def _nearest(word: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
