"""The traceback of a failed evaluation is the objective's own, and as short as it can be."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import loky
import pytest

from mixcma.evaluation import open_evaluator
from mixcma.evaluation.command import KEPT_ERRORS, Command
from mixcma.evaluation.objective import Portable
from mixcma.run.outcome import LONGEST_ERROR, LONGEST_TRACEBACK
from tests.evaluation.processes import processes


@pytest.fixture
def workers(request):
    """What `workers=` is given, by its name."""
    kinds = {"threads": ThreadPoolExecutor, "process pool": processes, "loky": loky.ProcessPoolExecutor}
    if request.param not in kinds:
        yield request.param
        return
    with kinds[request.param](2) as pool:
        yield pool


EVERYWHERE = pytest.mark.parametrize("workers", [1, 2, "threads", "process pool", "loky"], indirect=True)


def called(objective, workers=1):
    evaluator = open_evaluator(objective, workers, None)
    try:
        evaluator.submit(1, {"x": 1.0})
        return evaluator.next().call.outcome
    finally:
        evaluator.close()


@EVERYWHERE
def test_a_traceback_begins_in_the_objective_and_ends_with_the_error(workers):
    def innermost(x):
        return x / 0

    def objective(p):
        return innermost(p["x"])

    outcome = called(objective, workers)
    lines = outcome.traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    frames = [line for line in lines if line.startswith("  File ")]
    assert [frame.rpartition(" in ")[2] for frame in frames] == ["objective", "innermost"]
    assert lines[-1] == outcome.error == "ZeroDivisionError: float division by zero"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_traceback_has_the_exceptions_behind_the_last_one(workers):
    def objective(p):
        try:
            return p["y"]
        except KeyError as error:
            raise RuntimeError("no y") from error

    text = called(objective, workers).traceback
    assert text.index("KeyError: 'y'") < text.index("direct cause") < text.index("RuntimeError: no y")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_traceback_has_a_sensible_length(workers):
    def even(n):
        return odd(n + 1)

    def odd(n):
        return even(n + 1)

    outcome = called(lambda p: even(0), workers)
    assert outcome.error.startswith("RecursionError")
    assert 0 < len(outcome.traceback) <= LONGEST_TRACEBACK
    assert outcome.traceback.splitlines()[-1].startswith("RecursionError")


@pytest.mark.parametrize("workers", [1, 2])
def test_without_an_exception_there_is_no_traceback(workers):
    assert called(lambda p: None, workers).traceback is None
    assert called(lambda p: 1.0, workers).traceback is None


def test_an_endless_message_does_not_leave_the_worker():
    def objective(p):
        error = RuntimeError("x" * 10_000_000)
        error.add_note("y" * 10_000_000)
        raise error

    arrived = pickle.loads(pickle.dumps(Portable(objective)))
    result = arrived({}, 1)
    assert len(pickle.dumps(result)) < 20_000
    assert len(result.outcome.error) == LONGEST_ERROR
    assert len(result.outcome.traceback) == LONGEST_TRACEBACK


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_of_which_nothing_can_be_told_is_still_a_failure(workers):
    class Mute(Exception):
        def __str__(self):
            raise SystemExit(3)

        __repr__ = __str__

        def __reduce__(self):
            raise GeneratorExit

    def objective(p):
        raise Mute

    assert called(objective, workers).error == "Mute"


# Programs


def test_the_traceback_of_a_program_is_the_end_of_what_it_wrote_to_stderr():
    text = "import sys; sys.stderr.write('-' * 5000 + 'at the end\\n'); sys.exit(3)"
    outcome = Command((sys.executable, "-c", text))({}, 1)
    assert outcome.failed
    assert outcome.traceback.endswith("---at the end")
    assert KEPT_ERRORS - 1 <= len(outcome.traceback) <= KEPT_ERRORS


def test_a_program_that_fails_without_a_word_has_no_traceback():
    assert Command((sys.executable, "-c", "raise SystemExit(3)"))({}, 1).traceback is None


def test_a_program_that_prints_no_number_comes_with_its_traceback():
    text = "import sys; print('no number'); print('a warning', file=sys.stderr)"
    assert Command((sys.executable, "-c", text))({}, 1).traceback == "a warning"
