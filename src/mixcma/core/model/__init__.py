"""A model of the objective and of each constraint, fitted to what was evaluated (docs/model.md).

The files in the order of that document:

- features.py: a latent point as a row of numbers, and the columns of linear, diagonal and full quadratic models
- polynomial.py: these models, fitted together for all outputs, with honest predictions of the points themselves
- least_squares.py: how they are fitted
- sparse.py: a polynomial with the few products that matter
- floats.py: a polynomial of the floats alone, within points that share their discrete values
- kriging.py: a smooth interpolation for what is not quadratic
- process.py: a Gaussian process with a length for every variable
- improvement.py: where such processes expect the largest feasible improvement
- surrogate.py: which of them is believed, and what it predicts
- descent.py: where the quadratic model is least: integers and choices step by step, floats carried along
- local.py: quadratic models of the value and of each constraint around the best point
- constrained.py: where the one is least among the points that the others allow
- region.py: how far these are believed, and by what margin the constraints are to be met
- trust.py: how many candidates of a generation are evaluated, and when the model proposes points of its own

All of it is for a single run and for NumPy, and runs on one thread (threads.py).
"""

from mixcma.core.model.surrogate import Surrogate, fit_surrogate
from mixcma.core.model.trust import Trust

__all__ = ["Surrogate", "Trust", "fit_surrogate"]
