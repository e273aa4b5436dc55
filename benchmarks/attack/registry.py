"""The table of objectives that misbehave, and what the functions in it have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NoReturn

from cases import Case, Params

FOREVER = 600.0  # seconds
LIE = -1000.0  # a value that no point has

CASES: dict[str, Case] = {}
FUNCTIONS: dict[str, Callable[[Params], object]] = {}


def attack(makes: str, **options: Any) -> Callable[[Callable[[Params], object]], Callable[[Params], object]]:
    """Enter a function into the table; its docstring says what it does wrong."""

    def enter(function: Callable[[Params], object]) -> Callable[[Params], object]:
        name = function.__name__
        CASES[name] = Case(name, (function.__doc__ or "").rstrip("."), makes, **options)
        FUNCTIONS[name] = function
        return function

    return enter


def honest(p: Params) -> float:
    """What every objective computes where it behaves."""
    return float((p["x"] - 1.0) ** 2 + 0.1 * p["n"])


def leave(*arguments: object) -> NoReturn:
    """Call for the end of the program."""
    raise SystemExit("asked")


def sleep(*arguments: object) -> float:
    """Take for ever."""
    time.sleep(FOREVER)
    return LIE
