"""docs/catmargin.md: CatCMA with Margin, a Gaussian for numbers and one categorical distribution per category.

Cells (k = 1, ..., K_j) and thresholds of a discrete coordinate are those of `margin`; the centre of a cell is its
value. What is indexed by i is in the order of the sample, not of the ranks. Choices are counted from 0 here, from 1
in the document. The numeric coordinates come first, the categories last.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from . import bounds, cma, margin
from .bounds import Bounds, Outcome
from .cma import Coordinates, Matrix, State, Vector
from .constants import Constants, constants, default_popsize, negative_weight_scale, raw_weight
from .run import Noise

E = 1e-8  # e
LARGEST_SIGMA = 1e32
SMALLEST_EIGENVALUE = 1e-30
SNR_THRESHOLD = 1.5
LARGEST_BETA = 1.9
SMALLEST_LENGTH = 1e-12


@dataclass(frozen=True)
class Category:
    """One of K choices, 0, ..., K - 1, without an order."""

    K: int


# Preliminaries


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def length(vector: Vector) -> float:
    return cma.euclidean_norm(vector)


def x(p: float) -> float:
    # x(p) = -ndtri(p) = sqrt(chi^2_ppf(1 - 2p))
    return float(norm.isf(p))


def centre(v_j: float, values: Vector) -> float:
    # the value of the cell of v_ij
    return values[margin.cell(v_j, values) - 1]


def left_cell(v_j: float, m_j: float, values: Vector) -> bool:
    # is the cell of v_ij another than that of m_j?
    return margin.cell(v_j, values) != margin.cell(m_j, values)


# Constants


def numeric_constants(n: int, popsize: int) -> Constants:
    # Table 1 of n and lambda, except for c_mu, and so for the negative weights. For n = 0 there is no Gaussian:
    # lambda, mu, mu_w and the positive weights, which do not depend on n, are all that counts.
    k = constants(max(n, 1), popsize)

    # c_mu = min(1 - c_1 - e, 2 (mu_w - 2 + 1/mu_w) / ((n + 2)^2 + mu_w))
    c_mu = min(1 - k.c_1 - E, k.c_mu)

    # w_i = w'_i / sum_{k > mu} |w'_k| min(...) for w'_i < 0; 0 if n = 0
    scale = 0.0
    if n > 0:
        scale = negative_weight_scale(n, k.mu_w, k.mu_w_minus, k.c_1, c_mu)
    negative_total = 0.0
    for i in range(k.mu, popsize):
        negative_total += abs(raw_weight(i + 1, popsize))
    w = []
    for i in range(popsize):
        raw = raw_weight(i + 1, popsize)
        w.append(k.w[i] if raw >= 0 else raw / negative_total * scale)
    return replace(k, n=n, c_mu=c_mu, w=w)


def default_alpha(n_int: int, n_cat: int) -> float:
    # alpha = 1 - 0.73^(1 / (n_int + n_cat)); without either nothing asks for it
    if n_int + n_cat == 0:
        return 0.0
    return 1 - 0.73 ** (1 / (n_int + n_cat))


def smallest_theta(alpha: float, K: int) -> float:
    # q_c = alpha / (K_c - 1)
    return alpha / (K - 1)


# Sampling, Step 2


def choice(theta: Vector, u: float) -> int:
    # the first k with u <= theta_1 + ... + theta_k; the last if rounding leaves none
    total = 0.0
    for k in range(len(theta)):
        total += theta[k]
        if u <= total:
            return k
    return len(theta) - 1


# Update, Step 1


def ranked_outcomes(values: Vector, violations: Vector | None) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for i in range(len(values)):
        violation = 0.0 if violations is None else float(violations[i])
        outcomes.append((violation, float(values[i])))
    return outcomes


def weights_of(outcomes: list[Outcome], w: Vector) -> Vector:
    # the weight of each candidate: that of its rank, or the mean of those of the ranks that equal ones occupy
    order = cma.ranking(outcomes)
    shared = cma.shared_weights([outcomes[i] for i in order], w)
    result = [0.0] * len(w)
    for rank in range(len(w)):
        result[order[rank]] = shared[rank]
    return result


def positive_weights(w: Vector) -> Vector:
    # w+_i = max(w_i, 0): their sum is 1
    result = []
    for value in w:
        result.append(max(value, 0.0))
    return result


# Update, Step 2


def succeeded(w_plus: Vector, v_j: Vector, m_j: float, values: Vector) -> bool:
    # S_j: a candidate of the better half has left the cell of m_j
    return any(w_plus[i] > 0 and left_cell(v_j[i], m_j, values) for i in range(len(v_j)))


def centred(w_plus: Vector, v_j: Vector, m_j: float, values: Vector) -> Vector:
    # v_ij after the moves; b_j is the sum of those to the centre of another cell
    new_v_j = list(v_j)
    b_j = 0.0
    for i in range(len(v_j)):
        if w_plus[i] > 0 and left_cell(v_j[i], m_j, values):
            new_v_j[i] = centre(v_j[i], values)
            b_j += new_v_j[i] - v_j[i]

    # the others of the better half with d_i b_j < 0, d_i = centre - v_ij
    opposite = []
    total = 0.0
    for i in range(len(v_j)):
        d_i = centre(v_j[i], values) - v_j[i]
        if w_plus[i] > 0 and not left_cell(v_j[i], m_j, values) and d_i * b_j < 0:
            opposite.append(i)
            total += d_i

    # a = min(1, -b_j / sum d_i), and v_ij + a d_i
    for i in opposite:
        a = min(1.0, -b_j / total)
        new_v_j[i] = v_j[i] + a * (centre(v_j[i], values) - v_j[i])
    return new_v_j


# Update, Step 3


def standardised(v: Vector, m: Vector, sigma: float, A: Vector) -> Vector:
    # y_i = A^-1 (v_i - m) / sigma
    y = []
    for j in range(len(v)):
        y.append((v[j] - m[j]) / A[j] / sigma)
    return y


# Update, Step 4


def update_m(m: Vector, sigma: float, y_w: Vector) -> Vector:
    # m <- m + sigma y_w
    new_m = []
    for j in range(len(m)):
        new_m.append(m[j] + sigma * y_w[j])
    return new_m


# Update, Step 6


def update_sigma(sigma: float, new_p_sigma: Vector, k: Constants) -> float:
    # sigma <- min(1e32, sigma exp(c_sigma / d_sigma (||p_sigma|| / chi - 1)))
    return min(LARGEST_SIGMA, cma.update_sigma(sigma, length(new_p_sigma), k.n, k))


# Update, Step 7


def h_sigma(new_p_sigma: Vector, t: int, k: Constants) -> float:
    # h = 1{||p_sigma|| < sqrt(1 - (1 - c_sigma)^(2 (t + 2))) (1.4 + 2 / (n + 1)) chi}
    # 2 (t + 2), where that of CMA-ES has 2 (t + 1)
    return cma.h_sigma(new_p_sigma, t + 1, k)


def w_circle(w: Vector, inverse_root: Matrix, y: Matrix) -> Vector:
    # w°_i = w_i if w_i >= 0, else w_i n / (||C^(-1/2) y_i||^2 + e)
    n = len(inverse_root)
    result = []
    for i in range(len(w)):
        if w[i] >= 0:
            result.append(w[i])
        else:
            result.append(w[i] * n / (length(cma.times(inverse_root, y[i])) ** 2 + E))
    return result


# Update, Step 8


def repaired(C: Matrix) -> tuple[Matrix, Vector]:
    # C = B diag(l) B^T with every l_k < 0 put to e; also these l
    n = len(C)
    symmetric = []
    for a in range(n):
        symmetric.append([(C[a][b] + C[b][a]) / 2 for b in range(n)])
    eigenvalues, B = np.linalg.eigh(np.array(symmetric))
    positive = []
    for value in eigenvalues:
        positive.append(E if value < 0 else float(value))
    new_C = []
    for a in range(n):
        row = []
        for b in range(n):
            total = 0.0
            for k in range(n):
                total += float(B[a, k]) * positive[k] * float(B[b, k])
            row.append(total)
        new_C.append(row)
    return new_C, positive


def floored_sigma(sigma: float, eigenvalues: Vector) -> float:
    # sigma <- max(sigma, sqrt(1e-30 / min_k sqrt(l_k)))
    return max(sigma, math.sqrt(SMALLEST_EIGENVALUE / math.sqrt(min(eigenvalues))))


# Update, Step 9: in the first or the last cell


def edge_margin(
    m_j: float, sigma: float, A_j: float, C_jj: float, values: Vector, alpha: float, success: bool, P_j: float
) -> tuple[float, float, float]:
    # the new m_j, A_j and P_j
    first = margin.cell(m_j, values) == 1
    ell = margin.edge_threshold(m_j, values)
    z = centre(m_j, values)
    D_j = sigma * A_j * math.sqrt(C_jj)

    # p = max(alpha, min(Phi((l - m_j) / D_j), Phi((m_j - l) / D_j)))
    p = max(alpha, min(float(norm.cdf((ell - m_j) / D_j)), float(norm.cdf((m_j - ell) / D_j))))
    # if not S_j: p <- min(p, P_j)
    if not success:
        p = min(p, P_j)
    # p <- clip(p, e, 0.5 - e)
    p = clip(p, E, 0.5 - E)

    # A_j <- max(A_j, |z - l| / (sigma sqrt(C_jj) x(alpha)))
    new_A_j = max(A_j, abs(z - ell) / (sigma * math.sqrt(C_jj) * x(alpha)))

    # m_j <- l - sigma A_j sqrt(C_jj) x(p) in the first cell, l + ... in the last one
    distance = sigma * new_A_j * math.sqrt(C_jj) * x(p)
    new_m_j = ell - distance if first else ell + distance
    return new_m_j, new_A_j, p


# Update, Step 9: between


def inner_margin(
    m_j: float, sigma: float, A_j: float, C_jj: float, values: Vector, alpha: float, success: bool, P_j: float
) -> tuple[float, float, float]:
    # the new m_j, A_j and P_j
    l_low = margin.l_low(m_j, values)
    l_up = margin.l_up(m_j, values)
    D_j = sigma * A_j * math.sqrt(C_jj)

    # p_low = Phi((l_low - m_j) / D_j),  p_up = Phi((m_j - l_up) / D_j),  p_mid = 1 - p_low - p_up
    p_low = float(norm.cdf((l_low - m_j) / D_j))
    p_up = float(norm.cdf((m_j - l_up) / D_j))
    p_mid = 1 - p_low - p_up

    # p_low <- max(alpha/2, p_low),  p_up <- max(alpha/2, p_up)
    p_low = max(alpha / 2, p_low)
    p_up = max(alpha / 2, p_up)

    # f = alpha/2 if S_j, else 1 - P_j;  if not S_j: p_mid <- max(f, p_mid)
    f = alpha / 2
    if not success:
        f = 1 - P_j
        p_mid = max(f, p_mid)

    # rho = (1 - p_low - p_up - p_mid) / (p_low + p_up + p_mid - alpha - f);  0 where the divisor is 0
    divisor = p_low + p_up + p_mid - alpha - f
    rho = 0.0 if divisor == 0 else (1 - p_low - p_up - p_mid) / divisor

    # p_low <- clip(p_low + rho (p_low - alpha/2), e, 0.5 - e),  p_up likewise
    p_low = clip(p_low + rho * (p_low - alpha / 2), E, 0.5 - E)
    p_up = clip(p_up + rho * (p_up - alpha / 2), E, 0.5 - E)

    # A_j <- (l_up - l_low) / (sigma sqrt(C_jj) (x(p_low) + x(p_up)))
    new_A_j = (l_up - l_low) / (sigma * math.sqrt(C_jj) * (x(p_low) + x(p_up)))

    # m_j <- (l_low x(p_up) + l_up x(p_low)) / (x(p_low) + x(p_up))
    new_m_j = (l_low * x(p_up) + l_up * x(p_low)) / (x(p_low) + x(p_up))

    # P_j <- p_low + p_up
    return new_m_j, new_A_j, p_low + p_up


# Update, Step 10


def natural_gradient(w_plus: Vector, choices: list[int], theta: Vector) -> Vector:
    # g_ck = sum_i w+_i ([c_i = k] - theta_ck)
    g = []
    for k in range(len(theta)):
        total = 0.0
        for i in range(len(w_plus)):
            chosen = 1.0 if choices[i] == k else 0.0
            total += w_plus[i] * (chosen - theta[k])
        g.append(total)
    return g


def equal(K: int) -> Vector:
    # e_ck = 1 / sqrt(K)
    return [1 / math.sqrt(K)] * K


def last(K: int) -> Vector:
    # the package's e_c: 1 for the last choice, 0 for the others
    return [0.0] * (K - 1) + [1.0]


def fisher_root(g: Vector, theta: Vector, e: Vector) -> Vector:
    # t_ck = g_ck / sqrt(theta_ck)
    # a = sum_k e_ck t_ck / (1 + sum_k e_ck sqrt(theta_ck))
    # r_ck = t_ck - a (sqrt(theta_ck) + e_ck)
    t = []
    for k in range(len(theta)):
        t.append(g[k] / math.sqrt(theta[k]))
    across = 0.0
    along = 0.0
    for k in range(len(theta)):
        across += e[k] * t[k]
        along += e[k] * math.sqrt(theta[k])
    a = across / (1 + along)
    r = []
    for k in range(len(theta)):
        r.append(t[k] - a * (math.sqrt(theta[k]) + e[k]))
    return r


def update_theta(theta: Vector, g: Vector, delta: float, r_length: float) -> Vector:
    # theta_ck <- theta_ck + delta / (||r|| + e) g_ck; it stays where ||r|| < 1e-12
    if r_length < SMALLEST_LENGTH:
        return list(theta)
    new_theta = []
    for k in range(len(theta)):
        new_theta.append(theta[k] + delta / (r_length + E) * g[k])
    return new_theta


# Update, Step 11


def accumulation_rate(delta: float, n_theta: int) -> float:
    # beta = min(delta / sqrt(n_theta), 1.9)
    return min(delta / math.sqrt(n_theta), LARGEST_BETA)


def update_s(s: Vector, r: Vector, beta: float) -> Vector:
    # s <- (1 - beta) s + sqrt(beta (2 - beta)) r / ||r||;  0 in the place of r / ||r|| where ||r|| < 1e-12
    r_length = length(r)
    new_s = []
    for a in range(len(s)):
        direction = 0.0 if r_length < SMALLEST_LENGTH else r[a] / r_length
        new_s.append((1 - beta) * s[a] + math.sqrt(beta * (2 - beta)) * direction)
    return new_s


def update_gamma(gamma: float, beta: float) -> float:
    # gamma <- (1 - beta)^2 gamma + beta (2 - beta)
    return (1 - beta) ** 2 * gamma + beta * (2 - beta)


def update_Delta(Delta: float, new_s: Vector, new_gamma: float, beta: float) -> float:
    # Delta <- Delta exp(beta (gamma - ||s||^2 / 1.5))
    total = 0.0
    for value in new_s:
        total += value * value
    return Delta * math.exp(beta * (new_gamma - total / SNR_THRESHOLD))


# Update, Step 12


def category_margin(theta: Vector, q: float) -> Vector:
    # theta_ck <- max(theta_ck, q_c), and T, their sum
    held = []
    T = 0.0
    for value in theta:
        held.append(max(value, q))
        T += max(value, q)
    # theta_ck <- theta_ck - (T - 1) (theta_ck - q_c) / (T - q_c K)
    new_theta = []
    total = 0.0
    for value in held:
        new_theta.append(value - (T - 1) * (value - q) / (T - q * len(theta)))
        total += new_theta[-1]
    # divided by their sum
    return [value / total for value in new_theta]


class CatMargin:
    """One run: `sample`, `encode`, `update`, and again.

    Parameters
    ----------
    coordinates : one entry per coordinate; None for a continuous one, the two or more sorted values of a discrete one,
        a Category for a category. Categories come last
    mean : the initial mean of the numeric coordinates
    popsize : lambda; that of all N coordinates if None
    eigen_interval : the roots of C are taken anew in generations t = 0, e, 2e, ...
    pole : e_c of K choices, `equal` or, for a comparison with the package, `last`
    limits : the bounds of each numeric coordinate, by which candidates outside lose ranks; None if they do not

    A latent point is the numeric latents, then the choice of each category, 0, ..., K - 1, as a float.
    """

    def __init__(
        self,
        coordinates: Sequence[Vector | Category | None],
        mean: Vector,
        popsize: int | None = None,
        *,
        eigen_interval: int = 1,
        pole: Callable[[int], Vector] = equal,
        limits: Sequence[Bounds] | None = None,
    ) -> None:
        numeric: list[Vector | None] = []
        self.K: list[int] = []
        for values in coordinates:
            if isinstance(values, Category):
                if values.K < 2:
                    raise ValueError(f"a category needs at least 2 choices, got {values.K}")
                self.K.append(values.K)
            elif len(self.K) > 0:
                raise ValueError("categories must come last")
            else:
                numeric.append(None if values is None else [float(z) for z in values])
        if len(numeric) != len(mean):
            raise ValueError(f"{len(numeric)} numeric coordinates but a mean of {len(mean)}")
        self.coordinates: Coordinates = numeric  # the numeric ones
        self.n = len(numeric)
        self.discrete = [j for j in range(self.n) if numeric[j] is not None]
        if popsize is None:
            popsize = default_popsize(len(coordinates))
        self.constants = numeric_constants(self.n, popsize)
        self.alpha = default_alpha(len(self.discrete), len(self.K))
        self.q = [smallest_theta(self.alpha, K) for K in self.K]
        self.eigen_interval = eigen_interval
        self.limits = None if limits is None else list(limits)
        self.state: State = cma.initial_state(mean)
        self.P: Vector = [0.5 - E] * self.n  # with which each discrete coordinate last left its cell
        self.theta: Matrix = [[1 / K] * K for K in self.K]
        self.n_theta = sum(K - 1 for K in self.K)
        self.pole = pole
        self.s: Vector = [0.0] * sum(self.K)
        self.gamma = 0.0
        self.Delta = 1.0
        self.delta = 1.0
        self.points: Matrix = []  # v_i and the choices

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

    def sample(self, noise: Noise) -> Matrix:
        """The lambda latent points; u_ic is noise.sign, in the column of the category."""
        s = self.state
        if self.n > 0 and s.t % self.eigen_interval == 0:
            s.root, s.inverse_root = cma.matrix_roots(s.C)
        if len(self.K) > 0 and noise.sign is None:
            raise ValueError("categories need sign in the noise")

        self.points = []
        for i in range(self.constants.popsize):
            # 1. y_i = C^(1/2) xi_i,  v_i = m + sigma A y_i
            xi = noise.normal[i][: self.n]
            point = margin.sample_v(s.m, s.sigma, s.A, cma.sample_y(s.root, xi))
            # 2. the choices
            for c in range(len(self.K)):
                point.append(float(choice(self.theta[c], noise.sign[i][self.n + c])))
            self.points.append(point)
        return [list(point) for point in self.points]

    def encode(self, points: Matrix) -> Matrix:
        """Encoding_f of the numbers of each point, and its choices."""
        return [margin.encode(point[: self.n], self.coordinates) + point[self.n :] for point in points]

    def update(self, values: Vector, violations: Vector | None = None) -> None:
        """One generation, from the lambda objective values (and violations) in the order of `sample`."""
        # 1. Ranks, and the distance outside the bounds
        s = self.state
        outcomes = ranked_outcomes(values, violations)
        if self.limits is not None:
            deviations = bounds.standard_deviations(s.sigma, s.A, s.C)
            outcomes = bounds.penalised(outcomes, self.points, self.limits, deviations)
        w = weights_of(outcomes, self.constants.w)
        w_plus = weights_of(outcomes, positive_weights(self.constants.w))

        if self.n > 0:
            self.update_numbers(w, w_plus)
        if len(self.K) > 0:
            self.update_categories(w_plus)

        # 13. t <- t + 1
        s.t += 1

    def update_numbers(self, w: Vector, w_plus: Vector) -> None:
        """Steps 2 to 9."""
        s = self.state
        k = self.constants
        popsize = k.popsize

        # 2. Success and centring
        v = [point[: self.n] for point in self.points]
        success = [False] * self.n
        for j in self.discrete:
            v_j = [v[i][j] for i in range(popsize)]
            success[j] = succeeded(w_plus, v_j, s.m[j], self.coordinates[j])
            new_v_j = centred(w_plus, v_j, s.m[j], self.coordinates[j])
            for i in range(popsize):
                v[i][j] = new_v_j[i]

        # 3. y_i, and y_w = sum_i w+_i y_i
        y = []
        for i in range(popsize):
            y.append(standardised(v[i], s.m, s.sigma, s.A))
        y_w = cma.weighted_y(w_plus, y)

        # 4. to 6. the mean, the path and the step size
        new_m = update_m(s.m, s.sigma, y_w)
        new_p_sigma = cma.update_p_sigma(s.p_sigma, s.inverse_root, y_w, k)
        new_sigma = update_sigma(s.sigma, new_p_sigma, k)

        # 7. Covariance
        h = h_sigma(new_p_sigma, s.t, k)
        new_p_c = cma.update_p_c(s.p_c, h, y_w, k)
        new_C = cma.update_C(s.C, new_p_c, h, w_circle(w, s.inverse_root, y), y, k)

        # 8. Floor
        if (s.t + 1) % self.eigen_interval == 0:
            new_C, eigenvalues = repaired(new_C)
            new_sigma = floored_sigma(new_sigma, eigenvalues)

        # 9. Margin
        new_A = list(s.A)
        for j in self.discrete:
            values = self.coordinates[j]
            edge = margin.cell(new_m[j], values) == 1 or margin.cell(new_m[j], values) == len(values)
            correct = edge_margin if edge else inner_margin
            new_m[j], new_A[j], self.P[j] = correct(
                new_m[j], new_sigma, s.A[j], new_C[j][j], values, self.alpha, success[j], self.P[j]
            )

        s.m, s.sigma, s.C, s.A = new_m, new_sigma, new_C, new_A
        s.p_sigma, s.p_c = new_p_sigma, new_p_c

    def update_categories(self, w_plus: Vector) -> None:
        """Steps 10 to 12."""
        # 10. Natural gradient
        g = []
        r: Vector = []
        for c in range(len(self.K)):
            choices = [int(point[self.n + c]) for point in self.points]
            g.append(natural_gradient(w_plus, choices, self.theta[c]))
            r = r + fisher_root(g[c], self.theta[c], self.pole(self.K[c]))
        new_theta = []
        for c in range(len(self.K)):
            new_theta.append(update_theta(self.theta[c], g[c], self.delta, length(r)))

        # 11. Rate
        self.delta = 1 / self.Delta
        beta = accumulation_rate(self.delta, self.n_theta)
        self.s = update_s(self.s, r, beta)
        self.gamma = update_gamma(self.gamma, beta)
        self.Delta = update_Delta(self.Delta, self.s, self.gamma, beta)

        # 12. Margin of the categories
        self.theta = []
        for c in range(len(self.K)):
            self.theta.append(category_margin(new_theta[c], self.q[c]))
