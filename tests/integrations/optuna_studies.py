"""A small mixed search space, its objective, and helpers that read what the trials of a study carry."""

from __future__ import annotations

import signal

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial

from mixcma import Bool, Float, Int, Space
from mixcma.integrations.optuna import MixCmaSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = {"n": IntDistribution(0, 9), "on": CategoricalDistribution((False, True)), "x": FloatDistribution(-5, 5)}
SAME_SPACE = Space({"n": Int(0, 9), "on": Bool(), "x": Float(-5, 5)})


def value(params):
    return (params["x"] - 1) ** 2 + (params["n"] - 3) ** 2 + params["on"]


def suggest(trial):
    return {name: trial._suggest(name, distribution) for name, distribution in SPACE.items()}


def objective(trial):
    return value(suggest(trial))


def sampler(seed=1, popsize=4, space=SPACE, method="mix-without-model", **options):
    """Without a model unless told otherwise: the chain begins with the first trial."""
    return MixCmaSampler(space, seed=seed, popsize=popsize, method=method, **options)


def new_study(*args, storage=None, direction="minimize", **options):
    return optuna.create_study(storage=storage, direction=direction, sampler=sampler(*args, **options))


def ran(study, trials, objective=objective, **options):
    study.optimize(objective, n_trials=trials, **options)
    return study


def evaluated(study):
    return [trial.params for trial in study.trials]


def elsewhere(count):
    """Finished trials that no search has drawn; the best is the last one."""
    points = [{"n": i % 10, "on": i % 2 == 1, "x": 5 - 9 * i / count} for i in range(count)]
    return [create_trial(params=p, distributions=SPACE, value=value(p)) for p in points]


def carried(study):
    """The attribute that a search has written into each trial; None if there is none."""
    return [
        next((about for key, about in trial.system_attrs.items() if key.startswith("mixcma:")), None)
        for trial in study.trials
    ]


def taken(study):
    """The trials that each generation was closed with, in the order of the closings."""
    records = [about["record"] for about in carried(study) if about and "record" in about]
    return [record["took"] for record in records if "took" in record]


def counted_once(generations):
    """Whether no result is used in two generations."""
    used = [number for took in generations for number in took]
    return len(used) == len(set(used))


class limited_to:
    """Raise if the block takes longer: a loop that never ends would use up all memory."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.end)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def end(self, *_):
        raise AssertionError(f"still running after {self.seconds} s")
