"""Laws of variables that do not exist everywhere: names of choices, the order of variables and variables that never
exist make no difference, and what a candidate lacks has no effect on what is learnt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixcma import Bool, Categorical, Float, Int, Space
from mixcma.core.gaussian import start_at
from mixcma.core.methods import Mix
from mixcma.core.sampling import Sample
from mixcma.latent.encoding import Encoding
from mixcma.run.noise import NoiseSource

METHOD, POPSIZE, GENERATIONS, RTOL = Mix(model=False, keep_inside=False), 12, 40, 1e-7
VARIABLES = {
    "x": Float(-3, 3),
    "C": Float(-3, 3, when={"model": "a"}),
    "gamma": Float(-3, 3, when={"kernel": ["q", "r"]}),
    "n": Int(-5, 5, when={"model": ["a", "b"]}),
    "k": Int(0, 20, when={"on": True}),
    "m": Int(-9, 9),
    "on": Bool(),
    "model": Categorical(list("abc")),
    "kernel": Categorical(list("pqr"), when={"model": "a"}),
}
BEST = {"x": 0.5, "C": -1.0, "gamma": 1.0, "n": 2, "k": 11, "m": -3, "on": True, "model": "a", "kernel": "q"}


def cost(params):
    """By name, so that the order does not matter."""
    total = 0.3 * (len(BEST) - len(params))
    for name, value in params.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        total += ((value - BEST[name]) / (10 if name in "nkm" else 3)) ** 2 if number else value != BEST[name]
    return total


class Run:
    """A run of the core on a space; `names` in the order of the latent coordinates."""

    def __init__(self, variables):
        self.encoding = Encoding(Space(variables), True)
        self.names = self.encoding.names
        self.setting = METHOD.setting(self.encoding.coordinates, POPSIZE)
        choices = self.encoding.coordinates.choices
        # the first choice is the likeliest, so that the order of equal ones does not matter
        uneven = np.array([np.where(np.arange(choices.max()) < K, 0.9 / K, 0.0) for K in choices])
        uneven[:, 0] += 0.1
        mean = np.where(np.arange(len(self.names)) < len(self.names) - len(choices), self.encoding.initial_mean, 0.0)
        self.state = METHOD.initial_state(self.setting, start_at(mean, choices)._replace(theta=uneven))

    def sample(self, noise):
        return METHOD.sample(self.setting, self.state, noise)

    def values(self, sample):
        return np.array([cost(params) for params in self.encoding.decode(sample.v, sample.cells)])

    def tell(self, sample, values):
        self.state = METHOD.decomposed(METHOD.tell(self.setting, self.state, sample, values))

    def places(self, names):
        return [self.names.index(name) for name in names]


def source(dimension, seed):
    return NoiseSource(seed, 0, POPSIZE, dimension, uniforms=True)


def assert_same(one, other, names):
    """The two states are the same in these variables."""
    mine, theirs = one.places(names), other.places(names)
    for part in ("m", "A", "p_sigma", "p_c", "live", "p"):
        a, b = getattr(one.state, part)[mine], getattr(other.state, part)[theirs]
        np.testing.assert_allclose(a, b, rtol=RTOL, atol=1e-9, err_msg=part)
    C = one.state.C[np.ix_(mine, mine)], other.state.C[np.ix_(theirs, theirs)]
    np.testing.assert_allclose(*C, rtol=RTOL, atol=1e-9)
    np.testing.assert_allclose(one.state.sigma, other.state.sigma, rtol=RTOL)
    assert one.state.g_idle == other.state.g_idle


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_of_variables_does_not_matter(seed):
    one, other = Run(VARIABLES), Run(dict(reversed(VARIABLES.items())))
    assert one.names != other.names
    places, noise_of = one.places(other.names), source(len(one.names), seed)
    for generation in range(GENERATIONS):
        noise = noise_of(generation)
        sample = one.sample(noise)
        moved = Sample(*(part[..., places] for part in sample[:-1]), sample.older)
        values = one.values(sample)
        np.testing.assert_allclose(other.values(moved), values)
        one.tell(sample, values)
        other.tell(moved, values)
        assert_same(one, other, one.names)
        order = [one.names.index(name) - len(one.names) for name in other.names[-3:]]
        np.testing.assert_allclose(one.state.categories.theta[order], other.state.categories.theta, rtol=RTOL)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_names_of_choices_do_not_matter(seed):
    """The same run with the choices of two categories in another order."""
    turned = {"model": Categorical(list("cab")), "kernel": Categorical(list("rpq"), when={"model": "a"})}
    one, other = Run(VARIABLES), Run({**VARIABLES, **turned})
    columns = one.places(["model", "kernel"])
    rows = [column - len(one.names) for column in columns]
    for run in (other,):  # it begins where the first does
        theta, m = run.state.categories.theta.copy(), run.state.m.copy()
        theta[rows] = theta[rows][:, [2, 0, 1]]
        m[columns] = 1.0
        run.state = run.state._replace(m=m, categories=run.state.categories._replace(theta=theta))
    noise_of = source(len(one.names), seed)
    for generation in range(GENERATIONS):
        sample = one.sample(noise_of(generation))
        v, cells = sample.v.copy(), np.array(sample.cells)
        v[:, columns] = cells[:, columns] = (v[:, columns] + 1) % 3
        renamed, values = sample._replace(v=v, cells=cells), one.values(sample)
        np.testing.assert_allclose(other.values(renamed), values)
        one.tell(sample, values)
        other.tell(renamed, values)
        np.testing.assert_allclose(
            one.state.categories.theta[rows], other.state.categories.theta[rows][:, [1, 2, 0]], rtol=RTOL
        )
        assert_same(one, other, [name for name in one.names if name not in ("model", "kernel")])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_variable_that_never_exists_makes_no_difference(seed):
    ghost = {"ghost": Float(-3, 3, when={"model": "b", "n": -5, "m": 9})}  # hardly ever
    one, other = Run(VARIABLES), Run({**VARIABLES, **ghost})
    places, noise_of = other.places(one.names), source(len(other.names), seed)
    for generation in range(GENERATIONS):
        noise = noise_of(generation)
        sample = other.sample(noise)
        assert not any("ghost" in params for params in other.encoding.decode(sample.v, sample.cells))
        without = Sample(*(part[..., places] for part in sample[:-1]), sample.older)
        values = one.values(without)
        one.tell(without, values)
        other.tell(sample, values)
        assert_same(one, other, one.names)
        np.testing.assert_allclose(one.state.categories.theta, other.state.categories.theta, rtol=RTOL)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_covariance_stays_positive_definite_whatever_exists(seed):
    run, rng = Run(VARIABLES), np.random.default_rng(seed)
    noise_of = source(len(run.names), seed)
    for generation in range(30):
        run.tell(run.sample(noise_of(generation)), rng.standard_normal(POPSIZE))
        assert np.linalg.eigvalsh(run.state.C)[0] > 0
        assert np.isfinite(run.state.C).all()


def test_what_a_candidate_lacks_is_at_the_mean():
    run = Run({name: replace(variable, std=None) for name, variable in VARIABLES.items()})
    sample = run.sample(source(len(run.names), 1)(0))
    for i, params in enumerate(run.encoding.decode(sample.v, sample.cells)):
        lacking = run.places([name for name in run.names if name not in params])
        assert not sample.y[i, lacking].any()
        assert not sample.step[i, lacking].any()
        assert sample.v[i, lacking].tolist() == run.state.m[lacking].tolist()
