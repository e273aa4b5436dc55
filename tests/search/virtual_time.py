"""Workers in virtual time: evaluations finish in an order that the test decides, and no test has to sleep for it."""

from __future__ import annotations

import heapq
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from mixcma import minimize
from mixcma.evaluation import open_evaluator

WHOLE = "mix-without-model"  # its generations are whole, so it does not matter how many workers there are
BOTH = pytest.mark.parametrize("method", ["mix", WHOLE])


class VirtualTime:
    """An evaluator; `lasting` gives the time of an evaluation from its number and its point."""

    def __init__(self, objective, capacity, lasting):
        self.capacity, self.lasting = capacity, lasting
        self.submitted, self.most = 0, 0
        self._now, self._flying = 0.0, []
        self._evaluator = open_evaluator(objective, 1, None)

    def submit(self, ticket, params):
        end = self._now + self.lasting(self.submitted, params)
        heapq.heappush(self._flying, (end, self.submitted, ticket, dict(params)))
        self.submitted += 1
        self.most = max(self.most, len(self._flying))

    def next(self):
        self._now, _, ticket, params = heapq.heappop(self._flying)
        self._evaluator.submit(ticket, params)
        return self._evaluator.next()

    def close(self):
        self._flying.clear()


def lognormal(number, params):
    return np.random.default_rng(number).lognormal(0.0, 1.0)


@contextmanager
def virtual_workers(capacity, lasting=lognormal):
    """Inside, every search evaluates in virtual time; yields the list of its evaluators."""
    made = []

    def opened(objective, workers, timeout):
        made.append(VirtualTime(objective, capacity, lasting))
        return made[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mixcma.search.driver.open_evaluator", opened)
        yield made


def in_turn(number, params):
    """Evaluations finish in the order in which they began."""
    return 1.0


def in_this_process(capacity, objective, space, method="mix", **options):
    """A search on so many workers, all in this process; without a model, as if there were one."""
    with nullcontext() if method == WHOLE else virtual_workers(capacity, in_turn):
        return minimize(objective, space, method=method, **options)
