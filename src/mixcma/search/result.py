"""What a search returns."""

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
        The best point and its value: a feasible point if any was found; None and inf if every evaluation failed.
    violation
        The total constraint violation of that point; 0 if it is feasible.
    evaluations, failures
        How often the objective was called, and how many of these calls failed.
    stop
        Why the search ended, with advice: ``print(result.stop)``.
    runs
        The runs of the search: the first, and one per restart.
    seed
        The seed, which repeats the search if it is passed again.
    first_error
        The error of the first evaluation that failed, or None.
    run_file
        The file that holds the search, or None. It is not the one that was named if that was removed, replaced or
        changed while the search ran.
    improvements
        Every point that was the best so far, in turn.
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
        """The best value over evaluations, as a matplotlib figure."""
        from mixcma.report.plot import plot_result  # needs matplotlib, which the extra "report" installs

        return plot_result(self)
