"""Optuna's distributions as variables: suggested values are valid in Optuna, and read back as what was drawn."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from mixcma import Margin, Mix
from mixcma.integrations.optuna.parameters import Parameters, contains, unsupported_because
from tests.integrations.optuna_studies import new_study, ran, taken

floats = st.builds(
    lambda low, width: FloatDistribution(low, low + width),
    st.floats(-1e12, 1e12),
    st.floats(1e-3, 1e12),
)
log_floats = st.builds(
    lambda low, ratio: FloatDistribution(low, low * ratio, log=True), st.floats(1e-200, 1e100), st.floats(1.01, 1e100)
)
stepped_floats = st.builds(
    lambda low, step, count: FloatDistribution(low, round(low + step * count, 6), step=step),
    st.sampled_from([0.0, -0.3, 0.1, 5.0, -1000.0]),
    st.sampled_from([0.1, 0.25, 0.7, 1e-3, 3.0]),
    st.integers(1, 5000),
)
ints = st.builds(
    lambda low, count, step: IntDistribution(low, low + count * step, step=step),
    st.integers(-(10**9), 10**9),
    st.integers(1, 10**9),
    st.integers(1, 50),
)
log_ints = st.builds(
    lambda low, count: IntDistribution(low, low + count, log=True), st.integers(1, 10**6), st.integers(1, 10**9)
)
pairs = st.sampled_from(
    [(False, True), (True, False), (1, "a"), (None, 0.5), ("", "b"), (math.nan, 1.0), (0, 1), (2.5, "2.5")]
).map(CategoricalDistribution)
distributions = floats | log_floats | stepped_floats | ints | log_ints | pairs

MIX = Mix()


def as_stored(distribution, value):
    return distribution.to_external_repr(distribution.to_internal_repr(value))


def check_there_and_back(distribution, latents):
    parameters = Parameters({"a": distribution})
    for inside in parameters.encoding.decode(parameters.encoding.initial_mean + np.array(latents)[:, None]):
        outside = parameters.suggested(inside)["a"]
        assert contains(distribution, outside), outside
        assert parameters.known({"a": as_stored(distribution, outside)}) == inside


@settings(max_examples=200)
@given(distributions, st.lists(st.floats(-5, 5), min_size=1, max_size=5))
def test_what_is_suggested_is_valid_and_reads_back_as_what_was_drawn(distribution, latents):
    assume(not distribution.single())
    assert unsupported_because("a", distribution, MIX) is None
    check_there_and_back(distribution, latents)


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(0, 1000, step=1e-5),
        FloatDistribution(1e6, 1e6 + 1, step=1e-3),
        IntDistribution(0, 2**53),
        IntDistribution(2**53, 2**53 + 99),
        IntDistribution(0, 2**60 - 1),
        IntDistribution(-5, 10**17 - 3, step=7),
        IntDistribution(1, 2**62, log=True),
        FloatDistribution(1e-300, 1e300, log=True),
        FloatDistribution(1.0, math.nextafter(1.0, 2.0)),
        FloatDistribution(-8e307, 8e307),
    ],
    ids=str,
)
def test_extreme_ranges_are_searched_or_left_to_the_independent_sampler(distribution):
    if unsupported_because("a", distribution, MIX) is None:
        parameters = Parameters({"a": distribution})
        for inside in parameters.encoding.decode(parameters.encoding.initial_mean + np.linspace(-3, 3, 50)[:, None]):
            stored = as_stored(distribution, parameters.suggested(inside)["a"])
            assert parameters.known({"a": stored}) is not None, stored


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-1.7e308, 1.7e308),
        FloatDistribution(-1.7e308, 1.7e308, step=1e300),
        FloatDistribution(5e-324, 1e-323),
        IntDistribution(-(2**62), 2**62),
        IntDistribution(2**63, 2**63 + 9),
    ],
    ids=str,
)
def test_what_cannot_be_searched_says_why(distribution):
    assert isinstance(unsupported_because("a", distribution, MIX), str)


@pytest.mark.parametrize("choices", [(print, len), (print, len, max), ((1,), (1, 2))], ids=str)
def test_choices_of_any_type_can_be_asked_about(choices):
    with pytest.warns(UserWarning, match="for persistent storage"):
        distribution = CategoricalDistribution(choices)
    assert unsupported_because("a", distribution, MIX) is None
    assert (unsupported_because("a", distribution, Margin()) is None) == (len(choices) == 2)


@given(distributions, st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3))
def test_containment_can_be_asked_for_values_of_any_type(distribution, value):
    assert contains(distribution, value) in (True, False)
    if contains(distribution, value) and not distribution.single():
        assert Parameters({"a": distribution}).known({"a": value}) is not None


def test_values_outside_make_the_whole_trial_unknown_and_missing_ones_do_not():
    parameters = Parameters({"x": FloatDistribution(0, 1), "n": IntDistribution(0, 4, step=2)})
    assert parameters.known({"x": 0.5, "other": 3}) == {"x": 0.5}
    assert parameters.known({"x": 0.5, "n": 3}) is None
    assert parameters.known({"x": 1.5, "n": 2}) is None


def test_the_order_in_which_distributions_come_does_not_matter():
    one = {"b": FloatDistribution(0, 1), "a": FloatDistribution(0, 2)}
    assert Parameters(one).encoding.names == Parameters(dict(reversed(one.items()))).encoding.names == ("a", "b")


@pytest.mark.parametrize("choices", [(1, "a"), (None, 0.5), (True, 1), (math.nan, 1.0), ("a", "a")], ids=str)
def test_any_two_choices_can_be_searched(choices):
    def objective(trial):
        return trial.suggest_float("x", 0, 1) + (trial.suggest_categorical("c", choices) == 1)

    study = ran(new_study(space=None), 13, objective)
    assert len(taken(study)) == 3


@pytest.mark.parametrize("name", ["", " ", "a:b", "mixcma:", "ü\n\0", "x" * 500, "a.b[0]"])
def test_names_may_have_any_characters(name):
    study = ran(new_study(space=None), 13, lambda t: t.suggest_float(name, 0, 1) + t.suggest_float("x", 0, 1))
    assert len(taken(study)) == 3


def test_parameters_with_one_value_are_left_out():
    def objective(trial):
        return trial.suggest_float("x", 0, 1) + trial.suggest_int("one", 3, 3) + trial.suggest_float("y", 2, 2)

    study = ran(new_study(space=None), 13, objective)
    assert len(taken(study)) == 3
    assert {(trial.params["one"], trial.params["y"]) for trial in study.trials} == {(3, 2.0)}


def test_a_space_of_single_values_is_no_error():
    study = optuna.create_study(sampler=new_study(space={"x": FloatDistribution(1, 1)}).sampler)
    assert ran(study, 3, lambda trial: trial.suggest_float("x", 1, 1)).best_value == 1
