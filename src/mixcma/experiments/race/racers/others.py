"""Racers of other kinds: Optuna's TPE and Gaussian processes, SciPy's differential evolution, random search."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mixcma.core.stopping import Window, flat_window
from mixcma.experiments.race.racers.restarts import PATIENCE
from mixcma.experiments.race.task import INFEASIBLE, FloatArray, Over, Scoreboard, Task, asked_for

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# The time of TPE grows with the square of the number of trials and with N; beyond these limits it would take hours.
TPE_EVALUATIONS, TPE_PARAMETERS, TPE_LEAST = 2000, 10_000, 200
# The time of Gaussian processes grows with the cube: with ten constraints a hundred trials take minutes.
GP_EVALUATIONS = 100


def run_random_search(task: Task, evaluate: Scoreboard) -> None:
    """Evaluate the start, then points that are uniform in the box."""
    rng = np.random.default_rng(task.seed_of(0))
    low, high = task.box
    evaluate(rounded(task, task.start(0)))
    while True:
        uniform = rng.uniform(low, high)
        evaluate(np.where(task.integer, rng.integers(low.astype(int), high.astype(int) + 1), uniform))


def run_differential_evolution(task: Task, evaluate: Scoreboard) -> None:
    """SciPy's differential evolution with `integrality` and its default population of 15 N, drawn around the start."""
    from scipy.optimize import Bounds, differential_evolution

    def inside(point: FloatArray) -> float:
        return evaluate(np.clip(point, *task.box))  # floats on a bound may be outside by a rounding error

    for run in itertools.count():
        rng = np.random.default_rng(task.seed_of(run))
        popsize = 15 * task.dimension << run
        differential_evolution(
            inside,
            bounds=Bounds(*task.box),
            integrality=task.integer,
            init=_first_population(task, task.start(run), popsize, rng),
            rng=rng,
            maxiter=task.budget,
            polish=False,
            callback=_stagnation(task, popsize),
        )
        if not task.restarts:
            return


def _stagnation(task: Task, popsize: int) -> Callable[[OptimizeResult], None]:
    """A callback that ends a run, if a restart may follow, by the same rule as for all other racers."""
    recent = Window(flat_window(task.dimension, popsize, PATIENCE))

    def ended(intermediate_result: OptimizeResult) -> None:
        recent.add(float(intermediate_result.fun))
        if task.restarts and recent.is_flat(0.0):
            raise StopIteration

    return ended


def _first_population(task: Task, start: FloatArray, popsize: int, rng: np.random.Generator) -> FloatArray:
    """(popsize, N): Gaussian around the start; points outside the bounds are moved onto them."""
    drawn = start + task.std * rng.standard_normal((popsize, task.dimension))
    return rounded(task, drawn)


def rounded(task: Task, points: FloatArray) -> FloatArray:
    """The nearest points of the space."""
    low, high = task.box
    return np.clip(np.where(task.integer, np.rint(points), points), low, high)


def run_tpe(task: Task, evaluate: Scoreboard) -> None:
    """Optuna's TPESampler with its defaults."""
    import optuna

    _run_optuna(optuna.samplers.TPESampler(seed=task.seed_of(0)), most_trials(task.dimension), task, evaluate)


def run_tpe_in_groups(task: Task, evaluate: Scoreboard) -> None:
    """The same with the settings for conditional variables: `multivariate=True, group=True`."""
    import optuna

    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    sampler = optuna.samplers.TPESampler(seed=task.seed_of(0), multivariate=True, group=True)
    _run_optuna(sampler, most_trials(task.dimension), task, evaluate)


def run_sampler_of_mix(task: Task, evaluate: Scoreboard) -> None:
    """mixcma as Optuna's sampler, which finds out by itself which parameters come with which choices."""
    from mixcma.integrations.optuna import MixCmaSampler

    sampler = MixCmaSampler(seed=task.seed_of(0), warn_independent_sampling=False)
    _run_optuna(sampler, most_trials(task.dimension), task, evaluate)


def run_gp(task: Task, evaluate: Scoreboard) -> None:
    """Optuna's GPSampler: a Gaussian process for the objective and one for each constraint. It knows of no noise."""
    import optuna

    sampler = optuna.samplers.GPSampler(seed=task.seed_of(0), deterministic_objective=True)
    _run_optuna(sampler, GP_EVALUATIONS, task, evaluate)


def _run_optuna(sampler: Any, most: int, task: Task, evaluate: Scoreboard) -> None:
    """One study. The first trial is the start, and constraints are passed on as such."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler)
    first = rounded(task, task.start(0))
    study.enqueue_trial({f"x{j}": _number(task, j, value) for j, value in enumerate(first)})
    for _ in range(most):
        trial = study.ask()
        outcome = evaluate.outcome(asked_for(task, partial(_suggested, trial, task)))
        for number, constraint in enumerate(outcome.constraints):
            trial.set_constraint(f"g{number}", constraint)
        study.tell(trial, min(outcome.value, INFEASIBLE))
    raise Over


def most_trials(dimension: int) -> int:
    """The largest number of evaluations that TPE gets."""
    return min(TPE_EVALUATIONS, max(TPE_PARAMETERS // dimension, TPE_LEAST))


def _suggested(trial: Any, task: Task, j: int) -> float:
    low, high = (float(bounds[j]) for bounds in task.box)
    if task.categorical[j]:
        return float(trial.suggest_categorical(f"x{j}", task.values(j)))
    if task.integer[j]:
        return float(trial.suggest_int(f"x{j}", int(low), int(high)))
    return float(trial.suggest_float(f"x{j}", low, high))


def _number(task: Task, j: int, value: float) -> float:
    return int(value) if task.integer[j] else float(value)
