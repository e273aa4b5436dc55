"""Export a run file as a study in an Optuna storage, so that optuna-dashboard and Optuna's plots can show it."""

from __future__ import annotations

from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from mixcma.space import Bool, Categorical, Float, Int, Variable
from mixcma.store import Record, Row


def export_to_optuna(record: Record, storage: str, name: str) -> int:
    """Put every finished evaluation into a new study, and return how many there were.

    Evaluations that failed become failed trials; an infinite value stays a value.
    """
    try:
        study = optuna.create_study(storage=storage, study_name=name, direction="minimize")
    except optuna.exceptions.DuplicatedStudyError:
        raise ValueError(
            f"--study: expected a new name, but {storage} already has a study named {name}; choose another name"
        ) from None
    except Exception as error:  # every database driver has its own exceptions
        raise ValueError(
            f"--optuna: expected the URL of a storage, but {storage} cannot be opened ({error}); write sqlite:///study.db"
        ) from error
    distributions = {
        variable: distribution(
            record.space[variable], [row.params[variable] for row in record.rows if variable in row.params]
        )
        for variable in record.space
    }
    study.set_user_attr("mixcma", record.settings["versions"])
    rows = [row for row in record.rows if row.evaluated]
    study.add_trials([_trial(row, distributions) for row in rows])
    return len(rows)


def distribution(variable: Variable, seen: list[Any]) -> BaseDistribution:
    """The closest distribution that Optuna has. A float without bounds gets those of the values that were evaluated."""
    if isinstance(variable, Float):
        low = variable.low if variable.low is not None else min(seen, default=0.0)
        high = variable.high if variable.high is not None else max(seen, default=1.0)
        return FloatDistribution(low, high, log=variable.log)
    if isinstance(variable, Int):
        log = variable.log and variable.step == 1
        return IntDistribution(variable.low, variable.high, log=log, step=variable.step)
    if isinstance(variable, Bool):
        return CategoricalDistribution([False, True])
    if isinstance(variable, Categorical):
        return CategoricalDistribution(list(variable.choices))
    return CategoricalDistribution(list(variable.values))  # type: ignore[attr-defined]  # a Discrete


def _trial(row: Row, distributions: dict[str, BaseDistribution]) -> optuna.trial.FrozenTrial:
    outcome = row.outcome
    assert outcome is not None
    about: dict[str, Any] = {"run": row.run, "generation": row.generation, "slot": row.slot, "seconds": row.seconds}
    if outcome.failed:
        about["error"] = outcome.error
    return create_trial(
        state=TrialState.FAIL if outcome.failed else TrialState.COMPLETE,
        value=None if outcome.failed else outcome.value,
        params=dict(row.params),
        distributions=distributions,
        user_attrs=about,
        system_attrs={"constraints": list(outcome.constraints)} if outcome.constraints else {},
    )
