"""mixcma minimises a black box over floats, integers, booleans, number sets and categories, all at once."""

from mixcma.core.methods import CatMargin, Cma, IntegerMutation, Margin, Method, Mix
from mixcma.core.stopping import Stopping, StopReason
from mixcma.run.optimizer import Best, Candidate, Optimizer
from mixcma.run.outcome import Outcome
from mixcma.search.driver import minimize, resume
from mixcma.search.progress import Progress
from mixcma.search.result import Result, Run
from mixcma.space import Bool, Categorical, Discrete, Float, Int, Space
from mixcma.version import __version__

__all__ = [
    "Best",
    "Bool",
    "Candidate",
    "CatMargin",
    "Categorical",
    "Cma",
    "Discrete",
    "Float",
    "Int",
    "IntegerMutation",
    "Margin",
    "Method",
    "Mix",
    "Optimizer",
    "Outcome",
    "Progress",
    "Result",
    "Run",
    "Space",
    "StopReason",
    "Stopping",
    "__version__",
    "minimize",
    "resume",
]
