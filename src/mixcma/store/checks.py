"""Whether the values in a run file have the types that they should have, whoever wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mixcma.store.schema import TABLES

_TYPES = {"INTEGER": int, "REAL": float, "TEXT": str, "BLOB": bytes}
# The columns that may be NULL.
_OPTIONAL = {"run": {"stop"}, "evaluation": set(list(TABLES["evaluation"])[6:])}
_NUMBER, _NOTHING = (int, float), type(None)
# The settings that every run file has, and their types.
SETTINGS: dict[str, tuple[type, ...]] = {
    "space": (dict,),
    "method": (dict,),
    "seed": (int,),
    "popsize": (int,),
    "budget": (int,),
    "target": (*_NUMBER, _NOTHING),
    "restarts": (int,),  # or a bool, which is one
    "cache": (bool,),
    "asynchronous": (bool,),
    "stopping": (dict,),
    "versions": (dict,),
    "created": _NUMBER,
    "stop": (str, _NOTHING),
    "notes": (dict,),
}
_PROBLEM = ("text", "folder", "path")


def allowed_types(table: str) -> list[set[type]]:
    """For each column of a table, the types that its values may have."""
    optional = _OPTIONAL.get(table, set())
    return [
        {_TYPES[kind.split()[0]], *([_NOTHING] if name in optional else [])} for name, kind in TABLES[table].items()
    ]


def check_types(table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Raise a ValueError if a value of these rows has another type than its column."""
    allowed = allowed_types(table)
    for row in rows:
        for value, types in zip(row, allowed):
            if type(value) not in types:
                raise ValueError(f"{table} {row[0]} has {value!r:.80} where something else belongs")


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise a ValueError if a setting is missing, or is of another type than it should be."""
    for name, types in SETTINGS.items():
        if name not in settings:
            raise ValueError(f"the setting {name} is missing")
        value = settings[name]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types and name != "restarts"):
            raise ValueError(f"the setting {name} is {value!r:.80}")
    if not isinstance(settings["method"].get("type"), str):
        raise ValueError(f"the setting method is {settings['method']!r:.80}")
    problem = settings["notes"].get("problem")
    if problem is not None and not (
        isinstance(problem, dict) and all(isinstance(problem.get(key), str) for key in _PROBLEM)
    ):
        raise ValueError(f"the note about the problem is {problem!r:.80}")
