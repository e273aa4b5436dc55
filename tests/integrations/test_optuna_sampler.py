"""MixCmaSampler makes the same search as mixcma itself, on any storage, in any number of processes, with any trials."""

from __future__ import annotations

import copy
import logging
import math
import pickle
import threading
import warnings

import numpy as np
import optuna
import pytest
import sqlalchemy
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import PartialFixedSampler, RandomSampler
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from mixcma import Optimizer, Outcome, minimize
from mixcma.core.methods import METHODS
from mixcma.integrations.optuna import export_to_optuna
from mixcma.integrations.optuna.fold import HISTORY_POPULATIONS
from mixcma.run.outcome import read_outcomes
from mixcma.store import read
from tests.integrations.optuna_studies import (
    SAME_SPACE,
    SPACE,
    carried,
    counted_once,
    elsewhere,
    evaluated,
    limited_to,
    new_study,
    objective,
    ran,
    sampler,
    suggest,
    taken,
    value,
)

WHOLE = "mix-without-model"  # that of `sampler`
STORAGES = ["memory", "sqlite", "journal"]


@pytest.fixture
def storage_named(tmp_path):
    def opened(kind):
        if kind == "sqlite":
            return without_waiting_for_the_disk(RDBStorage(f"sqlite:///{tmp_path}/study.db"))
        return InMemoryStorage() if kind == "memory" else JournalStorage(JournalFileBackend(f"{tmp_path}/journal"))

    return opened


def without_waiting_for_the_disk(storage):
    @sqlalchemy.event.listens_for(storage.engine, "connect")
    def connected(connection, _):
        connection.execute("PRAGMA synchronous=OFF")

    storage.engine.dispose()
    return storage


def reloaded(study, **options):
    """The study as another process sees it: with a cache or a journal that it has to read from the start."""
    storage = study._storage
    if isinstance(storage, JournalStorage):
        storage = JournalStorage(storage._backend)
    elif not isinstance(storage, InMemoryStorage):
        storage = storage._backend
    return optuna.load_study(study_name=study.study_name, storage=storage, sampler=sampler(**options))


def next_ones(study, **options):
    """What a new sampler and the study's own sampler suggest for the same trial."""
    trial = study.ask()
    asking = [reloaded(study, **options), study]
    return [each.sampler.sample_relative(each, trial._cached_frozen_trial, SPACE) for each in asking]


def experimental(what, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return what(*args)


def mixcma_alone(evaluations, outcome=value, **options):
    optimizer, found = Optimizer(SAME_SPACE, **{"seed": 1, "popsize": 4, "method": WHOLE, **options}), []
    while len(found) < evaluations:
        candidates = optimizer.ask()
        found += [candidate.params for candidate in candidates]
        optimizer.tell(candidates, [outcome(candidate.params) for candidate in candidates])
    return found[:evaluations]


# One trial after another


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.guided])
def test_sequential_trials_are_the_points_of_mixcma_alone(method):
    assert evaluated(ran(new_study(method=method), 43)) == mixcma_alone(43, method=method)


def test_the_default_population_is_that_of_mixcma_alone():
    assert evaluated(ran(new_study(popsize=None), 43)) == mixcma_alone(43, popsize=None)


def test_to_maximise_is_to_minimise_the_negative():
    study = new_study(direction="maximize")
    assert evaluated(ran(study, 30, lambda trial: -objective(trial))) == mixcma_alone(30)


def pruned(_):
    raise optuna.TrialPruned


def failed(_):
    raise ArithmeticError


@pytest.mark.parametrize("spoilt", [pruned, failed, lambda _: math.nan, lambda _: None, lambda _: -math.inf])
def test_failed_pruned_and_infinitely_good_trials_rank_last(spoilt):
    def often(trial):
        params = suggest(trial)
        return spoilt(trial) if params["on"] else value(params)

    study = ran(new_study(), 30, often, catch=ArithmeticError)
    assert evaluated(study) == mixcma_alone(30, lambda params: None if params["on"] else value(params))


@pytest.mark.parametrize("bad", [math.inf, 1e308])
def test_infinitely_bad_values_are_values(bad):
    study = ran(new_study(), 30, lambda trial: bad if suggest(trial)["on"] else 1.0)
    assert evaluated(study) == mixcma_alone(30, lambda params: bad if params["on"] else 1.0)


