"""An objective that fails on 30 % of its calls, by exception, NaN or hang: does the search still arrive?

python benchmarks/failures.py                 # SphereInt, N = 10, to 1e-8, 10 seeds, 2 worker processes

A call fails by the hash of its seed and parameters, so that the same point always fares the same.
"""

from __future__ import annotations

import argparse
import random
import time

from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Float, Int, Space, minimize

TARGET = 1e-8


def sphere_int(dimension: int, seed: int) -> Space:
    """Half floats, half integers in [-10, 10]; means in [1, 3], as in the paper."""
    draw = random.Random(seed)
    half = dimension // 2
    floats = {f"x{i}": Float(mean=draw.uniform(1, 3), std=1.0) for i in range(dimension - half)}
    return Space({**floats, **{f"z{i}": Int(-10, 10, mean=draw.uniform(1, 3), std=1.0) for i in range(half)}})


def unreliable(seed: int, share: float):
    def objective(p):
        fate = random.Random(f"{seed} {p}").random()
        if fate < share / 3:
            raise RuntimeError("it failed")
        if fate < 2 * share / 3:
            return float("nan")
        if fate < share:
            time.sleep(3600)
        return sum(value**2 for value in p.values())

    return objective


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.3, help="of the calls that fail")
    parser.add_argument("--timeout", type=float, default=0.2)
    parser.add_argument("--budget", type=int, default=20_000)
    options = parser.parse_args()
    table = Table("seed", "reached", "value", "evaluations", "failed", "seconds")
    reached = 0
    for seed in track(range(options.seeds), description="seeds"):
        began = time.perf_counter()
        result = minimize(
            unreliable(seed, options.share),
            sphere_int(options.dimension, seed),
            budget=options.budget,
            target=TARGET,
            seed=seed,
            workers=2,
            timeout=options.timeout,
        )
        solved = result.stop.name == "target"
        reached += solved
        seconds = time.perf_counter() - began
        table.add_row(
            str(seed), "yes" if solved else result.stop.name, f"{result.value:.1e}", str(result.evaluations),
            f"{result.failures / result.evaluations:.0%}", f"{seconds:.0f}",
        )  # fmt: skip
    Console().print(table, f"{reached} of {options.seeds} seeds reached {TARGET:g}")


if __name__ == "__main__":
    main()
