"""What a search gives back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mixcma.core.stopping import StopReason
from mixcma.run.optimizer import Best
from mixcma.space import Params

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Run:
    """One run of a search with restarts."""

    popsize: int
    evaluations: int
    best_value: float
    stop: StopReason


@dataclass(frozen=True)
class Result:
    """What a search found, and why it ended.

    Attributes
    ----------
    params, value
        The best point and its value: a feasible one if any was found. None and inf if all failed.
    violation
        Total constraint violation of that point; 0 where feasible.
    evaluations, failures
        Calls of the objective, and how many of them failed.
    stop
        Why it ended, with advice: ``print(result.stop)``.
    runs
        The runs it consists of: one, and one more for every restart.
    seed
        With it, the same search can be made again.
    first_error
        The first failed evaluation's error, or None.
    run_file
        Where the run was kept, or None.
    improvements
        The course of the search: every best point, in turn.
    """

    params: Params | None
    value: float
    violation: float
    evaluations: int
    failures: int
    stop: StopReason
    runs: tuple[Run, ...]
    seed: int
    first_error: str | None
    run_file: Path | None = None
    improvements: tuple[Best, ...] = ()

    @property
    def feasible(self) -> bool:
        return self.violation == 0.0

    def plot(self) -> Figure:
        """The best value over evaluations, as a figure of matplotlib's."""
        from mixcma.report.plot import plot_result  # needs matplotlib, of the extra "report"

        return plot_result(self)
