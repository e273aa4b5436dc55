"""The numbers of a record over time, as the figures show them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mixcma.core.coordinates import Coordinates, cell_index, threshold_above, values_at
from mixcma.latent.encoding import Encoding
from mixcma.report.text import number
from mixcma.search.settings import method_from
from mixcma.space import Bool, Categorical, Discrete, Int, Value, Variable
from mixcma.store import Record, Row

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# The largest number of points per line: in a large figure, and in each of many small ones.
LARGE, SMALL = 1000, 250
# If a variable has at most FEW_VALUES values, all of them are shown; otherwise the VALUES_SHOWN most probable ones.
FEW_VALUES, VALUES_SHOWN = 12, 10
# If a variable has more than ALL_VALUES values, only those within NEAR cells of the means are considered.
ALL_VALUES, NEAR = 500, 3


def thinned(length: int, most: int) -> IntArray:
    """At most `most` evenly spread indices into a series, including the first and the last."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(np.int64)) if length else _NO_INDEX


_NO_INDEX: IntArray = np.empty(0, dtype=np.int64)


# Evaluations


@dataclass(frozen=True)
class Evaluations:
    """The evaluations that count, in the order in which they were counted; the first has the number 1."""

    rows: list[Row]
    value: FloatArray  # inf if the evaluation failed
    violation: FloatArray  # inf if the evaluation failed

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def failed(self) -> NDArray[np.bool_]:
        return np.array([_failed(row) for row in self.rows], dtype=bool)

    @property
    def constrained(self) -> bool:
        return any(row.outcome is not None and row.outcome.constraints for row in self.rows)


def evaluations_of(record: Record) -> Evaluations:
    rows = [row for row in record.rows if row.evaluated]
    rows.sort(key=lambda row: (row.counted or 0, row.id))
    if record.settings["stop"] == "target":
        rows = _until_target(rows, record.settings["target"])
    outcomes = [row.outcome for row in rows if row.outcome is not None]
    values = np.array([outcome.value for outcome in outcomes], dtype=float)
    violations = np.array([outcome.violation for outcome in outcomes], dtype=float)
    return Evaluations(rows, values, violations)


def _until_target(rows: list[Row], target: float | None) -> list[Row]:
    """Drop what was evaluated after the target was reached: it is in the file, but does not count."""
    for index, row in enumerate(rows):
        if target is not None and row.outcome is not None and row.outcome.feasible and row.outcome.value <= target:
            return rows[: index + 1]
    return rows


def _failed(row: Row) -> bool:
    return row.outcome is not None and row.outcome.failed


@dataclass(frozen=True)
class ModelUse:
    """What the model did up to each evaluation: counts from the beginning."""

    proposed: IntArray  # evaluations of the model's own points
    drawn: IntArray  # evaluations of candidates as the method drew them
    unseen: IntArray  # candidates that were ranked without an evaluation


def model_use_of(record: Record, evaluations: Evaluations) -> ModelUse:
    own = np.array([_is_proposed(record, row) for row in evaluations.rows], dtype=bool)
    unseen, last = np.zeros(len(evaluations), dtype=np.int64), dict[tuple[int, int], int]()
    for place, row in enumerate(evaluations.rows):
        if row.generation >= 0:
            last[row.run, row.generation] = place
    for (run, generation), count in _unseen(record).items():
        if (run, generation) in last:
            unseen[last[run, generation]] += count
    return ModelUse(np.cumsum(own), np.cumsum(~own), np.cumsum(unseen))


def _is_proposed(record: Record, row: Row) -> bool:
    return row.generation >= 0 and row.slot >= record.runs[row.run].popsize


def _unseen(record: Record) -> dict[tuple[int, int], int]:
    """How many candidates of each generation were ranked unseen; none where only proposals were evaluated."""
    if record.settings["asynchronous"]:
        return {}
    counts = Counter((row.run, row.generation) for row in record.rows if row.generation >= 0)
    drawn = {(row.run, row.generation) for row in record.rows if row.slot < record.runs[row.run].popsize}
    return {place: record.runs[place[0]].popsize - counts[place] for place in drawn & counts.keys()}


@dataclass(frozen=True)
class Improvements:
    """The evaluations that were better than all before them: less violation, or as much violation and a lower value."""

    at: IntArray  # the numbers of these evaluations
    value: FloatArray
    violation: FloatArray
    end: int  # the number of the last evaluation of the run

    def steps(self, feasible: bool) -> tuple[FloatArray, FloatArray]:
        """The corners of the step line for as long as the best is feasible, or for as long as it is not."""
        mine = (self.violation == 0.0) == feasible
        if not mine.any():
            return np.empty(0), np.empty(0)
        last = np.flatnonzero(mine)[-1]
        until = self.at[last + 1] if last + 1 < len(self.at) else self.end
        return np.append(self.at[mine], until).astype(float), np.append(self.value[mine], self.value[last])


