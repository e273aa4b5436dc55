"""How to repeat a run, and how to continue it: as Python code and as commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from mixcma.core.methods import METHODS
from mixcma.core.stopping import Stopping
from mixcma.core.strategy import default_popsize
from mixcma.report.series import encoding_of
from mixcma.run.optimizer import DEFAULT_METHOD
from mixcma.run.warm_start import started_at
from mixcma.search.settings import KINDS, describe_method
from mixcma.space import Variable, When
from mixcma.store import Record

AGAIN = "again.db"


def python_call(record: Record) -> str:
    """The call of `minimize` that repeats the run."""
    settings = record.settings
    options = _options(record)
    used = {type(variable).__name__ for variable in record.space.values()} | {"Space", "minimize"}
    used |= {name for name in (*KINDS, "Stopping") if any(f"={name}(" in option for option in options)}
    lines = [f"from mixcma import {', '.join(sorted(used))}", "", "space = Space(", "    {"]
    lines += [f"        {name!r}: {variable_code(variable)}," for name, variable in record.space.items()]
    lines += ["    }", ")", "result = minimize(", "    objective,  # the function that was minimised", "    space,"]
    lines += [f"    {option}," for option in options]
    lines += [f"    run_file={AGAIN!r},", ")"]
    if settings["asynchronous"]:
        lines.append(
            "# An asynchronous run depends on how long each evaluation takes, so it cannot be repeated exactly."
        )
    if _warm_started(record):
        lines.append("# The run was started with history=: pass the same points again.")
    return "\n".join(lines)


def python_resume(record: Record) -> str:
    budget = 2 * record.settings["budget"]
    return f"import mixcma\n\nresult = mixcma.resume({record.path.name!r}, objective, budget={budget})"


def commands(record: Record) -> str | None:
    """The commands that repeat and continue a run; None if it was not started by `mixcma run`."""
    problem = record.settings.get("notes", {}).get("problem")
    if problem is None:
        return None
    seed, budget = record.settings["seed"], record.settings["budget"]
    again = f"mixcma run {shlex.quote(problem['path'])} --seed {seed} --budget {budget} --run-file {AGAIN}"
    return f"{again}\nmixcma resume {shlex.quote(record.path.name)} --budget {2 * budget}"


def variable_code(variable: Variable) -> str:
    """A variable as it is written in Python."""
    given = _non_defaults(variable)
    first = ("low", "high") if {"low", "high"} <= given.keys() else ("values",)
    parts = [_literal(given.pop(name)) for name in first if name in given]
    parts += [f"{name}={_literal(value)}" for name, value in given.items()]
    return f"{type(variable).__name__}({', '.join(parts)})"


def method_name(described: Mapping[str, Any]) -> str:
    """A method as people call it: its name in METHODS, or its class with its options."""
    return method_code(described).strip("'")


def method_code(described: Mapping[str, Any]) -> str:
    """A method as it is written in Python: its name, or its class with the options that differ from their defaults."""
    for name, method in METHODS.items():
        if described == describe_method(method):
            return repr(name)
    kind = KINDS.get(described["type"])
    if kind is None:
        return f"{described['type']}(...)"
    options = {name: value for name, value in described.items() if name != "type"}
    return _call(kind.__name__, _non_defaults(kind(**options)))


def _options(record: Record) -> list[str]:
    """The arguments that differ from their defaults, and those that every call should state."""
    settings, space = record.settings, record.space
    options = [f"budget={settings['budget']}", f"seed={settings['seed']}"]
    usual: dict[str, object] = {
        "target": None,
        "popsize": default_popsize(len(space.free)),
        "restarts": True,
        "asynchronous": False,
        "cache": space.size is not None,
    }
    # compared as text, because restarts=1 and restarts=True are equal but mean different things
    options += [f"{name}={settings[name]!r}" for name, value in usual.items() if repr(settings[name]) != repr(value)]
    if settings["method"] != describe_method(METHODS[DEFAULT_METHOD]):
        options.append(f"method={method_code(settings['method'])}")
    stopping = Stopping(**settings["stopping"])
    if stopping != Stopping():
        options.append(f"stopping={_call('Stopping', _non_defaults(stopping))}")
    x0 = [row.params for row in record.rows if row.generation < 0]
    return [*options, f"x0={x0!r}"] if x0 else options


def _warm_started(record: Record) -> bool:
    """Whether there was a history: it is kept, or the first distribution is not what it would be without one."""
    if record.history:
        return True
    first = next((row for row in record.generations if (row.run, row.generation) == (0, 0)), None)
    if first is None:
        return False
    encoding = encoding_of(record)
    usual = started_at(encoding, encoding.initial_mean)
    numbers = encoding.dimension - len(usual.theta)  # categories come last, and have no deviation
    if not np.allclose(first.deviation[:numbers], 1.0):
        return True
    moved = any(row.generation < 0 for row in record.rows)  # x0 changes the probabilities too
    return not moved and not np.allclose(first.theta, usual.theta.ravel())


def _non_defaults(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults."""
    given = {item.name: getattr(value, item.name) for item in fields(value)}
    return {item.name: given[item.name] for item in fields(value) if given[item.name] != item.default}


def _call(name: str, options: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={_literal(value)}' for key, value in options.items())})"


def _literal(value: object) -> str:
    if isinstance(value, When):
        return repr(value.to_dict())
    return repr(list(value)) if isinstance(value, Iterable) and not isinstance(value, str) else repr(value)
