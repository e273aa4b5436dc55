"""What chance finds on the problems of mixcma.problems.practice: the numbers `typical` of its designs.

    python benchmarks/practice_typical.py [NAME ...]

The median of the best of 20 random feasible points is the value that 1 - 0.5^(1/20), 3.4 %, of all such points are at
or below. Points are drawn as by random search: until there are 3,000 feasible ones, or for a million evaluations.
"""

from __future__ import annotations

import sys

import numpy as np

from mixcma.experiments.race.beds import BEDS, Case, Choice
from mixcma.problems.practice import PRACTICE
from mixcma.run.outcome import Outcome

FEASIBLE, EVALUATIONS = 3000, 1_000_000
SHARE = 1.0 - 0.5 ** (1 / 20)


def main(names: list[str]) -> None:
    for name in names or PRACTICE:
        challenge = BEDS["practice"].open(Case("practice", name, len(PRACTICE[name].space), 0), Choice())
        task, rng = challenge.task, np.random.default_rng(20)
        low, above = task.low.astype(int), task.high.astype(int) + 1
        values: list[float] = []
        evaluations = 0
        while len(values) < FEASIBLE and evaluations < EVALUATIONS:
            point = np.where(task.integer, rng.integers(low, above), rng.uniform(task.low, task.high))
            given = challenge.objective(point)
            outcome = given if isinstance(given, Outcome) else Outcome(given)
            evaluations += 1
            if outcome.feasible:
                values.append(outcome.value)
        typical = float(np.quantile(values, SHARE)) if values else float("nan")
        print(f"{name}: {typical:.5g}, from {len(values)} feasible points of {evaluations}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
