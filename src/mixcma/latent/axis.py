"""One variable as a line that is searched: where it begins, ends and starts, its scale, its cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mixcma.core.coordinates import LARGEST_LOG
from mixcma.space import Bool, Categorical, Discrete, Float, Int, Variable

# The default initial standard deviation is this part of the range.
INITIAL_FRACTION = 0.25


@dataclass(frozen=True)
class Axis:
    """One free variable as a line: value = decode(t), searched in u = (t - origin) / scale.

    For an integer, t counts steps from its lowest value, or is the logarithm of the value.
    """

    origin: float
    scale: float
    mean: float  # t where the search starts
    low: float  # t of the smallest and the largest value, infinite without a bound
    high: float
    bounds: tuple[float, float]  # the bounds of a float in its own units, else infinite
    cells: int  # number of values, 0 for floats
    first: float  # value of the first cell, distance of evenly spaced values;
    spacing: float  # for arbitrary sets both count the values
    log: bool
    values: tuple[float, ...] | None  # for arbitrary sets
    category: bool = False  # t is the place of the choice in the list, and neighbours mean nothing

    def latent(self, t: float) -> float:
        return (t - self.origin) / self.scale

    def position(self, value: float) -> float:
        """The t of a value, or of a mean between values."""
        if self.log:
            return math.log(value)
        if self.cells and self.values is None:
            return (value - self.first) / self.spacing
        return value


def axis(variable: Variable, categories: bool = False) -> Axis:
    """The line on which `variable` is searched; with `categories`, two values are a category and not a threshold."""
    if (categories and variable.size == 2) or (isinstance(variable, Categorical) and variable.size != 2):
        return _category_axis(variable)
    if isinstance(variable, Float):
        return _float_axis(variable)
    if isinstance(variable, Discrete):
        values = tuple(float(value) for value in variable.values)
        line = _line(values[0], values[-1], len(values), variable)
        return Axis(**line, first=0.0, spacing=1.0, log=False, values=values)
    if isinstance(variable, Bool | Categorical):
        return Axis(**_line(0.0, 1.0, 2, variable), first=0.0, spacing=1.0, log=False, values=None)
    assert isinstance(variable, Int)
    return _int_axis(variable)


def _category_axis(variable: Variable) -> Axis:
    """The latent number is the place of the choice. Of two values the mean says how probable the second is at first."""
    cells, ends, (low, high) = variable.size or 0, (-math.inf, math.inf), variable.hull
    start = (cells - 1) / 2 if variable.mean is None else (variable.mean - low) / (high - low)
    first, spacing = (0.0, 1.0) if isinstance(variable, Categorical) else (low, high - low)
    return Axis(0.0, 1.0, start, 0.0, cells - 1.0, ends, cells, first, spacing, False, None, category=True)


def _float_axis(variable: Float) -> Axis:
    low = -math.inf if variable.low is None else variable.low
    high = math.inf if variable.high is None else variable.high
    bounds = (low, high)
    if variable.log:
        low, high = math.log(low), min(LARGEST_LOG, math.log(high) if math.isfinite(high) else math.inf)
    bounded = math.isfinite(low) and math.isfinite(high) and not (variable.log and variable.high is None)
    mean = _transformed(variable.mean, variable.log)
    std = variable.std or (INITIAL_FRACTION * (high - low) if bounded else 1.0)
    if mean is None:
        middle = low / 2 + high / 2 if bounded else 0.0
        mean = middle if bounded else _within(_within(middle, low + std, high - std), low, high)
    origin = low if math.isfinite(low) else 0.0
    return Axis(origin, std, mean, low, high, bounds, 0, 0.0, 0.0, variable.log, None)


def _within(number: float, low: float, high: float) -> float:
    return max(low, min(number, high))


def _int_axis(variable: Int) -> Axis:
    cells = (variable.high - variable.low) // variable.step + 1
    if variable.log:
        line = _line(math.log(variable.low), math.log(variable.high), cells, variable)
        line["mean"] = _transformed(variable.mean, True) if variable.mean else line["mean"]
        return Axis(**line, first=variable.low, spacing=variable.step, log=True, values=None)
    counted = Int(0, cells - 1, std=variable.std and variable.std / variable.step)
    line = _line(0.0, float(cells - 1), cells, counted)
    if variable.mean is not None:
        line["mean"] = (variable.mean - variable.low) / variable.step
    return Axis(**line, first=variable.low, spacing=variable.step, log=False, values=None)


def _line(low: float, high: float, cells: int, variable: Variable) -> dict[str, Any]:
    """Bounds, scale and start of a discrete variable; its range includes half a cell on either side."""
    scale = variable.std or INITIAL_FRACTION * (high - low) * (cells / (cells - 1))
    return {
        "origin": low,
        "scale": scale,
        "mean": low / 2 + high / 2 if variable.mean is None else variable.mean,
        "low": low,
        "high": high,
        "bounds": (-math.inf, math.inf),
        "cells": cells,
    }


def _transformed(value: float | None, log: bool) -> float | None:
    return math.log(value) if log and value is not None else value
