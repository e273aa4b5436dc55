"""MixCmaSampler: mixcma as a sampler for Optuna."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import threading
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mixcma.core.methods import Method
from mixcma.integrations.optuna.conditions import SeenParameters
from mixcma.integrations.optuna.fold import Fold
from mixcma.integrations.optuna.parameters import (
    Parameters,
    When,
    check_x0,
    description,
    searched_together,
    unsupported_because,
)
from mixcma.run.arguments import checked_method, checked_popsize, checked_seed
from mixcma.run.noise import fresh_seed
from mixcma.run.optimizer import DEFAULT_METHOD
from mixcma.run.restarts import allowed_restarts

logger = logging.getLogger("mixcma")
Distributions = dict[str, BaseDistribution]

# Raise this when trials of an earlier version would be read differently; they then count as results from elsewhere.
FORMAT = 1


class MixCmaSampler(BaseSampler):
    """A sampler for Optuna that searches floats, integers and categories together.

    The state of the search is a function of the study's trials, so any number of processes may work on a study, on
    any storage, and they may join and leave at any time. Every result that is at most one generation old is used,
    whichever process evaluated it.

    Parameters
    ----------
    search_space
        The distributions of the parameters. None finds them in the completed trials, with the choices that some of
        them come with; the first trial is then drawn by the `independent_sampler`.
    method
        A method of mixcma, by name or as an object.
    popsize
        Candidates per generation in the first run; default 4 + floor(3 ln N).
    seed
        The same seed gives the same trials if they are evaluated one after the other. All workers on a study use the
        seed of the worker that began it.
    x0
        Where the search starts. Parameters that are left out start in the middle of their range.
    restarts
        Whether to start again from a random point when a run has converged. A number allows at most that many
        restarts; after them the study is stopped.
    independent_sampler
        Draws the parameters that cannot be searched together with the others: those that have not been seen yet, those
        that some trials have while no choice of another parameter says which, those whose range changes, and, if the
        method cannot search categories, choices of three or more. Default: a `optuna.samplers.RandomSampler` that draws
        the same values in whichever process a trial runs.
    warn_independent_sampling
        Whether to warn, once per parameter, that the `independent_sampler` is used.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x, n = trial.suggest_float("x", -5, 5), trial.suggest_int("n", 0, 9)
    ...     return x**2 + (n - 3)**2
    >>> study = optuna.create_study(sampler=MixCmaSampler(seed=1))
    >>> study.optimize(objective, n_trials=150)
    >>> study.best_params["n"]
    3
    """

    def __init__(
        self,
        search_space: Mapping[str, BaseDistribution] | None = None,
        *,
        method: str | Method = DEFAULT_METHOD,
        popsize: int | None = None,
        seed: int | None = None,
        x0: Mapping[str, Any] | None = None,
        restarts: bool | int = True,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
    ) -> None:
        self._given_space = None if search_space is None else _checked_space(search_space)
        self._method = checked_method(method)
        self._popsize = checked_popsize(popsize)
        self._seed = fresh_seed() if seed is None else checked_seed(seed)
        self._x0 = _checked_x0(x0, self._given_space)
        self._restarts = allowed_restarts(restarts)
        self._independent_sampler = _checked_sampler(independent_sampler) or NumberedRandomSampler(self._seed)
        self._warn = warn_independent_sampling
        self._warned: set[str] = set()
        self._memory: Memory | None = None
        self._lock = threading.Lock()  # the threads that work on a study share its sampler

    def __getstate__(self) -> dict[str, Any]:
        """The arguments only: a copy reads the study again."""
        return {**self.__dict__, "_memory": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        """Reseed the independent sampler. The search itself takes its noise from the number of the trial."""
        self._independent_sampler.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Distributions:
        """The parameters that are searched together: those given, or those of the trials so far."""
        _check_one_objective(study)
        if self._given_space is not None:
            return dict(self._given_space)
        trials = study.get_trials(deepcopy=False)
        with self._lock:
            return searched_together(self._memory_of(study).seen.update(trials)[0], self._method)

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Distributions) -> dict[str, Any]:
        """Draw values for all parameters of `search_space` from the state of the search."""
        _check_one_objective(study)
        mine = searched_together(search_space, self._method)
        params = {
            name: self.sample_independent(study, trial, name, d) for name, d in search_space.items() if name not in mine
        }
        return {**params, **self._suggested(study, trial, mine)} if mine else params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw a value for a parameter that cannot be searched together with the others."""
        _check_one_objective(study)
        self._warn_once(study, param_name, param_distribution)
        return self._independent_sampler.sample_independent(study, trial, param_name, param_distribution)

    def _warn_once(self, study: Study, name: str, distribution: BaseDistribution) -> None:
        if not self._warn or name in self._warned:
            return
        reason = unsupported_because(name, distribution, self._method)
        if reason is None:
            with self._lock:
                if distribution.single() or not self._memory_of(study).seen.is_left_out(name, distribution):
                    return  # the first trials serve to discover the parameters
            reason = "its range changes, or it comes with some trials and nothing says with which"
        self._warned.add(name)
        logger.warning(
            "%s: the parameter %r is sampled independently, by %s, because %s; pass warn_independent_sampling=False "
            "to silence this warning",
            type(self).__name__, name, type(self._independent_sampler).__name__, reason,
        )  # fmt: skip

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._independent_sampler.after_trial(study, trial, state, values)

    def _suggested(self, study: Study, trial: FrozenTrial, distributions: Distributions) -> dict[str, Any]:
        with self._lock:
            # not study.get_trials(): a pruner may hide some trials, and a thread may see a list that is out of date
            trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
            memory = self._memory_of(study)
            fold = memory.fold(distributions, memory.seen.update(trials)[1])
            suggestion = fold.suggest(trial.number, trials, self._seed, self._mean(fold.parameters))
            if suggestion.attribute is not None:
                study._storage.set_trial_system_attr(trial._trial_id, fold.key, suggestion.attribute)
        if suggestion.run > self._restarts:
            with contextlib.suppress(RuntimeError):  # there is no loop to stop if the user calls ask and tell
                study.stop()
        return suggestion.params

    def _mean(self, parameters: Parameters) -> list[float] | None:
        if self._x0 is None:
            return None
        return parameters.mean(self._x0)

    def _memory_of(self, study: Study) -> Memory:
        """The memory of this study; it is replaced when the sampler is used for another study."""
        memory = self._memory
        if memory is None or memory.study != (study._storage, study._study_id):
            memory = self._memory = Memory(study, self._method, self._popsize)
        return memory


