"""The benchmark functions of CMA-ES with Margin (Section 5), and two that it has trouble with.

A function takes decoded values ``x`` of shape ``(..., N)``, with bits as 0. and 1., and returns values of shape
``(...)``. The first ``N // 2`` coordinates are continuous, the others binary or integer. The functions use the array
namespace of ``x``, so the same code runs on NumPy and on JAX. All minima are 0. `rotated` and `coupled` make harder
problems of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import Any

import numpy as np

from mixcma.space import Bool, Float, Int, Space, Value, Variable

Array = Any  # an array of NumPy, of JAX, or of any other array API namespace

SUCCESS = 1e-10  # Section 5.2: a run has succeeded once its best value is below this
_STARTS = 2205_13482  # keeps the initial means independent of other uses of the seed
_ROTATIONS = 2205_13483  # the same for the rotations


def sphere_one_max(x: Array) -> Array:
    """Sum of x_j^2 over the continuous half, plus the number of zero bits."""
    continuous, bits = _halves(x)
    return _sphere(continuous) + _zeros(bits)


def sphere_leading_ones(x: Array) -> Array:
    """Sum of x_j^2 over the continuous half, plus the number of bits from the first zero on."""
    continuous, bits = _halves(x)
    return _sphere(continuous) + _after_leading_ones(bits)


def ellipsoid_one_max(x: Array) -> Array:
    """Ellipsoid of the continuous half, axes 1 to 1000, plus the number of zero bits."""
    continuous, bits = _halves(x)
    return _sphere(_stretch(continuous)) + _zeros(bits)


def ellipsoid_leading_ones(x: Array) -> Array:
    """Ellipsoid of the continuous half, axes 1 to 1000, plus the number of bits from the first zero on."""
    continuous, bits = _halves(x)
    return _sphere(_stretch(continuous)) + _after_leading_ones(bits)


def sphere_int(x: Array) -> Array:
    """Sum of x_j^2 over all N coordinates."""
    return _sphere(x)


def ellipsoid_int(x: Array) -> Array:
    """Ellipsoid of all N coordinates: the integers have the large coefficients."""
    return _sphere(_stretch(x))


def reversed_ellipsoid_int(x: Array) -> Array:
    """Ellipsoid of all N coordinates in reversed order: the continuous ones have the large coefficients.

    Not in the paper: its method often fails here, because the integers hardly matter at first.
    """
    xp = x.__array_namespace__()
    return _sphere(_stretch(xp.flip(x, axis=-1)))


def tablet(x: Array) -> Array:
    """Sum of (100 x_j)^2 over the continuous half, plus the sum of z_k^2 over the integers.

    Not in the paper: its method often fails here, because the integers hardly matter at first.
    """
    continuous, integers = _halves(x)
    return _sphere(100.0 * continuous) + _sphere(integers)


def coupled_int(x: Array) -> Array:
    """10^4 times the sum of (x_j - 0.1 (z_j - 2))^2, plus the sum of (z_k - 2)^2 over the integers.

    Not in the paper: each float follows its integer, so that one cannot move without the other.
    The minimum is at x = 0, z = 2.
    """
    continuous, integers = _halves(x)
    away = integers - 2.0
    return 1e4 * _sphere(continuous - 0.1 * away[..., : continuous.shape[-1]]) + _sphere(away)


@dataclass(frozen=True)
class Rotated:
    """`function` applied after the continuous half was rotated by a random orthogonal matrix, given by `seed`."""

    function: Callable[[Array], Array]
    seed: int

    def __call__(self, x: Array) -> Array:
        xp = x.__array_namespace__()
        continuous, discrete = _halves(x)
        turned = continuous @ xp.asarray(_rotation(continuous.shape[-1], self.seed))
        return self.function(xp.concat([turned, discrete], axis=-1))


@cache
def _rotation(n: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """A uniform random rotation: Q of the QR decomposition of Gaussian numbers, with the signs of R's diagonal."""
    gaussian = np.random.default_rng((_ROTATIONS, seed)).standard_normal((n, n))
    q, r = np.linalg.qr(gaussian)
    rotation: np.ndarray[tuple[int, int], np.dtype[np.float64]] = q * np.sign(np.diagonal(r))
    rotation.setflags(write=False)
    return rotation


def _halves(x: Array) -> tuple[Array, Array]:
    """The N_co = N // 2 continuous coordinates, and the others."""
    n_continuous = x.shape[-1] // 2
    return x[..., :n_continuous], x[..., n_continuous:]


def _sphere(x: Array) -> Array:
    xp = x.__array_namespace__()
    return xp.sum(x * x, axis=-1)


def _stretch(x: Array) -> Array:
    """1000^((j - 1) / (n - 1)) x_j."""
    xp = x.__array_namespace__()
    return xp.asarray(_coefficients(x.shape[-1])) * x


