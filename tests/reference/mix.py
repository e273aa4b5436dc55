"""docs/mix.md: CMA-ES with Margin whose settled integers are frozen and mutated explicitly.

`live` is l, the list of 0s and 1s that marks the live coordinates, n their number, n_F that of the frozen ones;
`coordinates`, `values`, cells (k = 1, ..., K_j) and thresholds are those of `margin`. The centre of a cell is
its value z_{j,k}. What is indexed by i is in the order of the sample, not of the ranks.
"""

import math
from dataclasses import dataclass

from scipy.stats import norm

from . import cma, margin
from .cma import Coordinates, Matrix, Vector
from .constants import constants, expected_norm
from .run import Noise

Outcome = tuple[float, float]  # the violation, then the value: the smaller is the better


# Preliminaries


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
    # alpha = 1 - 0.73^(1 / D); without discrete coordinates nothing asks for it
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


def left_cell(v_j: float, m_j: float, values: Vector | None) -> bool:
    # is the cell of v_ij another than that of m_j?
    if values is None:
        return False
    return margin.cell(v_j, values) != margin.cell(m_j, values)


# Constants


@dataclass(frozen=True)
class MixConstants:
    """The constants of n, in the order of the document."""

    c_sigma: float
    chi: float
    eta_sigma: float
    a: float


@dataclass(frozen=True)
class CovarianceConstants:
    """The constants of n_C, in the order of the document."""

    c_1: float
    c_c: float
    c_mu: float
    eta_C: float


def solve_h(n: int) -> float:
    # the h > 0 of (1 + h^2) exp(h^2 / 2) = 0.24 (10 + max(n, 2)), by bisection: the left side grows with h
    right = 0.24 * (10 + max(n, 2))
    low = 0.0
    high = 1.0
    while (1 + high**2) * math.exp(high**2 / 2) < right:
        high = 2 * high
    for _ in range(200):
        h = (low + high) / 2
        if (1 + h**2) * math.exp(h**2 / 2) < right:
            low = h
        else:
            high = h
    return (low + high) / 2


def mix_constants(n: int, popsize: int, mu_w: float) -> MixConstants:
    # for n = 0 those of n = 1
    if n == 0:
        n = 1

    # c_sigma = min(1, (mu_w + 2) / (n + mu_w + 5) / (2 ln(n + 1)))
    c_sigma = min(1.0, (mu_w + 2) / (n + mu_w + 5) / (2 * math.log(n + 1)))

    # chi = sqrt(n) (1 - 1/(4n) + 1/(21n^2))
    chi = expected_norm(n)

    # eta_sigma = tanh((0.024 lambda + 0.7 n + 20) / (n + 12))
    eta_sigma = math.tanh((0.024 * popsize + 0.7 * n + 20) / (n + 12))

    # a = min(1, sqrt(lambda / n)) h
    a = min(1.0, math.sqrt(popsize / n)) * solve_h(n)

    return MixConstants(c_sigma=c_sigma, chi=chi, eta_sigma=eta_sigma, a=a)


def covariance_constants(n: int, floats: int, popsize: int, mu_w: float) -> CovarianceConstants:
    # n is n_C here. f = 1.5 if more than the floats are among the n_C, else 2
    f = 1.5 if n > floats else 2.0

    # for n_C = 0 those of n_C = 1
    if n == 0:
        n = 1

    # c_1 = 2 / ((n_C + 1.3)^2 + mu_w)
    c_1 = 2 / ((n + 1.3) ** 2 + mu_w)

    # c_c = (4 + mu_w/n_C) / (n_C + 4 + 2 mu_w/n_C)
    c_c = (4 + mu_w / n) / (n + 4 + 2 * mu_w / n)

    # c_mu = 2 (mu_w - 2 + 1/mu_w) / ((n_C + 2)^2 + mu_w)
    c_mu = 2 * (mu_w - 2 + 1 / mu_w) / ((n + 2) ** 2 + mu_w)

    # eta_C = min(1, max(168 n_C / (47 n_C^2 + 6400) tanh(0.02 lambda), f (c_1 + c_mu)))
    eta_C = min(1.0, max(168 * n / (47 * n**2 + 6400) * math.tanh(0.02 * popsize), f * (c_1 + c_mu)))

    return CovarianceConstants(c_1=c_1, c_c=c_c, c_mu=c_mu, eta_C=eta_C)


