"""The tables of the report: the summary, the best points, the runs and the failures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from mixcma.core.stopping import REASONS
from mixcma.report.series import Evaluations, FloatArray, model_use_of
from mixcma.report.text import domain
from mixcma.space import Categorical, Params, Space, Value, Variable
from mixcma.space.variables import Float, Int
from mixcma.store import Record, Row

POINTS_SHOWN = 50
# Two points are the same design if their floats differ by less than this part of their range, and all else is equal.
# A discrete variable with more values than this counts as a float.
SAME_DESIGN, MANY_VALUES = 0.01, 1000
# Where a point is that lacks a variable: at no place of its range.
ABSENT_PLACE = -1.0
ERRORS_SHOWN = 50
# The parts in which two messages of the same error may differ: decimal fractions and memory addresses.
_VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+")

NOT_ENDED = "The run has not ended: it was still running when this page was made, or it was killed."
NOT_ENDED_ADVICE = "If it was killed, resume it: it continues where it stopped, and no evaluation is lost."


@dataclass(frozen=True)
class Point:
    """An evaluated point, with the number of its evaluation, and how many points were the same design."""

    number: int
    row: Row
    value: float
    violation: float
    constraints: tuple[float, ...]
    times: int = 1

    @property
    def feasible(self) -> bool:
        return self.violation == 0.0

    @property
    def params(self) -> Params:
        return self.row.params


def best_point(evaluations: Evaluations) -> Point | None:
    return min(_succeeded(evaluations), key=_rank, default=None)


def best_designs(space: Space, evaluations: Evaluations, most: int = POINTS_SHOWN) -> list[Point]:
    """The best points that are different designs, the best first; each stands for all points of its design."""
    points = sorted(_succeeded(evaluations), key=_rank)
    places = np.stack([_places_of(name, variable, points) for name, variable in space.items()], axis=1)
    found, left = list[Point](), np.ones(len(points), dtype=bool)
    while len(found) < most and left.any():
        best = int(left.argmax())
        same = left & (np.abs(places - places[best]) < SAME_DESIGN).all(axis=1)
        found.append(replace(points[best], times=int(same.sum())))
        left &= ~same
    return found


def _succeeded(evaluations: Evaluations) -> list[Point]:
    return [
        Point(index + 1, row, row.outcome.value, row.outcome.violation, tuple(row.outcome.constraints))
        for index, row in enumerate(evaluations.rows)
        if row.outcome is not None and not row.outcome.failed
    ]


def _places_of(name: str, variable: Variable, points: Sequence[Point]) -> FloatArray:
    """The places of the points on one variable; far outside for those where it does not exist."""
    exists = np.array([name in point.params for point in points], dtype=bool)
    places = np.full(len(points), ABSENT_PLACE)
    places[exists] = _places(variable, [point.params[name] for point in points if name in point.params])
    return places


def _places(variable: Variable, values: Sequence[Value]) -> FloatArray:
    """Numbers that differ by less than `SAME_DESIGN` for the same design: places in the range, or whole numbers.

    The range of a float without bounds is that of these values.
    """
    if variable.size is not None and (isinstance(variable, Categorical) or variable.size <= MANY_VALUES):
        number = {value: index for index, value in enumerate(dict.fromkeys(values))}
        return np.array([number[value] for value in values], dtype=float)
    log = isinstance(variable, Float | Int) and variable.log
    at = np.log(np.array(values, dtype=float)) if log else np.array(values, dtype=float)
    low, high = (math.log(end) if log else end for end in variable.hull)
    if not math.isfinite(high - low):
        low, high = at.min(initial=math.inf), at.max(initial=-math.inf)
    with np.errstate(over="ignore", invalid="ignore"):  # values near the largest float are designs of their own
        return (at - low) / (high - low) if high > low else np.zeros(len(at))


def _rank(point: Point) -> tuple[float, float]:
    return point.violation, point.value


@dataclass(frozen=True)
class Summary:
    """The numbers at the top of the page."""

    best: Point | None
    evaluations: int
    budget: int
    failures: int
    known: int  # candidates whose point had been evaluated before
    pending: int
    proposed: int  # evaluations of points that the model proposed
    unseen: int  # candidates that the model ranked without an evaluation
    runs: int
    ended: bool
    stop: str
    advice: str
    duration: float | None  # from the start of the first evaluation to the end of the last, including pauses
    evaluation_time: float | None  # the median over the evaluations


def summary_of(record: Record, evaluations: Evaluations) -> Summary:
    times = [row.seconds for row in evaluations.rows if row.seconds is not None]
    message, advice = stop_text(record.settings["stop"])
    use = model_use_of(record, evaluations)
    return Summary(
        best=best_point(evaluations),
        evaluations=len(evaluations),
        budget=record.settings["budget"],
        failures=int(evaluations.failed.sum()),
        known=sum(row.finished and not row.evaluated for row in record.rows),
        pending=sum(not row.finished for row in record.rows),
        proposed=int(use.proposed[-1]) if len(evaluations) else 0,
        unseen=int(use.unseen[-1]) if len(evaluations) else 0,
        runs=len(record.runs),
        ended=record.settings["stop"] is not None,
        stop=message,
        advice=advice,
        duration=_duration(evaluations.rows),
        evaluation_time=median(times) if times else None,
    )


def stop_text(name: str | None) -> tuple[str, str]:
    """Why a search ended, and what to do about it."""
    if name is None:
        return NOT_ENDED, NOT_ENDED_ADVICE
    reason = REASONS.get(name)
    return (name, "") if reason is None else (reason.message, reason.advice)


def _duration(rows: list[Row]) -> float | None:
    starts = [row.started for row in rows if row.started is not None]
    ends = [row.started + (row.seconds or 0.0) for row in rows if row.started is not None]
    return max(ends) - min(starts) if starts else None


@dataclass(frozen=True)
class Component:
    """A variable of a design: its value, and the place of that value within its range, from 0 to 1."""

    name: str
    domain: str
    value: Value
    place: float | None

    @property
    def at_bound(self) -> bool:
        return self.place in (0.0, 1.0)


def components(space: Space, params: Params) -> list[Component]:
    return [Component(name, domain(space, name), value, _place(space[name], value)) for name, value in params.items()]


def _place(variable: Variable, value: Value) -> float | None:
    if isinstance(variable, Categorical) or variable.size == 2:  # no order, or nothing between the ends
        return None
    low, high = variable.hull
    if not math.isfinite(high - low) or low == high:
        return None
    if isinstance(variable, Float | Int) and variable.log:
        low, value, high = math.log(low), math.log(value), math.log(high)
    return float((value - low) / (high - low))


@dataclass(frozen=True)
class RunSummary:
    number: int
    popsize: int
    evaluations: int
    generations: int
    best: float | None  # the best feasible value of the run
    stop: str


def runs_of(record: Record, evaluations: Evaluations) -> list[RunSummary]:
    """One row per run: the first run and every restart."""
    found = []
    for run in record.runs:
        mine = [row.outcome for row in evaluations.rows if row.run == run.run and row.outcome is not None]
        values = [outcome.value for outcome in mine if outcome.feasible]
        last = run.run == len(record.runs) - 1
        ended = run.stop or (record.settings["stop"] if last else None)
        found.append(
            RunSummary(
                number=run.run + 1,
                popsize=run.popsize,
                evaluations=len(mine),
                generations=sum(generation.run == run.run for generation in record.generations),
                best=min(values, default=None),
                stop="not ended" if ended is None else ended,
            )
        )
    return found


def reasons_of(runs: Sequence[RunSummary]) -> dict[str, str]:
    """What the names in the table of the runs mean."""
    return {run.stop: REASONS[run.stop].message for run in runs if run.stop in REASONS}


def populations(record: Record) -> str:
    """The sizes of the populations of all runs."""
    sizes = [run.popsize for run in record.runs]
    least, most = min(sizes), max(sizes)
    return f"population {least}" if least == most else f"population {least} to {most}"


@dataclass(frozen=True)
class Failure:
    """Evaluations that failed in the same way, with the first of them as an example."""

    error: str
    count: int
    numbers: list[int]  # the numbers of these evaluations
    first: Row

    @property
    def title(self) -> str:
        """The first line that is not empty."""
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        return lines[0] if lines else "no message"

    @property
    def traceback(self) -> str | None:
        """Where the first of them was raised."""
        return None if self.first.outcome is None else self.first.outcome.traceback


def failures_of(evaluations: Evaluations) -> list[Failure]:
    """Failures grouped by error, the most frequent first; messages may differ in decimal fractions within a group."""
    grouped: dict[str, list[tuple[int, Row]]] = {}
    for index, row in enumerate(evaluations.rows):
        if row.outcome is not None and row.outcome.failed:
            grouped.setdefault(_VARYING.sub("#", row.outcome.error or ""), []).append((index + 1, row))
    found = [_failure(members) for members in grouped.values()]
    return sorted(found, key=lambda failure: -failure.count)


def _failure(members: list[tuple[int, Row]]) -> Failure:
    first = members[0][1]
    assert first.outcome is not None
    return Failure(first.outcome.error or "", len(members), [index for index, _ in members], first)


def design_text(params: Params) -> str:
    """A point as a Python dict, with all its digits."""
    return "{" + ", ".join(f"{name!r}: {value!r}" for name, value in params.items()) + "}"
