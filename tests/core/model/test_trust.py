"""How far the model is trusted, and when it may propose points."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from mixcma.core.model.trust import (
    EVALUATED,
    FIRST_TRUST,
    LEAST_PAIRS,
    LONGEST_PAUSE,
    REMEMBERED,
    REST,
    Trust,
    places,
)

UP = np.arange(5.0)


def test_trust_is_given_at_first():
    assert Trust().value == FIRST_TRUST


@pytest.mark.parametrize(("came", "value"), [(UP, 1.0), (-UP, -1.0), (UP[[1, 0, 2, 3, 4]], 0.8)])
def test_trust_is_the_agreement(came, value):
    trust = Trust()
    trust.judge(UP, came)
    assert trust.value == pytest.approx(value)


def test_pairs_count_alike_in_whatever_generation():
    """(10 pairs agree, 1 does not) -> 9/11."""
    trust = Trust()
    trust.judge(UP, UP)
    trust.judge(UP[:2], -UP[:2])
    assert trust.value == pytest.approx(9 / 11)


def test_few_pairs_say_nothing():
    trust = Trust()
    for pairs in range(1, LEAST_PAIRS + 1):
        assert trust.value == FIRST_TRUST
        trust.judge(UP[:2], -UP[:2])
        trust.judge(UP[:1], UP[:1])  # no pair
        assert trust.value == (-1.0 if pairs >= LEAST_PAIRS else FIRST_TRUST)


def test_what_is_long_ago_is_forgotten():
    trust = Trust()
    trust.judge(UP, -UP)
    for _ in range(REMEMBERED - 1):
        trust.judge(UP, UP)
    assert trust.value < 1.0
    trust.judge(UP, UP)
    assert trust.value == 1.0


@pytest.mark.parametrize("popsize", [1, 2, 3, 4, 5, 8, 13, 40])
@pytest.mark.parametrize("value", [-1.0, 0.0, 0.39, 0.4, 0.59, 0.6, 0.79, 0.8, 1.0])
def test_the_less_trust_the_more_is_evaluated(popsize, value, monkeypatch):
    monkeypatch.setattr(Trust, "value", value)
    share = 1.0
    for least, part in EVALUATED:
        if value >= least:
            share = part
            break
    wanted = Trust().wanted(popsize)
    assert wanted == min(popsize, 1 + max(1, math.floor(share * popsize)))
    assert min(2, popsize) <= wanted <= popsize
    assert wanted == popsize or value >= EVALUATED[-1][0]


def test_whoever_has_lost_trust_evaluates_all():
    trust = Trust()
    for _ in range(3):
        trust.judge(UP, UP)
    trust.lose()
    assert trust.value == 0.0
    assert trust.wanted(12) == 12
    trust.judge(np.arange(12.0), np.arange(12.0))
    assert trust.value > 0.8


def test_pauses_double_until_a_point_succeeds():
    trust, pauses = Trust(), []
    for _ in range(9):
        assert trust.may_propose("full")
        trust.judge_proposal("full", False)
        pause = 0
        while not trust.may_propose("full"):
            trust.judge_proposal("full", None)
            pause += 1
        pauses.append(pause)
    assert pauses == [1, 2, 4, 8, 16, 32, 64, LONGEST_PAUSE, LONGEST_PAUSE]
    trust.judge_proposal("full", True)
    assert trust.may_propose("full")
    trust.judge_proposal("full", False)
    trust.judge_proposal("full", None)
    assert trust.may_propose("full")


def test_what_has_nothing_new_rests_and_then_proposes_as_before():
    trust = Trust()
    for _ in range(3):
        trust.judge_proposal("full", False)
        while not trust.may_propose("full"):
            trust.judge_proposal("full", None)
    trust.rest("full")
    for _ in range(REST):
        assert not trust.may_propose("full")
        trust.judge_proposal("full", None)
    assert trust.may_propose("full")
    trust.judge_proposal("full", False)
    pause = 0
    while not trust.may_propose("full"):
        trust.judge_proposal("full", None)
        pause += 1
    assert pause == 8  # the next after 1, 2 and 4


def test_each_kind_has_its_own_pause():
    trust = Trust()
    trust.judge_proposal("diagonal", False)
    assert not trust.may_propose("diagonal")
    assert trust.may_propose("full")
    trust.judge_proposal("full", None)
    assert not trust.may_propose("diagonal")


def through_json(numbers):
    return json.loads(json.dumps(numbers))


def act(trust, step, rng):
    """Something that happens in a generation."""
    predicted, came = rng.normal(size=(2, rng.integers(0, 7)))
    trust.judge(predicted, came)
    kind = ["linear", "diagonal", "full"][rng.integers(3)]
    trust.judge_proposal(kind, [True, False, False, None][rng.integers(4)] if trust.may_propose(kind) else None)
    if step % 17 == 16:
        trust.lose()


def test_trust_goes_on_from_a_snapshot():
    trust, rng = Trust(), np.random.default_rng(1)
    for step in range(60):
        restored, again = Trust(), np.random.default_rng(step)
        restored.restore(through_json(trust.snapshot()))
        assert through_json(restored.snapshot()) == through_json(trust.snapshot())
        assert restored.value == trust.value
        ahead = Trust()
        ahead.restore(through_json(trust.snapshot()))
        for later in range(10):
            seed = again.integers(10**6)
            act(restored, later, np.random.default_rng(seed))
            act(ahead, later, np.random.default_rng(seed))
        assert restored.snapshot() == ahead.snapshot()
        act(trust, step, rng)


def test_a_snapshot_stays_as_it_was():
    trust = Trust()
    trust.judge_proposal("full", False)
    snapshot = trust.snapshot()
    before = through_json(snapshot)
    for _ in range(3):
        trust.judge(UP, UP)
        trust.judge_proposal("full", None)
    assert through_json(snapshot) == before


def test_places():
    order = np.array([3, 0, 2, 1])
    assert places(order).tolist() == [1.0, 3.0, 2.0, 0.0]
    assert places(np.zeros(0, int)).tolist() == []
