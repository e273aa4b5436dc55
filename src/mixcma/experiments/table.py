"""Table 2 of the paper: success rates and median evaluations of three methods on six functions."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

import mixcma
from mixcma.batch import Backend, Watch, run_many
from mixcma.core.methods import IntegerMutation, Method
from mixcma.experiments.ledger import Ledger, grouped, no_watch, run_missing
from mixcma.problems import PAPER_FUNCTIONS, problem

Penalty = Literal["fitted", "printed"]
DIMENSIONS = (20, 40, 60)
METHODS = ("im", "im-box", "margin")
CONFIDENCE = 0.99
MEDIAN_TOLERANCE = 0.10


@dataclass(frozen=True)
class Cell:
    """One entry of the table."""

    function: str
    dimension: int
    method: str


@dataclass(frozen=True)
class Record:
    """The result of one cell; the evaluations are those of the successful runs."""

    function: str
    dimension: int
    method: str
    median_evaluations: float | None
    iqr: float | None
    successes: int
    trials: int

    @property
    def cell(self) -> Cell:
        return Cell(self.function, self.dimension, self.method)


@dataclass(frozen=True)
class Verdict:
    """How a record compares with the paper's: whether the rate is inside its interval and the median close enough."""

    rate_interval: tuple[float, float]
    rate_inside: bool
    median_ratio: float | None
    median_near: bool

    @property
    def passed(self) -> bool:
        return self.rate_inside and self.median_near


@cache
def paper_records() -> dict[Cell, Record]:
    """The numbers printed in the paper."""
    text = resources.files("mixcma.experiments").joinpath("paper_table2.json").read_text()
    return {(record := Record(**row)).cell: record for row in json.loads(text)}


def summarise(cell: Cell, evaluations: NDArray[np.int64], success: NDArray[np.bool_]) -> Record:
    """Median and interquartile range over the successful runs."""
    solved = evaluations[success]
    median, iqr = None, None
    if len(solved):
        low, middle, high = np.percentile(solved, [25, 50, 75])
        median, iqr = float(middle), float(high - low)
    return Record(cell.function, cell.dimension, cell.method, median, iqr, len(solved), len(success))


def verdict(ours: Record, paper: Record, tolerance: float = MEDIAN_TOLERANCE) -> Verdict:
    """Compare a record with the paper's; the interval is the Clopper-Pearson interval of the paper's success count.

    If one of the two has no median, the median counts as close.
    """
    interval = binomtest(paper.successes, paper.trials).proportion_ci(CONFIDENCE)
    low, high = float(interval.low), float(interval.high)
    ratio = None
    if ours.median_evaluations and paper.median_evaluations:
        ratio = ours.median_evaluations / paper.median_evaluations
    return Verdict(
        rate_interval=(low, high),
        rate_inside=low <= ours.successes / ours.trials <= high,
        median_ratio=ratio,
        median_near=ratio is None or abs(ratio - 1) <= tolerance,
    )


def batches(cells: Sequence[Cell], backend: Backend) -> list[list[Cell]]:
    """The cells that run as one batch: on JAX all functions of one space, so that they are compiled only once."""

    def together(cell: Cell) -> object:
        return (cell.method, problem(cell.function, cell.dimension).space) if backend == "jax" else cell

    return grouped(cells, together)


def method_of(cell: Cell, penalty: Penalty) -> str | Method:
    """The method of a cell, with the box penalty that reproduces the paper's column.

    Section 3 prints ||x_feas - x||^2 / N. This reproduces the column of N = 20, but is off by factors of two and more
    for N = 40 and 60. Without the division by N it is the other way round.
    """
    if cell.method == "im-box" and penalty == "fitted" and cell.dimension > 20:
        return IntegerMutation(box=True, penalty_weight=1.0)
    return cell.method


def run_cells(
    cells: Sequence[Cell],
    trials: int,
    seed: int,
    backend: Backend,
    penalty: Penalty = "fitted",
    watch: Watch | None = None,
) -> list[Record]:
    """Run cells that share a method and a space as one batch, and return their records."""
    problems = [problem(cell.function, cell.dimension) for cell in cells]
    method = method_of(cells[0], penalty)
    result = run_many(problems, method, trials, seed, backend=backend, watch=watch)
    parts = [slice(i * trials, (i + 1) * trials) for i in range(len(cells))]
    return [summarise(c, result.evaluations[p], result.success[p]) for c, p in zip(cells, parts)]


def reproduce_table(
    cells: Sequence[Cell],
    *,
    trials: int,
    seed: int,
    backend: Backend,
    out: Path,
    penalty: Penalty = "fitted",
    started: Callable[[list[Cell]], Watch | None] = no_watch,
    finished: Callable[[int], None] = no_watch,
) -> list[Record]:
    """Run the cells that the ledger in `out` does not have yet, and write the table."""
    ledger = Ledger(out / "cells.json")

    def key(cell: Cell) -> str:
        settings = f"{trials} trials/seed {seed}/{backend}/mixcma {mixcma.__version__}"
        return f"{cell.function}/{cell.dimension}/{cell.method}/{method_of(cell, penalty)}/{settings}"

    def run(group: list[Cell], watch: Watch | None) -> list[dict[str, Any]]:
        return [asdict(record) for record in run_cells(group, trials, seed, backend, penalty, watch)]

    run_missing(ledger, batches(cells, backend), key, run, started, finished)
    records = [Record(**ledger[key(cell)]) for cell in cells]
    write_table(records, out)
    return records


def default_cells(
    functions: Sequence[str] = PAPER_FUNCTIONS,
    dimensions: Sequence[int] = DIMENSIONS,
    methods: Sequence[str] = METHODS,
) -> list[Cell]:
    return [Cell(f, n, m) for m in methods for n in dimensions for f in functions]


def table_rows(records: Sequence[Record]) -> list[list[str]]:
    """The rows of the table as text: our numbers, those of the paper, and the verdict."""
    return [_row(record, paper_records().get(record.cell)) for record in records]


HEADERS = (
    "function", "N", "method", "median (IQR)", "paper", "ratio", "successes", "paper's", "99 % interval", "verdict",
)  # fmt: skip


def _row(ours: Record, paper: Record | None) -> list[str]:
    left = [ours.function, str(ours.dimension), ours.method, _median(ours)]
    rate = f"{ours.successes}/{ours.trials}"
    if paper is None:
        return [*left, "", "", rate, "", "", ""]
    judged = verdict(ours, paper)
    low, high = judged.rate_interval
    ratio = "" if judged.median_ratio is None else f"{judged.median_ratio:.3f}"
    missed = [name for name, good in (("median", judged.median_near), ("rate", judged.rate_inside)) if not good]
    word = " and ".join(missed) + " off" if missed else "ok"
    theirs = f"{paper.successes}/{paper.trials}"
    return [*left, _median(paper), ratio, rate, theirs, f"{low:.2f} to {high:.2f}", word]


def _median(record: Record) -> str:
    if record.median_evaluations is None:
        return "-"
    return f"{record.median_evaluations:.0f} ({record.iqr:.0f})"


def write_table(records: Sequence[Record], out: Path) -> None:
    """Write table.json, table.csv and table.md."""
    rows = [asdict(record) for record in records]
    (out / "table.json").write_text(json.dumps(rows, indent=1))
    with (out / "table.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    lines = [list(HEADERS), ["---"] * len(HEADERS), *table_rows(records)]
    (out / "table.md").write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))
