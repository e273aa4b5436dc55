"""Turning candidates into outcomes: in this process, in sandboxes, or on an executor that the user provides."""

from mixcma.evaluation.evaluator import Evaluator, Finished, open_evaluator
from mixcma.evaluation.objective import CallResult, Objective
from mixcma.evaluation.workers import Workers, checked_workers

__all__ = ["CallResult", "Evaluator", "Finished", "Objective", "Workers", "checked_workers", "open_evaluator"]
