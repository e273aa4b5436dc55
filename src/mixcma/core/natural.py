"""mix, steps 4 to 8 (docs/mix.md): what the live coordinates learn, at the pace of their number.

Frozen coordinates take part in none of it: y, z and the paths are 0 there.
"""

from __future__ import annotations

from mixcma.core.freezing import Learnt
from mixcma.core.namespace import Array, exp, held, idle, inner, namespace, sqrt, unpaired, wide, wider
from mixcma.core.setting import Live, Setting
from mixcma.core.state import Lead, State
from mixcma.core.strategy import Pace
from mixcma.core.update import combine

# The search moves when its path has been long for so many generations.
LONG_ENOUGH = 5
# So much counts in the paths what an older state drew: it went where the search was going before.
WEIGHT_OF_OLDER = 0.5
# The least part of the candidates that is counted as feasible, where some are.
FEW_FEASIBLE = 0.25


def learnt(setting: Setting, given: Live, state: State, integers: Learnt, lead: Lead, w_plus: Array) -> State:
    """The state after steps 4 to 8."""
    sample, pace = integers.sample, given.pace
    z, xp, r = sample.z, namespace(w_plus), w_plus - 1.0 / w_plus.shape[-1]
    p_sigma = wide(pace.keeps_sigma) * state.p_sigma + wide(pace.adds_sigma) * combine(of_paths(r, sample.older), z)
    length = sqrt(inner(p_sigma, p_sigma))
    long = (state.long + 1.0) * (length >= pace.chi)
    norm_sq = xp.vecdot(z, z)  # (..., L)
    w, eta = moving_weights(pace, long >= LONG_ENOUGH, r, w_plus, norm_sq)
    mean_y = combine(w, sample.y)
    path_y = mean_y if sample.older is None else combine(of_paths(w, sample.older), sample.y)
    d = inner(w, norm_sq) / pace.live
    if lead.feasible is not None:
        eta = eta * caution(lead.feasible)
    growth, A = eta / 2 * d, state.A
    if not idle(pace.apart > 0.0):
        sums = combine(combine(w, z * z), setting.groups)  # of the d_j: (..., 2)
        more, A = group_step_sizes(pace, given.integers, A, sums, d, eta)
        growth = growth + more
    p_c = wide(pace.keeps_c) * state.p_c + wide(pace.adds_c * (length < pace.twice_chi)) * path_y
    return State(
        m=integers.m + state.sigma * state.A * mean_y,
        sigma=state.sigma * wide(factor(growth)),
        C=covariance(pace, state.C, w, sample.y, z @ state.inverse_root, d, p_c),
        A=A,
        p_sigma=p_sigma,
        p_c=p_c,
        root=state.root,
        inverse_root=state.inverse_root,
        eigenvalues=state.eigenvalues,
        recalled=lead.point,
        live=state.live,
        leaving=state.leaving,
        long=long,
        idle=integers.idle,
        level=lead.level,
        best=lead.best,
        theta=state.theta,
        signal=state.signal,
        rate=state.rate,
        open=state.open,
        generation=state.generation + 1,
    )


def moving_weights(pace: Pace, moves: Array, r: Array, w_plus: Array, norm_sq: Array) -> tuple[Array, Array | float]:
    """w (..., L) and eta_sigma (...): while the search moves, the farther candidates count more.

    `norm_sq` (..., L) is ||z||^2.
    """
    if idle(moves):
        return r, pace.eta_sigma
    xp = namespace(norm_sq)
    far = w_plus * xp.exp(wide(pace.distance) * xp.minimum(xp.sqrt(norm_sq), wide(pace.twice_chi)))
    far = far / far.sum(axis=-1, keepdims=True) - 1.0 / r.shape[-1]
    return xp.where(moves[..., None], far, r), xp.where(moves, 1.0, pace.eta_sigma)


def of_paths(w: Array, older: Array | None) -> Array:
    """The weights (..., L) with which candidates take part in the paths."""
    return w if older is None else namespace(w).where(older, WEIGHT_OF_OLDER * w, w)


def caution(feasible: Array) -> Array:
    """By how much less the step size changes along the edge of what is feasible, where it would shrink too soon."""
    xp = namespace(feasible)
    return xp.where(feasible > 0.0, xp.maximum(feasible, FEW_FEASIBLE) ** 2, 1.0)


def group_step_sizes(
    pace: Pace, integers: Array, A: Array, sums: Array, d: Array, eta: Array | float
) -> tuple[Array, Array]:
    """What log sigma changes by beside (...), and A (..., N): the live `integers` have a step size of their own.

    `sums` (..., 2) are those of d_j over the floats and the integers.
    """
    of_floats, of_integers = unpaired(sums)
    d_x, d_z, rate = of_floats / pace.floats, of_integers / pace.integers, eta / 2 * pace.apart
    relative = wide(factor(rate * (d_z - d_x)))
    return rate * (d_x - d), namespace(A).where(integers, relative, 1.0) * A


def factor(growth: Array) -> Array:
    """exp(growth), which is at most 1 at a time."""
    return exp(held(-1.0, growth, 1.0))


def covariance(pace: Pace, C: Array, w: Array, y: Array, x: Array, d: Array, p_c: Array) -> Array:
    """(1 - c_1) (I + K) C (I + K)^T + c_1 p_c p_c^T with K = eta_C / 2 (sum w_i y_i x_i^T - d I), and x_i = C^(-1) y_i.

    To the first order in eta_C that is C + eta_C (sum w_i y_i y_i^T - d C), but it is positive definite whatever the
    weights are, and however old the C is that x was made with. With u_i = eta_C / 2 w_i y_i it is
    K = U^T X - (1 - kept) I and (I + K) C (I + K)^T = kept^2 C + S + S^T, where S = U^T (kept X C + X C X^T U / 2).
    """
    kept, u = 1.0 - pace.eta_C / 2 * d, (wide(pace.eta_C / 2) * w)[..., None] * y
    x_C = x @ C
    one_side = u.mT @ (wider(pace.keeps_C * kept) * x_C + (wider(pace.keeps_C / 2) * (x_C @ x.mT)) @ u)
    rank_one = p_c[..., :, None] * (wide(pace.c_1) * p_c)[..., None, :]
    return wider(pace.keeps_C * kept * kept) * C + (one_side + one_side.mT) + rank_one
