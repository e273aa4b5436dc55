"""Which parameters the trials of a study have, and with which values of which others each of them comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from mixcma.integrations.optuna.parameters import Unfinished, When

# Integers with at most so many values may say whether another parameter exists.
MOST_VALUES = 20
# Conditions are looked for while at most so many combinations of choices and presence have been seen.
MOST_COMBINATIONS = 2000

# The choices of a trial: (name, index of the value) of all parameters that may decide about others.
Choices = frozenset[tuple[str, float]]


class SeenParameters:
    """The parameters of the completed trials, as far as they can be searched together.

    A parameter that only some trials have is searched if it comes with certain values of another parameter, and with
    these alone. What has been seen may turn out to be otherwise: then the conditions change as the study grows.
    """

    def __init__(self) -> None:
        self._unfinished = Unfinished()
        self._distributions: dict[str, BaseDistribution] = {}
        self._changing: set[str] = set()  # parameters that come with different distributions
        self._combinations: dict[Choices, set[frozenset[str]]] = {}  # which parameters were there with these choices
        self._found: tuple[dict[str, BaseDistribution], dict[str, When]] | None = {}, {}

    def update(self, trials: Sequence[FrozenTrial]) -> tuple[dict[str, BaseDistribution], dict[str, When]]:
        """The distributions of the parameters to search, and the conditions of those that do not always exist."""
        for trial in self._unfinished(trials):
            if trial.state == TrialState.COMPLETE:
                self._see(trial)
        if self._found is None:
            self._found = self._searched()
        return self._found

    def is_left_out(self, name: str, distribution: BaseDistribution) -> bool:
        """Whether completed trials have shown that a parameter cannot be searched together with the others."""
        searched = {} if self._found is None else self._found[0]
        return name in self._distributions and searched.get(name) != distribution

    def _see(self, trial: FrozenTrial) -> None:
        for name, distribution in trial.distributions.items():
            if self._distributions.setdefault(name, distribution) != distribution and name not in self._changing:
                self._changing.add(name)
                self._found = None
        deciding = {n: d for n, d in trial.distributions.items() if _may_decide(d)}
        choices = frozenset((n, d.to_internal_repr(trial.params[n])) for n, d in deciding.items())
        present = frozenset(trial.distributions)
        if len(self._combinations) <= MOST_COMBINATIONS:
            seen = self._combinations.setdefault(choices, set())
            if present not in seen:
                seen.add(present)
                self._found = None

    def _searched(self) -> tuple[dict[str, BaseDistribution], dict[str, When]]:
        combinations = [(dict(choices), each) for choices, seen in self._combinations.items() for each in seen]
        steady = {name: d for name, d in self._distributions.items() if name not in self._changing}
        count = {name: sum(name in present for _, present in combinations) for name in steady}
        searched: dict[str, BaseDistribution] = {}
        conditions: dict[str, When] = {}
        for name in sorted(steady, key=lambda n: (-count[n], n)):  # parents come before their children
            if count[name] == len(combinations):
                searched[name] = steady[name]
                continue
            parents = [parent for parent in searched if count[parent] > count[name] and _may_decide(searched[parent])]
            for parent in parents:
                values = _deciding_values(name, parent, combinations)
                if values is not None:
                    given = sorted(values)
                    conditions[name] = When(parent, tuple(map(searched[parent].to_external_repr, given)))
                    searched[name] = steady[name]
                    break
        return searched, conditions


def _may_decide(distribution: BaseDistribution) -> bool:
    """Whether values of this distribution may say which other parameters exist."""
    if isinstance(distribution, IntDistribution):
        return (distribution.high - distribution.low) // distribution.step < MOST_VALUES
    return isinstance(distribution, CategoricalDistribution)


def _deciding_values(
    name: str, parent: str, combinations: Sequence[tuple[dict[str, float], frozenset[str]]]
) -> set[float] | None:
    """The values of `parent` with which `name` comes; None if it also comes without the parent, or is missing with one
    of these values."""
    having: list[Any] = [choices.get(parent) for choices, present in combinations if name in present]
    lacking = {choices.get(parent) for choices, present in combinations if name not in present}
    return None if None in having or lacking & set(having) else set(having)
