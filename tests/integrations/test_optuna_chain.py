"""The state as a fold over trials: any schedule of workers, late and lost writes, torn reads, cyclic records."""

from __future__ import annotations

import copy
import itertools
import random

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState

from mixcma.integrations.optuna.chain import Chain, Record, Start, record_from_json
from mixcma.integrations.optuna.fold import Fold
from mixcma.integrations.optuna.parameters import Parameters
from mixcma.run.arguments import checked_method
from tests.integrations.optuna_studies import SPACE, carried, counted_once, elsewhere, limited_to, value

POPSIZE = 4


def chain_of(*links):
    """A chain of records, each given as (carrier, carrier of the preceding record, depth)."""
    chain = Chain()
    for carrier, after, depth in links:
        chain.add(Record(carrier, after, depth, [], None if after is not None else Start(0, 1, None, 0, [])))
    return chain


def followed(*links):
    return [record.carrier for record in chain_of(*links).backwards()][::-1]


def test_without_records_there_is_no_chain():
    assert followed() == []


def test_the_longest_chain_is_followed():
    assert followed((0, None, 0), (1, None, 0), (5, 1, 1)) == [1, 5]


def test_of_two_records_of_the_same_generation_the_one_of_the_earlier_trial_counts():
    assert followed((0, None, 0), (7, 0, 1), (5, 0, 1)) == [0, 5]


def test_a_chain_with_a_link_that_cannot_be_seen_waits():
    assert followed((0, None, 0), (4, 0, 1), (9, 7, 3)) == [0, 4]


@pytest.mark.parametrize("links", [[(3, 3, 1)], [(3, 8, 2), (8, 3, 1)]])
def test_records_that_form_a_circle_are_ignored(links):
    with limited_to(0.5):
        assert followed((0, None, 0), *links) == [0]


@given(st.permutations([(0, None, 0), (1, None, 0), (4, 0, 1), (5, 0, 1), (9, 5, 2), (8, 4, 2), (12, 8, 3)]))
def test_the_order_in_which_records_are_seen_does_not_matter(links):
    assert followed(*links) == [0, 4, 8, 12]


@pytest.mark.parametrize("start", [None, Start(0, 7, None, 0, []), Start(2, 2**40, [0.1, -1e300], 9, [3, 4])])
@pytest.mark.parametrize("took", [[], [1, 2, 3]])
def test_a_record_survives_json(start, took):
    record = Record(9, 4, 2, took, start)
    assert record_from_json(9, copy.deepcopy(record.to_json())) == record


# Several workers on one study, with their steps in any order


class World:
    """A study in memory and its workers; the schedule decides when each step of a worker happens."""

    def __init__(self, workers, method="margin", value=value):
        self.value = value
        self.study = optuna.create_study()
        self.storage, self.id = self.study._storage, self.study._study_id
        self.method = checked_method(method)
        self.workers = [Worker(self, seed) for seed in range(workers)]

    @property
    def trials(self):
        return self.storage.get_all_trials(self.id, deepcopy=False)

    def fold(self):
        return Fold(Parameters(SPACE, self.method.takes_categories), self.method, POPSIZE, "mixcma:key", maximize=False)

    def settle(self):
        """Let all workers read everything; return what each would suggest next, and what a new worker would suggest."""
        for worker in self.workers:
            worker.finish_what_was_begun()
        trials = self.trials
        folds = [worker.fold for worker in self.workers] + [self.fold()]
        return [repr(fold.suggest(len(trials), trials, 0, None)) for fold in folds]

    def chain(self):
        """The records that all workers follow, and the points of all trials."""
        chain, points = Chain(), {}
        for number, about in enumerate(carried(self.study)):
            if about:
                points[number] = about
                if "record" in about:
                    chain.add(record_from_json(number, about["record"]))
        return list(chain.backwards())[::-1], points


