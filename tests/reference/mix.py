"""docs/mix.md: CMA-ES with Margin whose settled integers and categories are frozen and mutated explicitly.

`live` is l, the list of 0s and 1s that marks the live coordinates, n their number; `is_open` is o, which marks the
open categories; n_F is the number of those frozen, integers that are not live and categories that are not open.
`values`, cells (k = 1, ..., K_j) and thresholds of integers are those of `margin`. The centre of a cell is its value
z_{j,k}. The coordinate of a category is the place of its choice, as a float: choices are counted from 0 here, from 1
in the document. The numeric coordinates come first, the categories last; "column" j of a category c is its place
among all coordinates. What is indexed by i is in the order of the sample, not of the ranks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scipy.stats import norm

from . import bounds, catmargin, cma, margin
from .bounds import Bounds, Outcome
from .catmargin import Category
from .cma import Matrix, Vector
from .constants import constants, default_popsize, expected_norm
from .run import Noise

Coordinates = Sequence[Vector | Category | None]  # None, the sorted values of an integer, or a category


# Preliminaries


class Condition(NamedTuple):
    """Coordinate `child` exists only where `parent` is in one of these cells, or has one of these choices, from 0."""

    child: int
    parent: int
    cells: Sequence[int]


def masked(live: list[int], vector: Vector) -> Vector:
    # l * v
    result = []
    for j in range(len(live)):
        result.append(vector[j] if live[j] == 1 else 0.0)
    return result


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def mean_distance(values: Vector) -> float:
    # S_j = (z_{j,K_j} - z_{j,1}) / (K_j - 1)
    return (values[-1] - values[0]) / (len(values) - 1)


def default_alpha(coordinates: Coordinates) -> float:
    # alpha = 1 - 0.73^(1 / D), D integers and categories; without either nothing asks for it
    D = 0
    for values in coordinates:
        if values is not None:
            D += 1
    if D == 0:
        return 0.0
    return 1 - 0.73 ** (1 / D)


def positive_weights(w: Vector) -> Vector:
    # w+_i = max(w_i, 0) of Table 1: their sum is 1
    result = []
    for value in w:
        result.append(max(value, 0.0))
    return result


def negative_weights(w: Vector) -> Vector:
    # w-_i = max(-w_i, 0), divided by their sum
    result = []
    for value in w:
        result.append(max(-value, 0.0))
    total = sum(result)
    return [value / total for value in result]


def left_cell(v_j: float, m_j: float, values: Vector | Category | None) -> bool:
    # is the cell of v_ij another than that of m_j? Of a category: the choice
    if values is None:
        return False
    if isinstance(values, Category):
        return v_j != m_j
    return margin.cell(v_j, values) != margin.cell(m_j, values)


# Constants


@dataclass(frozen=True)
class MixConstants:
    """The constants of n, in the order of the document."""

    c_sigma: float
    chi: float
    c_1: float
    c_c: float
    c_mu: float
    a_minus: float
    eta_C: float
    eta_sigma: float


def mix_constants(
    n: int, popsize: int, mu_w: float, mu_w_minus: float, without_floats: int | None = None
) -> MixConstants:
    # without_floats: in a space without floats, how many numbers there are
    # for n = 0 those of n = 1
    if n == 0:
        n = 1

    # c_sigma = min(1, (mu_w + 2) / (n + mu_w + 5) / (2 ln(n + 1)))
    c_sigma = min(1.0, (mu_w + 2) / (n + mu_w + 5) / (2 * math.log(n + 1)))

    # chi = sqrt(n) (1 - 1/(4n) + 1/(21n^2))
    chi = expected_norm(n)

    # c_1 = 2 / ((n + 1.3)^2 + mu_w)
    c_1 = 2 / ((n + 1.3) ** 2 + mu_w)

    # c_c = (4 + mu_w/n) / (n + 4 + 2 mu_w/n)
    c_c = (4 + mu_w / n) / (n + 4 + 2 * mu_w / n)

    # c_mu = min(1 - c_1, 2 (mu_w - 2 + 1/mu_w) / ((n + 2)^2 + mu_w))
    c_mu = min(1 - c_1, 2 * (mu_w - 2 + 1 / mu_w) / ((n + 2) ** 2 + mu_w))

    # eta_C = min((1 - c_1) / 2, max(0.4 / n, c_1 + c_mu))
    eta_C = min((1 - c_1) / 2, max(0.4 / n, c_1 + c_mu))
    if without_floats is not None:
        # at most the eta_C of all of them
        eta_C = min(eta_C, mix_constants(without_floats, popsize, mu_w, mu_w_minus).eta_C)

    # a_minus = min(1 + c_1 / c_mu, 1 + 2 mu_w^- / (mu_w + 2), (1 - c_1 - eta_C) / (n eta_C))
    first = 1 + c_1 / c_mu if c_mu > 0 else math.inf
    a_minus = min(first, 1 + 2 * mu_w_minus / (mu_w + 2), (1 - c_1 - eta_C) / (n * eta_C))

    # eta_sigma = tanh((0.024 lambda + 0.7 n + 20) / (n + 12))
    eta_sigma = math.tanh((0.024 * popsize + 0.7 * n + 20) / (n + 12))

    return MixConstants(
        c_sigma=c_sigma, chi=chi, c_1=c_1, c_c=c_c, c_mu=c_mu, a_minus=a_minus, eta_C=eta_C, eta_sigma=eta_sigma
    )


# Sampling, Step 1


def sample_y(root: Matrix, live: list[int], xi: Vector) -> Vector:
    # y_i = C^(1/2) z_i with z_i = l * xi_i; 0 where l_j = 0, without the rounding of the roots
    return masked(live, cma.sample_y(root, masked(live, xi)))


# Sampling, Step 2


def mutation_rate(active: int, n_F: int, alpha: float, popsize: int, g_idle: int, level: bool) -> float:
    # `active` are live or open
    # q0 = 1 - (1 - alpha)^n_F
    q0 = 1 - (1 - alpha) ** n_F
    # T = 4 n_F / (lambda q0)
    T = 4 * n_F / (popsize * q0)
    # q = max(q0 T / (T + g_idle), min(q0, 0.05)), at least 1/2 if level; q = 1 if nothing is live or open
    if active == 0:
        return 1.0
    q = max(q0 * T / (T + g_idle), min(q0, 0.05))
    if level:
        q = max(q, 0.5)
    return q


def is_level(first: Outcome, best: Outcome | None) -> bool:
    # as good as the best so far, up to 1e-12 of it
    if best is None:
        return False
    return first[0] == best[0] and abs(first[1] - best[1]) <= 1e-12 * abs(best[1])


def mutation_count(xi: Vector, frozen: list[int], q: float) -> int:
    # u_i = Phi(sum over the frozen j of xi_ij / sqrt(n_F))
    n_F = len(frozen)
    total = 0.0
    for j in frozen:
        total += xi[j]
    u = float(norm.cdf(total / math.sqrt(n_F)))
    # k_i = min(floor(sqrt(q / u_i)), n_F)
    return min(math.floor(math.sqrt(q / u)), n_F)


# Sampling, Step 3


def mutated(s: Vector, frozen: list[int], k: int, n_F: int) -> list[int]:
    # the frozen j with the smallest s_ij (of equal ones the first),
    # and all other frozen ones with s_ij <= (k_i - 1) / n_F; `frozen` are those that exist in the candidate
    if k == 0 or len(frozen) == 0:
        return []
    smallest = frozen[0]
    for j in frozen:
        if s[j] < s[smallest]:
            smallest = j
    result = []
    for j in frozen:
        if j == smallest or s[j] <= (k - 1) / n_F:
            result.append(j)
    return result


def jump(c: int, count: int, t: float) -> int:
    # from cell c of 1, ..., count: up if t_ij >= 1/2, else down
    up = t >= 0.5
    room = count - c if up else c - 1
    # no cell on that side: the neighbouring one on the other
    if room == 0:
        return c - 1 if up else c + 1
    # floor(|2 t_ij - 1|^(-1/2)) cells, but not beyond the last one
    distance = room
    if t != 0.5:
        distance = min(room, math.floor(abs(2 * t - 1) ** (-1 / 2)))
    return c + distance if up else c - distance


def another_choice(k: int, K: int, t: float) -> int:
    # ceil((K_c - 1) t_ij) choices on, wrapping around from the last to the first
    return (k + math.ceil((K - 1) * t)) % K


# Update, Step 2


def succeeded(w_plus: Vector, v: Matrix, m: Vector, coordinates: Coordinates) -> list[bool]:
    # did coordinate j leave the cell of m_j in a candidate with w+ > 0?
    result = []
    for j in range(len(m)):
        success = False
        for i in range(len(v)):
            if w_plus[i] > 0 and left_cell(v[i][j], m[j], coordinates[j]):
                success = True
        result.append(success)
    return result


def moved_frozen_mean(m_j: float, w_plus: Vector, v_j: Vector, values: Vector) -> float:
    # m_j <- m_j + sum_i w+_i clip(v_ij - m_j, -S_j, S_j)
    S_j = mean_distance(values)
    total = 0.0
    for i in range(len(w_plus)):
        total += w_plus[i] * clip(v_j[i] - m_j, -S_j, S_j)
    return m_j + total


# Update, Step 3


def centring_moves(w_plus: Vector, v_j: Vector, m_j: float, values: Vector) -> Vector:
    # the way of each candidate to the centre of its cell, 0 for those without weight
    way = []
    for i in range(len(v_j)):
        centre = values[margin.cell(v_j[i], values) - 1]
        way.append(centre - v_j[i] if w_plus[i] > 0 else 0.0)

    # those that left the cell go all of it; b_j is the sum of these moves
    b_j = 0.0
    for i in range(len(v_j)):
        if left_cell(v_j[i], m_j, values):
            b_j += way[i]

    # of the others, those whose centre lies in the opposite direction of b_j
    opposite = 0.0
    for i in range(len(v_j)):
        if not left_cell(v_j[i], m_j, values) and way[i] * b_j < 0:
            opposite += way[i]

    # b_j + fraction * opposite = 0, with a fraction of at most 1
    fraction = 0.0 if opposite == 0 else min(1.0, -b_j / opposite)

    moves = []
    for i in range(len(v_j)):
        if left_cell(v_j[i], m_j, values):
            moves.append(way[i])
        elif way[i] * b_j < 0:
            moves.append(fraction * way[i])
        else:
            moves.append(0.0)
    return moves


# Update, Step 4


def exists_in(point: Vector, j: int, coordinates: Coordinates, conditions: Sequence[Condition]) -> bool:
    # does the parent of every condition of j have one of its cells?
    for condition in conditions:
        if condition.child == j:
            values = coordinates[condition.parent]
            value = point[condition.parent]
            cell = int(value) if isinstance(values, Category) else margin.cell(value, values) - 1
            if cell not in condition.cells:
                return False
    return True


def centred_among_existing(w_plus: Vector, e: Matrix, j: int) -> Vector:
    # r_ij = e_ij (w+_i - the mean of w+ over the candidates that have j)
    total = 0.0
    count = 0.0
    for i in range(len(w_plus)):
        total += e[i][j] * w_plus[i]
        count += e[i][j]
    mean = 1 / len(w_plus) if count == len(w_plus) else total / max(count, 1.0)  # the sum of all is 1
    r_j = []
    for i in range(len(w_plus)):
        r_j.append(e[i][j] * (w_plus[i] - mean))
    return r_j


def sums_by_coordinate(r: Matrix, vectors: Matrix) -> Vector:
    # sum_i r_ij y_ij, where r[j] are the weights of coordinate j
    result = []
    for j in range(len(vectors[0])):
        total = 0.0
        for i in range(len(vectors)):
            total += r[j][i] * vectors[i][j]
        result.append(total)
    return result


def most_existing(e: Matrix, chosen: list[int]) -> int:
    # the largest number of the chosen coordinates that a candidate has
    return int(max(sum(row[j] for j in chosen) for row in e))


def halved(w: Vector, older: list[bool] | None) -> Vector:
    # w_i / 2 for candidates that an older state drew
    result = []
    for i in range(len(w)):
        result.append(w[i] / 2 if older is not None and older[i] else w[i])
    return result


def update_p_sigma(p_sigma: Vector, r_z: Vector, mu_w: float, k: MixConstants) -> Vector:
    # p_sigma <- (1 - c_sigma) p_sigma + sqrt(c_sigma (2 - c_sigma) mu_w) sum_i r_i z_i
    factor = math.sqrt(k.c_sigma * (2 - k.c_sigma) * mu_w)
    new_p_sigma = []
    for j in range(len(p_sigma)):
        new_p_sigma.append((1 - k.c_sigma) * p_sigma[j] + factor * r_z[j])
    return new_p_sigma


# Update, Step 5


def growth(new_p_sigma: Vector, n: int, k: MixConstants) -> float:
    # g = 6 c_sigma max(0, ||p_sigma|| / chi - 1 - 1 / sqrt(n))
    if n == 0:
        return 0.0
    return 6 * k.c_sigma * max(0.0, cma.euclidean_norm(new_p_sigma) / k.chi - 1 - 1 / math.sqrt(n))


# Update, Step 6


# Update, Step 8


def path_is_short(new_p_sigma: Vector, k: MixConstants) -> float:
    # h = 1 if ||p_sigma|| < 2 chi, else 0
    return 1.0 if cma.euclidean_norm(new_p_sigma) < 2 * k.chi else 0.0


def update_p_c(p_c: Vector, h: float, r_y: Vector, mu_w: float, k: MixConstants) -> Vector:
    # p_c <- (1 - c_c) p_c + h sqrt(c_c (2 - c_c) mu_w) sum_i r_i y_i
    factor = math.sqrt(k.c_c * (2 - k.c_c) * mu_w)
    new_p_c = []
    for j in range(len(p_c)):
        new_p_c.append((1 - k.c_c) * p_c[j] + h * factor * r_y[j])
    return new_p_c


def by_direction(w_plus: Vector, w_minus: Vector, z: Matrix, n: Sequence[float], k: MixConstants) -> Vector:
    # w°_i = n_i / ||z_i||^2 (w+_i - a_minus w-_i); n_i = n without conditions
    result = []
    for i in range(len(w_plus)):
        length = cma.euclidean_norm(z[i])
        if length == 0:  # a candidate at the mean: y_i = 0, so its weight does not matter
            result.append(0.0)
        else:
            result.append(n[i] / length**2 * (w_plus[i] - k.a_minus * w_minus[i]))
    return result


def kept_of_C(w: Vector, z: Matrix, e: Matrix, h: float, n: Sequence[float], k: MixConstants) -> Vector:
    # 1 - h c_1 e_j - eta_C sum_i e_ij w°_i ||z_i||^2 / n_i, where e_j is the mean of e_ij
    result = []
    for j in range(len(e[0])):
        kept = 1 - h * k.c_1 * share_having(e, j)
        for i in range(len(w)):
            kept -= k.eta_C * e[i][j] * w[i] * cma.euclidean_norm(z[i]) ** 2 / max(n[i], 1)
        result.append(kept)
    return result


def share_having(e: Matrix, j: int) -> float:
    # e_j, the share of the candidates that have j
    return sum(row[j] for row in e) / len(e)


def update_C(
    C: Matrix,
    live: list[int],
    new_p_c: Vector,
    h: float,
    w: Vector,
    y: Matrix,
    z: Matrix,
    e: Matrix,
    n: Sequence[float],
    k: MixConstants,
) -> Matrix:
    # C_ab <- (kept_a kept_b)^(1/2) C_ab + h c_1 (e_a e_b)^(1/2) p_c,a p_c,b + eta_C sum_i w°_i y_ia y_ib for the live
    # coordinates; the rows and columns of all others are those of the identity. Where all exist everywhere, it is
    # C <- (1 - h c_1) C + h c_1 p_c p_c^T + eta_C sum_i w°_i (y_i y_i^T - ||z_i||^2 / n C)
    N = len(C)
    kept = kept_of_C(w, z, e, h, n, k)
    new_C = []
    for a in range(N):
        row = []
        for b in range(N):
            if live[a] == 1 and live[b] == 1:
                both = math.sqrt(share_having(e, a) * share_having(e, b))
                entry = math.sqrt(kept[a] * kept[b]) * C[a][b] + h * k.c_1 * both * new_p_c[a] * new_p_c[b]
                for i in range(len(w)):
                    entry += k.eta_C * w[i] * y[i][a] * y[i][b]
                row.append(entry)
            else:
                row.append(1.0 if a == b else 0.0)
        new_C.append(row)
    return new_C


# Update, Step 9


def frozen_deviation(values: Vector, alpha: float) -> float:
    # S_j / 2 / -ndtri(alpha)
    return mean_distance(values) / 2 / -float(norm.ppf(alpha))


def wider_than_cell(m_j: float, s_j: float, values: Vector, alpha: float) -> bool:
    # in the first and the last cell: s_j > (the way from the centre to the threshold) / -ndtri(alpha), up to rounding
    centre = values[margin.cell(m_j, values) - 1]
    way = abs(centre - margin.edge_threshold(m_j, values))
    return s_j > way * (1 + 1e-9) / -float(norm.ppf(alpha))


def held_margin(m_j: float, s_j: float, values: Vector, alpha: float, p_max: float) -> tuple[float, float, float]:
    # the new m_j, s_j and p_j
    first = margin.cell(m_j, values) == 1
    last = margin.cell(m_j, values) == len(values)

    # The tails: the probabilities of leaving the cell of m_j on either side, 0 if there is no cell
    q_low = 0.0 if first else float(norm.cdf((margin.l_low(m_j, values) - m_j) / s_j))
    q_up = 0.0 if last else float(norm.sf((margin.l_up(m_j, values) - m_j) / s_j))
    alpha_tail = alpha if first or last else alpha / 2
    e_low = max(0.0, q_low - alpha_tail)
    e_up = max(0.0, q_up - alpha_tail)

    # The cap: kappa = min(1, (p_max - alpha) / (e_low + e_up)), the part of what they have beyond that may stay
    kappa = 1.0
    if e_low + e_up > 0:
        kappa = min(1.0, (p_max - alpha) / (e_low + e_up))

    # p_j = alpha + kappa (e_low + e_up); but 1 in the first and the last cell while the Gaussian is wider than the cell
    p_j = alpha + kappa * (e_low + e_up)
    if (first or last) and wider_than_cell(m_j, s_j, values, alpha):
        p_j = 1.0

    # no tail has less than its margin, and kappa = 1: m_j and s_j stay
    short = (not first and q_low < alpha_tail) or (not last and q_up < alpha_tail)
    if not short and kappa == 1:
        return m_j, s_j, p_j

    # one tail: s_j stays, m_j is as far from the only threshold as the tail alpha_tail + kappa e asks for
    if first:
        return margin.l_up(m_j, values) - s_j * float(norm.isf(alpha_tail + kappa * e_up)), s_j, p_j
    if last:
        return margin.l_low(m_j, values) + s_j * float(norm.isf(alpha_tail + kappa * e_low)), s_j, p_j

    # two tails: l_low = m - s x_low and l_up = m + s x_up
    x_low = float(norm.isf(alpha_tail + kappa * e_low))
    x_up = float(norm.isf(alpha_tail + kappa * e_up))
    new_s = (margin.l_up(m_j, values) - margin.l_low(m_j, values)) / (x_low + x_up)
    return margin.l_low(m_j, values) + new_s * x_low, new_s, p_j


# Update, Step 10


def apart(C: Matrix, j: int, diagonal: float) -> Matrix:
    # row and column j: those of the identity, or 0
    new_C = []
    for a in range(len(C)):
        row = []
        for b in range(len(C)):
            if a == j or b == j:
                row.append(diagonal if a == b else 0.0)
            else:
                row.append(C[a][b])
        new_C.append(row)
    return new_C


# Update, Step 11


def known_frequencies(w_plus: Vector, choices: list[int], e_c: Vector, theta: Vector) -> Vector:
    # f_ck = sum_i e_ic w+_i [v_ij = k] + (1 - sum_i e_ic w+_i) theta_ck
    w = []
    for i in range(len(w_plus)):
        w.append(e_c[i] * w_plus[i])
    f = frequencies(w, choices, len(theta))
    result = []
    for k in range(len(theta)):
        result.append(f[k] + (1 - sum(w)) * theta[k])
    return result


def frequencies(w_plus: Vector, choices: list[int], K: int) -> Vector:
    # f_ck = sum_i w+_i [v_ij = k]
    f = []
    for k in range(K):
        total = 0.0
        for i in range(len(w_plus)):
            if choices[i] == k:
                total += w_plus[i]
        f.append(total)
    return f


def gradient_with_older(r_c: Vector, choices: list[int], K: int) -> Vector:
    # sum_i r_ic [v_ij = k]; without conditions r_i = w+_i - 1/lambda
    return frequencies(r_c, choices, K)


def indicator(choice: int, K: int) -> Vector:
    # [k = m_j]
    result = []
    for k in range(K):
        result.append(1.0 if k == choice else 0.0)
    return result


def most_probable(theta: Vector) -> int:
    # of equal ones the first
    best = 0
    for k in range(len(theta)):
        if theta[k] > theta[best]:
            best = k
    return best


def unsure(theta: Vector, alpha: float) -> bool:
    # 1 - max theta_c > 2 alpha, up to rounding
    return 1 - max(theta) > 2 * alpha * (1 + 1e-9)


# Update, Step 13


def scaled_A(A: Vector, C: Matrix) -> Vector:
    # A_j <- A_j sqrt(C_jj)
    return [A[j] * math.sqrt(C[j][j]) for j in range(len(A))]


def scaled_p_c(p_c: Vector, C: Matrix) -> Vector:
    # p_c,j <- p_c,j / sqrt(C_jj)
    return [p_c[j] / math.sqrt(C[j][j]) for j in range(len(p_c))]


def scaled_C(C: Matrix) -> Matrix:
    # C_jk <- C_jk / sqrt(C_jj C_kk)
    new_C = []
    for j in range(len(C)):
        new_C.append([C[j][k] / math.sqrt(C[j][j] * C[k][k]) for k in range(len(C))])
    return new_C


# Around a run


def slack(coordinates: Coordinates, outcomes: list[Outcome]) -> float:
    # standard deviations outside the bounds that cost nothing: two, but none in a space without floats, nor where a
    # candidate violates a constraint; a failed one, whose violation is infinite, does not
    if None not in coordinates:
        return 0.0
    for violation, _ in outcomes:
        if 0 < violation < math.inf:
            return 0.0
    return 2.0


class Mix:
    """One run: `sample`, `encode`, `update`, and again.

    Parameters
    ----------
    coordinates : one entry per coordinate; None for a continuous one, the two or more sorted values of a discrete one,
        a Category for a category. Categories come last
    mean : the initial mean of the numeric coordinates
    popsize : lambda; that of all N coordinates if None
    theta : the probabilities of each category at the start; 1 / K_c each if None
    eigen_interval : C is scaled and decomposed after e, 2e, ... generations
    limits : the bounds of each numeric coordinate, by which candidates outside lose ranks; None if they do not
    conditions : which coordinates exist only where another one is in certain cells, its parents' conditions included

    A latent point is the numeric latents, then the choice of each category, 0, ..., K - 1, as a float. All vectors
    have one entry per coordinate; those of categories are 0 in the paths and in l, and the identity in C and A.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        mean: Vector,
        popsize: int | None = None,
        *,
        theta: Matrix | None = None,
        eigen_interval: int = 1,
        limits: Sequence[Bounds] | None = None,
        conditions: Sequence[Condition] = (),
    ) -> None:
        self.conditions = conditions
        self.coordinates: list[Vector | Category | None] = []
        self.K: list[int] = []
        for values in coordinates:
            if isinstance(values, Category):
                if values.K < 2:
                    raise ValueError(f"a category needs at least 2 choices, got {values.K}")
                self.K.append(values.K)
                self.coordinates.append(values)
            elif len(self.K) > 0:
                raise ValueError("categories must come last")
            else:
                self.coordinates.append(None if values is None else [float(z) for z in values])
        N = len(self.coordinates)
        n_cat = len(self.K)
        self.numeric = N - n_cat  # how many
        if self.numeric != len(mean):
            raise ValueError(f"{self.numeric} numeric coordinates but a mean of {len(mean)}")
        if popsize is None:
            popsize = default_popsize(N)
        self.constants = constants(N, popsize)  # of Table 1: lambda, w, mu_w and mu_w^- are what is used
        self.alpha = default_alpha(self.coordinates)
        self.eigen_interval = eigen_interval
        self.limits: list[Bounds] | None = None
        if limits is not None:
            self.limits = list(limits) + [bounds.NOWHERE] * n_cat

        # of categories; m_j is the most probable choice
        self.theta: Matrix = [[1 / K] * K for K in self.K] if theta is None else [list(row) for row in theta]
        if [len(row) for row in self.theta] != self.K:
            raise ValueError(f"categories of {self.K} choices but {[len(row) for row in self.theta]} probabilities")
        self.is_open: list[int] = [1] * n_cat
        self.q = [catmargin.smallest_theta(self.alpha, K) for K in self.K]
        self.n_theta = sum(K - 1 for K in self.K)
        self.s: Vector = [0.0] * sum(self.K)
        self.gamma = 0.0
        self.Delta = 1.0
        self.delta = 1.0

        self.state = cma.initial_state(list(mean) + [float(most_probable(row)) for row in self.theta])
        self.decompose()
        self.live: list[int] = [1] * self.numeric + [0] * n_cat
        self.p: Vector = [1.0] * N  # with which each integer last left its cell
        self.g_idle = 0
        self.level = False
        self.best: Outcome | None = None  # the best outcome so far
        self.best_point: Vector = list(self.state.m)  # its v_i
        self.z: Matrix = []
        self.y: Matrix = []
        self.points: Matrix = []  # v_i
        self.e: Matrix = []  # e_ij = 1 if candidate i has coordinate j, else 0

    @property
    def m(self) -> Vector:
        return self.state.m

    @property
    def sigma(self) -> float:
        return self.state.sigma

    @property
    def C(self) -> Matrix:
        return self.state.C

    @property
    def A(self) -> Vector:
        return self.state.A

    @property
    def p_sigma(self) -> Vector:
        return self.state.p_sigma

    @property
    def p_c(self) -> Vector:
        return self.state.p_c

    @property
    def generation(self) -> int:
        return self.state.t

    @property
    def frozen(self) -> list[int]:
        """The frozen j, ascending: integers that are not live, then the columns of categories that are not open."""
        integers = [j for j in range(self.numeric) if self.live[j] == 0]
        return integers + [self.numeric + c for c in range(len(self.K)) if self.is_open[c] == 0]

    def sample(self, noise: Noise) -> Matrix:
        """The lambda latent points; t_ij is noise.geometric, s_ij is noise.sign."""
        s = self.state
        live = self.live
        popsize = self.constants.popsize
        frozen = self.frozen
        n_F = len(frozen)
        if (n_F > 0 or len(self.K) > 0) and (noise.geometric is None or noise.sign is None):
            raise ValueError("frozen coordinates and categories need geometric and sign in the noise")

        # in a space without floats, from the second generation on, xi_1j = 0
        first_at_mean = None not in self.coordinates and s.t > 0
        xi = [list(row) for row in noise.normal]
        if first_at_mean:
            xi[0] = [0.0] * len(live)

        # 1. z_i = l * xi_i,  y_i = C^(1/2) z_i,  v_i = m + sigma A y_i
        self.z = []
        self.y = []
        self.points = []
        for i in range(popsize):
            self.z.append(masked(live, xi[i]))
            self.y.append(sample_y(s.root, live, xi[i]))
            self.points.append(margin.sample_v(s.m, s.sigma, s.A, self.y[i]))
            # of an open category the first k with s_ij <= theta_1 + ... + theta_k, unless the candidate is at m_j
            for c in range(len(self.K)):
                j = self.numeric + c
                if self.is_open[c] == 1 and not (first_at_mean and i == 0):
                    self.points[i][j] = float(catmargin.choice(self.theta[c], noise.sign[i][j]))

        # 2. and 3. the frozen coordinates
        if n_F > 0:
            active = sum(live) + sum(self.is_open)
            q = mutation_rate(active, n_F, self.alpha, popsize, self.g_idle, self.level)
            for i in range(popsize):
                k_i = mutation_count(xi[i], frozen, q)
                there = [j for j in frozen if exists_in(self.points[i], j, self.coordinates, self.conditions)]
                for j in mutated(noise.sign[i], there, k_i, n_F):
                    values = self.coordinates[j]
                    if isinstance(values, Category):
                        self.points[i][j] = float(another_choice(int(s.m[j]), values.K, noise.geometric[i][j]))
                    else:
                        new_c = jump(margin.cell(s.m[j], values), len(values), noise.geometric[i][j])
                        self.points[i][j] = values[new_c - 1]

        # what a candidate lacks is at the mean, and z_i = C^(-1/2) y_i
        self.e = []
        for i in range(popsize):
            having = [exists_in(self.points[i], j, self.coordinates, self.conditions) for j in range(len(live))]
            self.e.append([float(there) for there in having])
            if len(self.conditions) > 0:
                for j in range(len(live)):
                    if not having[j]:
                        self.y[i][j] = 0.0
                        self.points[i][j] = s.m[j]
                self.z[i] = sample_y(s.inverse_root, live, self.y[i])
        return [list(point) for point in self.points]

    def encode(self, points: Matrix) -> Matrix:
        """Encoding_f of the numbers of each point, and its choices."""
        n = self.numeric
        return [margin.encode(point[:n], self.coordinates[:n]) + point[n:] for point in points]

    def update(self, values: Vector, violations: Vector | None = None, older: list[bool] | None = None) -> None:
        """One generation, from the lambda objective values (and violations) in the order of `sample`.

        `older` marks the candidates that an older state drew: in the paths they count half.
        """
        s = self.state
        live = list(self.live)
        v = self.points
        N = len(live)
        popsize = self.constants.popsize
        mu_w = self.constants.mu_w
        e = self.e
        live_floats = [j for j in range(N) if self.coordinates[j] is None]
        without_floats = None if None in self.coordinates else self.numeric
        live_discrete = [j for j in range(N) if live[j] == 1 and self.coordinates[j] is not None]
        # without conditions the live coordinates, floats and integers; else those of the candidate with most of them
        n = most_existing(e, live_floats + live_discrete)
        n_x = most_existing(e, live_floats)
        n_z = most_existing(e, live_discrete)
        n_of = [sum(row[j] for j in live_floats + live_discrete) for row in e]
        k = mix_constants(n, popsize, mu_w, self.constants.mu_w_minus, without_floats)
        old_m = list(s.m)
        new_m = list(s.m)
        frozen = self.frozen

        # w+_i and w-_i: ranks by violation, then value, and by the distance outside the bounds; equal candidates share
        outcomes = catmargin.ranked_outcomes(values, violations)
        ranked = outcomes
        if self.limits is not None:
            deviations = bounds.standard_deviations(s.sigma, s.A, s.C)
            ranked = bounds.penalised(outcomes, v, self.limits, deviations, slack(self.coordinates, outcomes))
        w_plus = catmargin.weights_of(ranked, positive_weights(self.constants.w))
        w_minus = catmargin.weights_of(ranked, negative_weights(self.constants.w))

        # 1. Adoption, by a candidate that is strictly better than all before; of equal ones the first
        adopted = []
        first = cma.ranking(outcomes)[0]
        was_level = self.level  # when the candidates were drawn
        self.level = is_level(outcomes[first], self.best)
        if self.best is None or outcomes[first] < self.best:
            self.best = outcomes[first]
            self.best_point = list(v[first])
            for j in frozen:
                if left_cell(v[first][j], old_m[j], self.coordinates[j]):
                    adopted.append(j)
                    new_m[j] = v[first][j]

        # 2. Success, of live and open and frozen coordinates
        success = succeeded(w_plus, v, old_m, self.coordinates)
        active = sum(live) + sum(self.is_open)
        for j in range(N):
            # all candidates are mutated, or so many that some must be among the better half
            if active == 0 or (was_level and j in frozen):
                success[j] = False
        if True in success or len(adopted) > 0:
            self.g_idle = 0
        else:
            self.g_idle = self.g_idle + 1
        moved = []  # the frozen integers that succeeded, but for the adopted
        for j in frozen:
            if success[j] and j not in adopted and j < self.numeric:
                moved.append(j)
                v_j = [v[i][j] for i in range(popsize)]
                new_m[j] = moved_frozen_mean(old_m[j], w_plus, v_j, self.coordinates[j])

        # 3. Centring; the mean alone learns from the moves: y_i and z_i stay as they were drawn
        z = self.z
        y = self.y
        moves: dict[int, Vector] = {}
        for j in live_discrete:
            v_j = [v[i][j] for i in range(popsize)]
            having = [w_plus[i] * e[i][j] for i in range(popsize)]
            moves[j] = centring_moves(having, v_j, old_m[j], self.coordinates[j])

        # 4. Path: r_ij = w+_i - 1/lambda where all candidates have j; r[j] are the weights of coordinate j
        r = []
        r_path = []
        for j in range(N):
            r.append(centred_among_existing(w_plus, e, j))
            r_path.append(halved(r[j], older))
        new_p_sigma = update_p_sigma(s.p_sigma, sums_by_coordinate(r_path, z), mu_w, k)

        # 5. Growth
        g = growth(new_p_sigma, n, k)

        # 6. The mean: m_j <- m_j + sum_i r_i (sigma A_j y_ij + the move of Step 3)
        for j in live_floats + live_discrete:
            new_m[j] = old_m[j]
            for i in range(popsize):
                move = moves[j][i] if j in moves else 0.0
                new_m[j] += r[j][i] * (s.sigma * s.A[j] * y[i][j] + move)

        # 7. Step size, by group: d_j = sum_i r_i z_ij^2
        d_of = []
        for j in range(N):
            total = 0.0
            for i in range(popsize):
                total += r[j][i] * z[i][j] ** 2
            d_of.append(total)
        d_x = sum(d_of[j] for j in live_floats) / max(n_x, 1)
        d_z = sum(d_of[j] for j in live_discrete) / max(n_z, 1)
        d = sum(d_of[j] for j in live_floats + live_discrete) / max(n, 1)
        # eta_sigma and g times max(share of the feasible ones, 1/4)^2 where only some are feasible; failed ones,
        # whose violation is infinite, are not counted
        eta_sigma = k.eta_sigma
        evaluated = [outcome for outcome in outcomes if outcome[0] < math.inf]
        feasible = [outcome for outcome in evaluated if outcome[0] == 0]
        if 0 < len(feasible) < len(evaluated):
            share = max(len(feasible) / len(evaluated), 1 / 4) ** 2
            eta_sigma *= share
            g *= share
        new_A = list(s.A)
        if n_x > 0 and n_z > 0:
            # rho = eta_sigma / 2 min(1, min(n_x, n_z) / 5)
            rho = eta_sigma / 2 * min(1.0, min(n_x, n_z) / 5)
            # A_j <- A_j exp(e_j clip(rho (d_z - d_x), -1, 1))
            for j in live_discrete:
                new_A[j] = s.A[j] * math.exp(share_having(e, j) * clip(rho * (d_z - d_x), -1.0, 1.0))
            # log sigma changes by clip(eta_sigma / 2 d + g + rho (d_x - d), -1, 1)
            change = clip(eta_sigma / 2 * d + g + rho * (d_x - d), -1.0, 1.0)
        else:
            change = clip(eta_sigma / 2 * d + g, -1.0, 1.0)
        new_sigma = s.sigma * math.exp(change)
        # sigma A_j changes by exp(e_j change)
        for j in live_floats + live_discrete:
            new_A[j] = new_A[j] * math.exp((share_having(e, j) - 1) * change)

        # 8. Covariance
        h = path_is_short(new_p_sigma, k)
        new_p_c = update_p_c(s.p_c, h, sums_by_coordinate(r_path, y), mu_w, k)
        new_C = update_C(s.C, live, new_p_c, h, by_direction(w_plus, w_minus, z, n_of, k), y, z, e, n_of, k)

        # 9. Margin: m, sigma, C and A are those of Steps 2 to 8
        deviation: dict[int, float] = {}  # s_j
        for j in live_discrete:
            deviation[j] = new_sigma * new_A[j] * math.sqrt(new_C[j][j])
        for j in moved:
            deviation[j] = frozen_deviation(self.coordinates[j], self.alpha)
        for j in live_discrete + moved:
            before = deviation[j]
            p_max = 1.0 if success[j] else self.p[j]
            new_m[j], deviation[j], self.p[j] = held_margin(new_m[j], before, self.coordinates[j], self.alpha, p_max)
            if live[j] == 1:
                new_A[j] = new_A[j] * deviation[j] / before

        # 10. Freezing, and its reverse; A_j of a coordinate that stays frozen is left as it was
        new_live = list(live)
        for j in live_discrete:
            if self.p[j] <= 2 * self.alpha * (1 + 1e-9):
                new_live[j] = 0
        for j in moved:
            if self.p[j] > 2 * self.alpha * (1 + 1e-9):
                new_live[j] = 1
                new_A[j] = deviation[j] / new_sigma
        for j in range(N):
            if new_live[j] != live[j]:
                # the identity in C; 0 (frozen) or the identity (live again) in its roots
                diagonal = float(new_live[j])
                new_C = apart(new_C, j, 1.0)
                s.root, s.inverse_root = apart(s.root, j, diagonal), apart(s.inverse_root, j, diagonal)
                new_p_sigma[j] = 0.0
                new_p_c[j] = 0.0

        # 11. Categories
        if len(self.K) > 0:
            modes = self.update_categories(w_plus, new_m[self.numeric :], adopted, success, older is not None)
            new_m = new_m[: self.numeric] + modes

        # 12. Settled: m is the best point so far, each integer at the centre of its cell
        if sum(new_live) + sum(self.is_open) == 0:
            new_m = self.encode([self.best_point])[0]

        s.m, s.sigma, s.C, s.A = new_m, new_sigma, new_C, new_A
        s.p_sigma, s.p_c = new_p_sigma, new_p_c
        self.live = new_live
        s.t += 1
        if s.t % self.eigen_interval == 0:
            self.decompose()

    def decompose(self) -> None:
        """Step 13: the diagonal of C goes into A, then the roots of C are taken."""
        s = self.state
        s.A, s.p_c, s.C = scaled_A(s.A, s.C), scaled_p_c(s.p_c, s.C), scaled_C(s.C)
        s.root, s.inverse_root = cma.matrix_roots(s.C)

    def update_categories(
        self, w_plus: Vector, modes: Vector, adopted: list[int], success: list[bool], some_older: bool
    ) -> Vector:
        """Step 11; `modes` are the m_j after the adoption. Returns the new ones.

        `adopted` and `success` go by the columns j of all coordinates; `some_older` if an older state drew some.
        """
        f = []
        for c in range(len(self.K)):
            choices = [int(point[self.numeric + c]) for point in self.points]
            e_c = [row[self.numeric + c] for row in self.e]
            f.append(known_frequencies(w_plus, choices, e_c, self.theta[c]))

        # Step 10 of CatCMA with Margin, a gradient of 0 for those that are not open
        g = []
        r: Vector = []
        for c in range(len(self.K)):
            choices = [int(point[self.numeric + c]) for point in self.points]
            g_c = [0.0] * self.K[c]
            if self.is_open[c] == 1:
                having = [w_plus[i] * self.e[i][self.numeric + c] for i in range(len(w_plus))]
                g_c = catmargin.natural_gradient(having, choices, self.theta[c])
                if some_older:
                    r_c = centred_among_existing(w_plus, self.e, self.numeric + c)
                    g_c = gradient_with_older(r_c, choices, self.K[c])
            g.append(g_c)
            r = r + catmargin.fisher_root(g_c, self.theta[c], catmargin.equal(self.K[c]))
        stepped = []
        for c in range(len(self.K)):
            stepped.append(catmargin.update_theta(self.theta[c], g[c], self.delta, catmargin.length(r)))

        # Step 11 there, where one is open
        if 1 in self.is_open:
            self.delta = 1 / self.Delta
            beta = catmargin.accumulation_rate(self.delta, self.n_theta)
            self.s = catmargin.update_s(self.s, r, beta)
            self.gamma = catmargin.update_gamma(self.gamma, beta)
            self.Delta = catmargin.update_Delta(self.Delta, self.s, self.gamma, beta)

        # theta, with the margin of Step 12 there; the mode; who is open
        new_theta = []
        new_modes = []
        new_open = []
        for c in range(len(self.K)):
            j = self.numeric + c
            theta = self.theta[c]
            mode = modes[c]
            opens = 0
            if self.is_open[c] == 1 or (success[j] and j not in adopted):
                theta = catmargin.category_margin(stepped[c] if self.is_open[c] == 1 else f[c], self.q[c])
                mode = float(most_probable(theta))
                opens = 1 if unsure(theta, self.alpha) else 0
            elif j in adopted:
                theta = catmargin.category_margin(indicator(int(mode), self.K[c]), self.q[c])
            new_theta.append(theta)
            new_modes.append(mode)
            new_open.append(opens)
        self.theta = new_theta
        self.is_open = new_open
        return new_modes