def test_generations_that_fail_altogether_lead_to_a_restart():
    study = ran(new_study(), 60, failed_after_suggesting, catch=ArithmeticError)
    assert carried(study)[-1]["run"] >= 1


def failed_after_suggesting(trial):
    suggest(trial)
    raise ArithmeticError


def constrained(params):
    return Outcome(value(params), [params["x"] - 0.5, 2.0 - params["n"]])


def with_set_constraint(trial, constraints):
    for name, g in zip("ab", constraints):
        trial.set_constraint(name, g)


def with_the_old_attribute(trial, constraints):
    trial.storage.set_trial_system_attr(trial._trial_id, "constraints", list(constraints))


@pytest.mark.parametrize("write", [with_set_constraint, with_the_old_attribute])
def test_less_violation_comes_first_however_constraints_are_written(write):
    def constrained_objective(trial):
        params = suggest(trial)
        write(trial, constrained(params).constraints)
        return value(params)

    assert evaluated(ran(new_study(), 40, constrained_objective)) == mixcma_alone(40, constrained)


def test_infinite_violations_are_violations():
    def constrained_objective(trial):
        params = suggest(trial)
        trial.set_constraint("a", math.inf if params["on"] else -1.0)
        return value(params)

    def outcome(params):
        return Outcome(value(params), [math.inf if params["on"] else -1.0])

    assert evaluated(ran(new_study(), 40, constrained_objective)) == mixcma_alone(40, outcome)


def test_x0_is_where_the_search_starts():
    x0 = {"x": -4.0, "n": 8, "on": True}
    assert evaluated(ran(new_study(x0=x0), 12)) == mixcma_alone(12, mean={"x": -4.0, "n": 8.0, "on": 1.0})


def test_without_a_given_space_the_first_trial_discovers_it():
    study = ran(new_study(space=None), 30)
    assert [about is None for about in carried(study)] == [True] + [False] * 29
    assert taken(study)[0] == [0, 1, 2, 3]


# Processes that join and leave


@pytest.mark.parametrize("kind", STORAGES)
@pytest.mark.parametrize("space", [SPACE, None], ids=["given", "inferred"])
def test_a_new_process_for_every_few_trials_changes_nothing(storage_named, kind, space):
    never_stopped = evaluated(ran(new_study(space=space), 26))
    study = new_study(space=space, storage=storage_named(kind))
    for trials in (5, 3, 1, 1, 10, 6):
        study = ran(reloaded(study, space=space), trials)
    assert evaluated(study) == never_stopped


@pytest.mark.parametrize("method", ["margin", "im"])
def test_a_new_process_continues_later_runs_too(method):
    def flat(trial):
        return float(suggest(trial)["on"])

    study = ran(new_study(method=method), 150, flat)
    assert carried(study)[-1]["run"] >= 1
    fresh, own = next_ones(study, method=method)
    assert fresh == own


def test_all_workers_use_the_results_of_the_others():
    study = new_study()
    other = reloaded(study, seed=2)
    for each in [study, other] * 15:
        ran(each, 1)
    assert evaluated(study) == mixcma_alone(30)  # with the seed of the worker that began the study


def test_after_threads_a_new_sampler_reads_the_same_state():
    study = ran(new_study(), 60, n_jobs=4)
    fresh, own = next_ones(study)
    assert fresh == own
    assert counted_once(taken(study))
    assert len(taken(study)) >= 10


