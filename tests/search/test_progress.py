"""The live display: bounded in memory and work, however long the search, and the same to look at."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from mixcma import Progress
from mixcma.run.optimizer import Best
from mixcma.search.progress import BARS, View, sparkline

MOST = 1000  # numbers that a display may keep


def falling(count):
    """The best value after each of so many evaluations."""
    draw = random.Random(1)
    return list(itertools.accumulate((math.exp(-i / count * 8) * draw.random() + 1 for i in range(count)), min))


def shown(values):
    view = View(budget=len(values))
    for number, value in enumerate(values, start=1):
        best = None if value is None else Best({"x": 1.0}, value, 0.0, number)
        view.show(Progress(number, len(values), 0, number // 6, 6, 1.0, 0, best))
    return view


def numbers_in(thing):
    """How many numbers an object holds, in its attributes and lists."""
    if isinstance(thing, int | float):
        return 1
    if isinstance(thing, list | tuple | dict):
        return sum(map(numbers_in, thing.values() if isinstance(thing, dict) else thing))
    return numbers_in(vars(thing)) if hasattr(thing, "__dict__") else 0


def line_of(view):
    """The sparkline that the display shows."""
    return "".join(letter for letter in view.__rich__().renderables[1].plain if letter in BARS)


@pytest.mark.parametrize("count", [1, 10, 5000, 100_000])
def test_the_display_keeps_a_bounded_number_of_values(count):
    assert numbers_in(shown(falling(count))) <= MOST


@pytest.mark.parametrize("count", [1, 39, 40, 41, 300, 5000, 100_000])
def test_the_display_looks_as_if_it_kept_all_values(count):
    values = falling(count)
    whole, line = sparkline(values), line_of(shown(values))
    assert len(line) == len(whole) == min(count, 40)
    assert (line[0], line[-1]) == (whole[0], whole[-1])
    assert all(abs(BARS.index(one) - BARS.index(other)) <= 1 for one, other in zip(line, whole))


def test_the_display_begins_with_the_first_finite_value():
    values = [None] * 500 + [math.inf] * 2000 + [4.0, 3.0, 2.0, 1.0]
    assert line_of(shown(values)) == sparkline([4.0, 3.0, 2.0, 1.0])


def test_without_a_value_there_is_no_sparkline():
    assert line_of(shown([None, None])) == ""
