"""The JAX back end: the whole loop of all runs is one compiled ``while_loop``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from mixcma.batch.task import Rules, Runs, Watch, generation, given_up
from mixcma.core.gaussian import Start, map_arrays
from mixcma.core.method import State
from mixcma.core.namespace import Array
from mixcma.core.sampling import Noise


class Carry(NamedTuple):
    """What goes round the loop; runs are (T,)."""

    state: State
    alive: Array
    generations: Array  # of each run, while it was alive
    best: Array  # least penalised value so far


Loop = Callable[..., Carry]


def run(rules: Rules, runs: Runs, watch: Watch | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Evaluations and best value of every run."""
    with jax.enable_x64(True):
        carry = compiled(rules, watch)(runs.seed % 2**63, runs.start, runs.trials, runs.which, runs.alpha)
        popsize = rules.setting.strategy.popsize
        return np.asarray(carry.generations, dtype=np.int64) * popsize, np.asarray(carry.best)


@lru_cache(maxsize=16)
def compiled(rules: Rules, watch: Watch | None = None) -> Loop:
    """The loop as a jitted function of (seed, start, trials, which, alpha)."""
    interval = rules.setting.eigen_interval

    @jax.jit
    def loop(seed: Array, start: Start, trials: Array, which: Array, alpha: Array | None) -> Carry:
        method, keys = rules.method_with(alpha), _keys(seed, trials)

        def one(_: int, carry: Carry) -> Carry:
            """A generation of all runs. Those that have ended go on to the end of the block, unrecorded."""
            noise = _noise(keys, carry.state.generation, rules)
            state, best = generation(rules, method, carry.state, noise, which)
            running = carry.alive & (carry.best >= rules.target) & (carry.state.generation < rules.max_generations)
            return Carry(
                state,
                carry.alive,
                carry.generations + running,
                jnp.where(running, jnp.minimum(carry.best, best), carry.best),
            )

        def block(carry: Carry) -> Carry:
            """The generations up to the next decomposition; then ended runs are held where they were."""
            after = lax.fori_loop(0, interval, one, carry)
            state = method.decomposed(after.state)
            held = map_arrays(partial(_hold, carry.alive), state, carry.state)
            alive = carry.alive & (after.best >= rules.target) & ~given_up(rules, held)
            if watch is not None:
                jax.debug.callback(_report(watch), held.generation, jnp.sum(alive))
            return Carry(held, alive, after.generations, after.best)

        def unfinished(carry: Carry) -> Array:
            return jnp.any(carry.alive) & (carry.state.generation < rules.max_generations)

        runs = trials.shape[0]
        state = method.initial_state(rules.setting, start)._replace(generation=jnp.asarray(0))
        first = Carry(state, jnp.ones(runs, bool), jnp.zeros(runs, int), jnp.full(runs, jnp.inf))
        return lax.while_loop(unfinished, block, first)

    return loop


def _hold(alive: Array, new: Array, old: Array) -> Array:
    return jnp.where(jnp.reshape(alive, (-1,) + (1,) * (new.ndim - 1)), new, old)


def _keys(seed: Array, trials: Array) -> Array:
    key = jax.random.key(seed)
    return jax.vmap(lambda trial: jax.random.fold_in(key, trial))(trials)


def _noise(keys: Array, generation: Array, rules: Rules) -> Noise:
    """The noise of one generation of all runs, from (seed, trial, generation)."""
    popsize, n = rules.setting.strategy.popsize, len(rules.setting.coordinates.last)

    def of_run(key: Array) -> Noise:
        key = jax.random.fold_in(key, generation)
        if not rules.method.takes_uniforms:
            return Noise(jax.random.normal(key, (popsize, n)))
        normal, order, geometric, sign = jax.random.split(key, 4)
        return Noise(
            jax.random.normal(normal, (popsize, n)),
            1.0 - jax.random.uniform(order, (n,)),
            1.0 - jax.random.uniform(geometric, (popsize, n)),
            1.0 - jax.random.uniform(sign, (popsize, n)),
        )

    noise: Noise = jax.vmap(of_run)(keys)
    return noise


def _report(watch: Watch) -> Callable[[Array, Array], None]:
    return lambda generation, alive: watch(int(generation), int(alive))
