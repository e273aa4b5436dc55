"""The engineering designs with restarts: from how many seeds the best known value is reached, and when.

python benchmarks/designs.py --seeds 10 --budget 50000
"""

from __future__ import annotations

import argparse
import os
import statistics
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rich.console import Console
from rich.table import Table

from mixcma import minimize
from mixcma.problems import DESIGNS

TARGETS = {
    "pressure_vessel": 6059.72,
    "gear_train": 2.71e-12,
    "coil_spring": 2.6586,
    "process_synthesis": 4.5796,
    "welded_beam": 1.9418,
}


def evaluations_to_target(task: tuple[str, int, int]) -> int | None:
    name, seed, budget = task
    design, target = DESIGNS[name], TARGETS[name]
    result = minimize(design, design.space, budget=budget, target=target, seed=seed)
    return result.evaluations if result.feasible and result.value <= target else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=50_000)
    arguments = parser.parse_args()
    table = Table("design", "target", "seeds that reach it", "median evaluations", "all")
    with ProcessPoolExecutor() as pool:
        for name, target in TARGETS.items():
            tasks = [(name, seed, arguments.budget) for seed in range(arguments.seeds)]
            counts = sorted(c for c in pool.map(evaluations_to_target, tasks) if c is not None)
            median = f"{statistics.median(counts):.0f}" if counts else "-"
            listed = " ".join(map(str, counts))
            table.add_row(name, f"{target:g}", f"{len(counts)}/{arguments.seeds}", median, listed)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