class Worker:
    """Repeats the steps create, read, draw, write and finish."""

    def __init__(self, world, seed):
        self.world, self.seed = world, seed
        self.forget()

    def forget(self):
        """The worker is killed and restarted: its memory is gone, and its trial stays RUNNING forever."""
        self.fold, self.next = self.world.fold(), self.create

    def step(self):
        self.next()

    def run(self, steps=5):
        for _ in range(steps):
            self.step()

    def finish_what_was_begun(self):
        while self.next != self.create:
            self.step()

    def create(self):
        self.trial_id = self.world.storage.create_new_trial(self.world.id)
        self.number = self.world.storage.get_trial_number_from_id(self.trial_id)
        self.next = self.read

    def read(self):
        self.seen = self.world.trials
        self.next = self.draw

    def begin_torn_read(self):
        self.states, self.next = self.world.trials, self.end_torn_read

    def end_torn_read(self):
        """A database without read transactions: the states are older than the attributes."""
        self.seen = [copy.copy(trial) for trial in self.states]
        for trial, now in zip(self.seen, self.world.trials):
            trial.system_attrs = now.system_attrs
        self.next = self.draw

    def draw(self):
        self.suggestion = self.fold.suggest(self.number, self.seen, self.seed, None)
        self.next = self.write

    def write(self):
        self.world.storage.set_trial_system_attr(self.trial_id, "mixcma:key", self.suggestion.attribute)
        for name, distribution in SPACE.items():
            internal = distribution.to_internal_repr(self.suggestion.params[name])
            self.world.storage.set_trial_param(self.trial_id, name, internal, distribution)
        self.next = self.finish

    def fail_to_write(self):
        """The storage is unavailable for a moment, and the trial fails."""
        self.world.storage.set_trial_state_values(self.trial_id, TrialState.FAIL)
        self.next = self.create

    def finish(self):
        found = None if self.number % 11 == 5 else self.world.value(self.suggestion.params)
        state, values = (TrialState.FAIL, None) if found is None else (TrialState.COMPLETE, [found])
        self.world.storage.set_trial_state_values(self.trial_id, state, values)
        self.next = self.create


def play(world, schedule, torn=False):
    """Turn numbers into steps of workers; sometimes a worker is killed, a write fails, or a foreign trial is added."""
    for event in schedule:
        worker, kind = world.workers[event % len(world.workers)], event // len(world.workers)
        if kind == 0 and worker.next == worker.write:
            worker.fail_to_write()
        elif kind == 1:
            worker.forget()
        elif kind == 2:
            world.study.add_trial(elsewhere(7)[event % 7])
        elif torn and worker.next == worker.read:
            worker.begin_torn_read()
        else:
            worker.step()


def schedules(workers, length=200):
    """Hypothesis' own lists repeat a few numbers too often; a seeded generator mixes the steps better."""
    return st.integers(0, 2**32).map(lambda seed: random.Random(seed).choices(range(60 * workers), k=length))


@settings(max_examples=15)
@given(schedules(5), st.sampled_from(["mix-without-model", "margin", "im-box", "catmargin"]))
def test_whatever_the_schedule_all_workers_end_in_the_state_of_a_new_worker(schedule, method):
    world = World(5, method)
    play(world, schedule)
    assert len(set(world.settle())) == 1