# Sampling, Step 1


def sample_y(root: Matrix, live: list[int], xi: Vector) -> Vector:
    # y_i = l * (C^(1/2) (l * xi_i))
    return masked(live, cma.sample_y(root, masked(live, xi)))


# Sampling, Step 2


def mutation_rate(n: int, n_F: int, alpha: float, popsize: int, g_idle: int, level: bool) -> float:
    # q0 = 1 - (1 - alpha)^n_F
    q0 = 1 - (1 - alpha) ** n_F
    # T = 4 n_F / (lambda q0)
    T = 4 * n_F / (popsize * q0)
    # q = max(q0 T / (T + g_idle), min(q0, 0.05)), at least 1/2 if level; q = 1 if nothing is live
    if n == 0:
        return 1.0
    q = max(q0 * T / (T + g_idle), min(q0, 0.05))
    if level:
        q = max(q, 0.5)
    return q


def is_level(first: Outcome, best: Outcome | None) -> bool:
    # as good as the best so far, up to 1e-13 of it
    if best is None:
        return False
    return first[0] == best[0] and abs(first[1] - best[1]) <= 1e-13 * abs(best[1])


def mutation_count(xi: Vector, frozen: list[int], q: float) -> int:
    # u_i = Phi(sum over the frozen j of xi_ij / sqrt(n_F))
    n_F = len(frozen)
    total = 0.0
    for j in frozen:
        total += xi[j]
    u = float(norm.cdf(total / math.sqrt(n_F)))
    # k_i = min(floor(q / u_i), n_F)
    return min(math.floor(q / u), n_F)


# Sampling, Step 3


def mutated(s: Vector, frozen: list[int], k: int) -> list[int]:
    # the frozen j with the smallest s_ij (of equal ones the first),
    # and all other frozen ones with s_ij < (k_i - 1) / n_F
    if k == 0:
        return []
    smallest = frozen[0]
    for j in frozen:
        if s[j] < s[smallest]:
            smallest = j
    result = []
    for j in frozen:
        if j == smallest or s[j] < (k - 1) / len(frozen):
            result.append(j)
    return result


def jump(c: int, count: int, t: float) -> int:
    # from cell c of 1, ..., count: up if t_ij > 1/2, else down
    up = t >= 0.5
    room = count - c if up else c - 1
    # no cell on that side: the neighbour on the other
    if room == 0:
        return c - 1 if up else c + 1
    # floor(|2 t_ij - 1|^(-1/2)) cells, or as many as there are
    distance = room
    if t != 0.5:
        distance = min(room, math.floor(abs(2 * t - 1) ** (-1 / 2)))
    return c + distance if up else c - distance


# Update, Step 2


def is_bit(values: Vector | None) -> bool:
    # of two values
    return values is not None and len(values) == 2


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

    # b_j + part * opposite = 0, with a part of at most 1
    part = 0.0 if opposite == 0 else min(1.0, -b_j / opposite)

    moves = []
    for i in range(len(v_j)):
        if left_cell(v_j[i], m_j, values):
            moves.append(way[i])
        elif way[i] * b_j < 0:
            moves.append(part * way[i])
        else:
            moves.append(0.0)
    return moves


# Update, Step 4


def weighted_sum(w: Vector, vectors: Matrix) -> Vector:
    # sum_i w_i y_i
    result = []
    for j in range(len(vectors[0])):
        total = 0.0
        for i in range(len(w)):
            total += w[i] * vectors[i][j]
        result.append(total)
    return result


def update_p_sigma(p_sigma: Vector, live: list[int], r_z: Vector, mu_w: float, k: MixConstants) -> Vector:
    # p_sigma <- l * ((1 - c_sigma) p_sigma + sqrt(c_sigma (2 - c_sigma) mu_w) sum_i r_i z_i)
    factor = math.sqrt(k.c_sigma * (2 - k.c_sigma) * mu_w)
    new_p_sigma = []
    for j in range(len(p_sigma)):
        new_p_sigma.append((1 - k.c_sigma) * p_sigma[j] + factor * r_z[j])
    return masked(live, new_p_sigma)


