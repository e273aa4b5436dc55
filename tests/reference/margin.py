"""Section 4: the encoding, the transformed sample and the margin; Algorithm 1 of the appendix.

`values` are the discrete values z_{j,1} < ... < z_{j,K_j} of one coordinate, `A_j` and `C_jj` the
j-th diagonal elements of A and C.
"""

import math

from scipy.stats import chi2, norm

from .cma import Coordinates, Matrix, State, Vector

SMALLEST_P = 1e-300
LARGEST_P = 0.5 - 1e-16


# Section 4.1: Definition of Encoding_f and Threshold


def thresholds(values: Vector) -> Vector:
    # l_{j,k|k+1} = (z_{j,k} + z_{j,k+1}) / 2,   k = 1, ..., K_j - 1
    result = []
    for k in range(len(values) - 1):
        result.append((values[k] + values[k + 1]) / 2)
    return result


def cell(x_j: float, values: Vector) -> int:
    # the k = 1, ..., K_j with l_{j,k-1|k} < x_j <= l_{j,k|k+1}
    k = 1
    for ell in thresholds(values):
        if ell < x_j:
            k += 1
    return k


def encode(x: Vector, coordinates: Coordinates) -> Vector:
    # Encoding_f([x]_j) = z_{j,k} if l_{j,k-1|k} < [x]_j <= l_{j,k|k+1}; [x]_j if j is continuous
    result = []
    for j in range(len(x)):
        values = coordinates[j]
        if values is None:
            result.append(x[j])
        else:
            result.append(values[cell(x[j], values) - 1])
    return result


# Section 4.2, Step 2


def sample_v(m: Vector, sigma: float, A: Vector, y: Vector) -> Vector:
    # v_i = m + sigma A y_i
    v = []
    for j in range(len(m)):
        v.append(m[j] + sigma * A[j] * y[j])
    return v


# Section 4.3: Margin for Binary Variables; Section 4.4 for the two outermost cells


def root_chi2_ppf(p: float) -> float:
    # sqrt(chi^2_ppf(1 - 2p)), one degree of freedom
    return math.sqrt(float(chi2.ppf(1 - 2 * p, df=1)))


def confidence_interval(p: float, sigma: float, A_j: float, C_jj: float) -> float:
    # CI_j(1 - 2p) = sqrt(chi^2_ppf(1 - 2p) sigma^2 <A C A^T>_j),   <A C A^T>_j = A_j C_jj A_j
    return root_chi2_ppf(p) * math.sqrt(sigma**2 * (A_j * C_jj * A_j))


def edge_threshold(m_j: float, values: Vector) -> float:
    # l([m]_j), the threshold closest to the mean: that of the outermost cell which holds it
    if cell(m_j, values) == 1:
        return thresholds(values)[0]
    return thresholds(values)[-1]


def correct_at_edge(m_j: float, sigma: float, A_j: float, C_jj: float, values: Vector, alpha: float) -> float:
    # [m]_j <- l([m]_j) + sign([m]_j - l([m]_j)) min{|[m]_j - l([m]_j)|, CI_j(1 - 2 alpha)}
    # A mean on the threshold belongs to the lower cell: sign(0) = -1, and min{} = 0.
    ell = edge_threshold(m_j, values)
    sign = 1.0 if m_j - ell > 0 else -1.0
    return ell + sign * min(abs(m_j - ell), confidence_interval(alpha, sigma, A_j, C_jj))


# Section 4.4: Margin for Integer Variables


def l_low(m_j: float, values: Vector) -> float:
    # l_low([m]_j) = max{l : l < [m]_j}
    return max(ell for ell in thresholds(values) if ell < m_j)


def l_up(m_j: float, values: Vector) -> float:
    # l_up([m]_j) = min{l : [m]_j <= l}
    return min(ell for ell in thresholds(values) if m_j <= ell)


