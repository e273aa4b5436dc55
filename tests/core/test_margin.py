"""Property: after every correction, leaving the mean's cell is as probable as the margin says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from mixcma import Bool, Discrete, Float, Int, Optimizer, Space
from mixcma.core.coordinates import cell_centre, cell_index, threshold_above
from mixcma.core.methods import Cma, Margin
from mixcma.core.methods.margin import corrected
from mixcma.core.mix.margin import margin
from mixcma.latent.encoding import Encoding

EPSILON = 1e-12
SPACE = Space(
    {
        "x": Float(-3, 3),
        "n": Int(-10, 10, std=1.0),
        "few": Int(0, 2, std=0.3),
        "steps": Int(0, 100, 5),
        "wide": Int(0, 2**40),
        "log": Int(1, 10_000, log=True),
        "b": Bool(std=1.0),
        "uneven": Discrete([0.01, 0.1, 1.0], std=1.0),
        "powers": Discrete([1, 2, 4, 8, 16, 32]),
        "pair": Discrete([-5.0, 1e3]),
    }
)
ENCODING = Encoding(SPACE)
COORDINATES, N = ENCODING.coordinates, ENCODING.dimension

logs = st.floats(-12, 12)
alphas = st.floats(1e-6, 0.3)


@st.composite
def means(draw: st.DrawFn) -> np.ndarray:
    """Anywhere from far below the first value to far above the last, or exactly on a threshold."""
    low = np.array([a.latent(a.low) for a in ENCODING.axes])
    high = np.array([a.latent(a.high) for a in ENCODING.axes])
    part = np.array(draw(st.lists(st.floats(-0.5, 1.5), min_size=N, max_size=N)))
    m = low + part * (high - low)
    on_threshold = np.array(draw(st.lists(st.booleans(), min_size=N, max_size=N)))
    below_last = np.minimum(cell_index(COORDINATES, m), np.maximum(COORDINATES.last - 1, 0))
    return np.where(on_threshold & COORDINATES.discrete, threshold_above(COORDINATES, below_last), m)


def leaving(m: np.ndarray, sd: np.ndarray, k: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether the mean's cell (or cell k) is the first or last, and the probabilities below and above it."""
    k = cell_index(COORDINATES, m) if k is None else k
    bottom, top = k <= 0, k >= COORDINATES.last
    below = np.where(bottom, 0.0, ndtr((threshold_above(COORDINATES, k - 1) - m) / sd))
    above = np.where(top, 0.0, ndtr((m - threshold_above(COORDINATES, k)) / sd))
    return bottom | top, below, above


@given(means(), st.lists(logs, min_size=N, max_size=N), alphas)
def test_the_probability_of_leaving_a_cell_is_at_least_the_margin(
    m: np.ndarray, log_sd: list[float], alpha: float
) -> None:
    sd = 10.0 ** np.array(log_sd)
    A = np.ones(N)
    m_new, A_new = corrected(COORDINATES, alpha, m, sd, A)
    edge, below, above = leaving(m_new, sd * A_new)
    inner = COORDINATES.discrete & ~edge
    at_edge = COORDINATES.discrete & edge
    assert np.all((below + above)[at_edge] >= alpha - EPSILON)
    assert np.all(below[inner] >= alpha / 2 - EPSILON)
    assert np.all(above[inner] >= alpha / 2 - EPSILON)
    assert np.all(np.isfinite(m_new))
    assert np.all(A_new > 0)
    assert np.all(np.isfinite(A_new))


@given(means(), st.lists(logs, min_size=N, max_size=N), alphas)
def test_a_correction_corrected_again_stays(m: np.ndarray, log_sd: list[float], alpha: float) -> None:
    sd = 10.0 ** np.array(log_sd)
    m_once, A_once = corrected(COORDINATES, alpha, m, sd, np.ones(N))
    m_twice, A_twice = corrected(COORDINATES, alpha, m_once, sd * A_once, A_once)
    spread = sd * A_once
    assert np.all(np.abs(m_twice - m_once) <= 1e-9 * spread + 1e-14 * np.abs(m_once))
    resolution = 1e-14 * np.abs(m_once) / spread  # of the floats around the mean
    assert np.all(np.abs(A_twice / A_once - 1) <= 1e-9 + resolution)


@given(means(), st.floats(-2, 12), alphas)
def test_where_no_bound_is_active_nothing_changes_at_all(m: np.ndarray, log_sd: float, alpha: float) -> None:
    sd = np.full(N, 10.0**log_sd)
    edge, below, above = leaving(m, sd)
    idle = np.where(edge, below + above >= alpha, (below >= alpha / 2) & (above >= alpha / 2))
    # one rounding away from the bound either answer is right
    near = np.isclose(below + above, alpha) | np.isclose(below, alpha / 2) | np.isclose(above, alpha / 2)
    idle = (idle & ~near) | ~COORDINATES.discrete
    m_new, A_new = corrected(COORDINATES, alpha, m, sd, np.ones(N))
    assert np.array_equal(m_new[idle], m[idle])
    assert np.array_equal(A_new[idle], np.ones(N)[idle])


