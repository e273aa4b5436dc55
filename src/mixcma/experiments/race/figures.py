"""Runtime distributions, drawn with matplotlib (extra ``report``)."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from mixcma.experiments.figures import save
from mixcma.experiments.ledger import grouped
from mixcma.experiments.race.runner import Result
from mixcma.experiments.race.statistics import runtimes

__all__ = ["runtime_figure", "save"]

PANELS_PER_ROW = 3
FIRST = 1e-3  # evaluations per variable at which the lines begin, to the left of the axis


def runtime_figure(bed: str, results: Sequence[Result]) -> Figure:
    """The share of (case, target) pairs hit, over evaluations per variable; one panel per dimension or problem."""
    by_problem = bed in ("designs", "discrete", "practice", "branches")
    panels = grouped(results, lambda r: r.problem if by_problem else r.dimension)
    columns = min(len(panels), PANELS_PER_ROW)
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(5.2 * columns, 4.2 * rows), squeeze=False)
    colours = {racer: f"C{i % 10}" for i, racer in enumerate(dict.fromkeys(r.racer for r in results))}
    for place, panel in zip(axes.flat, panels):
        first = panel[0]
        _distributions(place, panel, colours)
        place.set(title=first.problem if by_problem else f"{bed}, D = {first.dimension}")
    for empty in axes.flat[len(panels) :]:
        empty.set_visible(False)
    lines = {label: line for place in axes.flat for line, label in zip(*place.get_legend_handles_labels())}
    figure.legend(lines.values(), lines.keys(), loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4)
    figure.tight_layout()
    return figure


def _distributions(axes: Axes, results: Sequence[Result], colours: dict[str, str]) -> None:
    """One line per racer; from the eleventh on, where the colours repeat, the lines are dashed."""
    end = max(result.budget / result.dimension for result in results)
    for group in grouped(results, lambda r: r.racer):
        racer = group[0].racer
        times = np.concatenate([runtimes(r.hits, r.targets) / r.dimension for r in group])
        hit = np.sort(times[np.isfinite(times)])
        share = np.arange(1, len(hit) + 1) / len(times)
        style = "-" if list(colours).index(racer) < 10 else "--"
        x, y = [FIRST, *hit, end], [0.0, *share, share[-1] if len(hit) else 0.0]
        axes.step(x, y, where="post", label=racer, color=colours[racer], linestyle=style, linewidth=1.2)
    axes.set(xscale="log", ylim=(0, 1.02), xlim=(1, end), xlabel="evaluations / D", ylabel="share of targets hit")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3)
