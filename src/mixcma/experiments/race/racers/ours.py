"""mixcma's own methods, restarted in the same way as by `minimize`, but without its bookkeeping."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from mixcma.core.methods import Method
from mixcma.core.strategy import default_popsize
from mixcma.experiments.race.task import FloatArray, Scoreboard, Task
from mixcma.run.optimizer import Optimizer
from mixcma.run.outcome import Outcome
from mixcma.run.restarts import restart_popsize
from mixcma.space import Bool, Categorical, Float, Int, Params, Space, Variable


def run_mixcma(method: Method, task: Task, evaluate: Scoreboard) -> None:
    """Run one Optimizer after another. As in `minimize`, no point of a space without floats is evaluated twice."""
    space = space_of(task, method.takes_categories)
    memory: dict[bytes, Outcome] | None = None if space.size is None else {}
    earlier: Optimizer | None = None
    for run in itertools.count():
        spent = evaluate.evaluations
        optimizer = Optimizer(
            space,
            method=method,
            seed=task.seed,
            popsize=restart_popsize(default_popsize(task.dimension), run),
            mean={n: m for n, m in zip(space, task.start(run).tolist()) if not isinstance(space[n], Categorical)},
            target=task.target,
            run=run,
        )
        if earlier is not None:
            optimizer.follow(earlier)
        _run_to_the_end(optimizer, evaluate, memory)
        earlier = optimizer
        exhausted = memory is not None and evaluate.evaluations in (spent, space.size)
        if exhausted or not task.restarts:
            return


def _run_to_the_end(optimizer: Optimizer, evaluate: Scoreboard, memory: dict[bytes, Outcome] | None) -> None:
    def point_of(params: Params) -> FloatArray:
        """Variables that do not exist are at 0, or at the value that is next to it."""
        return np.array([params.get(name, nearest) for name, nearest in nearest_to_zero.items()], dtype=np.float64)

    def known(params: Params) -> bool:
        return point_of(params).tobytes() in (memory or {})

    nearest_to_zero = {name: float(np.clip(0.0, *variable.hull)) for name, variable in optimizer.space.items()}

    while not optimizer.stop:
        candidates = optimizer.ask(known=None if memory is None else known)
        points = [point_of(candidate.params) for candidate in candidates]
        optimizer.tell(candidates, [_outcome(point, evaluate, memory) for point in points])


def _outcome(point: FloatArray, evaluate: Scoreboard, memory: dict[bytes, Outcome] | None) -> Outcome:
    if memory is None:
        return evaluate.outcome(point)
    key = point.tobytes()
    if key not in memory:
        memory[key] = evaluate.outcome(point)
    return memory[key]


def space_of(task: Task, categories: bool = True) -> Space:
    """The coordinates of the task as variables x0, x1, ...; unless `categories` is set, categories become integers."""
    return Space({f"x{j}": replace(_variable(task, j, categories), when=_when(task, j)) for j in range(task.dimension)})


def _when(task: Task, j: int) -> dict[str, list[float | bool]] | None:
    own = [condition for condition in task.conditions if condition.child == j]
    value = {condition.parent: bool if task.binary[condition.parent] else int for condition in own}
    return {f"x{c.parent}": [value[c.parent](given) for given in c.values] for c in own} or None


def _variable(task: Task, j: int, categories: bool) -> Variable:
    low, high, std = float(task.low[j]), float(task.high[j]), float(task.std[j])
    if task.categorical[j] and categories:
        return Categorical(task.values(j))
    if task.binary[j]:
        if low != 0:
            raise ValueError(
                f"coordinate {j}: expected a binary with the values 0 and 1, but got {low:g} and {high:g}; shift it"
            )
        return Bool(std=std)
    if task.integer[j]:
        return Int(int(low), int(high), std=std)
    return Float(low if np.isfinite(low) else None, high if np.isfinite(high) else None, std=std)
