"""Thousands of independent runs at once: the same core, with a leading batch axis, on NumPy or JAX.

Every run has its own noise, from the counter (seed, trial), so its result does not depend on which others
share the batch. Runs end when they succeed, or by the paper's conditions, which are looked at whenever
C is decomposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mixcma.batch import on_numpy
from mixcma.batch.task import BatchProblem, Rules, Runs, Watch, prepare
from mixcma.core.methods import Method
from mixcma.core.stopping import PAPER_STOPPING, Stopping
from mixcma.run.optimizer import DEFAULT_METHOD

__all__ = ["Backend", "BatchProblem", "BatchResult", "Watch", "run_many"]

Backend = Literal["numpy", "jax"]
Engine = Callable[[Rules, Runs, Watch | None], tuple[NDArray[np.int64], NDArray[np.float64]]]
# Evaluations a run; no run of the paper's table comes near.
LONGEST = 2_000_000


@dataclass(frozen=True)
class BatchResult:
    """The ends of many runs, arrays in the order of the trials.

    Attributes
    ----------
    evaluations
        Spent by each run, by whole generations.
    best_value
        The least (penalised) value of each run.
    success
        Whether that is below the problem's bound.
    """

    evaluations: NDArray[np.int64]
    best_value: NDArray[np.float64]
    success: NDArray[np.bool_]


def run_many(
    problem: BatchProblem | Sequence[BatchProblem],
    method: str | Method = DEFAULT_METHOD,
    trials: int | Sequence[int] = 100,
    seed: int = 0,
    *,
    backend: Backend = "numpy",
    popsize: int | None = None,
    alpha: Sequence[float] | NDArray[np.float64] | None = None,
    stopping: Stopping = PAPER_STOPPING,
    budget: int = LONGEST,
    watch: Watch | None = None,
) -> BatchResult:
    """Run many trials of one method as one batch.

    Parameters
    ----------
    problem
        A `mixcma.problems.Problem`, or anything with the same four attributes; or several over one space,
        whose runs then follow each other, problem by problem.
    trials
        How many, or the numbers of the trials; trial k is the same run in any company.
    backend
        ``"numpy"``: finished runs are dropped. ``"jax"``: the whole loop is compiled, for a CPU or a GPU.
    alpha
        A margin for each run, with the method ``"margin"``.
    budget
        The most evaluations of a run.
    watch
        Called whenever C is decomposed, with the generation and the number of runs alive.

    Examples
    --------
    >>> from mixcma.problems import problem
    >>> result = run_many(problem("SphereInt", 6), "margin", trials=5, seed=1)
    >>> int(result.success.sum())
    5
    """
    problems = problem if isinstance(problem, Sequence) else [problem]
    rules, runs = prepare(
        problems, method, trials, seed, popsize=popsize, alpha=alpha, stopping=stopping, budget=budget
    )
    evaluations, best = _engine(backend)(rules, runs, watch)
    return BatchResult(evaluations, best, best < rules.target)


def _engine(backend: str) -> Engine:
    if backend == "numpy":
        return on_numpy.run
    if backend != "jax":
        raise ValueError(f'backend: expected "numpy" or "jax", but got {backend!r}; choose one of them')
    try:
        from mixcma.batch import on_jax
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'backend="jax" needs JAX, which is not installed; install it with: pip install jax'
        ) from error
    return on_jax.run
