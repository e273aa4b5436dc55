"""RunMonitor: what counts as flat when nothing but mutations varies, and integers that still narrow."""

from __future__ import annotations

import json

import pytest

from mixcma import Float, Int, Optimizer, Outcome, Space, Stopping
from mixcma.core.stopping import flat_window
from mixcma.run.monitor import PATIENCE_WITHOUT_FLOATS, RunMonitor
from mixcma.run.outcome import read_outcomes

DIMENSION, POPSIZE = 3, 6
WINDOW = flat_window(DIMENSION, POPSIZE, PATIENCE_WITHOUT_FLOATS)
# (violation, value) of the best of a generation, in turns
TURNS = {
    "values": [(0.0, 5.0), (0.0, 7.0)],
    "an infeasible one with a lower value": [(0.0, 5.0), (3.0, -100.0)],
    "violations": [(1.0, 5.0), (2.0, 5.0)],
    "both": [(1.0, 5.0), (1.0, 9.0), (4.0, -1.0)],
}


def monitor(floats=0, target=None):
    return RunMonitor(Stopping(), target, DIMENSION, floats, POPSIZE)


def record(watched, orders, varying):
    for violation, value in orders:
        worst = Outcome(value + 1.0, [violation + 1.0])
        watched.record(read_outcomes([worst] * (POPSIZE - 1) + [Outcome(value, [violation])]), varying)


def repeated(orders, count=WINDOW):
    return (orders * count)[:count]


def stop_of(watched):
    stop = watched.stop_reason(1.0)
    return stop and stop.name


@pytest.mark.parametrize("orders", TURNS.values(), ids=TURNS)
def test_if_nothing_varies_what_counts_is_whether_a_candidate_is_better(orders):
    """Violation and value are kept as a pair: that of the best so far."""
    settled, varies = monitor(), monitor()
    record(settled, repeated(orders), varying=0)
    record(varies, repeated(orders), varying=DIMENSION)
    assert settled.best == varies.best == min(orders)
    assert (stop_of(settled), stop_of(varies)) == ("flat", None)


@pytest.mark.parametrize("better", [(0.0, 4.0), (0.0, 1e9)], ids=["in value", "feasible, with a higher value"])
def test_a_better_candidate_is_no_flatness_if_nothing_varies(better):
    watched = monitor()
    record(watched, [(0.0 if better[1] < 5 else 1.0, 5.0)] * (WINDOW - 1) + [better], varying=0)
    assert watched.best == better
    assert stop_of(watched) is None
    record(watched, [(9.0, -9.0)] * (WINDOW - 1), varying=0)
    assert stop_of(watched) == "flat"


def test_a_search_may_return_to_each_best_point_once():
    watched = monitor()
    assert not watched.may_return
    for value in (5.0, 4.0):
        record(watched, [(0.0, value)], varying=DIMENSION)
        assert watched.may_return
        watched.record_return(0)
        assert not watched.may_return


def test_what_was_watched_goes_through_json():
    watched, restored = monitor(floats=1), monitor(floats=1)
    record(watched, repeated([(1.0, 5.0), (0.0, 7.0)], 9), varying=2)
    record(watched, repeated([(0.0, 6.0)], 4), varying=2)
    watched.record_failure()
    restored.restore(json.loads(json.dumps(watched.snapshot())), varying=2)
    assert restored.snapshot() == watched.snapshot()
    for each in (watched, restored):
        record(each, repeated([(0.0, 6.0)], WINDOW - 4), varying=2)
        assert stop_of(each) == "flat"


@pytest.mark.parametrize("others", [{}, {"x": Float(-1, 1)}], ids=["alone", "beside a float"])
def test_an_integer_at_the_end_of_a_wide_range_is_not_given_up_before_its_neighbours_were_tried(others):
    """All candidates are at the end, or beyond it, as long as the Gaussian is far wider than a cell."""
    space = Space({"n": Int(0, 2**40), **others})
    for seed in range(1, 6):
        optimizer = Optimizer(space, seed=seed)
        while not optimizer.stop and optimizer.evaluations < 20_000:
            candidates = optimizer.ask()
            optimizer.tell(candidates, [abs(c.params["n"] - 1) + c.params.get("x", 0.0) ** 2 for c in candidates])
        assert optimizer.best.params["n"] == 1
