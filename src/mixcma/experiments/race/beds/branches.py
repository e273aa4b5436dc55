"""The bed ``branches``: choices with parameters of their own, few evaluations; measured as the bed ``practice``."""

from __future__ import annotations

from mixcma.experiments.race.beds.practice import bed_of
from mixcma.problems.branches import BRANCHES

CHECKPOINTS = (50, 100, 150)
BUDGET = CHECKPOINTS[-1]
BED = bed_of("branches", BRANCHES, BUDGET)
