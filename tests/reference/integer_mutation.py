"""Section 2.2: the CMA-ES with integer mutation; Section 3: the box constraint.

Where the text leaves a choice open, the choice has a name (`Choices`), and its default is the
reading that comes closest to the paper's Table 2.

Section 3 puts the threshold of a binary coordinate at 0. Here the threshold is the midpoint of
the two values, as in Section 4, so positions are counted from an anchor: the threshold for a
coordinate of two values, z_{j,1} for the others.
"""

import math
from dataclasses import dataclass

from .cma import Coordinates, Matrix, Vector, euclidean_norm
from .margin import thresholds


@dataclass(frozen=True)
class Choices:
    """The named choices.

    geometric_base : the 0.7 of Step 4
    recall_on : Step 6 moves "all" discrete coordinates, or those of J, the "stuck" ones
    geometric_start : the support of Step 4's distribution is {1, 2, ...} with 1, {0, 1, ...} with 0
    sign_per : "coordinate" or "vector", what one draw of the sign in Steps 5 and 6 is for
    recall : Step 6 takes the "floor" of the last best or its "round"; "auto" is "floor" for
        coordinates of two values and "round" for the others
    negative_norm : "mutated" or "unmutated", the vector in the norm of the negative weights
    penalty_weight : the factor of the box penalty; None is the paper's 1/N
    """

    geometric_start: int = 1
    geometric_base: float = 0.7
    sign_per: str = "coordinate"
    recall: str = "auto"
    recall_on: str = "all"
    negative_norm: str = "mutated"
    penalty_weight: float | None = None

    def __post_init__(self) -> None:
        if self.geometric_start not in (0, 1):
            raise ValueError(f"geometric_start must be 0 or 1, got {self.geometric_start!r}")
        if self.sign_per not in ("coordinate", "vector"):
            raise ValueError(f"sign_per must be 'coordinate' or 'vector', got {self.sign_per!r}")
        if self.recall not in ("auto", "floor", "round"):
            raise ValueError(f"recall must be 'auto', 'floor' or 'round', got {self.recall!r}")
        if self.negative_norm not in ("mutated", "unmutated"):
            raise ValueError(f"negative_norm must be 'mutated' or 'unmutated', got {self.negative_norm!r}")


def granularity(values: Vector | None) -> float:
    # <S^int>_j: 0 for a continuous coordinate, else the mean spacing (z_K - z_1) / (K - 1),
    # which is 1 for integers and for {0, 1}
    if values is None:
        return 0.0
    return (values[-1] - values[0]) / (len(values) - 1)


def anchor(values: Vector) -> float:
    # where positions are counted from
    if len(values) == 2:
        return thresholds(values)[0]
    return values[0]


# Inject Integer Mutation, Steps 1 to 6


def step_1(sigma: float, C: Matrix, coordinates: Coordinates, order: Vector) -> list[int]:
    # J = the j with 2 sigma <C>_j^{1/2} < <S^int>_j, in random order: by ascending order[j]
    J = []
    for j in range(len(C)):
        if 2 * sigma * math.sqrt(C[j][j]) < granularity(coordinates[j]):
            J.append(j)
    return sorted(J, key=lambda j: order[j])


def step_2(popsize: int, size_of_J: int, n: int) -> int:
    # lambda_int = 0                                                       (|J| = 0)
    #              min(lambda/10 + |J| + 1, floor(lambda/2) - 1)           (0 < |J| < N)
    #              floor(lambda/2)                                         (|J| = N)
    # with floor(lambda/10) for lambda/10
    if size_of_J == 0:
        return 0
    if size_of_J < n:
        return min(
            math.floor(popsize / 10) + size_of_J + 1,
            math.floor(popsize / 2) - 1,
        )
    return math.floor(popsize / 2)


def step_3(i: int, J: list[int], n: int) -> list[int]:
    # [R'_i]_j = 1 if j is the mod(i - 1, |J|)-th element of J (counted from 0), else 0;
    # i = 1, ..., lambda
    R1 = []
    for j in range(n):
        R1.append(1 if j == J[(i - 1) % len(J)] else 0)
    return R1


def geometric(u: float, p: float, start: int) -> int:
    # inversion: 1 + floor(ln u / ln(1 - p)) is geometric on {1, 2, ...}
    return 1 + math.floor(math.log(u) / math.log(1 - p)) - (1 - start)


def step_4(J: list[int], n: int, uniforms: Vector, choices: Choices) -> list[int]:
    # [R''_i]_j ~ geometric with p = 0.7^{1/|J|} if j in J, else 0
    p = choices.geometric_base ** (1 / len(J))
    R2 = []
    for j in range(n):
        if j in J:
            R2.append(geometric(uniforms[j], p, choices.geometric_start))
        else:
            R2.append(0)
    return R2


def sign_of(j: int, uniforms: Vector, choices: Choices) -> int:
    # +1 or -1, each with probability 1/2
    if choices.sign_per == "vector":
        return 1 if uniforms[0] < 0.5 else -1
    return 1 if uniforms[j] < 0.5 else -1


