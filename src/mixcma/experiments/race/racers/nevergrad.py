"""Nevergrad's NGOpt, which chooses an optimiser by the kinds of the variables and the budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixcma.experiments.race.task import INFEASIBLE, Over, Scoreboard, Task


def run_ngopt(task: Task, evaluate: Scoreboard) -> None:
    """NGOpt with its defaults, from the start. Violations of constraints are passed on as such."""
    import nevergrad

    variables = nevergrad.p.Tuple(*(_variable(task, j) for j in range(task.dimension)))
    variables.random_state.seed(task.seed_of(0))
    optimizer = nevergrad.optimizers.NGOpt(variables, budget=task.budget)
    for _ in range(task.budget):
        candidate = optimizer.ask()
        outcome = evaluate.outcome(np.clip(np.array(candidate.value, dtype=np.float64), *task.box))
        violations = [max(0.0, constraint) for constraint in outcome.constraints]
        optimizer.tell(candidate, min(outcome.value, INFEASIBLE), violations or None)
    raise Over


def _variable(task: Task, j: int) -> Any:
    import nevergrad

    if task.categorical[j] or task.binary[j]:
        return nevergrad.p.Choice(task.values(j))
    low, high = (float(bounds[j]) for bounds in task.box)
    number = nevergrad.p.Scalar(init=float(task.start(0)[j]), lower=low, upper=high)
    number.set_mutation(sigma=float(task.std[j]))
    return number.set_integer_casting() if task.integer[j] else number
