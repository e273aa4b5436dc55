"""The kinds of variables that a user can declare, and all the checks of them.

A variable is a plain value. It is checked when it is put into a `Space`: only then does it have a name, so that an
error message can say which variable is wrong.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from mixcma.space.conditions import When
from mixcma.space.errors import Words, invalid

# A float, an int, a bool, or one of the choices of a category (a string, a number, a bool or None).
Value = Any

# Larger integers would overflow 64 bits in the computations.
LARGEST_INTEGER = 2**62
# Neighbouring values of a set that are closer than this fraction of its range cannot be told apart in floats.
CLOSEST_VALUES = 1e-12


def _number(name: str, what: str, given: object) -> float:
    """Convert any real number, except a bool, to a float, which may be infinite."""
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        invalid(name, f"a number for {what}", given, f"write {what} as a float or an int")
    try:
        number = float(given)
    except OverflowError:
        invalid(name, f"{what} within the range of floats", given, "rescale the variable, or leave it out")
    if math.isnan(number):
        invalid(name, f"a number for {what}", given, "replace it by a number, or leave it out")
    return number


def _integer(name: str, what: str, given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, numbers.Integral):
        invalid(name, f"an integer for {what}", given, "write a whole number, or use Float or Discrete")
    integer = int(given)
    if abs(integer) > LARGEST_INTEGER:
        invalid(name, f"{what} within -2**62 .. 2**62", given, "use Float(..., log=True) and round it")
    return integer


@dataclass(frozen=True)
class Variable:
    """Base class of all variables; `mean` and `std` say where the search starts and how widely it looks at first.

    `when` says where the variable exists: `{"model": "svm"}`, `{"model": ["svm", "svr"], "scaled": True}`. Its keys are
    variables that are no floats, and all of them must have one of these values. Elsewhere the objective does not
    receive the variable.
    """

    kind: ClassVar[str]
    mean: float | None = field(default=None, kw_only=True)
    std: float | None = field(default=None, kw_only=True)
    when: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.when, Mapping) and not isinstance(self.when, When):
            object.__setattr__(self, "when", When(self.when))

    @property
    def size(self) -> int | None:
        """The number of values, or None for floats."""
        return None

    @property
    def listed(self) -> tuple[Value, ...]:
        """All values in order; none for floats."""
        return ()

    def checked(self, name: str) -> Variable:
        """Return this variable with plain Python numbers, or raise a ValueError that says what is wrong."""
        raise NotImplementedError

    @property
    def only(self) -> tuple[Value, ...]:
        """The only value, if the variable can take just one; otherwise empty."""
        return ()

    def check_value(self, name: str, value: object) -> Value:
        """Return `value` as the Python type of this variable, or raise a ValueError."""
        raise NotImplementedError

    @property
    def hull(self) -> tuple[float, float]:
        """The smallest and the largest value; infinite where there is no bound."""
        raise NotImplementedError

    def with_condition(self, when: When) -> Self:
        """The same variable with another condition."""
        return replace(self, when=when if len(when) else None)

    def check_condition(self, name: str) -> None:
        """Raise a ValueError if `when` is no condition; its parents are known to the space alone."""
        if self.when is not None and not isinstance(self.when, When):
            invalid(name, "a dict from names of variables to their values as when", self.when,
                    'write when={"model": "svm"}')  # fmt: skip

    def check_mean(self, name: str, mean: object) -> float:
        """Return `mean` as a float within the bounds, or raise a ValueError."""
        number, (low, high) = _number(name, "mean", mean), self.hull
        if not low <= number <= high or math.isinf(number):
            invalid(name, f"a finite mean within [{low}, {high}]", number, "move mean into the bounds")
        return number

    def _with_checked_start(self, name: str) -> Self:
        """Return a copy whose `mean` and `std` are floats, or raise a ValueError if they are not valid."""
        mean, std = self.mean, self.std
        if mean is not None:
            mean = self.check_mean(name, mean)
        if std is not None:
            std = _number(name, "std", std)
            if not 0 < std < math.inf:
                invalid(name, "a positive, finite std", std, "leave std out to use a quarter of the range")
        return replace(self, mean=mean, std=std)


@dataclass(frozen=True)
class Float(Variable):
    """A real number, bounded on both sides, on one, or on none.

    Parameters
    ----------
    low, high
        Inclusive bounds; None (or an infinity) means no bound.
    log
        Search on a logarithmic scale; needs ``low > 0``.
    mean, std
        Where the search starts and how widely it looks at first. Defaults: the middle of the range and a
        quarter of the range, or 0 and 1 without bounds. With ``log=True``, `std` is in units of ln(value).

    Examples
    --------
    >>> from mixcma import Space
    >>> Space({"rate": Float(1e-5, 1e-1, log=True)})["rate"].hull
    (1e-05, 0.1)
    """

    kind: ClassVar[str] = "float"
    low: float | None = None
    high: float | None = None
    log: bool = field(default=False, kw_only=True)

    def checked(self, name: str) -> Float:
        low = -math.inf if self.low is None else _number(name, "low", self.low)
        high = math.inf if self.high is None else _number(name, "high", self.high)
        if low > high:
            invalid(name, "low <= high", Words(f"low={low}, high={high}"), "swap the two bounds")
        if low == math.inf or high == -math.inf:
            invalid(name, "bounds that leave finite values", (low, high), "use None for no bound")
        _check_log(name, self.log, low)
        if math.isinf(high - low) and not math.isinf(high) and not math.isinf(low):
            invalid(name, "a range that fits a float", (low, high), "narrow the bounds")
        bounded = replace(self, low=_finite(low), high=_finite(high))
        return bounded._with_checked_start(name)

    @property
    def hull(self) -> tuple[float, float]:
        return -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high

    @property
    def only(self) -> tuple[Value, ...]:
        return (self.low,) if self.low is not None and self.low == self.high else ()

    def check_value(self, name: str, value: object) -> float:
        number, (low, high) = _number(name, "its value", value), self.hull
        if not low <= number <= high or math.isinf(number):
            invalid(name, f"a finite value within [{low}, {high}]", value, "move it into the bounds")
        return number


@dataclass(frozen=True)
class Int(Variable):
    """An integer from `low` to `high`, both included, in steps of `step`.

    Parameters
    ----------
    low, high
        Inclusive bounds. The range may be up to 2**62 wide; the values are never listed in memory.
    step
        The distance between neighbouring values; it must divide ``high - low``.
    log
        Search on a logarithmic scale; needs ``low >= 1``.
    mean, std
        Where the search starts (`mean` may lie between two integers) and how widely it looks at first.
        Defaults: the middle of the range and a quarter of the range.

    Examples
    --------
    >>> from mixcma import Space
    >>> Space({"layers": Int(1, 12), "batch": Int(8, 4096, log=True)}).size
    49068
    """

    kind: ClassVar[str] = "int"
    low: int
    high: int
    step: int = 1
    log: bool = field(default=False, kw_only=True)

    def checked(self, name: str) -> Int:
        low, high = _integer(name, "low", self.low), _integer(name, "high", self.high)
        step = _integer(name, "step", self.step)
        if low > high:
            invalid(name, "low <= high", Words(f"low={low}, high={high}"), "swap the two bounds")
        if step < 1:
            invalid(name, "a step of at least 1", step, "use a positive step")
        if high - low > LARGEST_INTEGER:
            invalid(name, "a range at most 2**62 wide", (low, high), "narrow the bounds")
        if (high - low) % step:
            fitting = high - (high - low) % step
            given = Words(f"low={low}, high={high}, step={step}")
            invalid(name, "a step that divides high - low", given, f"use high={fitting}")
        _check_log(name, self.log, low)
        bounded = replace(self, low=low, high=high, step=step)
        return bounded._with_checked_start(name)

    @property
    def hull(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def size(self) -> int:
        return (self.high - self.low) // self.step + 1

    @property
    def listed(self) -> tuple[Value, ...]:
        return tuple(range(self.low, self.high + 1, self.step))

    @property
    def only(self) -> tuple[Value, ...]:
        return (self.low,) if self.low == self.high else ()

    def check_value(self, name: str, value: object) -> int:
        number = _integer(name, "its value", value)
        if not self.low <= number <= self.high or (number - self.low) % self.step:
            values = f"one of {self.low}, {self.low + self.step}, ..., {self.high}"
            invalid(name, values, value, "take the nearest of these values")
        return number


@dataclass(frozen=True)
class Bool(Variable):
    """True or False.

    `mean` between 0 (False) and 1 (True) says where the search starts; default 0.5.
    """

    kind: ClassVar[str] = "bool"

    @property
    def size(self) -> int:
        return 2

    @property
    def listed(self) -> tuple[Value, ...]:
        return False, True

    def checked(self, name: str) -> Bool:
        return self._with_checked_start(name)

    @property
    def hull(self) -> tuple[float, float]:
        return 0.0, 1.0

    def check_value(self, name: str, value: object) -> bool:
        if not isinstance(value, bool) and type(value).__name__ != "bool":
            invalid(name, "True or False", value, "pass a bool")
        return bool(value)


@dataclass(frozen=True)
class Discrete(Variable):
    """One of a set of numbers, which may be listed in any order; the search treats close numbers as neighbours.

    The objective receives ints if all the values are ints, otherwise floats.

    Examples
    --------
    >>> from mixcma import Space
    >>> Space({"wire": Discrete([0.2, 0.1, 0.4])})["wire"].values
    (0.1, 0.2, 0.4)
    """

    kind: ClassVar[str] = "discrete"
    values: tuple[float, ...] | Iterable[float]

    def checked(self, name: str) -> Discrete:
        if isinstance(self.values, str | bytes) or not isinstance(self.values, Iterable):
            invalid(name, "a list of numbers", self.values, "write Discrete([v1, v2, ...])")
        given = list(self.values)
        if not given:
            invalid(name, "at least one value", given, "list the values that the variable may take")
        numbers_ = [_number(name, "each value", value) for value in given]
        if any(math.isinf(number) for number in numbers_):
            invalid(name, "finite values", given, "leave the infinities out")
        if len(set(numbers_)) < len(numbers_):
            twice = sorted({number for number in numbers_ if numbers_.count(number) > 1})
            invalid(name, "distinct values", twice, "list each value only once (values are compared as 64-bit floats)")
        integral = all(isinstance(value, numbers.Integral) for value in given)
        values = tuple(sorted(int(v) if integral else float(v) for v in given))
        extent = float(values[-1]) - float(values[0])
        if math.isinf(extent):
            invalid(name, "a range that fits a float", given, "rescale the values")
        for lower, upper in itertools.pairwise(values):
            if upper - lower < CLOSEST_VALUES * extent:
                expected = f"values that are at least {CLOSEST_VALUES:g} of their range apart"
                invalid(name, expected, (lower, upper), "use an Int as an index into the list, or drop one of the two")
        listed = replace(self, values=values)
        return listed._with_checked_start(name)

    @property
    def hull(self) -> tuple[float, float]:
        values = tuple(self.values)
        return values[0], values[-1]

    @property
    def size(self) -> int:
        return len(tuple(self.values))

    @property
    def listed(self) -> tuple[Value, ...]:
        return tuple(self.values)

    @property
    def only(self) -> tuple[Value, ...]:
        values = tuple(self.values)
        return values if len(values) == 1 else ()

    def check_value(self, name: str, value: object) -> float:
        number = _number(name, "its value", value)
        for known in self.values:
            if known == number:
                return known
        return invalid(name, "one of its values", value, "take the nearest of its values")


@dataclass(frozen=True)
class Categorical(Variable):
    """One of several choices that have no order: strings, numbers, booleans or None.

    The search learns a probability for each choice. Where neighbouring choices resemble each other, `Int` or
    `Discrete` need fewer evaluations.

    Parameters
    ----------
    choices
        The objective receives exactly these values. They must be distinct; values that Python considers equal,
        such as 1 and True, count as the same choice.

    Examples
    --------
    >>> from mixcma import Space
    >>> Space({"kernel": Categorical(["rbf", "linear", None])}).size
    3
    """

    kind: ClassVar[str] = "categorical"
    choices: tuple[Value, ...] | Iterable[Value]

    def checked(self, name: str) -> Categorical:
        if self.mean is not None or self.std is not None:
            given = {"mean": self.mean, "std": self.std}
            invalid(name, "a Categorical without mean and std", given, "leave them out: choices have no order")
        if isinstance(self.choices, str | bytes) or not isinstance(self.choices, Iterable):
            invalid(name, "a list of choices", self.choices, 'write Categorical(["a", "b", ...])')
        choices = [_choice(name, choice) for choice in self.choices]
        if not choices:
            invalid(name, "at least one choice", choices, "list the choices that the variable may take")
        twice = [choice for i, choice in enumerate(choices) if choice in choices[:i]]
        if twice:
            invalid(name, "distinct choices", twice, "list each choice only once (1, 1.0 and True are the same choice)")
        return replace(self, choices=tuple(choices))

    @property
    def hull(self) -> tuple[float, float]:
        """The smallest and the largest index into the list of choices."""
        return 0.0, self.size - 1.0

    @property
    def size(self) -> int:
        return len(tuple(self.choices))

    @property
    def listed(self) -> tuple[Value, ...]:
        return tuple(self.choices)

    @property
    def only(self) -> tuple[Value, ...]:
        choices = tuple(self.choices)
        return choices if len(choices) == 1 else ()

    def check_value(self, name: str, value: object) -> Value:
        plain = value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
        for choice in self.choices:
            if choice == plain and isinstance(choice, bool) == isinstance(plain, bool):
                return choice
        return invalid(name, f"one of its choices {list(self.choices)!r:.60}", value, "take one of these")

    def check_mean(self, name: str, mean: object) -> float:
        return invalid(name, "no mean, since choices have no order", mean, "leave this variable out of mean")


def _choice(name: str, given: object) -> Value:
    """Return a choice as a plain Python string, finite number, bool or None, or raise a ValueError."""
    plain = given.item() if type(given).__module__ == "numpy" and hasattr(given, "item") else given
    if plain is None or isinstance(plain, str | bool | int) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    return invalid(
        name,
        "choices that are strings, finite numbers, booleans or None",
        given,
        "use a name for each choice, and look the object up in the objective",
    )


def _check_log(name: str, log: object, low: float) -> None:
    if not isinstance(log, bool):
        invalid(name, "True or False for log", log, "pass log=True, or leave log out")
    if log and not 0 < low < math.inf:
        invalid(name, "low > 0 with log=True", low, "raise low above 0, or drop log=True")


def _finite(bound: float) -> float | None:
    return None if math.isinf(bound) else bound
