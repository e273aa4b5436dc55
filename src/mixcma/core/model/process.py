"""A Gaussian process with a length for every variable (docs/model.md, "Gaussian process")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from mixcma.core.model.features import FloatArray, IntArray

# What log w is expected to be: log(4 / variables), give or take this.
SPREAD_OF_LOG_WEIGHTS = 2.0
# The same of the logarithm of the nugget, which stands for noise and for what is rough.
EXPECTED_LOG_NUGGET, SPREAD_OF_LOG_NUGGET = -10.0, 3.0
LOG_WEIGHTS, LOG_NUGGET = (-12.0, 9.0), (-16.0, 1.0)
# Steps of L-BFGS.
STEPS = 30
LEAST_VARIANCE = 1e-12


class Processes(NamedTuple):
    """Outputs at rows of features, each one sample of a Gaussian process with covariance s^2 (k(r) + nugget).

    r^2 = 5 sum_j w_j d_j^2, where d_j is the distance in variable j, and k is Matern 5/2.
    """

    root: FloatArray  # (outputs, p) sqrt(w) of the variable of each feature
    scaled: FloatArray  # (outputs, n, p) rows times root
    inverse: FloatArray  # (outputs, n, n) (k + nugget)^-1
    mean: FloatArray  # (outputs,)
    a: FloatArray  # (outputs, n) (k + nugget)^-1 (y - mean)
    variance: FloatArray  # (outputs,) s^2

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows (m, p) -> expected values and standard deviations, (outputs, m) each."""
        means, shares = [], []
        for root, scaled, inverse, mean, a in zip(self.root, self.scaled, self.inverse, self.mean, self.a):
            k = matern(cdist(rows * root, scaled))
            means.append(mean + k @ a)
            shares.append(1.0 - ((k @ inverse) * k).sum(axis=1))
        return np.array(means), np.sqrt(self.variance[:, None] * _positive(np.array(shares)))

    def log_probability(self, output: int, count: int) -> float:
        """The log of the probability of the first `count` values of an output, each predicted from all others.

        The value i is expected to be y_i - a_i / (K^-1)_ii, with the variance s^2 / (K^-1)_ii (Dubrule, 1983).
        """
        precision = self.inverse[output].diagonal()[:count]
        off, variance = self.a[output, :count] / precision, self.variance[output] / precision
        return float(-(np.log(2.0 * math.pi * variance) + off * off / variance).sum() / 2.0)

    def gradients(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Rows (m, p) -> expected values and standard deviations, (outputs, m) each; their gradients (outputs, m, p).

        The derivative of k by a row is -5/3 (1 + r) exp(-r) w (row - point), for each point it correlates with.
        """
        parts = [self._gradients(output, rows) for output in range(len(self.mean))]
        means, sds, d_means, d_sds = (np.array(part) for part in zip(*parts))
        return means, sds, d_means, d_sds

    def _gradients(self, output: int, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        root, scaled, a, variance = self.root[output], self.scaled[output], self.a[output], self.variance[output]
        scaled_rows = rows * root
        r = math.sqrt(5.0) * cdist(scaled_rows, scaled)
        e = np.exp(-r)
        steep = (1.0 + r) * e
        k = steep + (r * r / 3.0) * e
        b = k @ self.inverse[output]
        sd = np.sqrt(variance * _positive(1.0 - (k * b).sum(axis=1)))
        d_mean, d_share = (
            ((weighted @ scaled) - weighted.sum(axis=1)[:, None] * scaled_rows) * (5.0 / 3.0 * root)
            for weighted in (steep * a, steep * b)
        )
        return self.mean[output] + k @ a, sd, d_mean, d_share * (-variance / sd)[:, None]


def _positive(share: FloatArray) -> FloatArray:
    return np.maximum(share, LEAST_VARIANCE)


def matern(distance: FloatArray) -> FloatArray:
    """Matern 5/2: (1 + r + r^2 / 3) exp(-r) with r = sqrt(5) times the distance."""
    r = math.sqrt(5.0) * distance
    k: FloatArray = (1.0 + r + r * r / 3.0) * np.exp(-r)
    return k


def processes(
    rows: FloatArray, variable: IntArray, outputs: Sequence[FloatArray], thetas: Sequence[FloatArray]
) -> Processes | None:
    """Processes with theta = (log w_1, ..., log w_G, log nugget) each; None if a covariance is singular.

    `variable` says for each feature to which of the G variables it belongs.
    """
    parts = [_process(rows, variable, y, theta) for y, theta in zip(outputs, thetas)]
    if any(part is None for part in parts):
        return None
    return Processes._make(np.array(part) for part in zip(*(part for part in parts if part is not None)))


def _process(
    rows: FloatArray, variable: IntArray, y: FloatArray, theta: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, float, FloatArray, float] | None:
    root = np.exp(theta[:-1] / 2.0)[variable]
    scaled = rows * root
    K = matern(cdist(scaled, scaled))
    K[np.diag_indices(len(K))] += math.exp(theta[-1])
    try:
        L = cholesky(K, lower=True, check_finite=False)
    except LinAlgError:
        return None
    inverse = cho_solve((L, True), np.eye(len(K)), check_finite=False)
    mean, a, variance = _settled(inverse, y)
    return root, scaled, inverse, mean, a, variance


def _settled(inverse: FloatArray, y: FloatArray) -> tuple[float, FloatArray, float]:
    """The likeliest mean, K^-1 (y - mean), and the likeliest variance."""
    by_one, by_y = inverse.sum(axis=1), inverse @ y
    mean = float(by_y.sum() / by_one.sum())
    a = by_y - mean * by_one
    return mean, a, max(float((y - mean) @ a) / len(y), LEAST_VARIANCE)


def expected_theta(variables: int) -> FloatArray:
    """What theta is expected to be before there are data."""
    return np.append(np.full(variables, math.log(4.0 / variables)), EXPECTED_LOG_NUGGET)


def fit_theta(rows: FloatArray, variable: IntArray, y: FloatArray) -> FloatArray:
    """The most probable theta given the values."""
    n, G = len(y), int(variable.max()) + 1
    distances_sq = np.stack([_distances_sq(rows[:, variable == g]) for g in range(G)])  # (G, n n)
    expected = expected_theta(G)
    spread_sq = np.append(np.full(G, SPREAD_OF_LOG_WEIGHTS), SPREAD_OF_LOG_NUGGET) ** 2
    diagonal = np.diag_indices(n)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        """-log of the probability of theta, with the likeliest mean and variance; and its gradient."""
        w, nugget = np.exp(theta[:-1]), math.exp(theta[-1])
        r = np.sqrt(5.0 * (w @ distances_sq)).reshape(n, n)
        e = np.exp(-r)
        K = (1.0 + r + r * r / 3.0) * e
        K[diagonal] += nugget
        try:
            L = cholesky(K, lower=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros(G + 1)
        inverse = cho_solve((L, True), np.eye(n), check_finite=False)
        _, a, variance = _settled(inverse, y)
        slope = (inverse - np.outer(a, a) / variance) / 2.0  # of the loss by K
        by_w = distances_sq @ (slope * (-5.0 / 6.0) * (1.0 + r) * e).ravel()
        off = theta - expected
        value = n / 2.0 * math.log(variance) + np.log(L.diagonal()).sum() + (off * off / spread_sq).sum() / 2.0
        return float(value), np.append(by_w * w, np.trace(slope) * nugget) + off / spread_sq

    bounds = [LOG_WEIGHTS] * G + [LOG_NUGGET]
    result = minimize(loss, expected, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
    return np.asarray(result.x) if np.isfinite(result.x).all() else expected


def _distances_sq(rows: FloatArray) -> FloatArray:
    return cdist(rows, rows, "sqeuclidean").ravel()
