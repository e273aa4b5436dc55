"""mix, steps 4 to 8 and 13 (docs/mix.md): path, growth, mean, step sizes, covariance and scale of the live coordinates.

Frozen coordinates take part in none of it: y, z and the paths are 0 there.
"""

from __future__ import annotations

from mixcma.core.gaussian import decompose
from mixcma.core.mix.best import BestComparison
from mixcma.core.mix.constants import MixConstants
from mixcma.core.mix.integers import IntegerStep
from mixcma.core.mix.presence import Presence, centred, constants_of, lengths_expected, unmoved
from mixcma.core.mix.state import MixSetting, MixState, Partition
from mixcma.core.namespace import (
    SMALLEST_NORM_SQ,
    Array,
    as_column,
    as_matrix,
    clip,
    exp,
    inner,
    known_empty,
    namespace,
    sqrt,
)
from mixcma.core.sampling import Sample
from mixcma.core.update import combine

# How fast sigma grows while p_sigma is long.
GROWTH = 6.0
# What an older state drew counts this much in the paths: it went where the search was going before.
WEIGHT_OF_OLDER = 0.5
# The least share of feasible candidates that the step size reckons with, where there are some.
FEW_FEASIBLE = 0.25


def update_gaussian(
    setting: MixSetting,
    partition: Partition,
    state: MixState,
    sample: Sample,
    step: IntegerStep,
    comparison: BestComparison,
    w_plus: Array,
    w_minus: Array,
    presence: Presence | None,
) -> MixState:
    """The state after steps 4 to 8."""
    mu_w, lam = setting.strategy.mu_w, w_plus.shape[-1]
    xp, z, y = namespace(w_plus), sample.z, sample.y
    c = partition.constants if presence is None else constants_of(setting, partition, state, presence)
    # 4. path
    r = w_plus - 1.0 / lam if presence is None else centred(w_plus, presence)
    r_path = in_paths(r, sample.older)
    gain = sqrt(c.c_sigma * (2.0 - c.c_sigma) * mu_w)
    p_sigma = as_column(1.0 - c.c_sigma) * state.p_sigma + as_column(gain) * combine(r_path, z)
    length = sqrt(inner(p_sigma, p_sigma))
    # 5. growth
    g = GROWTH * c.c_sigma * clip(length / c.chi - c.long, 0.0, xp.inf)
    # 7. step size, by group
    norm_sq, share = xp.vecdot(z, z), caution(comparison.feasible)  # (..., L), (...)
    d = (inner(r, norm_sq) if presence is None else combine(r, z * z).sum(axis=-1)) / c.n
    eta_sigma = share * c.eta_sigma
    A, change = state.A, eta_sigma / 2 * d + share * g  # of log sigma
    if not known_empty(c.group_share > 0.0):
        d_x, d_z = group_means(c, combine(r, z * z), partition.live_integers)
        rho = eta_sigma / 2 * c.group_share
        of_group = as_column(factor(rho * (d_z - d_x)))
        of_group = of_group if presence is None else of_group**presence.share
        A = A * xp.where(partition.live_integers, of_group, 1.0)
        change = change + rho * (d_x - d)
    # 8. covariance
    h = (length < 2.0 * c.chi) * 1.0
    gain = sqrt(c.c_c * (2.0 - c.c_c) * mu_w)
    p_c = as_column(1.0 - c.c_c) * state.p_c + as_column(h * gain) * combine(r_path, y)
    n_i = as_column(c.n) if presence is None else lengths_expected(state, presence)
    C = covariance(c, state.C, by_direction(c, w_plus, w_minus, norm_sq, n_i), y, norm_sq, p_c, h, n_i, presence)
    return state._replace(
        m=step.m + state.sigma * state.A * combine(r, step.y),  # 6. mean
        sigma=state.sigma * as_column(factor(change)),
        C=C,
        A=A if presence is None else unmoved(A, state.live, change, presence),
        p_sigma=p_sigma,
        p_c=p_c,
        g_idle=step.g_idle,
        level=comparison.level,
        best=comparison.best,
        generation=state.generation + 1,
    )


def in_paths(w: Array, older: Array) -> Array:
    """The weights (..., L) with which candidates take part in the paths."""
    if known_empty(older):
        return w
    return namespace(w).where(older if w.ndim == older.ndim else older[..., None], WEIGHT_OF_OLDER * w, w)


def caution(feasible: Array | float) -> Array | float:
    """Step 7: along the edge of what is feasible the step size would shrink too soon, so it changes less."""
    if isinstance(feasible, float):
        return max(feasible, FEW_FEASIBLE) ** 2 if feasible > 0.0 else 1.0
    xp = namespace(feasible)
    return xp.where(feasible > 0.0, xp.maximum(feasible, FEW_FEASIBLE) ** 2, 1.0)


def group_means(c: MixConstants, d_j: Array, live_integers: Array) -> tuple[Array, Array]:
    """d_x and d_z: the means of d_j over the live floats and over the live integers, (...) each."""
    of_integers = inner(d_j, live_integers * 1.0)
    return (d_j.sum(axis=-1) - of_integers) / c.n_x, of_integers / c.n_z


def factor(change: Array) -> Array:
    """exp(clip(change, -1, 1))."""
    return exp(clip(change, -1.0, 1.0))


def by_direction(c: MixConstants, w_plus: Array, w_minus: Array, norm_sq: Array, n: Array | float) -> Array:
    """w° (..., L): C learns from directions, so every step counts as one of the expected length, ||z||^2 = n."""
    w = w_plus - as_column(c.a_minus) * w_minus
    return n * w / namespace(norm_sq).maximum(norm_sq, SMALLEST_NORM_SQ)


def covariance(
    c: MixConstants,
    C: Array,
    w: Array,
    y: Array,
    norm_sq: Array,
    p_c: Array,
    h: Array,
    n: Array | float,
    presence: Presence | None = None,
) -> Array:
    """(1 - h c_1) C + h c_1 p_c p_c^T + eta_C sum w_i (y_i y_i^T - ||z_i||^2 / n C), with w° for w.

    For speed, the rank-one term is a part of the sum: a further row. Where variables do not exist everywhere, that
    which C is multiplied by is each one's own: the less of it is replaced, the fewer candidates have it.
    """
    xp, c_1, p = namespace(C), h * c.c_1, p_c[..., None, :]
    if presence is not None:
        p = xp.sqrt(presence.share)[..., None, :] * p
    weighted = xp.concat([(as_column(c.eta_C) * w)[..., None] * y, as_matrix(c_1) * p], axis=-2)
    new = weighted.mT @ xp.concat([y, p], axis=-2)
    if presence is None:
        return as_matrix(1.0 - c_1 - c.eta_C * inner(w, norm_sq) / c.n) * C + new
    replaced = as_column(c.eta_C) * w * norm_sq / xp.maximum(n, 1.0)  # (..., L)
    kept = xp.sqrt(1.0 - as_column(c_1) * presence.share - combine(replaced, presence.exists))
    return kept[..., :, None] * C * kept[..., None, :] + new


def scaled_and_decomposed(state: MixState) -> MixState:
    """Step 13: the diagonal of C goes into A, which leaves the distribution as it is; then the roots of C."""
    xp = namespace(state.C)
    scale = xp.sqrt(state.C.diagonal(axis1=-2, axis2=-1))
    C = state.C / (scale[..., :, None] * scale[..., None, :])
    A = xp.where(state.live > 0.0, state.A * scale, state.A)
    return state._replace(A=A, C=C, p_c=state.p_c / scale, **decompose(C, state.live)._asdict())
