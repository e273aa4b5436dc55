"""SMAC3: random forests, in its facade for the tuning of learners."""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any

from mixcma.experiments.race.racers.others import rounded
from mixcma.experiments.race.task import Condition, Over, Scoreboard, Task, asked_for

# Each proposal takes seconds once the forest is large.
EVALUATIONS = 100


def run_smac(task: Task, evaluate: Scoreboard) -> None:
    """SMAC's HyperparameterOptimizationFacade with its defaults, but that the start is in its initial design.

    It has no constraints, so infeasible points get the penalty of all such racers.
    """
    from smac import HyperparameterOptimizationFacade as Facade
    from smac import Scenario
    from smac.runhistory.dataclasses import TrialValue

    space, trials = _space(task), min(EVALUATIONS, task.budget)
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(space, output_directory=folder, deterministic=True, n_trials=trials, seed=task.seed_of(0))
        initial = Facade.get_initial_design(scenario, additional_configs=[space.get_default_configuration()])
        smac = Facade(scenario, lambda config, seed: 0.0, initial_design=initial, logging_level=False)
        for _ in range(trials):
            trial = smac.ask()
            point = asked_for(task, partial(_value, trial.config))
            smac.tell(trial, TrialValue(cost=evaluate(point)), save=False)
    raise Over


def _space(task: Task) -> Any:
    from ConfigSpace import AndConjunction, CategoricalHyperparameter, ConfigurationSpace, InCondition
    from ConfigSpace import UniformFloatHyperparameter as Float
    from ConfigSpace import UniformIntegerHyperparameter as Integer

    space, start, (low, high) = ConfigurationSpace(seed=task.seed_of(0)), rounded(task, task.start(0)), task.box
    for j in range(task.dimension):
        name, first = f"x{j}", float(start[j])
        if task.categorical[j] or task.binary[j]:
            space.add(CategoricalHyperparameter(name, task.values(j), default_value=int(first)))
        elif task.integer[j]:
            space.add(Integer(name, int(low[j]), int(high[j]), default_value=int(first)))
        else:
            space.add(Float(name, float(low[j]), float(high[j]), default_value=first))
    for child in sorted({condition.child for condition in task.conditions}):
        own = [
            InCondition(space[f"x{child}"], space[f"x{c.parent}"], _of_parent(task, c))
            for c in task.conditions
            if c.child == child
        ]
        space.add(own[0] if len(own) == 1 else AndConjunction(*own))
    return space


def _value(config: Any, j: int) -> float:
    return float(config[f"x{j}"])


def _of_parent(task: Task, condition: Condition) -> list[int]:
    return [int(value) for value in condition.values]