def improvements_of(evaluations: Evaluations) -> Improvements:
    """At most `LARGE` of the improvements, evenly spread."""
    improved, best = list[int](), (math.inf, math.inf)
    for index, key in enumerate(zip(evaluations.violation.tolist(), evaluations.value.tolist())):
        if key < best:
            improved.append(index)
            best = key
    at = np.array(improved, dtype=np.int64)[thinned(len(improved), LARGE)]
    return Improvements(at + 1, evaluations.value[at], evaluations.violation[at], len(evaluations))


# Generations


@dataclass(frozen=True)
class Generations:
    """The distributions that the generations were drawn from, numbered from 1 through all runs."""

    number: NDArray[np.float32]  # (G,) in single precision, since every trace of the page repeats it
    run: IntArray
    generation: IntArray  # within its run
    step_size: FloatArray
    axis_ratio: FloatArray
    mean: FloatArray  # (G, N) latent
    deviation: FloatArray  # (G, N) latent
    theta: FloatArray  # (G, N_cat, K) the probabilities of the choices

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, indices: IntArray) -> Generations:
        return Generations(*(column[indices] for column in vars(self).values()))

    def thinned(self, most: int) -> Generations:
        """At most `most` generations; a single one becomes a beginning and an end, so that a line can be drawn."""
        if len(self) == 1:
            return replace(self[np.array([0, 0])], number=self.number[0] + np.array([-0.5, 0.5], dtype=np.float32))
        return self[thinned(len(self), most)]


def encoding_of(record: Record) -> Encoding:
    """The encoding with which the run was searched."""
    try:
        categories = method_from(record.settings["method"]).takes_categories
    except ValueError:  # a method of the user's own: it takes categories if it kept probabilities
        categories = any(len(generation.theta) for generation in record.generations[:1])
    return Encoding(record.space, categories)


def generations_of(record: Record, encoding: Encoding) -> Generations:
    rows, choices = record.generations, encoding.coordinates.choices
    shape = (len(rows), encoding.dimension)
    of_choices = (len(rows), len(choices), choices.max(initial=1))
    return Generations(
        number=np.arange(1, len(rows) + 1, dtype=np.float32),
        run=np.array([row.run for row in rows], dtype=np.int64),
        generation=np.array([row.generation for row in rows], dtype=np.int64),
        step_size=np.array([row.step_size for row in rows], dtype=float),
        axis_ratio=np.array([row.axis_ratio for row in rows], dtype=float),
        mean=np.array([row.mean for row in rows], dtype=float).reshape(shape),
        deviation=np.array([row.deviation for row in rows], dtype=float).reshape(shape),
        theta=np.array([row.theta for row in rows], dtype=float).reshape(of_choices),
    )


def restarts_of(generations: Generations) -> list[int]:
    """The number of the first generation of each restart."""
    return [int(first) for first in generations.number[1:][np.diff(generations.run) > 0]]


# Variables


@dataclass(frozen=True)
class Spread:
    """The mean of a variable, mean -+ standard deviation, and that deviation, per generation, in the variable's units.

    On a log scale the deviation is that of the logarithm; where it is small, it is the relative deviation.
    """

    name: str
    variable: Variable
    log: bool
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    deviation: FloatArray


def spreads_of(encoding: Encoding, generations: Generations) -> list[Spread]:
    """One per free variable that the search treats as a number, in the order of the space."""
    column = {name: j for j, name in enumerate(encoding.names)}
    numbers = [name for name in encoding.space.free if not encoding.axes[column[name]].category]
    return [_spread(encoding, name, generations, column[name]) for name in numbers]


def _spread(encoding: Encoding, name: str, generations: Generations, j: int) -> Spread:
    line, mean, deviation = encoding.axes[j], generations.mean, generations.deviation
    evenly_spaced = line.cells > 0 and line.values is None and not line.log
    with np.errstate(over="ignore"):  # values that overflow are clipped to a bound or to the last cell
        middle, low, high = (
            values_at(encoding.coordinates, latent)[:, j] for latent in (mean, mean - deviation, mean + deviation)
        )
        own = deviation[:, j] * line.scale * (line.spacing if evenly_spaced else 1.0)
    return Spread(name, encoding.space[name], line.log, middle, low, high, own)


# Values of discrete variables


@dataclass(frozen=True)
class Shares:
    """The probabilities of a discrete variable's values per generation; `others` sums up the values not listed."""

    name: str
    variable: Variable
    values: list[str]
    probability: FloatArray  # (values, G)
    others: FloatArray | None  # (G,)
    margin: (
        FloatArray | None
    )  # (G,) the least probability of leaving the mean's value to either side; None without a margin