# Update, Step 5


def moving_weights(w_plus: Vector, z: Matrix, k: MixConstants) -> Vector:
    # w_i proportional to w+_i exp(a min(||z_i||, 2 chi)) with sum 1, then minus 1/lambda
    raw = []
    for i in range(len(w_plus)):
        raw.append(w_plus[i] * math.exp(k.a * min(cma.euclidean_norm(z[i]), 2 * k.chi)))
    total = 0.0
    for value in raw:
        total += value
    w = []
    for value in raw:
        w.append(value / total - 1 / len(w_plus))
    return w


# Update, Step 6


def mean_over(d: Vector, indices: list[int]) -> float:
    # the mean of d_j over the given j; 0 over none
    if len(indices) == 0:
        return 0.0
    total = 0.0
    for j in indices:
        total += d[j]
    return total / len(indices)


# Update, Step 8


def update_p_c(
    p_c: Vector,
    live: list[int],
    short: bool,
    w_y: Vector,
    mu_w: float,
    k: CovarianceConstants,
) -> Vector:
    # p_c <- l * ((1 - c_c) p_c + [||p_sigma|| < 2 chi] sqrt(c_c (2 - c_c) mu_w) sum_i w_i y_i)
    h = 1.0 if short else 0.0
    factor = math.sqrt(k.c_c * (2 - k.c_c) * mu_w)
    new_p_c = []
    for j in range(len(p_c)):
        new_p_c.append((1 - k.c_c) * p_c[j] + h * factor * w_y[j])
    return masked(live, new_p_c)


def update_C(
    C: Matrix,
    live: list[int],
    new_p_c: Vector,
    w: Vector,
    y: Matrix,
    x: Matrix,
    d: float,
    k: CovarianceConstants,
) -> Matrix:
    # K = eta_C / 2 (sum_i w_i y_i x_i^T - d I) on the live coordinates, x_i = l * (C^(-1/2) z_i)
    N = len(C)
    I_plus_K = []
    for a in range(N):
        row = []
        for b in range(N):
            entry = 1.0 if a == b else 0.0
            if live[a] == 1 and live[b] == 1:
                total = 0.0
                for i in range(len(w)):
                    total += w[i] * (y[i][a] * x[i][b])
                if a == b:
                    total -= d
                entry += k.eta_C / 2 * total
            row.append(entry)
        I_plus_K.append(row)
    # C <- (1 - c_1) (I + K) C (I + K)^T + c_1 p_c p_c^T on the live coordinates; the identity in the rows and
    # columns of frozen ones
    left = matrix_product(I_plus_K, C)
    both = matrix_product(left, transposed(I_plus_K))
    new_C = []
    for a in range(N):
        row = []
        for b in range(N):
            if live[a] == 1 and live[b] == 1:
                row.append((1 - k.c_1) * both[a][b] + k.c_1 * new_p_c[a] * new_p_c[b])
            else:
                row.append(1.0 if a == b else 0.0)
        new_C.append(row)
    return new_C


def matrix_product(P: Matrix, Q: Matrix) -> Matrix:
    result = []
    for a in range(len(P)):
        result.append([sum(P[a][c] * Q[c][b] for c in range(len(Q))) for b in range(len(Q[0]))])
    return result


def transposed(P: Matrix) -> Matrix:
    return [[P[b][a] for b in range(len(P))] for a in range(len(P[0]))]


# Update, Step 9


def frozen_deviation(values: Vector, alpha: float) -> float:
    # S_j / 2 / -ndtri(alpha)
    return mean_distance(values) / 2 / -float(norm.ppf(alpha))


