"""CatCMA with Margin (docs/catmargin.md): a Gaussian for numbers, a distribution of its own for each category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from mixcma.core import update
from mixcma.core.categories import (
    CategoryState,
    asng_step,
    draw_choices,
    frequencies,
    initial_categories,
)
from mixcma.core.centring import centring_moves
from mixcma.core.coordinates import Coordinates, cell_centre, cell_index, ends
from mixcma.core.gaussian import Start, decompose, deviations, initial_gaussian
from mixcma.core.method import Method, State
from mixcma.core.namespace import Array, namespace, ndtr, ndtri, squared_norm
from mixcma.core.ranking import weights_by_rank
from mixcma.core.sampling import Noise, Sample, complete, expressed, gaussian, no_longer_than_usual
from mixcma.core.setting import CategorySetting, strategy_of

LARGEST_STEP = 1e32
# Probabilities of leaving a cell are at least this far from 0 and from 1/2.
SAFE = 1e-8


class CatMarginState(NamedTuple):
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
    p_mut: Array  # (..., N) the probability with which each integer last left its cell; 1 before there is one
    categories: CategoryState
    generation: Array | int


@dataclass(frozen=True)
class CatMargin(Method):
    """CatCMA with Margin (docs/catmargin.md): a Gaussian for numbers, a distribution of its own for each category."""

    takes_categories: ClassVar[bool] = True
    takes_uniforms: ClassVar[bool] = True

    def setting(self, coordinates: Coordinates, popsize: int | None) -> CategorySetting:
        return CategorySetting(strategy_of(coordinates, popsize), coordinates)

    def initial_state(self, setting: CategorySetting, start: Start) -> CatMarginState:
        ones = namespace(start.m).ones_like(start.m)
        return CatMarginState(**initial_gaussian(start), A=ones, p_mut=ones, categories=initial_categories(start.theta))

    def sample(self, setting: CategorySetting, state: State, noise: Noise) -> Sample:
        """v = m + sigma A y, and a choice of each category."""
        y, step = gaussian(state, noise.normal)
        v, n = state.m[..., None, :] + state.A[..., None, :] * step, setting.strategy.dimension
        choices = draw_choices(setting.categories, state.categories.theta, noise.sign[..., n:])
        v = namespace(v).concat([v[..., :n], choices], axis=-1)
        return complete(setting.coordinates, y, noise.normal, step, v)

    def express(self, setting: CategorySetting, state: State, latents: Array, redrawn: Array | None = None) -> Sample:
        """v = m + sigma A y for the numbers."""
        v = latents[..., 0, :]
        step = setting.numbers * (v - state.m[..., None, :]) / state.A[..., None, :]
        return expressed(setting.coordinates, state, v, step, no_longer_than_usual(setting.strategy))

    def spread(self, state: State) -> Array:
        n = state.m.shape[-1] - state.categories.theta.shape[-2]
        numbers = namespace(state.m).arange(state.m.shape[-1]) < n
        return deviations(state) * state.A * numbers

    def spread_outside(self, state: State) -> Array:
        return deviations(state) * state.A

    def probabilities(self, state: State) -> Array:
        return state.categories.theta

    def decomposed(self, state: State) -> State:
        n = state.m.shape[-1] - state.categories.theta.shape[-2]
        numbers = 1.0 * (namespace(state.m).arange(state.m.shape[-1]) < n) + 0.0 * state.m
        return state._replace(**decompose(state.C, numbers)._asdict())

    def tell(
        self, setting: CategorySetting, state: State, sample: Sample, values: Array, violations: Array | None = None
    ) -> State:
        """Numbers and categories have nothing but the ranks in common."""
        values, violations = self.ranked_inside(setting, state, sample.v, values, violations)
        w = weights_by_rank(setting.strategy.all_weights, values, violations)
        w_plus = weights_by_rank(setting.strategy.positive_weights, values, violations)
        if setting.strategy.dimension:
            state = update_numbers(setting, state, sample, w, w_plus)
        else:
            state = state._replace(generation=state.generation + 1)
        if not len(setting.coordinates.choices):
            return state
        chosen = sample.v[..., setting.strategy.dimension :]
        wanted = frequencies(state.categories.theta.shape[-1], chosen, w_plus)
        return state._replace(categories=asng_step(setting.categories, state.categories, wanted))


def update_numbers(setting: CategorySetting, state: State, sample: Sample, w: Array, w_plus: Array) -> State:
    """Steps 2 to 9; the better half is centred, and the mean moves without A."""
    s, xp, coordinates = setting.strategy, namespace(state.m), setting.coordinates
    taking_part = coordinates.margin & (w_plus > 0.0)[..., None]
    left = taking_part & (sample.cells != cell_index(coordinates, state.m)[..., None, :])
    moved = centring_moves(sample.v, cell_centre(coordinates, sample.cells), left, taking_part)
    y = sample.y + moved / (state.sigma * state.A)[..., None, :]
    mean_y = update.combine(w_plus, y)
    p_sigma = update.step_size_path(s, state.p_sigma, state.inverse_root, mean_y)
    p_sigma_norm = xp.sqrt(squared_norm(p_sigma))
    h_sigma = update.heaviside(s, p_sigma_norm, state.generation + 1)
    p_c = update.covariance_path(s, state.p_c, h_sigma, mean_y)
    after = state._replace(
        m=state.m + s.c_m * state.sigma * mean_y,
        sigma=xp.minimum(update.step_size(s, state.sigma, p_sigma_norm), LARGEST_STEP),
        C=update.covariance(s, state.C, w, y, y @ state.inverse_root, p_c, h_sigma),
        p_sigma=p_sigma,
        p_c=p_c,
        generation=state.generation + 1,
    )
    before = xp.where(state.p_mut >= 1.0, 0.5 - SAFE, state.p_mut)
    most = xp.where(left.any(axis=-2), 1.0, before)
    m, A, p_mut = capped(coordinates, setting.alpha, most, after.m, deviations(after), after.A)
    return after._replace(
        m=xp.where(coordinates.margin, m, after.m),
        A=xp.where(coordinates.margin, A, after.A),
        p_mut=xp.where(coordinates.margin, p_mut, after.p_mut),
    )


def capped(
    coordinates: Coordinates, alpha: float, most: Array, m: Array, spread: Array, A: Array
) -> tuple[Array, Array, Array]:
    """Step 9, the margin: m, A and the probability of leaving the cell.

    `spread` = sigma C_jj^(1/2); `most` is the largest probability of leaving that is allowed, 1 where an integer
    succeeded. Entries of floats are to be dropped.
    """
    xp, half = namespace(m), alpha / 2
    k = cell_index(coordinates, m)
    lower, upper = ends(coordinates, k)
    at_bottom, at_edge = k <= 0.0, (k <= 0.0) | (k >= coordinates.last)
    sd = spread * A
    # the first or the last cell
    threshold = xp.where(at_bottom, upper, lower)
    p = xp.minimum(xp.maximum(ndtr(-xp.abs(m - threshold) / sd), alpha), most)
    p_edge = xp.minimum(p, 0.5 - SAFE)
    reach = xp.abs(cell_centre(coordinates, k) - threshold) / -ndtri(alpha)
    A_edge = xp.maximum(A, reach / spread)
    way = -ndtri(p_edge) * spread * A_edge
    m_edge = xp.where(at_bottom, threshold - way, threshold + way)
    # between
    p_low, p_up = ndtr((lower - m) / sd), ndtr((m - upper) / sd)
    succeeded = most >= 1.0
    floor = xp.where(succeeded, half, 1.0 - most)
    p_mid = 1.0 - p_low - p_up
    p_mid = xp.where(succeeded, p_mid, xp.maximum(floor, p_mid))
    p_low, p_up = xp.maximum(half, p_low), xp.maximum(half, p_up)
    divisor = p_low + p_up + p_mid - alpha - floor
    ratio = xp.where(divisor == 0.0, 0.0, (1.0 - p_low - p_up - p_mid) / xp.where(divisor == 0.0, 1.0, divisor))
    p_low, p_up = (xp.minimum(xp.maximum(p + ratio * (p - half), SAFE), 0.5 - SAFE) for p in (p_low, p_up))
    x_low, x_up = -ndtri(p_low), -ndtri(p_up)
    m_inner = (lower * x_up + upper * x_low) / (x_low + x_up)
    A_inner = (upper - lower) / (spread * (x_low + x_up))
    leaving = xp.where(at_edge, p_edge, p_low + p_up)
    return xp.where(at_edge, m_edge, m_inner), xp.where(at_edge, A_edge, A_inner), leaving