def shares_of(record: Record, encoding: Encoding, generations: Generations) -> list[Shares]:
    """One per free discrete variable, in the order of the space."""
    column = {name: j for j, name in enumerate(encoding.names)}
    alpha = margin_of(record, encoding, generations)
    discrete = [name for name, variable in encoding.space.free.items() if variable.size is not None]
    return [_shares(encoding, name, column[name], generations, alpha) for name in discrete]


def _shares(encoding: Encoding, name: str, j: int, generations: Generations, alpha: FloatArray | None) -> Shares:
    variable, coordinates = encoding.space[name], encoding.coordinates
    if encoding.axes[j].category:
        theta = generations.theta[:, j - encoding.dimension]  # (G, K)
        return _choices(name, variable, theta.T[: variable.size])
    mean_cell = cell_index(coordinates, generations.mean)[:, j]
    cells = _cells_to_consider(mean_cell, int(coordinates.last[j]))
    probability = cell_probabilities(coordinates, j, cells, generations.mean[:, j], generations.deviation[:, j])
    shown = _most_probable(probability)
    listed = probability[shown]
    whole = len(shown) == coordinates.last[j] + 1
    return Shares(
        name=name,
        variable=variable,
        values=[number(value_of_cell(variable, int(cell))) for cell in cells[shown]],
        probability=listed,
        others=None if whole else np.maximum(0.0, 1.0 - listed.sum(axis=0)),
        margin=None if alpha is None else _least_probability(alpha, mean_cell, float(coordinates.last[j])),
    )


def _choices(name: str, variable: Variable, probability: FloatArray) -> Shares:
    """The shares of a category, whose probabilities the search learns directly."""
    shown = _most_probable(probability)
    listed = probability[shown]
    return Shares(
        name=name,
        variable=variable,
        values=[number(value_of_cell(variable, int(cell))) for cell in shown],
        probability=listed,
        others=None if len(shown) == len(probability) else np.maximum(0.0, 1.0 - listed.sum(axis=0)),
        margin=None,
    )


def _cells_to_consider(mean_cell: FloatArray, last: int) -> FloatArray:
    """The cells that may be worth showing: all of them, or those around the means."""
    if last < ALL_VALUES:
        return np.arange(last + 1, dtype=float)
    near = mean_cell[:, None] + np.arange(-NEAR, NEAR + 1)
    return np.unique(np.clip(near, 0, last))


def cell_probabilities(
    coordinates: Coordinates, j: int, cells: FloatArray, mean: FloatArray, deviation: FloatArray
) -> FloatArray:
    """The probabilities of the cells (K,) of coordinate j under normal distributions (G,); shape (K, G).

    They are computed from the nearer tail, so that small probabilities keep all their digits.
    """
    columns = (len(cells), len(coordinates.last))
    upper = threshold_above(coordinates, np.broadcast_to(cells[:, None], columns))[:, j]
    lower = threshold_above(coordinates, np.broadcast_to(cells[:, None] - 1.0, columns))[:, j]
    upper = np.where(cells >= coordinates.last[j], np.inf, upper)
    lower = np.where(cells <= 0, -np.inf, lower)
    with np.errstate(over="ignore"):
        divisor = np.maximum(deviation, np.finfo(float).tiny)
        a, b = (lower[:, None] - mean) / divisor, (upper[:, None] - mean) / divisor
    return np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))


def _most_probable(probability: FloatArray) -> IntArray:
    """The indices of the rows that are most probable over all generations, in ascending order."""
    if len(probability) <= FEW_VALUES:
        return np.arange(len(probability))
    largest = np.argsort(-probability.sum(axis=1), kind="stable")[:VALUES_SHOWN]
    return np.sort(largest)


def value_of_cell(variable: Variable, cell: int) -> Value:
    if isinstance(variable, Int):
        return variable.low + variable.step * cell
    if isinstance(variable, Discrete):
        return tuple(variable.values)[cell]
    if isinstance(variable, Categorical):
        return tuple(variable.choices)[cell]
    assert isinstance(variable, Bool)
    return bool(cell)


def margin_of(record: Record, encoding: Encoding, generations: Generations) -> FloatArray | None:
    """The margin of each generation, (G,): 1 / (N lambda) by default; None for methods without a margin."""
    method = record.settings["method"]
    if method["type"] != "Margin":
        return None
    popsize = np.array([run.popsize for run in record.runs])[generations.run]
    return 1 / (encoding.dimension * popsize) if method["alpha"] is None else np.full(len(popsize), method["alpha"])


def _least_probability(alpha: FloatArray, mean_cell: FloatArray, last: float) -> FloatArray:
    """Section 4 of the paper: alpha in the first and the last cell, alpha / 2 to each side in the cells between."""
    return np.where((mean_cell <= 0) | (mean_cell >= last), alpha, alpha / 2)
