"""Benchmark problems for optimisers: the functions of the paper, and engineering designs; `practice` has more."""

from __future__ import annotations

from mixcma.problems.engineering import DESIGNS, Design
from mixcma.problems.paper import PAPER_FUNCTIONS, PROBLEMS, Problem, problem

__all__ = ["DESIGNS", "PAPER_FUNCTIONS", "PROBLEMS", "Design", "Problem", "problem"]
