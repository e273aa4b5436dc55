"""Python objectives that misbehave at a quarter of the points, and are honest at the others.

A function that returns `honest(p)` after its mischief has a value that must be recorded; the others have none.
Worker processes import these modules, so what only some functions need is imported inside them.
"""

from __future__ import annotations

from dataclasses import dataclass

import hanging  # noqa: F401  # each of these modules enters its functions into the table
import process_state  # noqa: F401
import processes  # noqa: F401
import raising  # noqa: F401
import returning  # noqa: F401
from cases import Params, misbehaves
from registry import CASES, FUNCTIONS, honest

__all__ = ["CASES", "Objective", "honest"]


@dataclass(frozen=True)
class Objective:
    """The objective of a case; it travels to workers by name."""

    name: str

    def __call__(self, p: Params) -> object:
        return FUNCTIONS[self.name](p) if misbehaves(p) else honest(p)
