"""The bed ``designs``: engineering designs with constraints, with restarts, to the best known value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mixcma.experiments.race.beds.base import Bed, Case, Challenge, Choice, budget_of, centred, wanted
from mixcma.experiments.race.task import Condition, Objective
from mixcma.problems import DESIGNS, Design
from mixcma.space import Bool, Categorical, Discrete, Float, Int, Space, Value, Variable

CHECKPOINTS = (500, 2000, 20_000)
BUDGET = CHECKPOINTS[-1]


def cases(choice: Choice) -> list[Case]:
    return [
        Case("designs", name, len(DESIGNS[name].space), seed)
        for name in wanted(choice, tuple(DESIGNS))
        for seed in range(choice.seeds)
    ]


def open_case(case: Case, choice: Choice) -> Challenge:
    design = DESIGNS[case.problem]
    challenge = open_design(design, case, choice, restarts=True)
    return replace(challenge, task=replace(challenge.task, target=design.target))


def open_design(design: Design, case: Case, choice: Choice, restarts: bool) -> Challenge:
    """Set a design up, so that all racers see the same: number sets and categories as indices into their values, and
    floats on a logarithmic scale as logarithms.
    """
    bounds = [_bounds(variable) for variable in design.space.values()]
    task = centred(
        np.array([low for low, _ in bounds], dtype=np.float64),
        np.array([high for _, high in bounds], dtype=np.float64),
        np.array([not isinstance(variable, Float) for variable in design.space.values()]),
        choice,
        seed=case.instance,
        budget=budget_of(choice, case.dimension, BUDGET),
        restarts=restarts,
    )
    category = np.array([isinstance(variable, Categorical) for variable in design.space.values()])
    task = replace(task, category=category, conditions=_conditions(design.space))
    return Challenge(task, _objective(design), (design.target,))


def _conditions(space: Space) -> tuple[Condition, ...]:
    names = list(space)
    return tuple(
        Condition(
            names.index(child), names.index(parent), tuple(_coordinate(space[parent], value) for value in allowed)
        )
        for child, condition in space.conditions.items()
        for parent, allowed in condition.items()
    )


def _coordinate(variable: Variable, value: Value) -> float:
    """The coordinate that stands for a value of a variable that is no float."""
    if isinstance(variable, Discrete | Categorical):
        return float(_values(variable).index(value))
    return float(value)


def _bounds(variable: Variable) -> tuple[float, float]:
    if isinstance(variable, Discrete | Categorical):
        return 0, len(_values(variable)) - 1
    if isinstance(variable, Bool):
        return 0, 1
    assert isinstance(variable, Float | Int)
    assert variable.low is not None
    assert variable.high is not None
    if isinstance(variable, Float) and variable.log:
        return math.log(variable.low), math.log(variable.high)
    return variable.low, variable.high


def _values(variable: Discrete | Categorical) -> tuple[Value, ...]:
    return tuple(variable.choices if isinstance(variable, Categorical) else variable.values)


def _objective(design: Design) -> Objective:
    values = [(name, _value_of(variable)) for name, variable in design.space.items()]
    active = design.space.active
    return lambda point: design(active({name: value(x) for (name, value), x in zip(values, point.tolist())}))


def _value_of(variable: Variable) -> Callable[[float], Value]:
    """The function that turns a coordinate of a point into a value of the variable."""
    if isinstance(variable, Discrete | Categorical):
        values = _values(variable)
        return lambda x: values[int(x)]
    if isinstance(variable, Bool):
        return bool
    if isinstance(variable, Float) and variable.log:
        low, high = variable.hull
        return lambda x: min(max(math.exp(x), low), high)  # the logarithm of a bound is rounded
    return int if isinstance(variable, Int) else float


def checkpoints(budget: int) -> dict[str, int]:
    """The numbers of evaluations in the table: the usual ones, and the budget if it is not one of them."""
    within = {f"at {count}": count for count in CHECKPOINTS if count <= budget}
    return within if budget in CHECKPOINTS else within | {"at the end": budget}


BED = Bed("designs", cases, open_case, tuple(DESIGNS))