def test_threads_with_samplers_of_their_own_agree_in_the_end(storage_named):
    study = new_study(storage=storage_named("sqlite"))
    workers = [reloaded(study, seed=seed) for seed in range(3)]
    threads = [threading.Thread(target=ran, args=(worker, 7)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trial = study.ask()._cached_frozen_trial
    suggested = [each.sampler.sample_relative(each, trial, SPACE) for each in [*workers, reloaded(study)]]
    assert all(one == suggested[0] for one in suggested)


def test_a_reader_between_two_writes_of_others_is_not_misled(storage_named):
    """SQLite and PostgreSQL read states and attributes one after the other, and other processes write in between."""
    study = new_study(storage=storage_named("sqlite"))
    reader = optuna.load_study(study_name=None, storage=storage_named("sqlite"), sampler=sampler())
    ran(study, 3, lambda trial: 9.0 + objective(trial))
    last, closing, reading = study.ask(), reloaded(study).ask(), reader.ask()
    suggest(last)

    still_to_happen = [lambda: study.tell(last, -1.0), lambda: suggest(closing)]

    def between(connection, cursor, statement, *_):
        while "FROM trial_system_attributes" in statement and still_to_happen:
            still_to_happen.pop(0)()

    sqlalchemy.event.listen(reading.study._storage._backend.engine, "before_cursor_execute", between)
    suggest(reading)
    fresh, own = next_ones(reading.study)
    assert fresh == own


def test_a_storage_that_fails_for_a_moment_does_no_harm(monkeypatch):
    study = ran(new_study(), 8)
    with monkeypatch.context() as patched:
        patched.setattr(study._storage, "set_trial_system_attr", unwritable)
        with pytest.raises(OSError, match="disk full"):
            ran(study, 1)
    fresh, own = next_ones(ran(study, 10))
    assert fresh == own


def unwritable(*_):
    raise OSError("disk full")


def test_trials_left_running_do_not_block_and_are_too_old_after_a_generation():
    study = new_study()
    left = [study.ask() for _ in range(5)]
    for trial in left:
        suggest(trial)
    ran(study, 30)
    for trial in left:
        study.tell(trial, 0.0)
    ran(study, 8)
    assert len(taken(study)) >= 7
    assert not any(trial.number in took for trial in left for took in taken(study))


# Trials that were made or changed elsewhere


def test_enqueued_trials_are_used():
    study = new_study()
    best = {"n": 3, "on": False, "x": 1.0}
    study.enqueue_trial(best)
    ran(study, 12)
    assert study.trials[0].params == best
    assert taken(study)[0] == [0, 1, 2, 3]


def test_a_partly_enqueued_trial_is_used_as_what_was_evaluated():
    study = new_study()
    study.enqueue_trial({"x": 4.875})
    ran(study, 5)
    assert study.trials[0].params == {**mixcma_alone(1)[0], "x": 4.875}
    optimizer, alone = (Optimizer(SAME_SPACE, seed=1, popsize=4, method=WHOLE) for _ in range(2))
    latent = np.array([candidate.latent for candidate in alone.ask()])
    latent[0, optimizer.encoding.names.index("x")] = optimizer.encoding.encode(study.trials[0].params)[0]
    noise = optimizer.method.sample(optimizer.setting, optimizer.state, optimizer.noise(0))
    sample = optimizer.method.express(optimizer.setting, optimizer.state, latent[:, None], noise.z)
    optimizer.advance(sample, read_outcomes([trial.value for trial in study.trials[:4]]))
    assert study.trials[4].params["x"] == pytest.approx(optimizer.ask()[0].params["x"], rel=1e-9)


def test_an_enqueued_trial_out_of_range_is_ignored():
    study = new_study()
    study.enqueue_trial({"x": 77.0})
    with pytest.warns(UserWarning, match="out of range"):
        ran(study, 1)
    ran(study, 11)
    assert [0 in took for took in taken(study)] == [False, False]


def test_a_few_trials_of_others_are_results_of_the_first_generations():
    study = new_study()
    study.add_trials(elsewhere(6))
    ran(study, 6)
    assert taken(study) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_many_trials_of_others_are_a_history_to_start_from():
    study, before = new_study(), elsewhere(4 * HISTORY_POPULATIONS)
    study.add_trials(before)
    ran(study, 1)
    history = [(trial.params, trial.value) for trial in before]
    optimizer = Optimizer(SAME_SPACE, seed=1, popsize=4, history=history, method=WHOLE)
    assert evaluated(study)[-1] == optimizer.ask()[0].params
    fresh, own = next_ones(ran(study, 9))
    assert fresh == own


def test_one_result_among_failures_is_no_history_to_start_from():
    study, (succeeded, *others) = new_study(), elsewhere(4 * HISTORY_POPULATIONS)
    study.add_trials([create_trial(params=t.params, distributions=SPACE, state=TrialState.FAIL) for t in others])
    study.add_trial(succeeded)
    ran(study, 1)
    assert carried(study)[-1]["record"]["start"]["history"] == 0


def test_results_of_another_sampler_in_the_same_study_are_used():
    study = new_study()
    other = reloaded(study, popsize=6)
    for each in [study, other] * 15:
        ran(each, 1)
    mine = [about["record"]["took"] for about in carried(study)[::2] if "took" in about.get("record", {})]
    assert len(mine) >= 6
    assert any(number % 2 for took in mine for number in took)
    fresh, own = next_ones(study)
    assert fresh == own


def test_a_fixed_parameter_leaves_the_others_to_the_search():
    study = new_study()
    study.sampler = experimental(PartialFixedSampler, {"n": 7}, study.sampler)
    ran(study, 20)
    assert {trial.params["n"] for trial in study.trials} == {7}
    assert len(taken(study)) == 4


def test_ranges_that_change_are_no_error(caplog):
    def widening(trial):
        return trial.suggest_float("x", -1, 1 + trial.number % 3) ** 2 + trial.suggest_float("y", 0, 1)

    study = ran(new_study(space=None), 30, widening)
    assert len(taken(study)) >= 5
    assert [record.getMessage().count("'x'") for record in caplog.records if record.name == "mixcma"] == [1]


def test_parameters_other_than_those_suggested_are_used_as_evaluated():
    """The range in the objective is narrower than that of the search: values outside it are sampled again."""

    def narrow(trial):
        x = trial.suggest_float("x", -0.5, 0.5)
        return value({"x": x, **{name: trial._suggest(name, SPACE[name]) for name in ("n", "on")}})

    study = ran(new_study(warn_independent_sampling=False), 40, narrow)
    assert len(taken(study)) == 9
    assert all(-0.5 <= params["x"] <= 0.5 for params in evaluated(study))


@pytest.mark.parametrize(
    "kept",
    [slice(None), slice(4, None), slice(5, None), slice(15, None), slice(None, None, 2), slice(None, None, -1)],
    ids=str,
)
def test_any_trials_of_another_search_can_be_added(kept):
    """As a warm start: the attributes that the trials carry belong to the study that they were made in."""
    study = new_study(seed=2)
    study.add_trials(ran(new_study(), 40).trials[kept])
    with limited_to(2):
        fresh, own = next_ones(ran(study, 10))
    assert fresh == own


@pytest.mark.parametrize("before", [1, 4])
@pytest.mark.parametrize("suggested", [["n"], ["n", "on", "x"]], ids=len)
def test_a_retried_trial_is_a_new_one(before, suggested):
    """Optuna copies the attributes of a stale trial, even if the trial had only some of its parameters."""
    study = ran(new_study(), 4)
    stale = study.ask()
    for name in suggested:  # the trial carries the record that closes the first generation
        stale._suggest(name, SPACE[name])
    ran(study, before)
    study.tell(stale, state=TrialState.FAIL)
    experimental(RetryHeartbeatStaleTrialCallback)(study, study.trials[stale.number])
    fresh, own = next_ones(ran(study, 14))
    assert fresh == own


def test_a_pruner_that_hides_trials_hides_no_results():
    def slowly(trial):
        found = objective(trial)
        for step in range(4):
            trial.report(found - step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return found

    study = new_study(space=None)
    study.pruner = optuna.pruners.HyperbandPruner(1, 4, 2)
    ran(study, 40, slowly)
    assert len(taken(study)) >= 7


# The sampler as a Python object


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_continues_where_the_original_stopped(copied):
    study = ran(new_study(), 10)
    study.sampler = copied(study.sampler)
    assert evaluated(ran(study, 20)) == mixcma_alone(30)


def test_one_sampler_serves_two_studies_in_turn():
    one, other = new_study(), new_study()
    other.sampler = one.sampler
    for study in [one, other] * 12:
        ran(study, 1)
    assert evaluated(one) == evaluated(other) == mixcma_alone(12)


def test_reseeding_changes_only_what_is_sampled_independently():
    study = ran(new_study(), 10)
    study.sampler.reseed_rng()
    assert evaluated(ran(study, 10)) == mixcma_alone(20)


def flat(trial):
    suggest(trial)
    return 1.0


@pytest.mark.parametrize("restarts", [0, 1, False])
@pytest.mark.parametrize("jobs", [1, 3])
def test_a_study_is_stopped_when_its_restarts_are_used_up(restarts, jobs):
    study = ran(new_study(restarts=restarts), 400, flat, n_jobs=jobs)
    assert len(study.trials) < 400
    assert max(about["run"] for about in carried(study)) == restarts + 1


def test_a_user_who_calls_ask_and_tell_is_not_stopped():
    study = new_study(restarts=0)
    for _ in range(200):
        study.tell(study.ask(SPACE), 1.0)
    assert carried(study)[-1]["run"] >= 1


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler())
    with pytest.raises(ValueError, match=r"study: expected one objective.* has 2; use NSGAIISampler"):
        study.optimize(lambda trial: (objective(trial), 0.0), n_trials=1)


@pytest.mark.parametrize(
    ("options", "who"),
    [
        ({"space": [1]}, "search_space"),
        ({"space": {"x": (0, 1)}}, "search_space"),
        ({"space": {1: FloatDistribution(0, 1)}}, "search_space"),
        ({"method": "tpe"}, "method"),
        ({"popsize": 3}, "popsize"),
        ({"popsize": 4.5}, "popsize"),
        ({"seed": -1}, "seed"),
        ({"seed": "a"}, "seed"),
        ({"restarts": -1}, "restarts"),
        ({"restarts": "yes"}, "restarts"),
        ({"x0": [1.0]}, "x0"),
        ({"x0": {"x": 6.0}}, "x0"),
        ({"x0": {"x": math.nan}}, "x0"),
        ({"x0": {"x": "1e"}}, "x0"),
        ({"x0": {"n": 3.5}}, "x0"),
        ({"x0": {"on": None}}, "x0"),
        ({"x0": {"z": 1.0}}, "x0"),
        ({"independent_sampler": "random"}, "independent_sampler"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused_with_a_sentence(options, who):
    with pytest.raises(ValueError, match=rf"^{who}: expected .*, but got .*; \w+"):
        sampler(**options)


def test_x0_outside_a_discovered_range_is_refused():
    with pytest.raises(ValueError, match=r"x0.*expected .*but got 6.0.*; "):
        ran(new_study(space=None, x0={"x": 6.0}), 3)


@pytest.mark.parametrize("seed", [2**32, 2**64 - 1, 2**70])
def test_seeds_may_be_large(seed):
    study = ran(new_study(seed=seed, space=None), 12)
    assert evaluated(study) == evaluated(ran(new_study(seed=seed, space=None), 12))


# Parameters that cannot be searched together


def of_three(trial):
    return objective(trial) + len(trial.suggest_categorical("kind", ("a", "bb", "ccc")))


def test_three_choices_are_searched_together(caplog):
    space = {**SPACE, "kind": CategoricalDistribution(("bb", "ccc", "a"))}
    study = ran(new_study(space=space), 60, of_three_others)
    last = [trial.params["kind"] for trial in study.trials[-20:]]
    assert last.count("a") > 12  # the shortest is the best
    assert not [record for record in caplog.records if record.name == "mixcma"]


def of_three_others(trial):
    return objective(trial) + 10 * len(trial.suggest_categorical("kind", ("bb", "ccc", "a")))


@pytest.mark.parametrize("space", [None, SPACE, {**SPACE, "kind": CategoricalDistribution(("a", "bb", "ccc"))}])
def test_a_method_without_categories_leaves_three_choices_to_others_with_one_warning(caplog, space):
    study = ran(new_study(space=space, method="margin"), 20, of_three)
    assert {trial.params["kind"] for trial in study.trials} == {"a", "bb", "ccc"}
    assert len(taken(study)) == 4
    messages = [record.getMessage() for record in caplog.records if record.name == "mixcma"]
    assert len(messages) == 1
    assert "'kind' is sampled independently, by NumberedRandomSampler" in messages[0]


def test_a_new_process_for_every_trial_changes_nothing_in_what_is_sampled_independently():
    options = {"warn_independent_sampling": False, "method": "margin"}
    study = new_study(**options)
    for _ in range(12):
        ran(reloaded(study, **options), 1, of_three)
    assert evaluated(study) == evaluated(ran(new_study(**options), 12, of_three))


def test_warnings_can_be_silenced(caplog):
    ran(new_study(warn_independent_sampling=False, method="margin"), 5, of_three)
    assert not [record for record in caplog.records if record.name == "mixcma"]


def test_trials_that_began_before_the_first_result_do_not_warn(caplog):
    study = new_study(space=None)
    slow, quick = study.ask(), study.ask()
    slow.suggest_int("n", 0, 9)
    study.tell(quick, objective(quick))
    study.tell(study.ask(SPACE), 1.0)
    suggest(slow)
    assert not [record for record in caplog.records if record.name == "mixcma"]


def test_the_independent_sampler_takes_part_in_every_trial():
    class Counting(RandomSampler):
        calls = ()

        def before_trial(self, *args):
            self.calls += ("before",)

        def after_trial(self, *args):
            self.calls += ("after",)

    independent = Counting()
    ran(new_study(independent_sampler=independent), 2)
    assert independent.calls == ("before", "after") * 2


@pytest.fixture(autouse=True)
def warnings_reach_caplog(caplog):
    caplog.set_level(logging.WARNING, logger="mixcma")


def test_choices_that_json_does_not_know_are_searched_in_memory():
    with pytest.warns(UserWarning, match="for persistent storage"):
        study = ran(new_study(space=None), 12, lambda t: objective(t) + (t.suggest_categorical("f", (min, max)) is min))
    assert len(taken(study)) == 2


def test_ints_given_as_a_space_may_be_alone():
    study = ran(new_study(space={"n": IntDistribution(0, 9)}), 10, lambda trial: trial.suggest_int("n", 0, 9))
    assert len(taken(study)) == 2


def test_restarts_are_those_of_minimize():
    """A single worker evaluates exactly the points of `minimize`, run after run."""

    def flat(params):
        return float(params["n"] > 20)

    study = optuna.create_study(sampler=sampler(seed=3))
    ran(study, 200, lambda trial: flat(suggest(trial)))
    alone = []
    minimize(
        lambda params: alone.append(params) or flat(params),
        SAME_SPACE, budget=200, seed=3, popsize=4, cache=False, method=WHOLE,
    )  # fmt: skip
    assert len({about["run"] for about in carried(study)}) > 1
    assert evaluated(study) == alone


# Attributes that the sampler did not write

NONSENSE = {
    "text": "nonsense",
    "number": 7,
    "list": [1, 2],
    "empty": {},
    "no latents": {"latents": None},
    "latents of another shape": {"latents": [[0.5]]},
    "latents that are text": {"latents": [["a", "b", "c"]]},
    "infinite latents": {"latents": [[math.inf, 0.0, 0.0]]},
    "generation as text": {"generation": "first"},
    "negative slot": {"slot": -1},
    "record as text": {"record": "closed"},
    "record without depth": {"record": {"after": None}},
    "took as a number": {"record": {"after": 0, "depth": 1, "took": 3}},
    "took as text": {"record": {"after": 0, "depth": 1, "took": ["3"]}},
    "start as text": {"record": {"after": None, "depth": 0, "start": "now"}},
    "start without a seed": {"record": {"after": None, "depth": 0, "start": {"run": 0}}},
    "start with a mean of text": {
        "record": {
            "after": None,
            "depth": 0,
            "start": {"run": 0, "seed": 1, "mean": ["a"], "history": 0, "unfinished": []},
        }
    },
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_new_worker_ignores_attributes_that_make_no_sense(storage_named, caplog, name):
    study = ran(new_study(storage=storage_named("memory")), 9)
    key = next(key for key in study.trials[0].system_attrs if key.startswith("mixcma:"))
    for _ in range(2):
        trial = study.ask()
        suggest(trial)
        own, wrong = study.trials[trial.number].system_attrs[key], NONSENSE[name]
        changed = own | wrong if isinstance(wrong, dict) and wrong else wrong
        study._storage.set_trial_system_attr(trial._trial_id, key, changed)
        study.tell(trial, 5.0)
    joined = optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=sampler())
    caplog.clear()  # the first worker has read one of them too
    ran(joined, 30)
    assert len([trial for trial in joined.trials if trial.state == TrialState.COMPLETE]) == 41
    (warning,) = [
        record.message for record in caplog.records if "is not one that this sampler writes" in record.message
    ]
    assert f"{key} of trial 9" in warning


# Export


def test_an_exported_run_keeps_infinite_values(tmp_path):
    def cost(params):
        if params["n"] == 4:
            raise RuntimeError("four")
        return math.inf if params["on"] else value(params)

    minimize(cost, SAME_SPACE, budget=60, seed=1, run_file=tmp_path / "run.db")
    record = read(tmp_path / "run.db")
    export_to_optuna(record, f"sqlite:///{tmp_path}/study.db", "run")
    study = optuna.load_study(study_name="run", storage=f"sqlite:///{tmp_path}/study.db")
    outcomes = [row.outcome for row in record.rows if row.evaluated]
    values = [None if outcome.failed else outcome.value for outcome in outcomes]
    assert {None, math.inf} < set(values)
    assert [trial.value for trial in study.trials] == values
    states = [trial.state for trial in study.trials]
    assert states == [TrialState.FAIL if outcome.failed else TrialState.COMPLETE for outcome in outcomes]