def held_margin(
    m_j: float, s_j: float, values: Vector, alpha: float, c: float
) -> tuple[float, float, float]:
    # m_j, s_j and p_j, from the probabilities of leaving the cell of m_j on either side, 0 where there is no cell
    first = margin.cell(m_j, values) == 1
    last = margin.cell(m_j, values) == len(values)
    q_low = 0.0 if first else float(norm.cdf((margin.l_low(m_j, values) - m_j) / s_j))
    q_up = 0.0 if last else float(norm.sf((margin.l_up(m_j, values) - m_j) / s_j))

    # what each tail has beyond a, and the part f of it that may stay
    a = alpha if first or last else alpha / 2
    e_low = max(0.0, q_low - a)
    e_up = max(0.0, q_up - a)
    f = 1.0
    if e_low + e_up > 0:
        f = min(1.0, (c - alpha) / (e_low + e_up))
    p_j = alpha + f * (e_low + e_up)

    # an outermost cell: s_j stays, m_j is as far from the only threshold as the tail a + f e asks for
    if first:
        return margin.l_up(m_j, values) - s_j * float(norm.isf(a + f * e_up)), s_j, p_j
    if last:
        return margin.l_low(m_j, values) + s_j * float(norm.isf(a + f * e_low)), s_j, p_j

    # between: l_low = m - s x_low and l_up = m + s x_up
    x_low = float(norm.isf(a + f * e_low))
    x_up = float(norm.isf(a + f * e_up))
    new_s = (margin.l_up(m_j, values) - margin.l_low(m_j, values)) / (x_low + x_up)
    return margin.l_low(m_j, values) + new_s * x_low, new_s, p_j


# Update, Step 10


def identity_at(C: Matrix, j: int) -> Matrix:
    # row and column j those of the identity
    new_C = []
    for a in range(len(C)):
        row = []
        for b in range(len(C)):
            if a == j or b == j:
                row.append(1.0 if a == b else 0.0)
            else:
                row.append(C[a][b])
        new_C.append(row)
    return new_C