@settings(max_examples=10)
@given(schedules(5))
def test_whatever_the_schedule_all_agree_on_restarts(schedule):
    world = World(5, value=lambda _: None)  # a run ends when whole generations fail
    play(world, [event for event in schedule if event // 5 != 2])
    assert len(set(world.settle())) == 1
    assert max(about["run"] for about in world.chain()[1].values()) >= 1


@settings(max_examples=15)
@given(schedules(5))
def test_whatever_the_schedule_a_generation_has_young_results_that_count_once(schedule):
    world = World(5)
    play(world, schedule)
    world.settle()
    records, points = world.chain()
    assert counted_once(record.took for record in records)
    for generation, record in enumerate(record for record in records if record.took):
        assert len(record.took) == POPSIZE
        assert all(points[n]["generation"] >= generation - 1 for n in record.took if n in points)


@settings(max_examples=15)
@given(schedules(4))
def test_readers_without_transactions_end_in_the_same_state(schedule):
    world = World(4)
    play(world, schedule, torn=True)
    assert len(set(world.settle())) == 1


def test_two_workers_that_close_a_generation_at_once_agree_afterwards():
    world = World(3)
    first, second, third = world.workers
    for _ in range(POPSIZE):
        first.run()
    for _ in range(3):  # both create, read and draw before either writes
        second.step(), third.step()
    third.step(), second.step()
    assert [("record" in about) for about in carried(world.study)] == [True] + [False] * 3 + [True] * 2
    assert len(set(world.settle())) == 1
    assert [record.carrier for record in world.chain()[0]] == [0, second.number]


def test_a_closing_that_is_written_generations_later_is_ignored():
    world = World(2)
    quick, slow = world.workers
    for _ in range(POPSIZE):
        quick.run()
    slow.run(steps=3)  # it has drawn, and is about to write that the first generation is closed
    for _ in range(10 * POPSIZE):
        quick.run()
    slow.run(steps=2)
    assert len(set(world.settle())) == 1
    assert slow.number not in [record.carrier for record in world.chain()[0]]


def test_two_workers_that_could_not_see_each_other_agree_as_soon_as_they_can():
    """They were apart for more generations than a worker keeps states for."""
    world = World(2)
    for generations, worker in zip([11, 14], world.workers):
        for _ in range(generations * POPSIZE):
            worker.create()
            worker.read()
            worker.seen = [trial for trial in worker.seen if trial.number >= first_of(worker)]
            worker.finish_what_was_begun()
    assert len(set(world.settle())) == 1
    assert world.chain()[0][0].carrier == 11 * POPSIZE


def first_of(worker):
    """The first worker makes all its trials before the second one begins."""
    return 0 if worker is worker.world.workers[0] else 11 * POPSIZE


def test_a_record_is_followed_once_all_its_results_are_visible():
    best_last = itertools.count(0, -1)
    world = World(3, value=lambda _: next(best_last))
    one, closer, reader = world.workers
    for _ in range(POPSIZE - 1):
        one.run()
    one.run(steps=4)
    closer.create()
    reader.create()
    reader.begin_torn_read()  # the last result has not arrived yet
    one.finish()
    closer.run(steps=3)
    reader.run(steps=2)
    assert len(set(world.settle())) == 1


def test_a_result_that_a_reader_does_not_see_yet_is_no_error():
    world = World(3)
    closer, reader, one = world.workers
    for _ in range(POPSIZE - 1):
        one.run()
    closer.create()
    reader.create()
    reader.begin_torn_read()
    one.run()  # created after the reader has listed the trials
    closer.read(), closer.draw(), closer.write()
    reader.run(steps=2)
    assert len(set(world.settle())) == 1


def test_a_write_that_failed_leaves_nothing_behind():
    world = World(2)
    lucky, unlucky = world.workers
    unlucky.run(steps=3)
    unlucky.fail_to_write()
    for _ in range(POPSIZE):
        lucky.run()
        unlucky.run(steps=3)
        unlucky.fail_to_write()
    assert len(set(world.settle())) == 1


def test_a_write_that_was_reported_as_failed_but_succeeded_is_followed():
    world = World(1)
    worker = world.workers[0]
    for _ in range(2 * POPSIZE):
        worker.run(steps=4)
        worker.fail_to_write()  # after the write
    assert len(set(world.settle())) == 1


def test_trials_that_run_forever_do_not_block():
    world = World(2)
    dying, living = world.workers
    for _ in range(5 * POPSIZE):
        dying.run(steps=4)
        dying.forget()
        living.run()
    assert len(world.chain()[0]) == 5


def test_foreign_results_count_once_if_a_trial_asks_for_its_parameters_late():
    """A trial may be created long before its first parameter is suggested, and may then close a generation."""
    world = World(2)
    sleeper, worker = world.workers
    worker.run()
    sleeper.create()
    world.study.add_trials(elsewhere(2))
    for _ in range(5):  # the second trial closes a generation with the results from elsewhere
        worker.run()
    sleeper.finish_what_was_begun()
    for _ in range(2 * POPSIZE):
        worker.forget()
        worker.run()
    assert counted_once(record.took for record in world.chain()[0])
