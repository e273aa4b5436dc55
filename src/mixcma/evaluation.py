"""Turning candidates into outcomes."""

from __future__ import annotations

from collections.abc import Callable

from mixcma.outcome import Outcome, failure, interpret
from mixcma.space import Params

Objective = Callable[[Params], float | Outcome]


def evaluate(objective: Objective, params: Params, raise_errors: bool) -> Outcome:
    """Call the objective with its own copy of `params`; an exception is a failed evaluation."""
    try:
        returned = objective(dict(params))
    except Exception as error:
        if raise_errors:
            raise
        return failure(f"{type(error).__name__}: {error}")
    try:
        outcome = interpret(returned)
    except ValueError as error:  # -inf
        outcome = failure(str(error))
    if raise_errors and outcome.failed:
        raise ValueError(f"the objective: {outcome.error}")
    return outcome
