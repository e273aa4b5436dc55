"""Section 2.1: the CMA-ES, one function per equation.

Vectors are lists, matrices lists of rows. What is "sorted" is in the order of the ranks:
`x_sorted[i]` is x_{i+1:lambda}. Every function returns new lists and changes none of its arguments.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .constants import Constants, expected_norm

Vector = list[float]
Matrix = list[list[float]]
Coordinates = Sequence[Vector | None]  # None, or the sorted values z_{j,1}, ..., z_{j,K_j}


@dataclass
class State:
    """What is carried from one generation to the next."""

    m: Vector
    sigma: float
    C: Matrix
    A: Vector  # the diagonal of the matrix A of Section 4; ones in the other methods
    p_sigma: Vector
    p_c: Vector
    t: int = 0
    root: Matrix = field(default_factory=list)  # C^{1/2}
    inverse_root: Matrix = field(default_factory=list)  # C^{-1/2}


def initial_state(mean: Vector) -> State:
    # Table 1 and Section 3: p_sigma = p_c = 0, C = I, sigma = 1.  Section 4.2: A = I.
    n = len(mean)
    identity = []
    for i in range(n):
        row = []
        for j in range(n):
            row.append(1.0 if i == j else 0.0)
        identity.append(row)
    return State(
        m=[float(value) for value in mean],
        sigma=1.0,
        C=identity,
        A=[1.0] * n,
        p_sigma=[0.0] * n,
        p_c=[0.0] * n,
    )


def euclidean_norm(vector: Vector) -> float:
    # ||v|| = sqrt(sum_j v_j^2)
    total = 0.0
    for value in vector:
        total += value * value
    return math.sqrt(total)


def times(matrix: Matrix, vector: Vector) -> Vector:
    # [M v]_i = sum_j M_ij v_j
    product = []
    for i in range(len(matrix)):
        total = 0.0
        for j in range(len(vector)):
            total += matrix[i][j] * vector[j]
        product.append(total)
    return product


# Sample and Evaluate Candidate Solutions


def matrix_roots(C: Matrix) -> tuple[Matrix, Matrix]:
    # C = B D^2 B^T,  C^{1/2} = B D B^T,  C^{-1/2} = B D^{-1} B^T
    n = len(C)
    eigenvalues, B = np.linalg.eigh(np.array(C))
    D = [math.sqrt(float(value)) for value in eigenvalues]
    root = []
    inverse_root = []
    for i in range(n):
        root_row = []
        inverse_row = []
        for j in range(n):
            total = 0.0
            inverse_total = 0.0
            for k in range(n):
                total += float(B[i, k]) * D[k] * float(B[j, k])
                inverse_total += float(B[i, k]) / D[k] * float(B[j, k])
            root_row.append(total)
            inverse_row.append(inverse_total)
        root.append(root_row)
        inverse_root.append(inverse_row)
    return root, inverse_root


def sample_y(root: Matrix, xi: Vector) -> Vector:
    # y_i = C^{1/2} xi_i
    return times(root, xi)


def sample_x(m: Vector, sigma: float, y: Vector) -> Vector:
    # x_i = m + sigma y_i
    x = []
    for j in range(len(m)):
        x.append(m[j] + sigma * y[j])
    return x


def ranking(values: Sequence[Any]) -> list[int]:
    # the indices i of f(x_{1:lambda}) <= f(x_{2:lambda}) <= ... <= f(x_{lambda:lambda})
    return sorted(range(len(values)), key=lambda i: values[i])


def shared_weights(sorted_values: Sequence[Any], w: Vector) -> Vector:
    # Each of a group of equal values gets the mean of the weights of the ranks they occupy.
    shared = []
    for i in range(len(w)):
        total = 0.0
        count = 0
        for k in range(len(w)):
            if sorted_values[k] == sorted_values[i]:
                total += w[k]
                count += 1
        shared.append(total / count)
    return shared


# Update Mean Vector


def update_mean(m: Vector, c_m: float, w: Vector, x_sorted: Matrix) -> Vector:
    # m <- m + c_m sum_{i=1}^mu w_i (x_{i:lambda} - m), over the positive w_i
    new_m = []
    for j in range(len(m)):
        total = 0.0
        for i in range(len(w)):
            if w[i] > 0:
                total += w[i] * (x_sorted[i][j] - m[j])
        new_m.append(m[j] + c_m * total)
    return new_m


# Compute Evolution Paths


def weighted_y(w: Vector, y_sorted: Matrix) -> Vector:
    # sum_{i=1}^mu w_i y_{i:lambda}, over the positive w_i
    result = []
    for j in range(len(y_sorted[0])):
        total = 0.0
        for i in range(len(w)):
            if w[i] > 0:
                total += w[i] * y_sorted[i][j]
        result.append(total)
    return result


def update_p_sigma(p_sigma: Vector, inverse_root: Matrix, y_w: Vector, k: Constants) -> Vector:
    # p_sigma <- (1 - c_sigma) p_sigma
    #            + sqrt(c_sigma (2 - c_sigma) mu_w) C^{-1/2} sum_{i=1}^mu w_i y_{i:lambda}
    step = times(inverse_root, y_w)
    factor = math.sqrt(k.c_sigma * (2 - k.c_sigma) * k.mu_w)
    new_p_sigma = []
    for j in range(len(p_sigma)):
        new_p_sigma.append((1 - k.c_sigma) * p_sigma[j] + factor * step[j])
    return new_p_sigma


def h_sigma(new_p_sigma: Vector, t: int, k: Constants) -> float:
    # h_sigma = 1{||p_sigma^{(t+1)}||
    #             < sqrt(1 - (1 - c_sigma)^{2(t+1)}) (1.4 + 2/(N+1)) E||N(0, I)||}
    left = euclidean_norm(new_p_sigma)
    right = math.sqrt(1 - (1 - k.c_sigma) ** (2 * (t + 1))) * (1.4 + 2 / (k.n + 1)) * k.chi_n
    return 1.0 if left < right else 0.0


def update_p_c(p_c: Vector, h: float, y_w: Vector, k: Constants) -> Vector:
    # p_c <- (1 - c_c) p_c + h_sigma sqrt(c_c (2 - c_c) mu_w) sum_{i=1}^mu w_i y_{i:lambda}
    factor = math.sqrt(k.c_c * (2 - k.c_c) * k.mu_w)
    new_p_c = []
    for j in range(len(p_c)):
        new_p_c.append((1 - k.c_c) * p_c[j] + h * factor * y_w[j])
    return new_p_c


# Update Step-size and Covariance Matrix


def w_circle(w: Vector, inverse_root: Matrix, vectors_sorted: Matrix) -> Vector:
    # w_i^o = w_i * (1 if w_i >= 0 else N / ||C^{-1/2} y_{i:lambda}||^2)
    n = len(inverse_root)
    result = []
    for i in range(len(w)):
        if w[i] >= 0:
            result.append(w[i])
        else:
            length = euclidean_norm(times(inverse_root, vectors_sorted[i]))
            result.append(w[i] * n / length**2)
    return result


def update_C(C: Matrix, new_p_c: Vector, h: float, w_deg: Vector, y_sorted: Matrix, k: Constants) -> Matrix:
    # C <- (1 - c_1 - c_mu sum_{i=1}^lambda w_i + (1 - h_sigma) c_1 c_c (2 - c_c)) C
    #      + c_1 p_c p_c^T + c_mu sum_{i=1}^lambda w_i^o y_{i:lambda} y_{i:lambda}^T
    # Sharing weights among equal values leaves sum_i w_i as it is: the sum is the table's.
    sum_w = 0.0
    for i in range(k.popsize):
        sum_w += k.w[i]
    decay = 1 - k.c_1 - k.c_mu * sum_w + (1 - h) * k.c_1 * k.c_c * (2 - k.c_c)
    new_C = []
    for a in range(k.n):
        row = []
        for b in range(k.n):
            rank_one = new_p_c[a] * new_p_c[b]
            rank_mu = 0.0
            for i in range(k.popsize):
                rank_mu += w_deg[i] * (y_sorted[i][a] * y_sorted[i][b])
            row.append(decay * C[a][b] + k.c_1 * rank_one + k.c_mu * rank_mu)
        new_C.append(row)
    return new_C


def update_sigma(sigma: float, length: float, count: int, k: Constants) -> float:
    # sigma <- sigma exp(c_sigma / d_sigma (||p_sigma^{(t+1)}|| / E||N(0, I)|| - 1)),
    # with length = ||p_sigma^{(t+1)}|| over `count` coordinates (all N in Section 2.1)
    return sigma * math.exp(k.c_sigma / k.d_sigma * (length / expected_norm(count) - 1))
