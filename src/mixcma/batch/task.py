"""What a batch of runs is, and one generation of it: what both back ends share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mixcma.core.conditions import existing_values
from mixcma.core.gaussian import Start
from mixcma.core.method import State
from mixcma.core.methods import Margin, Method
from mixcma.core.namespace import Array
from mixcma.core.sampling import Noise
from mixcma.core.setting import Setting
from mixcma.core.stopping import Stopping, condition_number
from mixcma.latent.encoding import Encoding
from mixcma.run.arguments import (
    check_categories,
    checked_count,
    checked_method,
    checked_popsize,
    checked_seed,
    checked_stopping,
)
from mixcma.run.warm_start import started_at
from mixcma.space import Space

Watch = Callable[[int, int], None]  # (generation, runs alive)


class BatchProblem(Protocol):
    """What a batch needs to know; `mixcma.problems.Problem` is one.

    `function` takes decoded values (..., N), bits as 0. and 1., what does not exist as nan, and gives values (...); on
    JAX it must be traceable. `start` gives the initial mean of a trial by name. A run succeeds below `success`.
    """

    @property
    def function(self) -> Callable[[Array], Array]: ...
    @property
    def space(self) -> Space: ...
    @property
    def success(self) -> float: ...
    def start(self, seed: int, /) -> Mapping[str, float]: ...


@dataclass(frozen=True, eq=False)
class Rules:
    """What is the same for all runs of a batch; compiled code depends on nothing else."""

    functions: tuple[Callable[[Array], Array], ...]
    setting: Setting
    method: Method
    target: float
    stopping: Stopping
    budget: int

    @property
    def max_generations(self) -> int:
        return self.budget // self.setting.strategy.popsize

    def method_with(self, alpha: Array | None) -> Method:
        """The method, with the margins of the runs at hand."""
        # prepare() lets alpha through with Margin alone
        return self.method if alpha is None else replace(self.method, alpha=alpha)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Runs:
    """What differs from run to run, T of them, or from batch to batch."""

    seed: int
    start: Start  # (T, N), ...
    trials: NDArray[np.int64]  # (T,) keys of the noise
    which: NDArray[np.int64]  # (T,) index of the run's function
    alpha: NDArray[np.float64] | None  # (T, 1)


def prepare(
    problems: Sequence[BatchProblem],
    method: str | Method,
    trials: int | Sequence[int],
    seed: int,
    *,
    popsize: int | None,
    alpha: Sequence[float] | NDArray[np.float64] | None,
    stopping: Stopping,
    budget: int,
) -> tuple[Rules, Runs]:
    """All trials of several problems over one space as one batch, problem by problem."""
    if not problems:
        raise ValueError("problem: expected at least one problem, but got none; pass mixcma.problems.problem(...)")
    first = problems[0]
    if any(other.space != first.space or other.success != first.success for other in problems):
        raise ValueError(
            "problems: expected the same space and success for all of a batch, but got "
            f"{[other.space for other in problems]!r:.200}; make a batch of each instead"
        )
    numbers = _trial_numbers(trials)
    chosen = checked_method(method)
    encoding = Encoding(first.space, chosen.takes_categories)
    means = np.array([encoding.encode_mean(p.start(int(trial))) for p in problems for trial in numbers])
    if alpha is not None and not (isinstance(chosen, Margin) and len(alpha) == len(means)):
        raise ValueError(
            f'alpha: expected a margin for each of the {len(means)} runs, with the method "margin", but got '
            f"{len(alpha)} margins for {chosen!r}; leave alpha out"
        )
    margins = None if alpha is None else np.asarray(alpha, dtype=np.float64)
    if margins is not None and not ((margins > 0) & (margins < 1)).all():
        raise ValueError(f"alpha: expected margins between 0 and 1, but got {alpha!r:.80}; leave alpha out")
    functions = tuple(p.function for p in problems)
    fixed = (checked_popsize(popsize), first.success, checked_stopping(stopping), checked_count("budget", budget, 1))
    rules = _rules(functions, first.space, chosen, *fixed)
    runs = Runs(
        seed=checked_seed(seed),
        start=started_at(encoding, means),
        trials=np.tile(numbers, len(problems)),
        which=np.repeat(np.arange(len(problems)), len(numbers)),
        alpha=None if margins is None else margins[:, None],
    )
    return rules, runs


def _trial_numbers(trials: int | Sequence[int]) -> NDArray[np.int64]:
    if isinstance(trials, int | np.integer):
        return np.arange(checked_count("trials", trials, 1))
    numbers = np.asarray(trials)
    if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu" or numbers.min() < 0:
        raise ValueError(
            f"trials: expected a number of trials, or a list of their numbers, but got {trials!r:.80}; pass trials=100"
        )
    return numbers.astype(np.int64)


@lru_cache(maxsize=64)
def _rules(
    functions: tuple[Callable[[Array], Array], ...],
    space: Space,
    method: Method,
    popsize: int | None,
    target: float,
    stopping: Stopping,
    budget: int,
) -> Rules:
    """The same rules are the same object, so that what was compiled for them is found again."""
    encoding = Encoding(space, method.takes_categories)
    check_categories(method, encoding)
    return Rules(functions, method.setting(encoding.coordinates, popsize), method, target, stopping, budget)


def generation(rules: Rules, method: Method, state: State, noise: Noise, which: Array) -> tuple[State, Array]:
    """One generation of every run; the new state, and the least penalised value of each, (T,)."""
    sample = method.sample(rules.setting, state, noise)
    x = existing_values(rules.setting.coordinates, sample.v, sample.cells)
    values = _evaluate(rules.functions, x, which)
    ranked = values + method.penalty(rules.setting, sample.v)
    return method.tell(rules.setting, state, sample, values), ranked.min(axis=-1)


def _evaluate(functions: Sequence[Callable[[Array], Array]], x: Array, which: Array) -> Array:
    """Run r is evaluated by functions[which[r]]: (T, L, N), (T,) -> (T, L)."""
    values = functions[0](x)
    for i, other in enumerate(functions[1:], start=1):
        values = x.__array_namespace__().where(which[:, None] == i, other(x), values)
    return values


def given_up(rules: Rules, state: State) -> Array:
    """Which runs have ended by the paper's conditions, after a decomposition: (T,) bool."""
    limits = rules.stopping
    narrow = rules.method.smallest_variance(rules.setting, state) < limits.min_variance
    return narrow | (condition_number(state) > limits.max_condition)