# mix: its margin limits the probability from above too


@given(means(), st.lists(logs, min_size=N, max_size=N), alphas, st.lists(st.floats(0, 1), min_size=N, max_size=N))
def test_the_margin_of_mix_holds_from_below_and_from_above(
    m: np.ndarray, log_s: list[float], alpha: float, part: list[float]
) -> None:
    """`part`: how far the largest probability that is allowed lies between alpha and 1."""
    most, k = alpha + np.array(part) * (1 - alpha), cell_index(COORDINATES, m)
    m_new, s_new, p = margin(COORDINATES, alpha, most, m, 10.0 ** np.array(log_s))
    edge, below, above = leaving(m_new, s_new, k)
    rounding = EPSILON + 1e-14 * np.maximum(np.abs(m_new), 1.0) / s_new  # of the floats around mean and thresholds
    integers = COORDINATES.margin
    assert np.all((below + above >= alpha - rounding) | ~integers)
    assert np.all((np.minimum(below, above) >= alpha / 2 - rounding) | edge | ~integers)
    assert np.all((below + above <= most + rounding) | ~integers)
    assert np.all((np.abs(below + above - p) <= rounding) | (edge & (p == 1.0)) | ~integers)
    assert np.all(np.isfinite(m_new[integers]))
    assert np.all(s_new[integers] > 0)
    assert np.all(np.isfinite(s_new[integers]))


@given(means(), st.floats(-12, 12), alphas)
def test_where_no_limit_of_mix_is_active_nothing_changes_at_all(m: np.ndarray, log_s: float, alpha: float) -> None:
    s = np.full(N, 10.0**log_s)
    edge, below, above = leaving(m, s)
    idle = np.where(edge, below + above > alpha * (1 + 1e-9), np.minimum(below, above) > alpha / 2 * (1 + 1e-9))
    m_new, s_new, _ = margin(COORDINATES, alpha, np.ones(N), m, s)
    idle = idle & COORDINATES.margin
    assert np.array_equal(m_new[idle], m[idle])
    assert np.array_equal(s_new[idle], s[idle])


@given(means(), st.lists(logs, min_size=N, max_size=N), alphas)
def test_in_the_first_and_the_last_cell_only_a_narrow_gaussian_says_how_probable_leaving_is(
    m: np.ndarray, log_s: list[float], alpha: float
) -> None:
    s, k = 10.0 ** np.array(log_s), cell_index(COORDINATES, m)
    _, s_new, p = margin(COORDINATES, alpha, np.ones(N), m, s)
    threshold = threshold_above(COORDINATES, np.where(k == 0, k, k - 1))
    way = np.abs(cell_centre(COORDINATES, k) - threshold) / -ndtri(alpha)
    edge = COORDINATES.margin & ((k <= 0) | (k >= COORDINATES.last))
    assert np.array_equal(s_new[edge], s[edge])
    assert np.all(p[edge & (s > 1.001 * way)] == 1.0)
    assert np.all(p[edge & (s < 0.999 * way)] <= 0.5)


def test_the_margin_keeps_a_settled_integer_moving() -> None:
    sd = np.full(N, 1e-12)
    m_new, A_new = corrected(COORDINATES, 0.01, ENCODING.initial_mean, sd, np.ones(N))
    j = ENCODING.names.index("n")
    assert (sd * A_new)[j] == pytest.approx(0.5 / 2.5758293035489, rel=1e-12)  # both tails 0.005
    assert m_new[j] == pytest.approx(ENCODING.initial_mean[j])


@pytest.mark.parametrize("name", ["log", "powers", "n"])
def test_a_mean_on_a_threshold_is_no_trap(name: str) -> None:
    j = ENCODING.names.index(name)
    m = np.array(ENCODING.initial_mean)
    m[j] = threshold_above(COORDINATES, np.full(N, 1.0))[j]
    m_new, A_new = corrected(COORDINATES, 0.02, m, np.full(N, 1e-9), np.ones(N))
    assert A_new[j] > 1
    assert math.isfinite(m_new[j])


def test_a_tiny_alpha_gives_plain_cma_bit_for_bit() -> None:
    space = Space(
        {f"x{i}": Float(mean=2.0, std=1.0) for i in range(4)}
        | {f"n{i}": Int(-10, 10, mean=2.0, std=1.0) for i in range(4)}
    )
    plain = Optimizer(space, method=Cma(), seed=3)
    margin = Optimizer(space, method=Margin(alpha=1e-300), seed=3)
    for _ in range(40):
        for optimizer in (plain, margin):
            candidates = optimizer.ask()
            optimizer.tell(candidates, [float(sum(v * v for v in c.params.values())) for c in candidates])
        for name, part in plain.state._asdict().items():
            assert np.array_equal(part, getattr(margin.state, name)), name
        assert (margin.state.A == 1.0).all()
