"""The plot of a result: the best value over evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mixcma.report.colours import ACCENT, MARK, WARNING
from mixcma.report.series import LARGE, Evaluations, evaluations_of, thinned
from mixcma.run.optimizer import Best
from mixcma.search.progress import LOG_FROM
from mixcma.store import read


class HasImprovements(Protocol):
    """The part of a `Result` that the plot needs."""

    @property
    def improvements(self) -> tuple[Best, ...]: ...
    @property
    def evaluations(self) -> int: ...
    @property
    def run_file(self) -> Path | None: ...


def plot_result(result: HasImprovements) -> Figure:
    """Plot the best value over evaluations, with a dashed line for as long as no point was feasible.

    If the run was kept in a file, all values are shown in the background.
    """
    figure, axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    shown = [best.value for best in result.improvements]
    if result.run_file is not None and Path(result.run_file).exists():
        shown += _all_values(axes, evaluations_of(read(result.run_file)))
    infeasible = [best for best in result.improvements if not best.feasible]
    feasible = [best for best in result.improvements if best.feasible]
    until = feasible[0].evaluation if feasible else result.evaluations
    _steps(axes, infeasible, until, WARNING, "--", "least violation so far")
    _steps(axes, feasible, result.evaluations, ACCENT, "-", "best so far")
    _finish(axes, [value for value in shown if np.isfinite(value)])
    return figure


def _all_values(axes: Axes, evaluations: Evaluations) -> list[float]:
    """Draw every finite value, or an even selection of them, as a dot; return the values that were drawn."""
    index = np.flatnonzero(np.isfinite(evaluations.value))
    index = index[thinned(len(index), LARGE)]
    axes.plot(index + 1, evaluations.value[index], ".", color=MARK, markersize=2.5, alpha=0.6, label="evaluations")
    return [float(value) for value in evaluations.value[index]]


def _steps(axes: Axes, bests: Sequence[Best], until: int, colour: str, style: str, label: str) -> None:
    if not bests:
        return
    at = [*(best.evaluation for best in bests), until]
    values = [*(best.value for best in bests), bests[-1].value]
    axes.step(at, values, where="post", color=colour, linestyle=style, linewidth=1.8, label=label)


def _finish(axes: Axes, values: Sequence[float]) -> None:
    if values and min(values) > 0 and max(values) > LOG_FROM * min(values):
        axes.set_yscale("log")
    axes.set(xlabel="evaluation", ylabel="value")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    if values:
        axes.legend(frameon=False)
    else:
        axes.text(0.5, 0.5, "no evaluation has succeeded", ha="center", va="center", transform=axes.transAxes)
