"""Evaluations to 1e-10 with categories: mixcma's methods beside cmaes.CatCMAwM, from the same starts.

    python benchmarks/categories.py --dimensions 20 40 --seeds 25

Half of the variables are floats. SphereInt: the others are integers. OneMax: the others have two choices, which are
categories to cmaes and to "catmargin". Categories: half of the others are integers, half have five choices. All
start at the same means, with standard deviation 1, and every choice as probable.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads only add noise at these sizes

import argparse
import statistics
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cmaes
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Categorical, Float, Int, Optimizer, Space

TARGET = 1e-10
BUDGET = 10_000  # evaluations a variable
LOW, HIGH = -10, 10
METHODS = ("mix-without-model", "catmargin")


@dataclass(frozen=True)
class Problem:
    """sum_j (s_j x_j)^2 + sum_j z_j^2 + the number of categories that are not at their best choice."""

    name: str
    floats: int
    integers: int
    categories: int
    choices: int
    condition: float = 1.0

    def value(self, x: NDArray[np.float64], z: NDArray[np.float64], wrong: int) -> float:
        scale = self.condition ** (np.arange(self.floats) / max(1, self.floats - 1))
        return float((scale * x) @ (scale * x) + z @ z + wrong)


def problems(n: int) -> list[Problem]:
    half, quarter = n // 2, n // 4
    return [
        Problem("SphereInt", half, half, 0, 2),
        Problem("SphereOneMax", half, 0, half, 2),
        Problem("EllipsoidOneMax", half, 0, half, 2, condition=1000.0),
        Problem("SphereCategories", half, quarter, n - half - quarter, 5),
    ]


def start(problem: Problem, seed: int) -> tuple[NDArray[np.float64], list[list[int]]]:
    """The mean of the numbers, and the choices of each category in some order; 0 is the best."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(1, 3, problem.floats + problem.integers)
    return mean, [rng.permutation(problem.choices).tolist() for _ in range(problem.categories)]


def mixcma_values(method: str, problem: Problem, seed: int) -> Iterator[float]:
    mean, orders = start(problem, seed)
    space = Space(
        {f"x{j}": Float(mean=mean[j], std=1.0) for j in range(problem.floats)}
        | {f"z{j}": Int(LOW, HIGH, mean=mean[problem.floats + j], std=1.0) for j in range(problem.integers)}
        | {f"c{j}": Categorical(order) for j, order in enumerate(orders)}
    )
    optimizer = Optimizer(space, method=method, seed=seed, target=TARGET)
    numbers = problem.floats + problem.integers
    while not optimizer.stop:
        candidates, values = optimizer.ask(), []
        for candidate in candidates:
            point = list(candidate.params.values())
            x, z = (
                np.array(point[: problem.floats], dtype=float),
                np.array(point[problem.floats : numbers], dtype=float),
            )
            values.append(problem.value(x, z, sum(choice != 0 for choice in point[numbers:])))
            yield values[-1]
        optimizer.tell(candidates, values)


def cmaes_values(problem: Problem, seed: int) -> Iterator[float]:
    mean, orders = start(problem, seed)
    numbers = problem.floats + problem.integers
    optimizer = cmaes.CatCMAwM(
        x_space=np.array([[-1e3, 1e3]] * problem.floats),
        z_space=[list(range(LOW, HIGH + 1))] * problem.integers or None,
        c_space=np.full(problem.categories, problem.choices) if problem.categories else None,
        mean=mean,
        sigma=1.0,
        cov=np.eye(numbers),
        seed=seed + 1,
    )
    while not optimizer.should_stop():
        told = []
        for _ in range(optimizer.population_size):
            asked = optimizer.ask()
            z = np.zeros(0) if asked.z is None else np.asarray(asked.z, dtype=float)
            places = [] if asked.c is None else np.argmax(asked.c, axis=1).tolist()
            wrong = sum(order[place] != 0 for order, place in zip(orders, places))
            told.append((asked, problem.value(np.asarray(asked.x), z, wrong)))
            yield told[-1][1]
        optimizer.tell(told)


def evaluations(values: Iterator[float], budget: int) -> int | None:
    """Until the target is reached; None if it is not."""
    for number, value in enumerate(values, start=1):
        if value < TARGET:
            return number
        if number >= budget:
            break
    return None


RACERS: dict[str, Callable[[Problem, int], Iterator[float]]] = {
    **{name: lambda problem, seed, name=name: mixcma_values(name, problem, seed) for name in METHODS},
    "cmaes.CatCMAwM": cmaes_values,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dimensions", nargs="+", type=int, default=[20, 40])
    parser.add_argument("--seeds", type=int, default=25)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table("problem", "N", *RACERS, *(f"{name} / cmaes" for name in METHODS))
    for n in arguments.dimensions:
        for problem in problems(n):
            cells, medians = [], {}
            for name, run in RACERS.items():
                seeds = track(range(arguments.seeds), f"{problem.name}, N = {n}, {name}", transient=True)
                found = [evaluations(run(problem, seed), BUDGET * n) for seed in seeds]
                reached = [count for count in found if count is not None]
                medians[name] = statistics.median(reached) if reached else float("nan")
                cells.append(f"{medians[name]:.0f} ({len(reached)}/{len(found)})")
            ratios = [f"{medians[name] / medians['cmaes.CatCMAwM']:.2f}" for name in METHODS]
            table.add_row(problem.name, str(n), *cells, *ratios)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
