"""The NumPy back end: finished runs are dropped, so that what is left is always a full batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixcma.batch.task import Rules, Runs, Watch, generation, given_up
from mixcma.core.gaussian import map_arrays
from mixcma.run.noise import NoiseBatch


def run(rules: Rules, runs: Runs, watch: Watch | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Evaluations and best value of every run."""
    fixed, count = rules.setting.strategy, len(runs.trials)
    draw = NoiseBatch(runs.seed, runs.trials, fixed.popsize, runs.start.m.shape[-1], rules.method.takes_uniforms)
    evaluations, best = np.zeros(count, dtype=np.int64), np.full(count, np.inf)
    alive, method = np.arange(count), rules.method_with(runs.alpha)
    state = method.initial_state(rules.setting, runs.start)
    for t in range(rules.max_generations):
        state, least = generation(rules, method, state, draw(t, alive), runs.which[alive])
        evaluations[alive] += fixed.popsize
        best[alive] = np.minimum(best[alive], least)
        ended = best[alive] < rules.target
        if state.generation % rules.setting.eigen_interval == 0:
            state = method.decomposed(state)
            ended |= given_up(rules, state)
            if watch is not None:
                watch(state.generation, int((~ended).sum()))
        if ended.any():
            alive = alive[~ended]
            state = map_arrays(lambda field: field[~ended], state)  # noqa: B023 called at once
            method = rules.method_with(None if runs.alpha is None else runs.alpha[alive])
            if not len(alive):
                break
    return evaluations, best
