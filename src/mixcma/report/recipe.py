"""How to make a run again, and how to go on with it: as code and as commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from mixcma.core.methods import METHODS
from mixcma.core.stopping import Stopping
from mixcma.core.strategy import default_popsize
from mixcma.run.optimizer import DEFAULT_METHOD
from mixcma.search.settings import KINDS, describe_method
from mixcma.space import Variable
from mixcma.store import Record

AGAIN = "again.db"


def python_call(record: Record) -> str:
    """The call of `minimize` that makes the same run again."""
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
        lines.append("# An asynchronous run depends on the times of its evaluations: it will not be the same.")
    if _warm_started(record):
        lines.append("# Its start was shaped by points from elsewhere: pass the same history= again.")
    return "\n".join(lines)


def python_resume(record: Record) -> str:
    budget = 2 * record.settings["budget"]
    return f"import mixcma\n\nresult = mixcma.resume({record.path.name!r}, objective, budget={budget})"


def commands(record: Record) -> str | None:
    """The same as commands, for a run that `mixcma run` has begun."""
    problem = record.settings.get("notes", {}).get("problem")
    if problem is None:
        return None
    seed, budget = record.settings["seed"], record.settings["budget"]
    again = f"mixcma run {shlex.quote(problem['path'])} --seed {seed} --budget {budget} --run-file {AGAIN}"
    return f"{again}\nmixcma resume {shlex.quote(record.path.name)} --budget {2 * budget}"


def variable_code(variable: Variable) -> str:
    """A variable as it is written in Python."""
    given = _unusual(variable)
    first = ("low", "high") if {"low", "high"} <= given.keys() else ("values",)
    parts = [_literal(given.pop(name)) for name in first if name in given]
    parts += [f"{name}={_literal(value)}" for name, value in given.items()]
    return f"{type(variable).__name__}({', '.join(parts)})"


def method_code(described: Mapping[str, Any]) -> str:
    """A method by its name, or with the options that differ from their defaults."""
    for name, method in METHODS.items():
        if described == describe_method(method):
            return repr(name)
    kind = KINDS.get(described["type"])
    if kind is None:
        return f"{described['type']}(...)"
    options = {name: value for name, value in described.items() if name != "type"}
    return _call(kind.__name__, _unusual(kind(**options)))


def _options(record: Record) -> list[str]:
    """The arguments that differ from their defaults, and those that every run should have."""
    settings, space = record.settings, record.space
    options = [f"budget={settings['budget']}", f"seed={settings['seed']}"]
    usual: dict[str, object] = {
        "target": None,
        "popsize": default_popsize(len(space.free)),
        "restarts": True,
        "asynchronous": False,
        "cache": space.size is not None,
    }
    # one restart is not True, though the two are equal
    options += [f"{name}={settings[name]!r}" for name, value in usual.items() if repr(settings[name]) != repr(value)]
    if settings["method"] != describe_method(METHODS[DEFAULT_METHOD]):
        options.append(f"method={method_code(settings['method'])}")
    stopping = Stopping(**settings["stopping"])
    if stopping != Stopping():
        options.append(f"stopping={_call('Stopping', _unusual(stopping))}")
    x0 = [row.params for row in record.rows if row.generation < 0]
    return [*options, f"x0={x0!r}"] if x0 else options


def _warm_started(record: Record) -> bool:
    """Whether the first distribution is not the one that every run starts with."""
    first = next((row for row in record.generations if (row.run, row.generation) == (0, 0)), None)
    return first is not None and not np.allclose(first.deviation, 1.0)


def _unusual(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults."""
    given = {item.name: getattr(value, item.name) for item in fields(value)}
    return {item.name: given[item.name] for item in fields(value) if given[item.name] != item.default}


def _call(name: str, options: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={_literal(value)}' for key, value in options.items())})"


def _literal(value: object) -> str:
    return repr(list(value)) if isinstance(value, Iterable) and not isinstance(value, str) else repr(value)
