"""CatCMA with Margin, steps 2 to 9 (docs/catmargin.md): what its numbers learn. Its categories are in categories.py."""

from __future__ import annotations

from mixcma.core import update
from mixcma.core.coordinates import Coordinates, cell_centre, cell_index, ends
from mixcma.core.freezing import centred
from mixcma.core.namespace import Array, namespace, ndtr, ndtri, squared_norm
from mixcma.core.sampling import Sample
from mixcma.core.setting import Setting
from mixcma.core.state import State, deviations

LARGEST_STEP = 1e32
# Probabilities of leaving a cell are at least so far from 0 and from 1/2.
SAFE = 1e-8


def numbers_learnt(setting: Setting, state: State, sample: Sample, w: Array, w_plus: Array) -> State:
    """Steps 2 to 9; the better half is centred, and the mean moves without A."""
    s, xp, coordinates = setting.strategy, namespace(state.m), setting.coordinates
    cells = cell_index(coordinates, sample.v)
    taking_part = coordinates.margin & (w_plus > 0.0)[..., None]
    left = taking_part & (cells != cell_index(coordinates, state.m)[..., None, :])
    moved = centred(sample.v, cell_centre(coordinates, cells), left, taking_part)
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
    before = xp.where(state.leaving >= 1.0, 0.5 - SAFE, state.leaving)  # 1 at the start
    most = xp.where(left.any(axis=-2), 1.0, before)
    m, A, leaving = capped(coordinates, setting.alpha, most, after.m, deviations(after), after.A)
    return after._replace(
        m=xp.where(coordinates.margin, m, after.m),
        A=xp.where(coordinates.margin, A, after.A),
        leaving=xp.where(coordinates.margin, leaving, after.leaving),
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
