"""Points that a state did not draw, one function per equation.

Hansen, "Injecting external solutions into CMA-ES" (2011): a point from elsewhere as a sample of the
present distribution. Nomura et al., "Warm Starting CMA-ES for Hyperparameter Optimization" (AAAI 2021):
the start of a run from points with values. Vectors are lists, matrices lists of rows.
"""

import math
from dataclasses import dataclass

from .cma import Matrix, Vector, euclidean_norm, times

# Injecting external solutions


@dataclass
class Injected:
    """One point, as if the state had drawn it."""

    y: Vector
    step: Vector  # sigma y, which moves the mean
    norm_sq: float  # ||C^{-1/2} y||^2


def x_of_v(v: Vector, m: Vector, A: Vector) -> Vector:
    # Section 4.2 of CMA-ES with Margin evaluates v = m + sigma A y and learns from x = m + sigma y:
    # x = m + A^{-1} (v - m)
    x = []
    for j in range(len(m)):
        x.append(m[j] + (v[j] - m[j]) / A[j])
    return x


def longest(n: int) -> float:
    # c_y = sqrt(n) + 2 n / (n + 2)
    return math.sqrt(n) + 2 * n / (n + 2)


def y_of_x(x: Vector, m: Vector, sigma: float) -> Vector:
    # y_i = (x_i - m) / sigma
    y = []
    for j in range(len(m)):
        y.append((x[j] - m[j]) / sigma)
    return y


def mahalanobis_length(y: Vector, inverse_root: Matrix) -> float:
    # ||C^{-1/2} y||
    return euclidean_norm(times(inverse_root, y))


def shortened(y: Vector, inverse_root: Matrix) -> Vector:
    # y_i <- min(1, c_y / ||C^{-1/2} y_i||) y_i
    length = mahalanobis_length(y, inverse_root)
    if length <= longest(len(y)):
        return list(y)
    result = []
    for value in y:
        result.append(longest(len(y)) / length * value)
    return result


def delayed_z(y: Vector, inverse_root: Matrix, xi: Vector) -> Vector:
    # mix, what an older state drew: z_i = (||xi_i|| z'_i / ||z'_i|| + xi_i) / 2 with z'_i = C^{-1/2} y_i;
    # xi_i / 2 where y_i = 0
    z = times(inverse_root, y)
    length = euclidean_norm(z)
    scale = 0.0 if length == 0 else euclidean_norm(xi) / length
    result = []
    for j in range(len(y)):
        result.append((scale * z[j] + xi[j]) / 2)
    return result


def inject(v: Vector, m: Vector, sigma: float, A: Vector, inverse_root: Matrix) -> Injected:
    y = shortened(y_of_x(x_of_v(v, m, A), m, sigma), inverse_root)
    step = []
    for value in y:
        step.append(sigma * value)
    return Injected(y, step, mahalanobis_length(y, inverse_root) ** 2)


# Warm starting: the Gaussian closest to the gamma-promising distribution


def promising(points: Matrix, values: Vector, gamma: float) -> Matrix:
    # the best gamma of the points, at least one
    order = sorted(range(len(points)), key=lambda i: values[i])
    count = max(1, math.floor(gamma * len(points)))
    return [points[i] for i in order[:count]]


def mean_of(points: Matrix) -> Vector:
    # m* = 1/n sum_i x_i
    mean = []
    for j in range(len(points[0])):
        total = 0.0
        for point in points:
            total += point[j]
        mean.append(total / len(points))
    return mean


def covariance_of(points: Matrix, alpha: float) -> Matrix:
    # Sigma* = alpha^2 I + 1/n sum_i (x_i - m*) (x_i - m*)^T
    mean = mean_of(points)
    covariance = []
    for a in range(len(mean)):
        row = []
        for b in range(len(mean)):
            total = 0.0
            for point in points:
                total += (point[a] - mean[a]) * (point[b] - mean[b])
            row.append(total / len(points) + (alpha**2 if a == b else 0.0))
        covariance.append(row)
    return covariance


def determinant(matrix: Matrix) -> float:
    # by elimination; of a positive definite matrix no pivot is zero
    rows = [list(row) for row in matrix]
    product = 1.0
    for i in range(len(rows)):
        product *= rows[i][i]
        for k in range(i + 1, len(rows)):
            factor = rows[k][i] / rows[i][i]
            for j in range(i, len(rows)):
                rows[k][j] -= factor * rows[i][j]
    return product


def scale_and_shape(covariance: Matrix) -> tuple[float, Matrix]:
    # sigma = det(Sigma*)^{1/(2N)},   C = Sigma* / det(Sigma*)^{1/N}
    n = len(covariance)
    det = determinant(covariance)
    shape = []
    for row in covariance:
        shape.append([value / det ** (1 / n) for value in row])
    return det ** (1 / (2 * n)), shape


def start(points: Matrix, values: Vector, alpha: float, gamma: float = 0.1) -> tuple[Vector, float, Matrix]:
    # m, sigma and C of the first generation
    best = promising(points, values, gamma)
    sigma, C = scale_and_shape(covariance_of(best, alpha))
    return mean_of(best), sigma, C