class Mix:
    """One run: `sample`, `encode`, `update`, and again.

    Parameters
    ----------
    coordinates : an entry a coordinate; None for a continuous one, else its two or more sorted values
    mean : the initial mean
    popsize : lambda; Table 1's if None
    eigen_interval : the roots of C are taken anew in generations t = 0, e, 2e, ...
    """

    def __init__(
        self,
        coordinates: Coordinates,
        mean: Vector,
        popsize: int | None = None,
        *,
        eigen_interval: int = 1,
    ) -> None:
        if len(coordinates) != len(mean):
            raise ValueError(f"{len(coordinates)} coordinates but a mean of {len(mean)}")
        self.coordinates: list[Vector | None] = []
        for values in coordinates:
            self.coordinates.append(None if values is None else [float(z) for z in values])
        self.constants = constants(len(mean), popsize)  # of Table 1: lambda, w and mu_w are what is used
        self.alpha = default_alpha(self.coordinates)
        self.eigen_interval = eigen_interval
        self.state = cma.initial_state(mean)
        self.live: list[int] = [1] * len(mean)
        self.p: Vector = [1.0] * len(mean)  # with which each coordinate last left its cell
        self.g_long = 0
        self.g_idle = 0
        self.level = False
        self.best: Outcome | None = None  # the best outcome so far
        self.z: Matrix = []
        self.y: Matrix = []
        self.points: Matrix = []  # v_i

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
        """The frozen j, ascending."""
        return [j for j in range(len(self.live)) if self.live[j] == 0]

    def sample(self, noise: Noise) -> Matrix:
        """The lambda latent points; t_ij is noise.geometric, s_ij is noise.sign."""
        s = self.state
        live = self.live
        popsize = self.constants.popsize
        if s.t % self.eigen_interval == 0:
            s.root, s.inverse_root = cma.matrix_roots(s.C)

        # in a space without floats xi_1j = 0
        xi = [list(row) for row in noise.normal]
        if None not in self.coordinates:
            xi[0] = [0.0] * len(live)

        # 1. z_i = l * xi_i,  y_i = l * (C^(1/2) z_i),  v_i = m + sigma A y_i
        self.z = []
        self.y = []
        self.points = []
        for i in range(popsize):
            self.z.append(masked(live, xi[i]))
            self.y.append(sample_y(s.root, live, xi[i]))
            self.points.append(margin.sample_v(s.m, s.sigma, s.A, self.y[i]))

        # 2. and 3. the frozen coordinates
        frozen = self.frozen
        n_F = len(frozen)
        if n_F > 0:
            if noise.geometric is None or noise.sign is None:
                raise ValueError("frozen coordinates need geometric and sign in the noise")
            n = len(live) - n_F
            q = mutation_rate(n, n_F, self.alpha, popsize, self.g_idle, self.level)
            for i in range(popsize):
                k_i = mutation_count(xi[i], frozen, q)
                for j in mutated(noise.sign[i], frozen, k_i):
                    values = self.coordinates[j]
                    c = margin.cell(s.m[j], values)
                    new_c = jump(c, len(values), noise.geometric[i][j])
                    self.points[i][j] = values[new_c - 1]
        return [list(point) for point in self.points]

    def encode(self, points: Matrix) -> Matrix:
        """Encoding_f of each point."""
        return [margin.encode(point, self.coordinates) for point in points]

    def update(self, values: Vector, violations: Vector | None = None) -> None:
        """One generation, from the lambda objective values (and violations) in the order of `sample`."""
        s = self.state
        live = list(self.live)
        v = self.points
        N = len(live)
        popsize = self.constants.popsize
        mu_w = self.constants.mu_w
        n = sum(live)
        k = mix_constants(n, popsize, mu_w)
        n_C = sum(live[j] for j in range(N) if not is_bit(self.coordinates[j]))
        floats = sum(values is None for values in self.coordinates)
        k_C = covariance_constants(n_C, floats, popsize, mu_w)
        old_m = list(s.m)
        new_m = list(s.m)
        live_floats = [j for j in range(N) if self.coordinates[j] is None]
        live_discrete = [j for j in range(N) if live[j] == 1 and self.coordinates[j] is not None]
        frozen = self.frozen

        # w+_i: ranks by violation, then value; equal candidates share
        outcomes: list[Outcome] = []
        for i in range(popsize):
            violation = 0.0 if violations is None else float(violations[i])
            outcomes.append((violation, float(values[i])))
        order = cma.ranking(outcomes)
        shared = cma.shared_weights([outcomes[i] for i in order], positive_weights(self.constants.w))
        w_plus = [0.0] * popsize
        for rank in range(popsize):
            w_plus[order[rank]] = shared[rank]

        # 1. Adoption, by a candidate that is strictly better than all before; of equal ones the first
        adopted = []
        first = order[0]
        was_level = self.level  # when the candidates were drawn
        self.level = is_level(outcomes[first], self.best)
        if self.best is None or outcomes[first] < self.best:
            self.best = outcomes[first]
            for j in frozen:
                if left_cell(v[first][j], old_m[j], self.coordinates[j]):
                    adopted.append(j)
                    new_m[j] = v[first][j]

        # 2. Success, of live and frozen coordinates
        success = succeeded(w_plus, v, old_m, self.coordinates)
        for j in range(N):
            # all candidates are mutated, or so many that some must be among the better half
            if n == 0 or (was_level and live[j] == 0):
                success[j] = False
        if True in success or len(adopted) > 0:
            self.g_idle = 0
        else:
            self.g_idle = self.g_idle + 1
        moved = []  # the frozen ones that succeeded, but for the adopted
        for j in frozen:
            if success[j] and j not in adopted:
                moved.append(j)
                v_j = [v[i][j] for i in range(popsize)]
                new_m[j] = moved_frozen_mean(old_m[j], w_plus, v_j, self.coordinates[j])

        # 3. Centring; the moves, divided by sigma A_j, are added to y_i, and l * (C^(-1/2) of them) to z_i
        moved_y = [[0.0] * N for _ in range(popsize)]
        for j in live_discrete:
            v_j = [v[i][j] for i in range(popsize)]
            moves = centring_moves(w_plus, v_j, old_m[j], self.coordinates[j])
            for i in range(popsize):
                moved_y[i][j] = moves[i] / (s.sigma * s.A[j])
        y = []
        z = []
        for i in range(popsize):
            moved_z = masked(live, cma.times(s.inverse_root, moved_y[i]))
            y.append([self.y[i][j] + moved_y[i][j] for j in range(N)])
            z.append([self.z[i][j] + moved_z[j] for j in range(N)])

        # 4. Path: r_i = w+_i - 1/lambda
        r = []
        for i in range(popsize):
            r.append(w_plus[i] - 1 / popsize)
        new_p_sigma = update_p_sigma(s.p_sigma, live, weighted_sum(r, z), mu_w, k)
        length = cma.euclidean_norm(new_p_sigma)
        self.g_long = self.g_long + 1 if length >= k.chi else 0

        # 5. Weights
        if self.g_long >= 5:
            w = moving_weights(w_plus, z, k)
            eta_sigma = 1.0
        else:
            w = r
            eta_sigma = k.eta_sigma

        # 6. d_j = sum_i w_i z_ij^2, and the mean: m_j <- m_j + sigma A_j sum_i w_i y_ij
        d_of = []
        for j in range(N):
            total = 0.0
            for i in range(popsize):
                total += w[i] * z[i][j] ** 2
            d_of.append(total)
        d_x = mean_over(d_of, live_floats)
        d_z = mean_over(d_of, live_discrete)
        d = mean_over(d_of, live_floats + live_discrete)
        w_y = weighted_sum(w, y)
        for j in live_floats + live_discrete:
            new_m[j] = old_m[j] + s.sigma * s.A[j] * w_y[j]

        # 7. Step size, by group; eta_sigma times max(s, 1/4)^2 where a share 0 < s < 1 violates nothing
        s_feasible = sum(outcome[0] == 0 for outcome in outcomes) / popsize
        if 0 < s_feasible < 1:
            eta_sigma *= max(s_feasible, 1 / 4) ** 2
        new_A = list(s.A)
        n_x = len(live_floats)
        n_z = len(live_discrete)
        if n_x > 0 and n_z > 0:
            # rho = eta_sigma / 2 min(1, min(n_x, n_z) / 5)
            rho = eta_sigma / 2 * min(1.0, min(n_x, n_z) / 5)
            # A_j <- A_j exp(clip(rho (d_z - d_x), -1, 1))
            for j in live_discrete:
                new_A[j] = s.A[j] * math.exp(clip(rho * (d_z - d_x), -1.0, 1.0))
            # log sigma changes by clip(eta_sigma / 2 d + rho (d_x - d), -1, 1)
            change = clip(eta_sigma / 2 * d + rho * (d_x - d), -1.0, 1.0)
        else:
            change = clip(eta_sigma / 2 * d, -1.0, 1.0)
        new_sigma = s.sigma * math.exp(change)

        # 8. Covariance
        new_p_c = update_p_c(s.p_c, live, length < 2 * k.chi, w_y, mu_w, k_C)
        x = []
        for i in range(popsize):
            x.append(masked(live, cma.times(s.inverse_root, z[i])))
        new_C = update_C(s.C, live, new_p_c, w, y, x, d, k_C)
        for a in range(N):
            for b in range(N):
                # the rows and columns of bits are those of the identity
                if is_bit(self.coordinates[a]) or is_bit(self.coordinates[b]):
                    new_C[a][b] = 1.0 if a == b else 0.0

        # 9. Margin: m, sigma, C and A are those of Steps 2 to 8
        deviation: dict[int, float] = {}  # s_j
        for j in live_discrete:
            deviation[j] = new_sigma * new_A[j] * math.sqrt(new_C[j][j])
        for j in moved:
            deviation[j] = frozen_deviation(self.coordinates[j], self.alpha)
        for j in live_discrete + moved:
            before = deviation[j]
            c = 1.0 if success[j] else self.p[j]
            new_m[j], deviation[j], self.p[j] = held_margin(new_m[j], before, self.coordinates[j], self.alpha, c)
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
                new_C = identity_at(new_C, j)
                s.root, s.inverse_root = identity_at(s.root, j), identity_at(s.inverse_root, j)
                new_p_sigma[j] = 0.0
                new_p_c[j] = 0.0

        s.m, s.sigma, s.C, s.A = new_m, new_sigma, new_C, new_A
        s.p_sigma, s.p_c = new_p_sigma, new_p_c
        self.live = new_live
        s.t += 1
