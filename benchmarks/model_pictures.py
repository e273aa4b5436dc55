"""The pictures of docs/model.md: what the model saves, and which candidates are evaluated.

python benchmarks/model_pictures.py          # writes docs/images/model_values.svg and model_choice.svg
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import special_ortho_group

from mixcma import Float, Int, Optimizer, Space

N, SEEDS, BUDGET = 20, 5, 3000  # half floats, half integers
IMAGES = Path(__file__).parents[1] / "docs" / "images"
DARK, MIDDLE, LIGHT = "#1b4b66", "#d98032", "#b9cdd8"
SPACE = Space(
    {
        **{f"x{j}": Float(-10.0, 10.0, mean=3.0, std=2.0) for j in range(N // 2)},
        **{f"n{j}": Int(-10, 10, mean=3.0, std=2.0) for j in range(N // 2)},
    }
)
ROTATION = special_ortho_group.rvs(N, random_state=1)
STEEPNESS = 1e4 ** (np.arange(N) / (N - 1))


def ellipsoid(v: np.ndarray) -> float:
    w = ROTATION @ v
    return float(STEEPNESS @ (w * w))


def valley(v: np.ndarray) -> float:
    """Rosenbrock's function, with its least value 0 at (0, ..., 0)."""
    u = v / 2.0 + 1.0
    return float((100.0 * (u[1:] - u[:-1] ** 2) ** 2 + (1.0 - u[:-1]) ** 2).sum())


def waves(v: np.ndarray) -> float:
    return float((v * v + 10.0 * (1.0 - np.cos(0.5 * np.pi * v))).sum())


FUNCTIONS = {"rotated ellipsoid": ellipsoid, "Rosenbrock's valley": valley, "a bowl with waves": waves}


class Trace(NamedTuple):
    """One search, generation by generation."""

    evaluations: list[int]
    best: list[float]
    proposed: list[int]  # points of the models' own that were evaluated
    drawn: list[int]  # candidates of mix that were evaluated
    guessed: list[int]  # candidates of mix that were not


def trace(function: Callable[[np.ndarray], float], method: str, seed: int) -> Trace:
    optimizer, found = Optimizer(SPACE, method=method, seed=seed, restarts=True), Trace([], [], [], [], [])
    while optimizer.stop is None and optimizer.evaluations < BUDGET:
        exploring = optimizer.guide is not None and not optimizer.guide.explorer.over and optimizer.generation > 0
        candidates = optimizer.ask()
        optimizer.tell(candidates, [function(np.array(list(c.params.values()), dtype=float)) for c in candidates])
        proposed = sum(candidate.proposed for candidate in candidates)
        assert optimizer.best is not None
        found.evaluations.append(optimizer.evaluations)
        found.best.append(optimizer.best.value)
        found.proposed.append(proposed)
        found.drawn.append(len(candidates) - proposed)
        found.guessed.append(0 if exploring else optimizer.popsize - len(candidates))
        if optimizer.best.value < 1e-10:
            break
    return found


def median_best(traces: Sequence[Trace], at: np.ndarray) -> np.ndarray:
    """The median over the searches of the best value after so many evaluations."""
    rows = [[[1e9, *t.best][np.searchsorted(t.evaluations, n, side="right")] for n in at] for t in traces]
    return np.array([statistics.median(column) for column in zip(*rows)])


def draw_values(traces: dict[tuple[str, str], list[Trace]]) -> None:
    figure, axes = plt.subplots(1, len(FUNCTIONS), figsize=(9.5, 3.0), sharey=True, layout="constrained")
    at = np.unique(np.geomspace(8, BUDGET, 200).astype(int))
    for axis, name in zip(axes, FUNCTIONS):
        for method, colour, label in (("mix", MIDDLE, "with the model"), ("mix-without-model", DARK, "without")):
            axis.loglog(at, np.maximum(median_best(traces[name, method], at), 1e-10), color=colour, label=label)
        axis.set(title=name, xlabel="evaluations")
        axis.grid(alpha=0.3)
    axes[0].set(ylabel="best value", ylim=(5e-11, None))
    axes[0].legend(frameon=False, loc="lower left")
    figure.savefig(IMAGES / "model_values.svg")


def draw_choice(traces: dict[tuple[str, str], list[Trace]]) -> None:
    figure, axes = plt.subplots(1, len(FUNCTIONS), figsize=(9.5, 2.8), sharey=True, layout="constrained")
    for axis, name in zip(axes, FUNCTIONS):
        search = traces[name, "mix"][0]
        parts = np.cumsum(np.array([search.proposed, search.drawn, search.guessed], dtype=float), axis=1)
        labels = ("proposed by a model", "drawn by mix, evaluated", "drawn by mix, guessed")
        shares = parts / np.maximum(parts.sum(axis=0), 1.0)
        axis.stackplot(search.evaluations, shares, colors=(MIDDLE, DARK, LIGHT), labels=labels)
        axis.set(title=name, xlabel="evaluations", ylim=(0, 1), xlim=(search.evaluations[0], search.evaluations[-1]))
    axes[0].set(ylabel="share of the points so far")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(IMAGES / "model_choice.svg")


def main() -> None:
    matplotlib.rcParams.update({"svg.hashsalt": "mixcma", "font.size": 9})
    traces = {
        (name, method): [trace(function, method, seed) for seed in range(SEEDS)]
        for name, function in FUNCTIONS.items()
        for method in ("mix", "mix-without-model")
    }
    for key, searches in traces.items():
        print(*key, [search.evaluations[-1] for search in searches], [f"{search.best[-1]:.2g}" for search in searches])
    draw_values(traces)
    draw_choice(traces)


if __name__ == "__main__":
    main()