class Memory:
    """What has been read from a study, so that it need not be read again."""

    def __init__(self, study: Study, method: Method, popsize: int | None) -> None:
        self.study = study._storage, study._study_id
        self.seen = SeenParameters()
        self._maximize = study.direction == StudyDirection.MAXIMIZE
        self._method, self._popsize = method, popsize
        self._folds: dict[str, Fold] = {}

    def fold(self, distributions: Distributions, conditions: Mapping[str, When]) -> Fold:
        """The search over these parameters. Workers with the same settings share it, under the same key."""
        conditions = {n: of for n, of in conditions.items() if n in distributions and of.parent in distributions}
        described = json.dumps([[name, description(distributions[name])] for name in sorted(distributions)])
        if conditions:
            described += repr([(name, *conditions[name]) for name in sorted(conditions)])
        if described not in self._folds:
            settings = f"{FORMAT} {described} {self._method} {self._popsize}"
            key = "mixcma:" + hashlib.sha256(settings.encode()).hexdigest()[:8]
            self._folds[described] = Fold(
                Parameters(distributions, self._method.takes_categories, conditions),
                self._method,
                self._popsize,
                key,
                self._maximize,
            )
        return self._folds[described]


class NumberedRandomSampler(RandomSampler):
    """Random values that depend only on the seed, the trial and the parameter, not on the worker that draws them."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._numbered_seed = seed

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        seed = zlib.crc32(f"{self._numbered_seed} {trial.number} {param_name}".encode(errors="surrogatepass"))
        return RandomSampler(seed).sample_independent(study, trial, param_name, param_distribution)


def _check_one_objective(study: Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(
            f"study: expected one objective, but {study.study_name} has {len(study.directions)}; "
            "use NSGAIISampler or TPESampler for several"
        )


def _checked_space(space: object) -> Distributions:
    if not isinstance(space, Mapping) or not all(
        isinstance(name, str) and isinstance(d, BaseDistribution) for name, d in space.items()
    ):
        raise ValueError(
            f"search_space: expected a mapping from names to distributions, but got {space!r:.80}; "
            'write {"x": FloatDistribution(0, 1)}, or leave it out'
        )
    return dict(space)


def _checked_x0(x0: object, space: Distributions | None) -> dict[str, Any] | None:
    """Check that `x0` maps names to values, within their ranges if the space is known already."""
    if x0 is None:
        return None
    if not isinstance(x0, Mapping):
        raise ValueError(f"x0: expected a mapping from names to values, but got {x0!r:.80}; write {{'x': 0.5}}")
    if space is not None:
        for name in x0:
            if name not in space:
                raise ValueError(f"x0: expected names from {sorted(space)}, but got {name!r}; remove it")
        check_x0(x0, space)
    return dict(x0)


def _checked_sampler(sampler: object) -> BaseSampler | None:
    if sampler is not None and not isinstance(sampler, BaseSampler):
        raise ValueError(f"independent_sampler: expected an Optuna sampler, but got {sampler!r:.80}; leave it out")
    return sampler
