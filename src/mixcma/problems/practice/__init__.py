"""Problems as they come up in practice, where evaluations are few: machines, processes, tuning, choices."""

from __future__ import annotations

from mixcma.problems.engineering import Design
from mixcma.problems.practice.choices import CHOICES
from mixcma.problems.practice.designs import MACHINES
from mixcma.problems.practice.processes import PROCESSES
from mixcma.problems.practice.tuning import TUNING

__all__ = ["PRACTICE"]

PRACTICE: dict[str, Design] = {design.name: design for design in (*MACHINES, *PROCESSES, *TUNING, *CHOICES)}