def p_low_and_up(m_j: float, sigma: float, A_j: float, C_jj: float, values: Vector) -> tuple[float, float]:
    # p_low = Pr([v]_j <= l_low([m]_j)),   p_up = Pr(l_up([m]_j) < [v]_j)
    deviation = math.sqrt(sigma**2 * (A_j * C_jj * A_j))
    p_low = float(norm.cdf((l_low(m_j, values) - m_j) / deviation))
    p_up = float(norm.sf((l_up(m_j, values) - m_j) / deviation))
    return p_low, p_up


def restricted(p_low: float, p_up: float, alpha: float) -> tuple[float, float]:
    # p_mid = 1 - p_low - p_up
    p_mid = 1 - p_low - p_up
    # p'_low = max{alpha/2, p_low},   p'_up = max{alpha/2, p_up}
    p1_low = max(alpha / 2, p_low)
    p1_up = max(alpha / 2, p_up)
    # p''_low = p'_low + (1 - p'_low - p'_up - p_mid) / (p'_low + p'_up + p_mid - 3 alpha/2)
    #                    * (p'_low - alpha/2),   and p''_up likewise
    ratio = (1 - p1_low - p1_up - p_mid) / (p1_low + p1_up + p_mid - 3 * alpha / 2)
    p2_low = p1_low + ratio * (p1_low - alpha / 2)
    p2_up = p1_up + ratio * (p1_up - alpha / 2)
    # into (0, 1/2), where rounding may lead out of it
    p2_low = min(max(p2_low, SMALLEST_P), LARGEST_P)
    p2_up = min(max(p2_up, SMALLEST_P), LARGEST_P)
    return p2_low, p2_up


def correct_inside(
    m_j: float, sigma: float, A_j: float, C_jj: float, values: Vector, alpha: float
) -> tuple[float, float]:
    p_low, p_up = p_low_and_up(m_j, sigma, A_j, C_jj, values)
    p2_low, p2_up = restricted(p_low, p_up, alpha)
    low = l_low(m_j, values)
    up = l_up(m_j, values)
    q_low = root_chi2_ppf(p2_low)
    q_up = root_chi2_ppf(p2_up)
    # [m]_j <- (l_low sqrt(chi^2_ppf(1 - 2p''_up)) + l_up sqrt(chi^2_ppf(1 - 2p''_low)))
    #          / (sqrt(chi^2_ppf(1 - 2p''_low)) + sqrt(chi^2_ppf(1 - 2p''_up)))
    new_m_j = (low * q_up + up * q_low) / (q_low + q_up)
    # <A>_j <- (l_up - l_low) / (sigma sqrt(<C>_j)
    #          (sqrt(chi^2_ppf(1 - 2p''_low)) + sqrt(chi^2_ppf(1 - 2p''_up))))
    new_A_j = (up - low) / (sigma * math.sqrt(C_jj) * (q_low + q_up))
    return new_m_j, new_A_j


# Algorithm 1, the last two loops


def correct_all(
    m: Vector,
    sigma: float,
    C: Matrix,
    A: Vector,
    coordinates: Coordinates,
    alpha: float,
) -> tuple[Vector, Vector]:
    # m, sigma and C are those of t + 1, A that of t. Edge or inside goes by the index of the cell
    # that holds the mean; both cells of a two-valued coordinate are edges.
    new_m = list(m)
    new_A = list(A)
    for j in range(len(m)):
        values = coordinates[j]
        if values is None:
            continue
        if cell(m[j], values) == 1 or cell(m[j], values) == len(values):
            new_m[j] = correct_at_edge(m[j], sigma, A[j], C[j][j], values, alpha)
            new_A[j] = A[j]
        else:
            new_m[j], new_A[j] = correct_inside(m[j], sigma, A[j], C[j][j], values, alpha)
    return new_m, new_A


def default_alpha(n: int, popsize: int) -> float:
    # Section 5.1: alpha = (N lambda)^{-1}
    return 1 / (n * popsize)


def correct(state: State, coordinates: Coordinates, alpha: float) -> None:
    # Section 4.2, Step 5
    state.m, state.A = correct_all(state.m, state.sigma, state.C, state.A, coordinates, alpha)
