"""MixCmaSampler with a model: the first trials are explored, all of them are the history of the search after them."""

from __future__ import annotations

import math

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from mixcma.run.explorer import LONGEST
from tests.integrations.optuna_studies import (
    SPACE,
    carried,
    elsewhere,
    evaluated,
    new_study,
    objective,
    ran,
    sampler,
    suggest,
    value,
)

POPSIZE = 4


def exploring(trials=0, objective=objective, **options):
    return ran(new_study(method="mix", **options), trials, objective)


def another(study, **options):
    """A sampler that has seen nothing yet, on the same study."""
    return optuna.load_study(
        study_name=study.study_name, storage=study._storage, sampler=sampler(method="mix", **options)
    )


def rough(trial):
    """With hollows enough that something better is found now and then."""
    params = suggest(trial)
    return value(params) + 3 * math.sin(40 * params["x"])


def test_trials_carry_nothing_while_the_study_is_explored_and_the_chain_begins_with_them_as_its_history():
    study = exploring(LONGEST + 12, rough)
    carries = carried(study)
    first = next(number for number, about in enumerate(carries) if about)
    assert 20 < first <= LONGEST
    assert carries[:first] == [None] * first
    assert all(carries[first:])
    assert carries[first]["record"]["start"]["history"] == first
    assert [about["record"]["took"] for about in carries if about and about.get("record", {}).get("took")]


def test_exploring_finds_what_it_is_for():
    best = exploring(30).best_trial
    assert (best.params["n"], best.params["on"]) == (3, False)
    assert best.value < 1e-2


@pytest.mark.parametrize("change", [{"seed": 2}, {"method": "mix-without-model"}], ids=str)
def test_the_same_seed_gives_the_same_trials_and_others_do_not(change):
    first = evaluated(exploring(25))
    assert first == evaluated(exploring(25))
    assert first != evaluated(ran(new_study(**{"method": "mix", **change}), 25))


def test_to_maximise_is_to_minimise_the_negative():
    study = exploring(20, lambda trial: -objective(trial), direction="maximize")
    assert evaluated(study) == evaluated(exploring(20))


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_a_new_process_for_every_few_trials_changes_nothing(kind, every, tmp_path):
    whole = evaluated(exploring(28))
    if kind == "memory":
        storage = None
    elif kind == "sqlite":
        storage = RDBStorage(f"sqlite:///{tmp_path}/study.db")
    else:
        storage = JournalStorage(JournalFileBackend(f"{tmp_path}/journal"))
    study = exploring(storage=storage)
    for done in range(0, 28, every):
        ran(another(study), min(every, 28 - done))
    assert evaluated(study) == whole


def test_a_new_process_changes_nothing_where_exploring_ends():
    whole = exploring(LONGEST + 5, rough)
    study = exploring()
    for trials in (20, LONGEST - 22, 1, 1, 1, 1, 3):
        ran(another(study), trials, rough)
    assert evaluated(study) == evaluated(whole)
    assert carried(study)[: LONGEST - 3] == carried(whole)[: LONGEST - 3]


def spoilt(how, number):
    """Every third trial comes to nothing."""

    def objective(trial):
        params = suggest(trial)
        if trial.number % 3 == number:
            if how == "pruned":
                raise optuna.TrialPruned
            if how == "failed":
                raise ArithmeticError
            return {"nan": math.nan, "-inf": -math.inf, "inf": math.inf, "huge": 1e300}[how]
        return value(params)

    return objective


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("how", ["pruned", "failed", "nan", "-inf", "inf", "huge"])
def test_trials_that_come_to_nothing_are_counted_and_the_study_goes_on(how, number):
    study = ran(new_study(method="mix"), 30, spoilt(how, number), catch=ArithmeticError)
    points = [tuple(trial.params.values()) for trial in study.trials]
    assert len(set(points)) == 30
    best = min((trial for trial in study.trials if trial.number % 3 != number), key=lambda trial: trial.value)
    assert best.value < 0.5
    whole = ran(new_study(method="mix"), 30, spoilt(how, number), catch=ArithmeticError)
    assert points == [tuple(trial.params.values()) for trial in whole.trials]


