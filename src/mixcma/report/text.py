"""Numbers, times and variables as text for people."""

from __future__ import annotations

import math
from datetime import datetime

from mixcma.search.progress import duration
from mixcma.space import Bool, Categorical, Discrete, Float, Int, Space, Value, Variable

INFINITY = "∞"


def number(value: Value, digits: int = 6) -> str:
    """A value with `digits` significant digits; integers, booleans and choices are written in full."""
    if value is None or isinstance(value, bool | int | str):
        return str(value)
    if math.isinf(value):
        return INFINITY if value > 0 else f"-{INFINITY}"
    return f"{value:.{digits}g}"


def sortable(value: Value) -> str:
    """A value as the text that tables are sorted by: numbers as numbers, choices as words."""
    return str(float(value)) if isinstance(value, int | float) else str(value)


def setting(value: object) -> str:
    """A setting in words."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return number(value) if isinstance(value, float) else str(value)


def count(how_many: int, what: str) -> str:
    return f"{how_many:,} {what}{'' if how_many == 1 else 's'}"


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g}% of all" if whole else "none yet"


def span(seconds: float) -> str:
    """A length of time, which may be very short."""
    if seconds < 1e-6:
        return "under 1 µs"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 60 else duration(seconds)


def moment(epoch: float) -> str:
    """A date and a time of day, in the local time zone."""
    return datetime.fromtimestamp(epoch).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def domain(space: Space, name: str) -> str:
    """The values that a variable may take, and where it exists."""
    where = space.where(name)
    return values_text(space[name]) + (f", only where {where}" if where else "")


def values_text(variable: Variable) -> str:
    """The values that a variable may take."""
    if variable.only:
        return "constant"
    if isinstance(variable, Categorical):
        return f"{variable.size} choices"
    if isinstance(variable, Bool):
        return "boolean"
    low, high = variable.hull
    ends = "unbounded" if math.isinf(high) and math.isinf(low) else f"{number(low)} to {number(high)}"
    if isinstance(variable, Discrete):
        return f"{variable.size} values, {ends}"
    log = ", log scale" if isinstance(variable, Float | Int) and variable.log else ""
    step = f" in steps of {variable.step}" if isinstance(variable, Int) and variable.step > 1 else ""
    kind = "integer" if isinstance(variable, Int) else "float"
    return f"{kind}, {ends}{step}{log}"
