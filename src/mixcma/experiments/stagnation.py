"""Section 3: CMA-ES-IM gets stuck on binary variables, with and without the box, and CMA-ES with Margin does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixcma.batch import run_many
from mixcma.core.stopping import PAPER_STOPPING
from mixcma.problems import Problem, problem
from mixcma.run.optimizer import Optimizer

FUNCTION = "SphereOneMax"
DIMENSION = 40
FAILING = ("im", "im-box")


@dataclass(frozen=True)
class Trace:
    """One run, with one row per generation (G rows)."""

    method: str
    trial: int
    names: tuple[str, ...]  # the names of the N coordinates
    mean: NDArray[np.float64]  # (G, N) the mean of each latent coordinate
    deviation: NDArray[np.float64]  # (G, N) the standard deviation of each latent coordinate
    sigma: NDArray[np.float64]  # (G,)
    best: NDArray[np.float64]  # (G,) the lowest value so far
    success: bool


def first_failure(bench: Problem, method: str, seed: int, trials: int = 100) -> int:
    """The number of the first trial that fails; ten trials are run at a time."""
    for start in range(0, trials, 10):
        numbers = range(start, min(start + 10, trials))
        failed = np.flatnonzero(~run_many(bench, method, numbers, seed).success)
        if len(failed):
            return numbers[int(failed[0])]
    raise ValueError(
        f"{method} on {bench.name}, N = {bench.dimension}: expected a failed run among {trials} trials, but got "
        "none; choose a larger dimension"
    )


def trace(bench: Problem, method: str, trial: int, seed: int) -> Trace:
    """Repeat trial `trial` of a batch, and record its state in every generation."""
    optimizer = Optimizer(
        bench.space, method=method, seed=seed, run=trial, mean=bench.start(trial), stopping=PAPER_STOPPING
    )
    means, spreads, sigmas, bests, best = [], [], [], [], np.inf
    while not optimizer.stop and best >= bench.success:
        candidates = optimizer.ask()
        values = [bench(candidate.params) for candidate in candidates]
        optimizer.tell(candidates, values)
        best = min(best, *(v + c.penalty for v, c in zip(values, candidates)))
        means.append(optimizer.state.m)
        spreads.append(optimizer.method.spread(optimizer.state))
        sigmas.append(optimizer.step_size)
        bests.append(best)
    return Trace(
        method=method,
        trial=trial,
        names=optimizer.encoding.names,
        mean=np.array(means),
        deviation=np.array(spreads),
        sigma=np.array(sigmas),
        best=np.array(bests),
        success=bool(best < bench.success),
    )


def reproduce_stagnation(
    seed: int, dimension: int = DIMENSION, failing: Sequence[str] = FAILING
) -> list[tuple[Trace, Trace]]:
    """For each of the older methods: a failed run, and the run of CMA-ES with Margin from the same start."""
    bench = problem(FUNCTION, dimension)
    pairs = []
    for method in failing:
        trial = first_failure(bench, method, seed)
        pairs.append((trace(bench, method, trial, seed), trace(bench, "margin", trial, seed)))
    return pairs
