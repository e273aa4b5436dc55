"""The pictures of docs/mix.md: which integers are live over time, and where the evaluations go.

python benchmarks/mix_pictures.py            # writes docs/images/mix_live.svg and mix_evaluations.svg
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import special_ortho_group

from mixcma import Float, Int, Optimizer, Space
from mixcma.core.coordinates import cell_index

N = 40  # half floats, half integers
IMAGES = Path(__file__).parents[1] / "docs" / "images"
DARK, MIDDLE, LIGHT = "#1b4b66", "#d98032", "#b9cdd8"


class Trace(NamedTuple):
    """One run, generation by generation."""

    live: np.ndarray  # (G, N / 2) bool: each integer
    floats_alone: np.ndarray  # (G,) candidates that differ from the mean in floats alone
    mutated: np.ndarray  # (G,) in a frozen integer
    drawn: np.ndarray  # (G,) in a live integer, and in no frozen one
    evaluations: np.ndarray  # (G,)


def trace(function: Callable[[np.ndarray], np.ndarray]) -> Trace:
    numbers = {f"x{j}": Float(mean=2.0, std=1.0) for j in range(N // 2)}
    integers = {f"n{j}": Int(-10, 10, mean=2.0, std=1.0) for j in range(N // 2)}
    optimizer, live, counts = Optimizer(Space({**numbers, **integers}), seed=1, target=1e-10), [], []
    best = np.inf
    while best > 1e-10 and not optimizer.stop:
        state, candidates = optimizer.state, optimizer.ask()
        v = np.array([candidate.latent for candidate in candidates])
        coordinates = optimizer.encoding.coordinates
        left = (cell_index(coordinates, v) != cell_index(coordinates, state.m))[:, N // 2 :]
        alive = state.live[N // 2 :] > 0
        mutated = (left & ~alive).any(axis=1)
        drawn = (left & alive).any(axis=1) & ~mutated
        live.append(alive)
        counts.append((np.sum(~mutated & ~drawn), mutated.sum(), drawn.sum()))
        values = function(np.array([list(candidate.params.values()) for candidate in candidates], dtype=float))
        best = min(best, values.min())
        optimizer.tell(candidates, values.tolist())
    floats_alone, mutated, drawn = np.array(counts).T
    return Trace(np.array(live), floats_alone, mutated, drawn, optimizer.popsize * np.arange(1, len(live) + 1))


def problems() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    rotation = special_ortho_group.rvs(N, random_state=1)
    scales = 1000.0 ** (np.arange(N) / (N - 1))
    return {
        "sphere": lambda x: (x**2).sum(axis=1),
        "rotated ellipsoid": lambda x: ((x @ rotation * scales) ** 2).sum(axis=1),
    }


def live_picture(traces: dict[str, Trace]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained")
    for ax, (name, run) in zip(axes, traces.items()):
        extent = (0, run.evaluations[-1], N // 2 + 0.5, 0.5)
        ax.imshow(run.live.T, aspect="auto", extent=extent, cmap=matplotlib.colors.ListedColormap(["#f2f2f2", DARK]))
        ax.set(title=name, xlabel="evaluations", ylabel="integer", yticks=[1, 10, 20])
    figure.savefig(IMAGES / "mix_live.svg")


def evaluation_picture(traces: dict[str, Trace]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained", sharey=True)
    for ax, (name, run) in zip(axes, traces.items()):
        window = np.ones(max(1, len(run.drawn) // 60))
        window /= window.sum()
        parts = [np.convolve(part, window, "same") for part in (run.drawn, run.mutated, run.floats_alone)]
        total = np.sum(parts, axis=0)
        labels = ("a live integer differs", "a frozen integer is mutated", "floats alone differ")
        ax.stackplot(run.evaluations, [part / total for part in parts], labels=labels, colors=(DARK, MIDDLE, LIGHT))
        ax.set(title=name, xlabel="evaluations", xlim=(0, run.evaluations[-1]), ylim=(0, 1))
    axes[0].set_ylabel("share of the candidates")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(IMAGES / "mix_evaluations.svg")


def main() -> None:
    matplotlib.rcParams.update({"svg.hashsalt": "mixcma", "font.size": 9})
    traces = {name: trace(function) for name, function in problems().items()}
    live_picture(traces)
    evaluation_picture(traces)


if __name__ == "__main__":
    main()
