"""What it costs to learn from candidates of an older state: evaluations of many workers and of one.

    python benchmarks/older_results.py --dimensions 10 20 --seeds 24

Each result is told as it comes, and every worker is given the next candidate at once, so that most results are of
candidates that the state before the present one drew. In virtual time: an evaluation lasts uniformly 0.5 to 1.5.
SphereCategories is SphereInt with categories of five choices in the place of half of its integers; each that is not at
its best choice costs 1. The bar is a ratio of the medians of at most 1.25 on the spheres.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads only add noise at these sizes

import argparse
import heapq
import itertools
import math
import random
import statistics
from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Categorical, Optimizer, Space
from mixcma.core.methods import METHODS
from mixcma.problems.paper import problem
from mixcma.run.outcome import Outcome
from mixcma.run.stream import Drawn, Stream
from mixcma.space import Params

PROBLEMS = ("SphereInt", "SphereOneMax", "SphereCategories", "EllipsoidInt", "EllipsoidOneMax")
CHOICES = ("a", "b", "c", "d", "e")
TARGET = 1e-10


class Task(NamedTuple):
    space: Space
    objective: Callable[[Params], float]
    start: dict[str, float]


def task(name: str, dimension: int, seed: int) -> Task:
    if name != "SphereCategories":
        of = problem(name, dimension)
        return Task(of.space, of, of.start(seed))
    sphere = problem("SphereInt", dimension)
    integers = [variable for variable in sphere.space if variable.startswith("z")]
    categories = set(integers[len(integers) // 2 :])
    space = {v: Categorical(CHOICES) if v in categories else sphere.space[v] for v in sphere.space}

    def value(params: Params) -> float:
        return sum(x != CHOICES[3] if v in categories else x**2 for v, x in params.items())

    return Task(Space(space), value, {v: x for v, x in sphere.start(seed).items() if v not in categories})


def evaluations(given: Task, method: str, seed: int, workers: int, budget: int) -> float:
    """Until the target; infinite if the run ends before."""
    optimizer = Optimizer(given.space, method=method, seed=seed, mean=given.start, target=TARGET)
    stream, durations = Stream(optimizer), random.Random(seed)
    now, running = 0.0, list[tuple[float, int, Drawn]]()
    for number in range(1, budget + 1):
        while len(running) < workers:
            drawn = stream.draw()
            heapq.heappush(running, (now + durations.uniform(0.5, 1.5), drawn.slot, drawn))
        now, _, drawn = heapq.heappop(running)
        value = given.objective(drawn.params)
        if value <= TARGET:
            return number
        stream.take(drawn, Outcome(value))
        if optimizer.stop:
            break
    return math.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=PROBLEMS)
    parser.add_argument("--dimensions", nargs="+", type=int, default=[10, 20])
    parser.add_argument("--method", choices=list(METHODS), default="mix-without-model")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--budget", type=int, default=20_000)
    arguments = parser.parse_args()
    table = Table("problem", "N", "alone", f"{arguments.workers} workers", "ratio", "solved")
    cells = list(itertools.product(arguments.dimensions, arguments.problems))
    for dimension, name in track(cells, description="problems"):
        counts = {workers: list[float]() for workers in (1, arguments.workers)}
        for seed, workers in itertools.product(range(arguments.seeds), counts):
            given = task(name, dimension, seed)
            counts[workers].append(evaluations(given, arguments.method, seed, workers, arguments.budget))
        alone, many = (statistics.median(found) for found in counts.values())
        solved = sum(map(math.isfinite, counts[arguments.workers]))
        table.add_row(
            name, str(dimension), f"{alone:.0f}", f"{many:.0f}", f"{many / alone:.2f}", f"{solved}/{arguments.seeds}"
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
