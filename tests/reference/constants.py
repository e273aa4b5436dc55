"""Table 1: default hyperparameters of the CMA-ES.

The printed table needs care in three places:

- mu_w is (sum w')^2 / sum w'^2 over the first mu raw weights, in the same form as mu_w^-; the
  printed (sum w'^2)^{-1} lacks the numerator.
- the sums run over j, and the summands are w'_j where w'_i is printed.
- c_mu has no factor 1/4.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Constants:
    """The rows of Table 1, top to bottom; `w` is in the order of the ranks, best first."""

    n: int
    popsize: int  # lambda
    mu: int
    w: list[float]
    mu_w: float
    mu_w_minus: float
    c_m: float
    c_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    d_sigma: float
    chi_n: float  # E||N(0, I)||


def default_popsize(n: int) -> int:
    # lambda = 4 + floor(3 ln N)
    return 4 + math.floor(3 * math.log(n))


def raw_weight(i: int, popsize: int) -> float:
    # w'_i = ln((lambda + 1) / 2) - ln i,   i = 1, ..., lambda
    return math.log((popsize + 1) / 2) - math.log(i)


def variance_effective(raw: list[float]) -> float:
    # (sum_j w'_j)^2 (sum_j (w'_j)^2)^{-1}
    total = 0.0
    total_of_squares = 0.0
    for w in raw:
        total += w
        total_of_squares += w * w
    return total * total / total_of_squares


def expected_norm(n: int) -> float:
    # Section 2.1: E||N(0, I)|| ~ sqrt(N) (1 - 1/(4N) + 1/(21 N^2))
    return math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))


def negative_weight_scale(n: int, mu_w: float, mu_w_minus: float, c_1: float, c_mu: float) -> float:
    # min(1 + c_1 / c_mu,  1 + 2 mu_w^- / (mu_w + 2),  (1 - c_1 - c_mu) / (N c_mu))
    if c_mu == 0:  # mu = 1 only: the first and the third are infinite
        return 1 + 2 * mu_w_minus / (mu_w + 2)
    return min(
        1 + c_1 / c_mu,
        1 + 2 * mu_w_minus / (mu_w + 2),
        (1 - c_1 - c_mu) / (n * c_mu),
    )


def constants(n: int, popsize: int | None = None) -> Constants:
    # lambda, mu = floor(lambda / 2)
    if popsize is None:
        popsize = default_popsize(n)
    mu = math.floor(popsize / 2)

    # w'_i
    raw = []
    for i in range(1, popsize + 1):
        raw.append(raw_weight(i, popsize))

    # mu_w over i = 1, ..., mu;  mu_w^- over i = mu + 1, ..., lambda
    mu_w = variance_effective(raw[:mu])
    mu_w_minus = variance_effective(raw[mu:])

    # c_sigma = (mu_w + 2) / (N + mu_w + 5)
    c_sigma = (mu_w + 2) / (n + mu_w + 5)

    # c_c = (4 + mu_w / N) / (N + 4 + 2 mu_w / N)
    c_c = (4 + mu_w / n) / (n + 4 + 2 * mu_w / n)

    # c_1 = 2 ((N + 1.3)^2 + mu_w)^{-1}
    c_1 = 2 / ((n + 1.3) ** 2 + mu_w)

    # c_mu = min(1 - c_1, 2 (mu_w - 2 + 1/mu_w) / ((N + 2)^2 + mu_w))
    c_mu = min(1 - c_1, 2 * (mu_w - 2 + 1 / mu_w) / ((n + 2) ** 2 + mu_w))

    # d_sigma = 1 + c_sigma + 2 max(0, sqrt((mu_w - 1) / (N + 1)) - 1)
    d_sigma = 1 + c_sigma + 2 * max(0.0, math.sqrt((mu_w - 1) / (n + 1)) - 1)

    # w_i (i <= mu) = w'_i (sum_{j=1}^mu w'_j)^{-1}
    # w_i (i >  mu) = w'_i / sum_{j=mu+1}^lambda |w'_j| * min(...)
    positive_total = 0.0
    for j in range(mu):
        positive_total += raw[j]
    negative_total = 0.0
    for j in range(mu, popsize):
        negative_total += abs(raw[j])
    scale = negative_weight_scale(n, mu_w, mu_w_minus, c_1, c_mu)
    w = []
    for i in range(popsize):
        if i < mu:
            w.append(raw[i] / positive_total)
        else:
            w.append(raw[i] / negative_total * scale)

    return Constants(
        n=n,
        popsize=popsize,
        mu=mu,
        w=w,
        mu_w=mu_w,
        mu_w_minus=mu_w_minus,
        c_m=1.0,
        c_sigma=c_sigma,
        c_c=c_c,
        c_1=c_1,
        c_mu=c_mu,
        d_sigma=d_sigma,
        chi_n=expected_norm(n),
    )
