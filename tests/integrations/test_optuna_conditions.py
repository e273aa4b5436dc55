"""Define-by-run studies: which parameters come with which choices, and studies that are searched accordingly."""

from __future__ import annotations

import logging

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from mixcma.integrations.optuna import MixCmaSampler
from mixcma.integrations.optuna.conditions import SeenParameters
from mixcma.integrations.optuna.parameters import When

UNIT, DEPTH = FloatDistribution(0, 1), IntDistribution(1, 30)
MODEL, KERNEL = CategoricalDistribution(("svm", "forest", "knn")), CategoricalDistribution(("rbf", "linear"))
LAYERS = IntDistribution(1, 3)
ALL = {"model": MODEL, "kernel": KERNEL, "layers": LAYERS, "depth": DEPTH, "C": UNIT, "gamma": UNIT, "third": UNIT}


def finished(params, number, state=TrialState.COMPLETE, **other):
    distributions = {name: {**ALL, **other}[name] for name in params}
    value = 1.0 if state == TrialState.COMPLETE else None
    trial = create_trial(state=state, value=value, params=params, distributions=distributions)
    trial.number = number
    return trial


def seen(*trials, **other):
    parameters = SeenParameters()
    return parameters.update([finished(params, number, **other) for number, params in enumerate(trials)])


def test_parameters_in_common_are_those_of_all_completed_trials():
    x, y, wide = FloatDistribution(0, 1), IntDistribution(0, 1), FloatDistribution(0, 2)
    parameters = SeenParameters()
    early = [finished({"x": 0.0}, 0, TrialState.FAIL, x=x), finished({"y": 0}, 1, TrialState.RUNNING, y=y)]
    assert parameters.update(early)[0] == {}
    assert not parameters.is_left_out("x", wide)
    assert parameters.update([finished({"x": 0.0, "y": 0}, 2, x=x, y=y)])[0] == {"x": x, "y": y}
    assert parameters.is_left_out("x", wide)
    assert not parameters.is_left_out("x", x)
    later = [finished({}, 3, TrialState.PRUNED), finished({"x": 0.0, "y": 0}, 4, x=wide, y=y)]
    assert parameters.update(later)[0] == {"y": y}


def test_parameters_that_come_with_a_choice():
    svm = {"model": "svm", "C": 0.5}
    searched, conditions = seen({**svm, "kernel": "linear"}, {"model": "forest", "depth": 3},
                                {**svm, "kernel": "rbf", "gamma": 0.5}, {"model": "knn"})  # fmt: skip
    assert conditions == {
        "C": When("model", ("svm",)),
        "kernel": When("model", ("svm",)),
        "gamma": When("kernel", ("rbf",)),
        "depth": When("model", ("forest",)),
    }
    assert set(searched) == {"model", "C", "kernel", "gamma", "depth"}


def test_parameters_that_come_with_integers():
    _, conditions = seen({"layers": 1}, {"layers": 2}, {"layers": 3, "third": 0.5})
    assert conditions == {"third": When("layers", (3,))}


def test_what_nothing_explains_is_left_to_the_independent_sampler():
    searched, conditions = seen({"C": 0.1, "gamma": 0.5}, {"C": 0.9}, {"C": 0.2})
    assert (set(searched), conditions) == ({"C"}, {})


def test_a_condition_changes_with_what_is_seen():
    first = {"model": "svm", "C": 0.5}, {"model": "forest"}
    assert seen(*first)[1] == {"C": When("model", ("svm",))}
    assert seen(*first, {"model": "knn", "C": 0.1})[1] == {"C": When("model", ("svm", "knn"))}
    assert seen(*first, {"model": "knn", "C": 0.1}, {"model": "svm"})[1] == {}


def choose(trial):
    """The forest is never bad; the support vector machine is best with the right C, and its kernel."""
    shift = (trial.suggest_float("shift", -5, 5) - 1) ** 2
    if trial.suggest_categorical("model", ["svm", "forest"]) == "forest":
        return shift + 1 + ((trial.suggest_int("depth", 1, 30) - 20) / 20) ** 2
    wrong = (np.log10(trial.suggest_float("C", 1e-4, 1e4, log=True)) - 2) ** 2
    if trial.suggest_categorical("kernel", ["linear", "rbf"]) == "linear":
        return shift + 2 + wrong
    return shift + wrong + (trial.suggest_float("gamma", -3, 3) + 1) ** 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_study_finds_the_best_branch(seed, caplog):
    caplog.set_level(logging.WARNING, logger="mixcma")
    study = optuna.create_study(sampler=MixCmaSampler(seed=seed))
    study.optimize(choose, n_trials=80)
    assert study.best_value < 1e-3
    assert set(study.best_params) == {"shift", "model", "C", "kernel", "gamma"}
    assert not caplog.records


def test_eight_threads_on_a_study_with_branches():
    study = optuna.create_study(sampler=MixCmaSampler(seed=1))
    study.optimize(choose, n_trials=120, n_jobs=8)
    assert study.best_value < 1e-2
    assert set(study.best_params) == {"shift", "model", "C", "kernel", "gamma"}


def test_workers_on_a_study_with_branches(tmp_path):
    """Each trial by a process of its own, as it were: a new sampler reads the study again."""
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(storage=storage, study_name="branches")
    for _ in range(60):
        study = optuna.load_study(storage=storage, study_name="branches", sampler=MixCmaSampler(seed=1))
        study.optimize(choose, n_trials=1)
    alone = optuna.create_study(sampler=MixCmaSampler(seed=1))
    alone.optimize(choose, n_trials=60)
    assert [trial.params for trial in study.trials] == [trial.params for trial in alone.trials]
