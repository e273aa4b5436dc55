"""Optuna's distributions as variables of a space, and the conversion of values in both directions."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)
from optuna.trial import FrozenTrial

from mixcma.core.methods import Method
from mixcma.latent.encoding import Encoding
from mixcma.space import Bool, Categorical, Float, Int, Params, Space, Value, Variable

Distributions = Mapping[str, BaseDistribution]

# A value of a distribution with a step may be off by this fraction of a step.
LARGEST_ROUNDING = 1e-3


class When(NamedTuple):
    """A parameter exists only where another one has one of these values."""

    parent: str
    values: tuple[Any, ...]  # as Optuna has them


class Parameters:
    """The parameters of a study that are searched together, in the order of their names.

    A float with a step becomes the number of its steps. Of two choices the second becomes True; three or more choices
    become their index. `conditions` say which parameters exist only with certain values of another one.
    """

    def __init__(
        self, distributions: Distributions, categories: bool = False, conditions: Mapping[str, When] | None = None
    ) -> None:
        self.distributions = {name: distributions[name] for name in sorted(distributions)}
        when = {name: dict([_condition(distributions, of)]) for name, of in (conditions or {}).items()}
        variables = {name: replace(variable(d), when=when.get(name)) for name, d in self.distributions.items()}
        self.encoding = Encoding(Space(variables), categories)

    def mean(self, x0: Mapping[str, Any]) -> list[float]:
        """The latent point where a search starts: the values in `x0`, and the middle of all other ranges."""
        check_x0(x0, self.distributions)
        values = {name: _from_optuna(d, x0[name]) for name, d in self.distributions.items() if name in x0}
        space = self.encoding.space
        numbers = {n: float(value) for n, value in values.items() if not isinstance(space[n], Categorical)}
        mean = self.encoding.encode_mean(numbers)
        for j, name in enumerate(self.encoding.names):
            if isinstance(space[name], Categorical) and name in values:
                mean[j] = values[name]
        return [float(latent) for latent in mean]

    def suggested(self, params: Params) -> dict[str, Any]:
        """Convert values of the space to those that Optuna expects."""
        return {name: _to_optuna(d, params[name]) for name, d in self.distributions.items() if name in params}

    def known(self, params: Mapping[str, Any]) -> Params | None:
        """Convert a trial's values to those of the space, by name; None if one of them lies outside the space."""
        inside: Params = {}
        for name, d in self.distributions.items():
            if name not in params:
                continue
            if not contains(d, params[name]):
                return None
            inside[name] = _from_optuna(d, params[name])
        return inside

    def complete(self, params: Mapping[str, Any]) -> Params | None:
        """The same without parameters that do not exist there; None also if one is missing that does."""
        known = self.known(params)
        if known is None:
            return None
        try:
            return self.encoding.space.check_params(known)
        except ValueError:
            return None


class Unfinished:
    """Remembers which trials were already finished at the last call, and returns all others."""

    def __init__(self) -> None:
        self._finished: set[int] = set()
        self._first = 0  # all trials before this one are finished

    def __call__(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        first = self._first
        if first > len(trials) or (first and trials[first - 1].number != first - 1):  # some trials are hidden
            first = 0
        new = [trial for trial in trials[first:] if trial.number not in self._finished]
        self._finished.update(trial.number for trial in new if trial.state.is_finished())
        while first < len(trials) and trials[first].number == first and first in self._finished:
            first += 1
        self._first = max(self._first, first)
        return new


def searched_together(distributions: Distributions, method: Method) -> dict[str, BaseDistribution]:
    """The distributions that the method can search, and that have more than one value."""
    free = {name: d for name, d in distributions.items() if not d.single()}
    return {name: d for name, d in free.items() if unsupported_because(name, d, method) is None}


def unsupported_because(name: str, distribution: BaseDistribution, method: Method) -> str | None:
    """Why the method cannot search a distribution; None if it can."""
    if isinstance(distribution, CategoricalDistribution):  # not cached, since its choices may be of any type
        known = len(distribution.choices) == 2 or method.takes_categories
        return None if known else f"{type(method).__name__} cannot search categories of three or more choices"
    return _unsupported_because(name, distribution_to_json(distribution))


@functools.lru_cache(maxsize=4096)
def _unsupported_because(name: str, distribution: str) -> str | None:
    loaded = json_to_distribution(distribution)
    if isinstance(loaded, IntDistribution) and max(-loaded.low, loaded.high) > 2**53:
        return "Optuna stores numbers as floats, which cannot tell integers beyond 2**53 apart"
    try:
        Encoding(Space({name: variable(loaded)}))
    except (ValueError, OverflowError) as error:
        return str(error)
    return None


def check_x0(x0: Mapping[str, Any], distributions: Distributions) -> None:
    for name, value in x0.items():
        if name in distributions and not contains(distributions[name], value):
            raise ValueError(
                f"x0: expected a value of {distributions[name]} for {name!r}, but got {value!r}; choose another"
            )


def description(distribution: BaseDistribution) -> str:
    """A text that is the same for all distributions that are searched in the same way."""
    if isinstance(distribution, CategoricalDistribution):
        return repr(distribution)
    return distribution_to_json(distribution)


def _condition(distributions: Distributions, when: When) -> tuple[str, list[Value]]:
    return when.parent, [_from_optuna(distributions[when.parent], value) for value in when.values]


def variable(distribution: BaseDistribution) -> Variable:
    if isinstance(distribution, FloatDistribution):
        if distribution.step is not None:
            return Int(0, round((distribution.high - distribution.low) / distribution.step))
        return Float(distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution):
        return Int(distribution.low, distribution.high, step=distribution.step, log=distribution.log)
    assert isinstance(distribution, CategoricalDistribution)
    return Bool() if len(distribution.choices) == 2 else Categorical(range(len(distribution.choices)))


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a distribution contains a value, up to rounding: Optuna stores numbers as floats."""
    try:
        number = distribution.to_internal_repr(value)
    except (ValueError, TypeError, OverflowError):  # NaN, not a number, or not one of the choices
        return False
    if isinstance(distribution, CategoricalDistribution):
        return True
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if not distribution.low <= number <= distribution.high:
        return False
    if distribution.step is None or distribution.log:
        return True
    steps = (number - distribution.low) / distribution.step
    return abs(steps - round(steps)) <= LARGEST_ROUNDING


def _to_optuna(distribution: BaseDistribution, value: Value) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(value)]
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return min(distribution.low + value * distribution.step, distribution.high)
    return value


def _from_optuna(distribution: BaseDistribution, value: Any) -> Value:
    if isinstance(distribution, CategoricalDistribution):
        place = int(distribution.to_internal_repr(value))
        return bool(place) if len(distribution.choices) == 2 else place
    if isinstance(distribution, IntDistribution):
        return int(value)
    assert isinstance(distribution, FloatDistribution)
    if distribution.step is not None:
        return round((float(value) - distribution.low) / distribution.step)
    return float(value)
