"""The paper's figures, drawn with matplotlib (extra ``report``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mixcma.experiments.alpha import EXPONENTS, AlphaRecord
from mixcma.experiments.stagnation import Trace

LABELS = {"im": "CMA-ES-IM", "im-box": "CMA-ES-IM with box", "margin": "CMA-ES with Margin"}


def save(figure: Figure, path: Path) -> list[Path]:
    """Save a figure as PNG and as SVG, and return the paths."""
    paths = [path.with_suffix(suffix) for suffix in (".png", ".svg")]
    for each in paths:
        figure.savefig(each, dpi=120, bbox_inches="tight")
    plt.close(figure)
    return paths


def alpha_figure(records: Sequence[AlphaRecord]) -> Figure:
    """Figure 4: success rates above, medians of the successful runs below; one column per dimension."""
    dimensions = sorted({record.dimension for record in records})
    figure, axes = plt.subplots(2, len(dimensions), figsize=(4.6 * len(dimensions), 8.4), squeeze=False)
    for column, dimension in enumerate(dimensions):
        mine = [record for record in records if record.dimension == dimension]
        rate = _map(mine, lambda r: r.successes / r.trials)
        median = _map(mine, lambda r: np.nan if r.median_evaluations is None else r.median_evaluations)
        _heat(axes[0, column], rate, "{:.2f}", "viridis", f"N = {dimension}: success rate", (0.0, 1.0))
        _heat(axes[1, column], median, "{:.0f}", "viridis_r", f"N = {dimension}: median evaluations", None)
    figure.suptitle(r"SphereInt with $\alpha = N^{-m} \lambda^{-n}$")
    figure.tight_layout()
    return figure


def _map(records: Sequence[AlphaRecord], of: Callable[[AlphaRecord], float]) -> np.ndarray:
    grid = np.full((len(EXPONENTS), len(EXPONENTS)), np.nan)
    for record in records:
        grid[EXPONENTS.index(record.m), EXPONENTS.index(record.n)] = of(record)
    return grid


def _heat(
    axes: Axes, grid: np.ndarray, text: str, colours: str, title: str, limits: tuple[float, float] | None
) -> None:
    low, high = limits or (np.nanmin(grid), np.nanmax(grid))
    axes.imshow(grid, cmap=colours, vmin=low, vmax=high, origin="lower")
    for (i, j), value in np.ndenumerate(grid):
        if np.isfinite(value):
            in_lower_half = (value - low) < 0.5 * (high - low)  # dark in viridis, light in its reverse
            colour = "white" if in_lower_half == (colours == "viridis") else "black"
            axes.text(j, i, text.format(value), ha="center", va="center", fontsize=7, color=colour)
    axes.set(title=title, xlabel="n", ylabel="m")
    axes.set_xticks(range(len(EXPONENTS)), [f"{e:g}" for e in EXPONENTS])
    axes.set_yticks(range(len(EXPONENTS)), [f"{e:g}" for e in EXPONENTS])


def stagnation_figure(pairs: Sequence[tuple[Trace, Trace]]) -> Figure:
    """Figure 1 and more: one row per run, failed runs and the margin's runs; floats are grey, bits coloured."""
    traces = list({(trace.method, trace.trial): trace for pair in pairs for trace in pair}.values())
    figure, axes = plt.subplots(len(traces), 3, figsize=(13, 2.7 * len(traces)), squeeze=False)
    for row, trace in zip(axes, traces):
        end = "succeeds" if trace.success else "fails"
        _coordinates(row[0], trace.mean, trace.names)
        row[0].axhline(0.5, color="black", linewidth=0.8, linestyle=":")
        row[0].set(title=f"{LABELS[trace.method]}, trial {trace.trial}, {end}", ylabel="mean")
        _coordinates(row[1], trace.deviation, trace.names)
        row[1].set(title="standard deviation", yscale="log")
        row[2].plot(trace.sigma, label="step size", color="tab:green")
        row[2].plot(trace.best, label="best value", color="tab:red")
        row[2].set(title="step size and best value", yscale="log")
        row[2].legend()
    for last in axes[-1]:
        last.set_xlabel("generation")
    figure.tight_layout()
    return figure


def _coordinates(axes: Axes, values: np.ndarray, names: Sequence[str]) -> None:
    """One line per coordinate, with the bits drawn on top of the floats."""
    for j, name in enumerate(names):
        bit = name.startswith("b")
        axes.plot(values[:, j], zorder=2 if bit else 1, color="tab:blue" if bit else "0.75", linewidth=0.7)
