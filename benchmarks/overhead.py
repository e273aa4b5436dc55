"""Microseconds an evaluation spent in the optimiser, side by side in one process.

    python benchmarks/overhead.py --dimensions 10 20 40 100 200

Sphere, half the variables integers in [-10, 10], the default population of each optimiser. Only ask
and tell are timed (CPU time, less what reading the clock takes), mixcma's with the dict of Python numbers
that the objective receives. The optimisers take turns; each figure is the median over the turns, and so
are the ratios.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads only add noise at these sizes

import argparse
import itertools
import statistics
import time
import warnings
from collections.abc import Iterator
from functools import partial

import cma
import cmaes
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Float, Int, Optimizer, Space

LOW, HIGH = -10, 10


class Clock:
    """Adds up the time spent between start and stop."""

    def __init__(self) -> None:
        self.total, self.readings = 0.0, 0

    def __enter__(self) -> None:
        self.began = time.process_time()

    def __exit__(self, *exc: object) -> None:
        self.total += time.process_time() - self.began
        self.readings += 1


def mixcma_steps(n: int, seed: int, clock: Clock, method: str = "mix-without-model") -> Iterator[int]:
    floats = {f"x{i}": Float(mean=2.0, std=1.0) for i in range(n // 2)}
    integers = {f"z{i}": Int(LOW, HIGH, mean=2.0, std=1.0) for i in range(n - n // 2)}
    optimizer = Optimizer(Space(floats | integers), seed=seed, method=method)
    while True:
        with clock:
            candidates = optimizer.ask()
        values = [sum(x * x for x in c.params.values()) for c in candidates]
        with clock:
            optimizer.tell(candidates, values)
        yield len(candidates)


def cmawm_steps(n: int, seed: int, clock: Clock) -> Iterator[int]:
    continuous, integers = n // 2, n - n // 2
    bounds = np.array([[-100.0, 100.0]] * continuous + [[LOW, HIGH]] * integers)
    steps = np.array([0.0] * continuous + [1.0] * integers)
    optimizer = cmaes.CMAwM(mean=np.full(n, 2.0), sigma=1.0, bounds=bounds, steps=steps, seed=seed)
    while True:
        with clock:
            asked = [optimizer.ask() for _ in range(optimizer.population_size)]
        told = [(internal, float(x @ x)) for x, internal in asked]
        with clock:
            optimizer.tell(told)
        yield len(told)


def catcmawm_steps(n: int, seed: int, clock: Clock) -> Iterator[int]:
    continuous, integers = n // 2, n - n // 2
    optimizer = cmaes.CatCMAwM(
        x_space=np.array([[-100.0, 100.0]] * continuous),
        z_space=[list(range(LOW, HIGH + 1))] * integers,
        mean=np.full(n, 2.0),
        sigma=1.0,
        seed=seed,
    )
    while True:
        with clock:
            asked = [optimizer.ask() for _ in range(optimizer.population_size)]
        told = [(s, float(s.x @ s.x + s.z @ s.z)) for s in asked]
        with clock:
            optimizer.tell(told)
        yield len(told)


def pycma_steps(n: int, seed: int, clock: Clock) -> Iterator[int]:
    options = {"integer_variables": list(range(n // 2, n)), "verbose": -9, "seed": seed + 1}
    optimizer = cma.CMAEvolutionStrategy([2.0] * n, 1.0, options)
    while True:
        with clock:
            asked = optimizer.ask()
        values = [float(x @ x) for x in asked]
        with clock:
            optimizer.tell(asked, values)
        yield len(asked)


OPTIMISERS = {
    "mixcma": mixcma_steps,
    "mixcma margin": partial(mixcma_steps, method="margin"),
    "cmaes.CMAwM": cmawm_steps,
    "cmaes.CatCMAwM": catcmawm_steps,
    "pycma": pycma_steps,
}


def microseconds(name: str, n: int, seed: int, generations: int) -> float:
    clock, evaluations = Clock(), 0
    steps = OPTIMISERS[name](n, seed, clock)
    for count in itertools.islice(steps, generations):
        evaluations += count
    return 1e6 * (clock.total - clock.readings * reading_a_clock()) / evaluations


def reading_a_clock(times: int = 1000) -> float:
    """Seconds that a clock counts where nothing is done."""
    clock = Clock()
    for _ in range(times):
        with clock:
            pass
    return clock.total / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dimensions", nargs="+", type=int, default=[10, 20, 40, 100, 200])
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--generations", type=int, default=200)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table("N", *OPTIMISERS, *(f"{name} / mixcma" for name in list(OPTIMISERS)[1:]))
    for n in arguments.dimensions:
        times: dict[str, list[float]] = {name: [] for name in OPTIMISERS}
        for turn in track(range(arguments.turns), f"N = {n}", transient=True):
            for name in OPTIMISERS:
                times[name].append(microseconds(name, n, turn, arguments.generations))
        medians = [f"{statistics.median(t):.1f}" for t in times.values()]
        ratios = [
            f"{statistics.median(a / b for a, b in zip(times[name], times['mixcma'], strict=True)):.2f}"
            for name in list(OPTIMISERS)[1:]
        ]
        table.add_row(str(n), *medians, *ratios)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
