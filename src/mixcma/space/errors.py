"""The words of an error in what a user has declared."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn


class Words(str):
    """A text that is not itself the value that was given: error messages show it without quotes."""

    __repr__ = str.__str__


def invalid(name: str, expected: str, given: object, remedy: str) -> NoReturn:
    """Raise a ValueError that says which variable is wrong, what was expected, what was given, and what to do."""
    shown = repr(given)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    raise ValueError(f"variable {name!r}: expected {expected}, but got {shown}; {remedy}")


def nearest(word: object, known: Iterable[str]) -> str:
    """A question, where one of the known words resembles this one."""
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