@cache
def _coefficients(n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    coefficients = 1000.0 ** (np.arange(n) / max(n - 1, 1))
    coefficients.setflags(write=False)
    return coefficients


def _zeros(bits: Array) -> Array:
    """OneMax as a minimisation problem: N_bi - sum_k b_k."""
    xp = bits.__array_namespace__()
    return bits.shape[-1] - xp.sum(bits, axis=-1)


def _after_leading_ones(bits: Array) -> Array:
    """LeadingOnes as a minimisation problem: N_bi - sum_k prod_{l <= k} b_l."""
    xp = bits.__array_namespace__()
    return bits.shape[-1] - xp.sum(xp.cumulative_prod(bits, axis=-1), axis=-1)


_BIT = ("b", Bool(mean=0.5, std=1.0))
_INTEGER = ("z", Int(-10, 10, mean=2.0, std=1.0))

_FUNCTIONS: dict[str, tuple[Callable[[Array], Array], tuple[str, Variable]]] = {
    "SphereOneMax": (sphere_one_max, _BIT),
    "SphereLeadingOnes": (sphere_leading_ones, _BIT),
    "EllipsoidOneMax": (ellipsoid_one_max, _BIT),
    "EllipsoidLeadingOnes": (ellipsoid_leading_ones, _BIT),
    "SphereInt": (sphere_int, _INTEGER),
    "EllipsoidInt": (ellipsoid_int, _INTEGER),
    "ReversedEllipsoidInt": (reversed_ellipsoid_int, _INTEGER),
    "Tablet": (tablet, _INTEGER),
}
PROBLEMS = tuple(_FUNCTIONS)
PAPER_FUNCTIONS = PROBLEMS[:6]


@dataclass(frozen=True)
class Problem:
    """A benchmark function of N variables, with its space and its success criterion.

    Parameters
    ----------
    name
        One of `PROBLEMS`.
    dimension
        N, the number of variables.
    function
        Maps decoded values of shape ``(..., N)`` to values of shape ``(...)``, on NumPy or JAX.
    space
        x1, x2, ... continuous, then b1, b2, ... binary or z1, z2, ... integer.
    success
        A run has succeeded once its best value is below this.

    Examples
    --------
    >>> onemax = problem("SphereOneMax", 4)
    >>> onemax.space.names
    ('x1', 'x2', 'b1', 'b2')
    >>> onemax({"x1": 0.5, "x2": 0.0, "b1": True, "b2": False})
    1.25
    """

    name: str
    dimension: int
    function: Callable[[Array], Array]
    space: Space
    success: float = SUCCESS

    def __call__(self, params: Mapping[str, Value]) -> float:
        """The value of one point, whose coordinates are given by name."""
        x = np.asarray([params[name] for name in self.space], dtype=np.float64)
        return float(self.function(x))

    def start(self, seed: int) -> dict[str, float]:
        """The initial mean of trial `seed`: binary variables 0.5, all others uniform in [1, 3].

        Trials with the same seed start from the same continuous values on every function.
        """
        uniform = np.random.default_rng((_STARTS, seed)).uniform(1.0, 3.0, self.dimension)
        return {
            name: 0.5 if isinstance(variable, Bool) else float(mean)
            for (name, variable), mean in zip(self.space.items(), uniform, strict=True)
        }


def problem(name: str, dimension: int) -> Problem:
    """The benchmark function `name` of `dimension` variables, the first half of them continuous.

    Parameters
    ----------
    name
        One of `PROBLEMS`; the paper's own are `PAPER_FUNCTIONS`.
    dimension
        N, at least 2; the paper uses 20, 40 and 60. If N is odd, one more variable is discrete than continuous.

    Examples
    --------
    >>> problem("EllipsoidInt", 2)({"x1": 1.0, "z1": -1})
    1000001.0
    """
    known = ", ".join(PROBLEMS)
    if name not in PROBLEMS:
        raise ValueError(f"name: expected one of {known}, but got {name!r}; choose one of these")
    if not isinstance(dimension, Integral) or isinstance(dimension, bool) or dimension < 2:
        raise ValueError(
            f"dimension of {name}: expected a whole number of at least 2 (one continuous and one "
            f"discrete variable), but got {dimension!r}; the paper uses 20, 40 and 60 "
            f"(known problems: {known})"
        )
    function, discrete = _FUNCTIONS[name]
    return Problem(name, int(dimension), function, _space(int(dimension), discrete))


def rotated(straight: Problem, seed: int) -> Problem:
    """The same problem with its continuous half rotated, so that these variables cannot be optimised one by one.

    Parameters
    ----------
    straight
        A problem whose optimum has all continuous variables at 0; the rotation leaves it there.
    seed
        The same seed gives the same rotation.

    Examples
    --------
    >>> rotated(problem("EllipsoidInt", 4), seed=1).name
    'RotatedEllipsoidInt'
    """
    return replace(straight, name=f"Rotated{straight.name}", function=Rotated(straight.function, seed))


def coupled(dimension: int) -> Problem:
    """The problem of `coupled_int`: as many floats as integers, and each float follows one of the integers.

    Examples
    --------
    >>> coupled(2)({"x1": 0.0, "z1": 2}), coupled(2)({"x1": 0.1, "z1": 3})
    (0.0, 1.0)
    """
    return Problem("Coupled", dimension, coupled_int, _space(dimension, _INTEGER))


def _space(dimension: int, discrete: tuple[str, Variable]) -> Space:
    """x1, x2, ... for the continuous variables, and another letter with a number for the others."""
    n_continuous, (letter, variable) = dimension // 2, discrete
    variables: dict[str, Variable] = {f"x{j}": Float(mean=2.0, std=1.0) for j in range(1, n_continuous + 1)}
    variables |= {f"{letter}{k}": variable for k in range(1, dimension - n_continuous + 1)}
    return Space(variables)
