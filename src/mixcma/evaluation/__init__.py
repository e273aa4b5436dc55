"""Turning candidates into outcomes: in this process, in sandboxes, or on an executor of the user's."""

from mixcma.evaluation.evaluator import Evaluator, Finished, open_evaluator
from mixcma.evaluation.objective import Objective, Report
from mixcma.evaluation.workers import Workers, checked_workers

__all__ = ["Evaluator", "Finished", "Objective", "Report", "Workers", "checked_workers", "open_evaluator"]
