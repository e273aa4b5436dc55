"""A batch of runs against one run after another: microseconds an evaluation, in one process.

    python benchmarks/batch.py --dimensions 20 40

100 runs of SphereInt to success with mixcma on NumPy and on JAX (compiled before), and for the ratio
cmaes.CMAwM for as many generations as it takes to time it (only ask and tell count there). The batch's
time is all of its own account, the objective included. Engines take turns; medians over the turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

from rich.console import Console
from rich.table import Table

from mixcma.batch import run_many
from mixcma.problems import problem
from overhead import microseconds


def batch_microseconds(dimension: int, backend: str, runs: int, seed: int) -> float:
    began = time.perf_counter()
    result = run_many(problem("SphereInt", dimension), "margin", runs, seed, backend=backend)
    return 1e6 * (time.perf_counter() - began) / int(result.evaluations.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[20, 40])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table("N", "cmaes.CMAwM", "mixcma, NumPy batch", "ratio", "mixcma, JAX on this device", "ratio")
    for n in arguments.dimensions:
        batch_microseconds(n, "jax", arguments.runs, 0)  # compiles
        times = [
            (
                microseconds("cmaes.CMAwM", n, turn, 100),
                batch_microseconds(n, "numpy", arguments.runs, turn),
                batch_microseconds(n, "jax", arguments.runs, turn),
            )
            for turn in range(arguments.turns)
        ]
        peer, on_numpy, on_jax = (statistics.median(column) for column in zip(*times))
        ratios = [statistics.median(a / b for a, b in pairs) for pairs in _ratios(times)]
        table.add_row(str(n), f"{peer:.1f}", f"{on_numpy:.2f}", f"{ratios[0]:.1f}", f"{on_jax:.2f}", f"{ratios[1]:.1f}")
    Console(width=110).print(table)


def _ratios(times: list[tuple[float, float, float]]) -> list[list[tuple[float, float]]]:
    return [[(row[0], row[column]) for row in times] for column in (1, 2)]


if __name__ == "__main__":
    main()
