"""Section 5.1: the effect of the size of the margin. alpha = N^-m lambda^-n on SphereInt, 48 settings per dimension."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mixcma
from mixcma.batch import Backend, Watch, run_many
from mixcma.core.strategy import default_popsize
from mixcma.experiments.ledger import Ledger, grouped, no_watch, run_missing
from mixcma.problems import problem

FUNCTION = "SphereInt"
DIMENSIONS = (20, 40, 60)
EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
# With a large margin the integers never settle, and none of the paper's stopping conditions ends such a run. Successful
# runs need at most a tenth of this budget.
BUDGET = 100_000


@dataclass(frozen=True)
class Point:
    """One setting: alpha = N^-m lambda^-n."""

    dimension: int
    m: float
    n: float

    @property
    def alpha(self) -> float:
        lam = default_popsize(self.dimension)
        return float(self.dimension**-self.m * lam**-self.n)


@dataclass(frozen=True)
class AlphaRecord:
    """The result of one setting."""

    dimension: int
    m: float
    n: float
    alpha: float
    successes: int
    trials: int
    median_evaluations: float | None


def grid(dimensions: Sequence[int] = DIMENSIONS) -> list[Point]:
    """The 48 settings of each dimension: all combinations except alpha = 1."""
    return [Point(d, m, n) for d in dimensions for m in EXPONENTS for n in EXPONENTS if m or n]


def batches(points: Sequence[Point], backend: Backend) -> list[list[Point]]:
    """The settings that run as one batch: a whole heat map on JAX, a row of it on NumPy."""
    return grouped(points, lambda point: (point.dimension, None if backend == "jax" else point.m))


def run_points(
    points: Sequence[Point], trials: int, seed: int, backend: Backend, watch: Watch | None = None
) -> list[AlphaRecord]:
    """Run settings of the same dimension as one batch, in which each run has its own alpha; return their records."""
    result = run_many(
        problem(FUNCTION, points[0].dimension),
        "margin",
        list(range(trials)) * len(points),
        seed,
        backend=backend,
        alpha=np.repeat([point.alpha for point in points], trials),
        budget=BUDGET,
        watch=watch,
    )
    records = []
    for i, point in enumerate(points):
        part = slice(i * trials, (i + 1) * trials)
        solved = result.evaluations[part][result.success[part]]
        median = float(np.median(solved)) if len(solved) else None
        records.append(AlphaRecord(**asdict(point), alpha=point.alpha, successes=len(solved), trials=trials,
                                   median_evaluations=median))  # fmt: skip
    return records


def reproduce_alpha(
    points: Sequence[Point],
    *,
    trials: int,
    seed: int,
    backend: Backend,
    out: Path,
    started: Callable[[list[Point]], Watch | None] = no_watch,
    finished: Callable[[int], None] = no_watch,
) -> list[AlphaRecord]:
    """Run the settings that the ledger in `out` does not have yet, and write alpha.json."""
    ledger = Ledger(out / "cells.json")

    def key(point: Point) -> str:
        settings = f"{trials} trials/seed {seed}/{backend}/mixcma {mixcma.__version__}"
        return f"{point.dimension}/{point.m}/{point.n}/{settings}"

    def run(group: list[Point], watch: Watch | None) -> list[dict[str, Any]]:
        return [asdict(record) for record in run_points(group, trials, seed, backend, watch)]

    run_missing(ledger, batches(points, backend), key, run, started, finished)
    records = [AlphaRecord(**ledger[key(point)]) for point in points]
    (out / "alpha.json").write_text(json.dumps([asdict(record) for record in records], indent=1))
    return records
