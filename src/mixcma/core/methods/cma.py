"""Plain CMA-ES (Section 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from mixcma.core import update
from mixcma.core.gaussian import GaussianState, Start, initial_gaussian
from mixcma.core.method import Method, State
from mixcma.core.namespace import Array, namespace, squared_norm
from mixcma.core.ranking import weights_by_rank
from mixcma.core.sampling import Noise, Sample, complete, expressed, gaussian, no_longer_than_usual
from mixcma.core.setting import Setting
from mixcma.core.strategy import Strategy


class CmaState(NamedTuple):
    """See the glossary of `mixcma.core`."""

    m: Array
    sigma: Array
    C: Array
    p_sigma: Array
    p_c: Array
    root: Array
    inverse_root: Array
    eigenvalues: Array
    generation: Array | int


@dataclass(frozen=True)
class Cma(Method):
    """Plain CMA-ES (Section 2.1): what is sampled is rounded to be evaluated, nothing more."""

    takes_categories: ClassVar[bool] = False
    takes_uniforms: ClassVar[bool] = False

    def initial_state(self, setting: Setting, start: Start) -> State:
        return CmaState(**initial_gaussian(start))

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        """x = m + sigma y."""
        y, step = gaussian(state, noise.normal)
        return complete(setting.coordinates, y, noise.normal, step, state.m[..., None, :] + step)

    def express(self, setting: Setting, state: State, latents: Array, redrawn: Array | None = None) -> Sample:
        """v = m + sigma y."""
        v = latents[..., 0, :]
        step = v - state.m[..., None, :]
        return expressed(setting.coordinates, state, v, step, no_longer_than_usual(setting.strategy))

    def tell(
        self, setting: Setting, state: State, sample: Sample, values: Array, violations: Array | None = None
    ) -> State:
        """Rank, then the update of Section 2.1."""
        values, violations = self.ranked_inside(setting, state, sample.v, values, violations)
        w = weights_by_rank(setting.strategy.all_weights, values, violations)
        return state._replace(**cma_update(setting.strategy, state, sample, w))


def cma_update(s: Strategy, state: GaussianState, sample: Sample, w: Array) -> dict[str, Any]:
    """The mean, the paths, the covariance and the step size of the next generation."""
    xp = namespace(state.m)
    positive = xp.maximum(w, 0.0)
    mean_y = update.combine(positive, sample.y)
    p_sigma = update.step_size_path(s, state.p_sigma, state.inverse_root, mean_y)
    p_sigma_norm = xp.sqrt(squared_norm(p_sigma))
    h_sigma = update.heaviside(s, p_sigma_norm, state.generation)
    p_c = update.covariance_path(s, state.p_c, h_sigma, mean_y)
    return {
        "m": state.m + s.c_m * update.combine(positive, sample.step),
        "sigma": update.step_size(s, state.sigma, p_sigma_norm),
        "C": update.covariance(s, state.C, w, sample.y, sample.z, p_c, h_sigma),
        "p_sigma": p_sigma,
        "p_c": p_c,
        "generation": state.generation + 1,
    }
