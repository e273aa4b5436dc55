"""Optuna's distributions as variables of a space, and values there and back."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)
from optuna.trial import FrozenTrial, TrialState

from mixcma.encoding import Encoding
from mixcma.space import Bool, Float, Int, Params, Space, Value, Variable

Distributions = Mapping[str, BaseDistribution]


class Parameters:
    """The parameters of a study that are searched together, in the order of their names.

    Floats with a step are counted in steps; of two categories the second is True.
    """

    def __init__(self, distributions: Distributions) -> None:
        self.distributions = {name: distributions[name] for name in sorted(distributions)}
        self.encoding = Encoding(Space({name: variable(d) for name, d in self.distributions.items()}))

    def mean(self, x0: Mapping[str, Any]) -> list[float]:
        """The latent point where a search starts: at the values in `x0`, and in the middle of the other ranges."""
        values = {name: _inside(d, x0[name]) for name, d in self.distributions.items() if name in x0}
        mean: list[float] = self.encoding.encode_mean({name: float(value) for name, value in values.items()}).tolist()
        return mean

    def suggested(self, params: Params) -> dict[str, Any]:
        """Values of the space -> those that Optuna expects."""
        return {name: _outside(d, params[name]) for name, d in self.distributions.items()}

    def known(self, params: Mapping[str, Any]) -> Params | None:
        """The values of a trial that belong to the space, under their names; None if one lies outside of it."""
        inside: Params = {}
        for name, d in self.distributions.items():
            if name not in params:
                continue
            if not contains(d, params[name]):
                return None
            inside[name] = _inside(d, params[name])
        return inside


class CommonDistributions:
    """The parameters that all completed trials have, with the same distribution."""

    def __init__(self) -> None:
        self._read: set[int] = set()
        self._common: dict[str, BaseDistribution] | None = None

    @property
    def unknown(self) -> bool:
        """Whether no trial was completed yet."""
        return self._common is None

    def update(self, trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
        for trial in trials:
            if trial.number in self._read or not trial.state.is_finished():
                continue
            self._read.add(trial.number)
            if trial.state == TrialState.COMPLETE:
                common = trial.distributions if self._common is None else self._common
                self._common = {name: d for name, d in common.items() if trial.distributions.get(name) == d}
        return self._common or {}


def searched_together(distributions: Distributions) -> dict[str, BaseDistribution]:
    """Those that can be, and have more than one value."""
    return {name: d for name, d in distributions.items() if not d.single() and unsupported_because(name, d) is None}


def unsupported_because(name: str, distribution: BaseDistribution) -> str | None:
    """Why a distribution is no variable of ours; None if it is one."""
    return _unsupported_because(name, distribution_to_json(distribution))


@functools.lru_cache(maxsize=4096)
def _unsupported_because(name: str, distribution: str) -> str | None:
    try:
        Encoding(Space({name: variable(json_to_distribution(distribution))}))
    except ValueError as error:
        return str(error)
    return None


def variable(distribution: BaseDistribution) -> Variable:
    if isinstance(distribution, FloatDistribution):
        if distribution.step is not None:
            return Int(0, round((distribution.high - distribution.low) / distribution.step))
        return Float(distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution):
        return Int(distribution.low, distribution.high, step=distribution.step, log=distribution.log)
    if isinstance(distribution, CategoricalDistribution) and len(distribution.choices) == 2:
        return Bool()
    raise ValueError("choices of three or more have no order to search along")


def contains(distribution: BaseDistribution, value: Any) -> bool:
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except ValueError:  # NaN, or none of the choices
        return False


def _outside(distribution: BaseDistribution, value: Value) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(value)]
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return min(distribution.low + value * distribution.step, distribution.high)
    return value


def _inside(distribution: BaseDistribution, value: Any) -> Value:
    if isinstance(distribution, CategoricalDistribution):
        return bool(distribution.to_internal_repr(value))
    if isinstance(distribution, IntDistribution):
        return int(value)
    assert isinstance(distribution, FloatDistribution)
    if distribution.step is not None:
        return round((float(value) - distribution.low) / distribution.step)
    return float(value)
