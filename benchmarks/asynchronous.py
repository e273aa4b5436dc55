"""Wall time to a target, generation by generation and result by result, where evaluations differ in time.

    python benchmarks/asynchronous.py --seeds 7

EllipsoidInt with N = 10 (5 floats, 5 integers), from a random mean in [1, 3], to 1e-10. An evaluation lasts
a lognormal time with a mean of 50 ms and a coefficient of variation of 1, which depends on the seed and on the
number of the call alone. Once with threads that sleep, and once in virtual time, with an event queue in
the place of threads and clock: that gives the same figures without the machine in them. The bar is a median
ratio of at most 0.65, with every run solved. --no-sleep leaves out the part that takes minutes.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads only add noise at these sizes

import argparse
import heapq
import itertools
import math
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Optimizer, Space, minimize
from mixcma.problems.paper import Problem, problem
from mixcma.run.outcome import Outcome
from mixcma.run.stream import Stream

BAR = 0.65
# With its model mix would be done after two dozen evaluations.
METHOD = "mix-without-model"


@dataclass(frozen=True)
class Task:
    """One seed: where it starts, on how many workers, and how long each evaluation lasts."""

    problem: Problem
    seed: int
    workers: int
    mean: float  # seconds
    variation: float  # standard deviation / mean
    budget: int

    @property
    def space(self) -> Space:
        start = self.problem.start(self.seed)
        return Space({name: replace(variable, mean=start[name]) for name, variable in self.problem.space.items()})

    def duration(self, number: int) -> float:
        """Seconds that the call of this number lasts."""
        variance = math.log(1 + self.variation**2)
        normal = np.random.default_rng((self.seed, number)).standard_normal()
        return self.mean * math.exp(math.sqrt(variance) * float(normal) - variance / 2)


@dataclass(frozen=True)
class Trial:
    """How one search went."""

    seconds: float
    evaluations: int
    solved: bool
    lasting: float  # mean seconds of an evaluation


def on_threads(task: Task, asynchronous: bool) -> Trial:
    """The search itself, on threads that sleep."""
    numbers, lasted = itertools.count(), list[float]()

    def objective(params: dict[str, float]) -> float:
        began = time.perf_counter()
        time.sleep(task.duration(next(numbers)))
        lasted.append(time.perf_counter() - began)
        return task.problem(params)

    with ThreadPoolExecutor(task.workers) as pool:
        began = time.perf_counter()
        result = minimize(
            objective,
            task.space,
            budget=task.budget,
            target=task.problem.success,
            seed=task.seed,
            method=METHOD,
            restarts=False,
            workers=pool,
            asynchronous=asynchronous,
        )
        seconds = time.perf_counter() - began
    return Trial(seconds, result.evaluations, result.stop.name == "target", statistics.fmean(lasted))


def in_virtual_time(task: Task, asynchronous: bool) -> Trial:
    """The same search without clock and threads."""
    optimizer = Optimizer(task.space, seed=task.seed, method=METHOD, target=task.problem.success)
    search = by_result if asynchronous else by_generation
    lasted: list[float] = []

    def next_duration() -> float:
        lasted.append(task.duration(len(lasted)))
        return lasted[-1]

    seconds, evaluations, solved = search(task, optimizer, next_duration)
    return Trial(seconds, evaluations, solved, statistics.fmean(lasted))


def by_generation(task: Task, optimizer: Optimizer, next_duration: Callable[[], float]) -> tuple[float, int, bool]:
    """Candidates go to the workers in their order; the next generation starts when all are back."""
    now, evaluations = 0.0, 0
    while not optimizer.stop and evaluations < task.budget:
        candidates = optimizer.ask()
        free, known = [now] * task.workers, now  # when each worker is free; when all results up to here are in
        values = []
        for candidate in candidates:
            end = heapq.heappop(free) + next_duration()
            heapq.heappush(free, end)
            known = max(known, end)
            values.append(task.problem(candidate.params))
            evaluations += 1
            if values[-1] <= task.problem.success:
                return known, evaluations, True
        now = known
        optimizer.tell(candidates, values)
    return now, evaluations, False


def by_result(task: Task, optimizer: Optimizer, next_duration: Callable[[], float]) -> tuple[float, int, bool]:
    """Each worker gets a candidate of the newest state as soon as it is free."""
    stream, order = Stream(optimizer), itertools.count()
    flying = [(next_duration(), next(order), stream.draw()) for _ in range(task.workers)]
    heapq.heapify(flying)
    for evaluations in range(1, task.budget + 1):
        now, _, drawn = heapq.heappop(flying)
        value = task.problem(drawn.params)
        if value <= task.problem.success:
            return now, evaluations, True
        stream.take(drawn, Outcome(value))
        if optimizer.stop:
            break
        heapq.heappush(flying, (now + next_duration(), next(order), stream.draw()))
    return now, evaluations, False


def measure(
    console: Console, title: str, trial: Callable[[Task, bool], Trial], tasks: list[Task]
) -> tuple[float, bool]:
    """Print one table; the median ratio, and whether all were solved."""
    pairs = [(trial(task, False), trial(task, True)) for task in track(tasks, title, console=console, transient=True)]
    columns = ["seed", "by generation, s", "by result, s", "ratio", "evaluations", "mean ms of one", "solved"]
    table = Table(*columns, title=title)
    for task, (one, other) in zip(tasks, pairs, strict=True):
        table.add_row(str(task.seed), *_row(one, other), f"{one.solved + other.solved}/2")
    both = [_median([pair[i] for pair in pairs]) for i in (0, 1)]
    ratio = statistics.median(other.seconds / one.seconds for one, other in pairs)
    solved = sum(one.solved + other.solved for one, other in pairs)
    cells = _row(*both)
    table.add_section()
    table.add_row("median", *cells[:2], f"{ratio:.3f}", *cells[3:], f"{solved}/{2 * len(pairs)}")
    console.print(table)
    return ratio, solved == 2 * len(pairs)


def _row(one: Trial, other: Trial) -> list[str]:
    ratio = other.seconds / one.seconds
    evaluations = f"{one.evaluations} / {other.evaluations}"
    lasting = f"{1e3 * one.lasting:.1f} / {1e3 * other.lasting:.1f}"
    return [f"{one.seconds:.1f}", f"{other.seconds:.1f}", f"{ratio:.3f}", evaluations, lasting]


def _median(trials: list[Trial]) -> Trial:
    return Trial(
        statistics.median(trial.seconds for trial in trials),
        int(statistics.median(trial.evaluations for trial in trials)),
        all(trial.solved for trial in trials),
        statistics.median(trial.lasting for trial in trials),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--mean", type=float, default=0.05, help="seconds an evaluation lasts")
    parser.add_argument("--variation", type=float, default=1.0, help="coefficient of variation of that time")
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--no-sleep", action="store_true", help="only in virtual time")
    arguments = parser.parse_args()
    console = Console(width=120)
    make = partial(
        Task,
        problem("EllipsoidInt", arguments.dimension),
        workers=arguments.workers,
        mean=arguments.mean,
        variation=arguments.variation,
        budget=arguments.budget,
    )
    tasks = [make(seed=seed) for seed in range(arguments.seeds)]
    found = {"in virtual time": measure(console, "in virtual time", in_virtual_time, tasks)}
    if not arguments.no_sleep:
        title = f"on {arguments.workers} threads that sleep"
        found[title] = measure(console, title, on_threads, tasks)
    for title, (ratio, solved) in found.items():
        verdict = "reached" if solved and ratio <= BAR else "missed"
        console.print(
            f"{title}: median ratio {ratio:.3f}, bar {BAR}, {'all' if solved else 'not all'} solved: {verdict}"
        )


if __name__ == "__main__":
    main()