def test_a_study_in_which_all_fails_goes_on():
    study = ran(new_study(method="mix"), 60, lambda trial: suggest(trial) and math.nan)
    assert len(study.trials) == 60
    ran(study, 10)
    assert min(trial.value for trial in study.trials if trial.state == TrialState.COMPLETE) < 100


@pytest.mark.parametrize("workers", [2, 5])
def test_workers_do_not_get_the_same_point(workers):
    """None of them knows what comes of the others' trials."""
    study = exploring(12)
    others = [study, *(another(study) for _ in range(workers - 1))]
    for _ in range(4):
        trials = [each.ask() for each in others]
        points = [tuple(suggest(trial).items()) for trial in trials]
        assert len(set(points)) == workers
        for each, trial, point in zip(others, trials, points):
            each.tell(trial, value(dict(point)))


def test_what_a_worker_proposes_depends_on_the_study_alone():
    """Trials finish in any order, and each worker has seen them in an order of its own."""
    study = exploring(8)
    first, second = another(study), another(study)
    trials = [first.ask() for _ in range(3)]
    points = [suggest(trial) for trial in trials]
    for k in (2, 0, 1):
        first.tell(trials[k], value(points[k]))
        if k != 0:
            suggest(running := first.ask())
            first.tell(running, state=TrialState.FAIL)
    trial = study.ask()._cached_frozen_trial
    asked = [each.sampler.sample_relative(each, trial, SPACE) for each in (first, second, another(study))]
    assert asked[0] == asked[1] == asked[2]


def test_a_trial_that_runs_forever_does_not_block():
    study = exploring(8)
    stale = study.ask()
    suggest(stale)
    ran(study, 25)
    assert min(trial.value for trial in study.trials if trial.state == TrialState.COMPLETE) < 0.1


def test_constraints_are_learnt():
    def objective(trial):
        params = suggest(trial)
        trial.set_constraint("at least", 2.0 - params["x"])
        return value(params)

    study = exploring(35, objective)
    feasible = [trial for trial in study.trials if all(g <= 0 for g in trial.constraints.values())]
    assert min(trial.value for trial in feasible) < 1.05


def test_categories_are_explored():
    space = {"kind": CategoricalDistribution(("a", "b", "c", "d")), "x": FloatDistribution(-5, 5)}

    def objective(trial):
        kind, x = trial._suggest("kind", space["kind"]), trial._suggest("x", space["x"])
        return "cbad".index(kind) + (x - 1) ** 2

    study = exploring(30, objective, space=space)
    assert study.best_trial.params["kind"] == "c"
    assert study.best_value < 0.1
    assert carried(study) == [None] * 30


def test_trials_of_others_are_known():
    """They count as explored: enough of them, and the chain begins at once."""
    few, many = exploring(), exploring()
    few.add_trials(elsewhere(20))
    many.add_trials(elsewhere(LONGEST))
    ran(few, 1), ran(many, 1)
    assert carried(few)[-1] is None
    assert evaluated(few)[-1] not in evaluated(few)[:-1]
    assert carried(many)[-1]["record"]["start"]["history"] == LONGEST


def test_trials_that_lack_a_parameter_are_left_out():
    study = exploring()
    part = {name: SPACE[name] for name in ("n", "on")}
    study.add_trials([create_trial(params={"n": 1, "on": True}, distributions=part, value=1.0) for _ in range(6)])
    ran(study, 12)
    assert len({tuple(trial.params.items()) for trial in study.trials[6:]}) == 12


@pytest.mark.parametrize("known", [0, 10])
def test_an_enqueued_trial_is_evaluated_as_it_is(known):
    study = exploring(known)
    study.enqueue_trial({"n": 3, "on": False, "x": 1.0})
    ran(study, 3)
    assert study.trials[known].params == {"n": 3, "on": False, "x": 1.0}
