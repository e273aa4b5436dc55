"""Outside the bounds: docs/methods.md, and docs/mix.md, "Around a run".

A candidate outside is evaluated on the bounds. Its squared distance from them, in standard deviations, costs it ranks.
The bounds of a coordinate are latent numbers; a coordinate without them has infinite ones.
"""

import math

from .cma import Matrix, Vector

Bounds = tuple[float, float]  # the lowest and the highest point inside
Outcome = tuple[float, float]  # the violation, then the value: the smaller is the better

NOWHERE: Bounds = (-math.inf, math.inf)


def outer_ends(values: Vector) -> Bounds:
    # of three or more values: half of the mean distance of neighbouring values, S_j / 2, beyond the first and the
    # last, which is where the cells of evenly spaced values end. Two values have no bounds
    if len(values) == 2:
        return NOWHERE
    half = (values[-1] - values[0]) / (len(values) - 1) / 2
    return values[0] - half, values[-1] + half


def nearest_inside(v_j: float, limits: Bounds) -> float:
    low, high = limits
    if v_j < low:
        return low
    if v_j > high:
        return high
    return v_j


def standard_deviations(sigma: float, A: Vector, C: Matrix) -> Vector:
    # sigma A_j sqrt(C_jj); A is the identity in methods that have none
    return [sigma * A[j] * math.sqrt(C[j][j]) for j in range(len(A))]


def squared_distance(v: Vector, limits: list[Bounds], deviations: Vector, slack: float) -> float:
    # sum_j max(0, |v_j - the nearest point inside| / s_j - slack)^2
    total = 0.0
    for j in range(len(limits)):
        outside = abs(v[j] - nearest_inside(v[j], limits[j])) / deviations[j]
        total += max(0.0, outside - slack) ** 2
    return total


def rank(outcomes: list[Outcome], i: int) -> int:
    # the number of better candidates
    better = 0
    for outcome in outcomes:
        if outcome < outcomes[i]:
            better += 1
    return better


def penalised(
    outcomes: list[Outcome], v: Matrix, limits: list[Bounds], deviations: Vector, slack: float = 0.0
) -> list[Outcome]:
    # what candidates are ranked by: rank + lambda (squared distance outside)
    result = []
    for i in range(len(outcomes)):
        outside = squared_distance(v[i], limits, deviations, slack)
        result.append((0.0, rank(outcomes, i) + len(outcomes) * outside))
    return result
