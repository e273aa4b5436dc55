"""Runs the race: every racer on every case, in several processes. Finished cells are kept and not run again."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from mixcma.experiments.ledger import Ledger, no_watch
from mixcma.experiments.race.beds import BEDS, Case, Choice
from mixcma.experiments.race.racers import RACERS
from mixcma.experiments.race.task import Over, Scoreboard, Task

# Every write replaces the whole ledger, so it is not written more often than this.
SECONDS_BETWEEN_WRITES = 2.0
# Otherwise BLAS would start one thread per core in every process.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

End = Literal["target", "budget", "itself", "error"]


@dataclass(frozen=True)
class Cell:
    """One racer on one case."""

    case: Case
    racer: str


@dataclass(frozen=True)
class Result:
    """The result of a cell.

    Parameters
    ----------
    hits
        The numbers of the evaluations at which the first, second, ... target was hit.
    end
        What ended the run: the last target, the budget (or the smaller limit of a slow racer), the racer itself, or
        an error.
    """

    bed: str
    problem: str
    dimension: int
    instance: int
    racer: str
    targets: int
    budget: int
    hits: tuple[int, ...]
    evaluations: int
    best: float | None
    end: End
    error: str | None
    seconds: float

    @property
    def case(self) -> Case:
        return Case(self.bed, self.problem, self.dimension, self.instance)

    @property
    def reached(self) -> bool:
        return len(self.hits) == self.targets


def run_cell(cell: Cell, choice: Choice) -> Result:
    """Run one racer on one case. If the racer raises, the error is reported, and only this cell ends."""
    case, started = cell.case, time.perf_counter()
    challenge = BEDS[case.bed].open(case, choice)
    board = Scoreboard(challenge.objective, challenge.task, challenge.targets, challenge.stop_at_target)
    end, error = _race(cell.racer, challenge.task, board)
    return Result(
        **asdict(case),
        racer=cell.racer,
        targets=len(challenge.targets),
        budget=challenge.task.budget,
        hits=tuple(board.hits),
        evaluations=board.evaluations,
        best=board.best if math.isfinite(board.best) else None,
        end=end,
        error=error,
        seconds=round(time.perf_counter() - started, 3),
    )


def _race(racer: str, task: Task, board: Scoreboard) -> tuple[End, str | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the packages give many warnings that are of no interest here
        try:
            RACERS[racer].run(task, board)
        except Over:
            return ("target" if board.reached and board.stop_at_target else "budget"), None
        except Exception as error:  # whatever the error is, the other racers continue
            return "error", f"{type(error).__name__}: {error}"[:300]
    return "itself", None


def cells_of(bed: str, racers: Sequence[str], choice: Choice) -> list[Cell]:
    """All cells, case by case. A racer that needs binary variables is left out where there are none."""
    cells = []
    binaries: dict[tuple[str, int], bool] = {}
    for case in BEDS[bed].cases(choice):
        for racer in racers:
            if RACERS[racer].needs_binaries:
                kind = (case.problem, case.dimension)
                if kind not in binaries:
                    binaries[kind] = bool(BEDS[bed].open(case, choice).task.binary.any())
                if not binaries[kind]:
                    continue
            cells.append(Cell(case, racer))
    return cells


def key_of(cell: Cell, choice: Choice) -> str:
    """The key of a cell, which contains everything that its result depends on."""
    case, racer = cell.case, RACERS[cell.racer]
    budget = "own" if choice.budget is None else choice.budget
    settings = f"budget {budget}/spread {choice.spread:.6g}/{racer.package} {racer.version} {racer.settings}".rstrip()
    return f"{case.problem}/{case.dimension}/{case.instance}/{cell.racer}/{settings}"


def run_bed(
    bed: str,
    racers: Sequence[str],
    choice: Choice,
    *,
    out: Path,
    jobs: int = 1,
    finished: Callable[[int], object] = no_watch,
) -> list[Result]:
    """The results of all racers on a bed; results that are in the ledger in `out` are taken from there."""
    ledger = Ledger(out / f"{bed}.cells.json")
    keys = {cell: key_of(cell, choice) for cell in cells_of(bed, racers, choice)}
    missing = [cell for cell, key in keys.items() if key not in ledger]
    finished(len(keys) - len(missing))
    if missing:
        _run_missing(missing, keys, choice, ledger, jobs, finished)
    return [_restored(ledger[key]) for key in keys.values()]


def _restored(kept: dict[str, Any]) -> Result:
    return Result(**{**kept, "hits": tuple(kept["hits"])})


def _run_missing(
    missing: Sequence[Cell],
    keys: dict[Cell, str],
    choice: Choice,
    ledger: Ledger,
    jobs: int,
    finished: Callable[[int], object],
) -> None:
    """Write results to the ledger as they arrive; those that have arrived are kept even if this is interrupted."""
    fresh: dict[str, Any] = {}
    written = time.monotonic()
    try:
        for cell, result in _results(missing, choice, jobs):
            fresh[keys[cell]] = asdict(result)
            finished(1)
            if time.monotonic() - written > SECONDS_BETWEEN_WRITES:
                ledger.add(fresh)
                fresh, written = {}, time.monotonic()
    finally:
        if fresh:
            ledger.add(fresh)


def _results(missing: Sequence[Cell], choice: Choice, jobs: int) -> Iterator[tuple[Cell, Result]]:
    """Yield results as they arrive. Few cells per process are submitted ahead, so that an interrupt acts soon."""
    waiting = iter(missing)
    running: dict[Future[Result], Cell] = {}
    with _pool(min(jobs, len(missing))) as pool:
        try:
            while True:
                for cell in waiting:
                    running[pool.submit(run_cell, cell, choice)] = cell
                    if len(running) >= 2 * jobs:
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end_at_once() -> None:
    """Let Ctrl-C, which a terminal sends to all processes, end a worker without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of new processes, each with one BLAS thread: BLAS reads the environment when NumPy is loaded."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_at_once) as pool:
            yield pool
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