def step_5(i: int, lambda_int: int, R1: list[int], R2: list[int], signs: Vector, choices: Choices) -> list[int]:
    # r_i = +-(R'_i + R''_i) if i <= lambda_int, else 0;   i = 1, ..., lambda
    r = []
    for j in range(len(R1)):
        if i <= lambda_int:
            r.append(sign_of(j, signs, choices) * (R1[j] + R2[j]))
        else:
            r.append(0)
    return r


def floor_position(x_j: float, values: Vector) -> int:
    # floor(x_j / S_j), counted from the anchor
    return math.floor((x_j - anchor(values)) / granularity(values))


def round_position(x_j: float, values: Vector) -> int:
    # x_j / S_j rounded, counted from the anchor
    return math.floor((x_j - anchor(values)) / granularity(values) + 0.5)


def recalled_position(x_j: float, values: Vector, choices: Choices) -> int:
    if choices.recall == "floor":
        return floor_position(x_j, values)
    if choices.recall == "round":
        return round_position(x_j, values)
    if len(values) == 2:
        return floor_position(x_j, values)
    return round_position(x_j, values)


def step_6(
    last_best: Vector | None,
    m: Vector,
    coordinates: Coordinates,
    signs: Vector,
    choices: Choices,
) -> list[int]:
    # [r_lambda]_j = +-(floor([x_{1:lambda}^{(t-1)}]_j / S_j) - floor([m]_j / S_j)) if S_j > 0,
    # else 0. In the first generation there is no x_{1:lambda}^{(t-1)}: 0.
    r = []
    for j in range(len(m)):
        values = coordinates[j]
        if values is None or last_best is None:
            r.append(0)
        else:
            recalled = recalled_position(last_best[j], values, choices)
            r.append(sign_of(j, signs, choices) * (recalled - floor_position(m[j], values)))
    return r


def mutation_vectors(
    sigma: float,
    C: Matrix,
    m: Vector,
    last_best: Vector | None,
    popsize: int,
    coordinates: Coordinates,
    order: Vector,
    uniforms: Matrix,
    signs: Matrix,
    choices: Choices,
) -> list[list[int]]:
    # r_1, ..., r_lambda
    n = len(m)
    J = step_1(sigma, C, coordinates, order)
    lambda_int = step_2(popsize, len(J), n)
    r = []
    for i in range(1, popsize + 1):
        if len(J) == 0:
            r.append([0] * n)
        else:
            R1 = step_3(i, J, n)
            R2 = step_4(J, n, uniforms[i - 1], choices)
            r.append(step_5(i, lambda_int, R1, R2, signs[i - 1], choices))
    if lambda_int > 0:
        r[popsize - 1] = step_6(last_best, m, coordinates, signs[popsize - 1], choices)
        if choices.recall_on == "stuck":
            for j in range(len(m)):
                if j not in J:
                    r[popsize - 1][j] = 0
    return r


def sample_x(m: Vector, sigma: float, y: Vector, r: list[int], coordinates: Coordinates) -> Vector:
    # x_i = m + sigma y_i + S^int r_i
    x = []
    for j in range(len(m)):
        x.append(m[j] + sigma * y[j] + granularity(coordinates[j]) * r[j])
    return x


# Modify Step-size Adaptation


def mask(sigma: float, C: Matrix, c_sigma: float, coordinates: Coordinates) -> list[int]:
    # <I_sigma>_j = 0 if 5 sigma <C>_j^{1/2} / sqrt(c_sigma) < <S^int>_j, else 1,
    # with sigma and C of generation t
    result = []
    for j in range(len(C)):
        if 5 * sigma * math.sqrt(C[j][j]) / math.sqrt(c_sigma) < granularity(coordinates[j]):
            result.append(0)
        else:
            result.append(1)
    return result


def masked_length(masks: list[int], new_p_sigma: Vector) -> float:
    # ||I_sigma p_sigma||
    masked = []
    for j in range(len(masks)):
        masked.append(masks[j] * new_p_sigma[j])
    return euclidean_norm(masked)


def unmasked_count(masks: list[int]) -> int:
    # M, the number of non-zero diagonal elements of I_sigma
    M = 0
    for element in masks:
        if element != 0:
            M += 1
    return M


# The vector in the norm of the negative weights


def mutated_y(x: Vector, m: Vector, sigma: float) -> Vector:
    # (x_i - m) / sigma
    result = []
    for j in range(len(m)):
        result.append((x[j] - m[j]) / sigma)
    return result


# Section 3: the box constraint


def box(values: Vector) -> tuple[float, float]:
    # two values: [-1, 1] in Section 3's coordinates, so [threshold - S, threshold + S];
    # more: [z_1, z_K]
    if len(values) == 2:
        return anchor(values) - granularity(values), anchor(values) + granularity(values)
    return values[0], values[-1]


def penalty(x: Vector, coordinates: Coordinates, choices: Choices) -> float:
    # ||x^feas - x||^2 / N, each coordinate in units of S_j; x^feas_j is the point of the box
    # nearest to x_j
    total = 0.0
    for j in range(len(x)):
        values = coordinates[j]
        if values is None:
            continue
        low, high = box(values)
        feasible = min(max(x[j], low), high)
        total += ((feasible - x[j]) / granularity(values)) ** 2
    weight = 1 / len(x) if choices.penalty_weight is None else choices.penalty_weight
    return total * weight
