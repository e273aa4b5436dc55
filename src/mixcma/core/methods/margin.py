"""CMA-ES with Margin (Section 4 and the appendix): the probability of leaving the mean's cell stays above a margin.

For speed on small arrays every line of the corrections works on plain (..., N) arrays; entries of floats are computed
along with the rest and dropped at the end.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import NamedTuple

from mixcma.core.coordinates import Coordinates, cell_index, ends
from mixcma.core.gaussian import Start, deviations, initial_gaussian
from mixcma.core.method import State
from mixcma.core.methods.cma import Cma
from mixcma.core.namespace import Array, namespace, ndtr, ndtri
from mixcma.core.sampling import Noise, Sample, complete, expressed, gaussian, no_longer_than_usual
from mixcma.core.setting import Setting

# m is rounded to the spacing of floats around it; made wider by this much, no tail falls short because of that.
ROUNDING = 4 * sys.float_info.epsilon


class MarginState(NamedTuple):
    """See the glossary of `mixcma.core`."""

    m: Array
    sigma: Array
    C: Array
    A: Array
    p_sigma: Array
    p_c: Array
    root: Array
    inverse_root: Array
    eigenvalues: Array
    generation: Array | int


@dataclass(frozen=True)
class Margin(Cma):
    """CMA-ES with Margin (Section 4): every neighbouring value keeps at least a small probability.

    Parameters
    ----------
    alpha
        The margin; default 1 / (N lambda).
    """

    alpha: Array | float | None = None

    def initial_state(self, setting: Setting, start: Start) -> State:
        return MarginState(**initial_gaussian(start), A=namespace(start.m).ones_like(start.m))

    def sample(self, setting: Setting, state: State, noise: Noise) -> Sample:
        """v = m + sigma A y is evaluated; x = m + sigma y is learnt from."""
        y, step = gaussian(state, noise.normal)
        v = state.m[..., None, :] + state.A[..., None, :] * step
        return complete(setting.coordinates, y, noise.normal, step, v)

    def express(self, setting: Setting, state: State, latents: Array, redrawn: Array | None = None) -> Sample:
        """v = m + sigma A y."""
        v = latents[..., 0, :]
        step = (v - state.m[..., None, :]) / state.A[..., None, :]
        return expressed(setting.coordinates, state, v, step, no_longer_than_usual(setting.strategy))

    def spread(self, state: State) -> Array:
        return deviations(state) * state.A

    def spread_outside(self, state: State) -> Array:
        return self.spread(state)

    def tell(
        self, setting: Setting, state: State, sample: Sample, values: Array, violations: Array | None = None
    ) -> State:
        """The update of CMA-ES, then the corrections with the new m, sigma, C and the old A."""
        s = setting.strategy
        alpha = 1 / (s.dimension * s.popsize) if self.alpha is None else self.alpha
        state = super().tell(setting, state, sample, values, violations)
        m, A = corrected(setting.coordinates, alpha, state.m, self.spread(state), state.A)
        return state._replace(m=m, A=A)


def corrected(coordinates: Coordinates, alpha: Array | float, m: Array, sd: Array, A: Array) -> tuple[Array, Array]:
    """The corrected m and A.

    `sd` = sigma <A C A^T>_jj^(1/2) is each coordinate's standard deviation. Where no bound is active, m and A come
    back unchanged, bit for bit.
    """
    xp = namespace(m)
    k = cell_index(coordinates, m)
    lower, upper = ends(coordinates, k)
    at_bottom, at_top = k <= 0.0, k >= coordinates.last
    p_low, p_up = ndtr((lower - m) / sd), ndtr((m - upper) / sd)
    m_edge = _edge(alpha, m, sd, lower, upper, at_bottom)
    m_inner, sd_inner, active = _inner(alpha / 2, m, lower, upper, p_low, p_up)
    at_edge = at_bottom | at_top
    moved = coordinates.margin & (at_edge | active)
    widened = coordinates.margin & active & ~at_edge
    m_new = xp.where(moved, xp.where(at_edge, m_edge, m_inner), m)
    return m_new, xp.where(widened, A * (sd_inner / sd), A)


def _edge(alpha: Array | float, m: Array, sd: Array, lower: Array, upper: Array, at_bottom: Array) -> Array:
    """Eq. (bin_correct_m): the mean is at most CI(1 - 2 alpha) from the threshold; A stays.

    The bound is rounded toward the threshold, so that rounding cannot push the probability below alpha.
    """
    xp = namespace(m)
    ci = -ndtri(alpha) * sd
    from_bottom = xp.maximum(m, xp.nextafter(upper - ci, upper))
    from_top = xp.minimum(m, xp.nextafter(lower + ci, lower))
    return xp.where(at_bottom, from_bottom, from_top)


def _inner(
    half: Array | float, m: Array, lower: Array, upper: Array, p_low: Array, p_up: Array
) -> tuple[Array, Array, Array]:
    """The appendix: m and sd for which both tails have the probabilities p'', and where that is needed."""
    xp = namespace(m)
    p1_low, p1_up = xp.maximum(p_low, half), xp.maximum(p_up, half)  # p'
    missing = (p_low - p1_low) + (p_up - p1_up)  # 1 - p'_low - p'_up - p_mid
    ratio = missing / ((1 - 3 * half) - missing)
    p2_low = p1_low + ratio * (p1_low - half)  # p''
    p2_up = p1_up + ratio * (p1_up - half)
    x_low = ndtri(xp.minimum(p2_low, 0.5))  # -sqrt(chi2_ppf(1 - 2 p''))
    x_up = ndtri(xp.minimum(p2_up, 0.5))
    # Where a bound is active, x_low + x_up is at most ndtri(alpha / 2): the ceiling only serves the rest.
    reach = xp.minimum(x_low + x_up, -1e-3)
    sd_new = (lower - upper) / reach
    m_new = lower - sd_new * x_low
    return m_new, sd_new - ROUNDING * xp.abs(m) / reach, missing < 0
