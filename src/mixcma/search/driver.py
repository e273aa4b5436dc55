"""minimize() and resume(): what a user calls."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from mixcma.core.methods import Method
from mixcma.core.stopping import INTERRUPTED, Stopping, StopReason
from mixcma.core.strategy import default_popsize
from mixcma.evaluation import Objective, Workers, checked_workers, open_evaluator
from mixcma.latent.encoding import Encoding
from mixcma.run.arguments import (
    checked_count,
    checked_method,
    checked_points,
    checked_popsize,
    checked_seed,
    checked_space,
    checked_stopping,
    checked_target,
)
from mixcma.run.noise import fresh_seed
from mixcma.run.optimizer import DEFAULT_METHOD, Optimizer
from mixcma.run.restarts import allowed_restarts
from mixcma.run.warm_start import History
from mixcma.search import Account, AsynchronousSearch, Callback, SynchronousSearch, take_up
from mixcma.search.interrupts import Interrupts
from mixcma.search.progress import progress_display
from mixcma.search.result import Result
from mixcma.search.settings import Settings, describe_method, refuse_differences, versions
from mixcma.space import Params, Space
from mixcma.store import DamagedRunFile, NoFile, RunFile, read

logger = logging.getLogger("mixcma")


def minimize(
    objective: Objective,
    space: Space,
    *,
    budget: int,
    target: float | None = None,
    method: str | Method | None = None,
    seed: int | None = None,
    popsize: int | None = None,
    restarts: bool | int = True,
    workers: Workers = 1,
    timeout: float | None = None,
    asynchronous: bool = False,
    run_file: str | PathLike[str] | None = None,
    notes: Mapping[str, Any] | None = None,
    x0: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    history: History | str | PathLike[str] = (),
    callback: Callback | None = None,
    progress: bool = False,
    on_error: Literal["fail", "raise"] = "fail",
    cache: bool | None = None,
    stopping: Stopping = Stopping(),
) -> Result:
    """Minimise `objective` over `space`.

    Parameters
    ----------
    objective
        A function of a dict of Python values by variable name. It returns a number, or an `Outcome` with
        constraints. If it raises an exception or returns NaN, the evaluation has failed and is ranked last.
    space
        The variables by name: `Float`, `Int`, `Bool`, `Discrete` (a set of numbers) and `Categorical` (choices
        without an order), in any mixture.
    budget
        The largest number of evaluations.
    target
        Stop as soon as a feasible value is at or below this.
    method, popsize, stopping
        As for `Optimizer`; `popsize` is that of the first run. Only ``"mix"``, the default,
        ``"mix-without-model"`` and ``"catmargin"`` can search categories of three or more choices.
    seed
        The same seed gives the same search; None draws one, which the result reports.
    restarts
        Whether to start again, from a random point and with 1, 2, 1, 1, 2, 4, 1, ... times the population, when a run
        has converged before the budget is spent; a number allows at most that many restarts.
    workers
        What evaluates the objective: a number of processes, any `concurrent.futures.Executor`, or
        ``"dask:tcp://host:8786"``. With 1 (and no timeout) the objective is called in this process. A worker
        that dies is replaced and its evaluation repeated, up to twice.
    timeout
        Seconds after which an evaluation is ended, with all processes it started, and counts as failed.
    asynchronous
        Keep every worker busy instead of waiting for each generation to be complete. This is faster where
        evaluations take different times; but the result then depends on those times, and points that are
        fast to evaluate take part in more updates.
    run_file
        The file that keeps the search as it goes. If the file exists, the search continues where it stood: after
        a crash, a kill or Ctrl-C, with exactly the candidates it would have had. `budget` and `target` may then
        differ; `x0` and `history` are not needed again.
    notes
        Anything you want to find in the run file later, by name, as far as JSON can hold it.
    x0
        A point to start from, or several: they are evaluated first, and the best becomes the first mean.
    history
        Points with values, ``[(params, value), ...]``, or an earlier run file: they shape the first mean,
        step size and covariance, and the model learns from up to a hundred of them. The values are not taken as results
        of this objective.
    callback
        A function that is called with a `Progress` after every generation; a true return value stops the search.
    progress
        Show a live display in the terminal.
    on_error
        ``"fail"`` counts an exception as a failed evaluation, ``"raise"`` passes it on to the caller.
    cache
        Whether a point that was evaluated before is answered from memory, at no cost to the budget; by default,
        where every variable is discrete. The search then ends when every point of the space is known, and a
        run ends after 100 generations in a row without a new point.

    Examples
    --------
    >>> from mixcma import Categorical, Float, Int, Space, minimize
    >>> space = Space({"x": Float(-5, 5), "n": Int(0, 9), "alloy": Categorical(["steel", "brass", "bronze"])})
    >>> def cost(p):
    ...     return p["x"]**2 + (p["n"] - 3)**2 + (p["alloy"] != "brass")
    >>> result = minimize(cost, space, budget=2000, target=1e-9, seed=1)
    >>> result.params["n"], result.params["alloy"], result.stop.name
    (3, 'brass', 'target')
    """
    how = _How(objective, workers, timeout, callback, progress, on_error)
    _check_settings(target, restarts, asynchronous, cache)
    checked_space(space)
    budget, popsize = checked_count("budget", budget, 1), checked_popsize(popsize)
    chosen = None if method is None else checked_method(method)
    seed = None if seed is None else checked_seed(seed)
    points = checked_points(space, x0)
    encoding = Encoding(space)
    with Interrupts().handled() as interrupts, ExitStack() as stack:
        file = _opened(stack, run_file, points)
        if file.record is not None:
            kept = file.record.settings
            given = {
                "space": space.to_dict(),
                "method": chosen and describe_method(chosen),
                "seed": seed,
                "popsize": popsize,
                "asynchronous": asynchronous,
            }
            refuse_differences(file.path, kept, given)
            seed, popsize = kept["seed"], kept["popsize"]
            chosen = Settings.from_dict(kept).method if chosen is None else chosen
        settings = Settings(
            space=space,
            method=checked_method(DEFAULT_METHOD) if chosen is None else chosen,
            seed=fresh_seed() if seed is None else seed,
            popsize=default_popsize(encoding.dimension) if popsize is None else popsize,
            budget=budget,
            target=None if target is None else float(target),
            restarts=restarts if isinstance(restarts, bool) else int(restarts),
            cache=space.size is not None if cache is None else cache,
            asynchronous=asynchronous,
            stopping=checked_stopping(stopping),
        )
        return _search(settings, how, file, points, _points_of(history), _checked_notes(notes), interrupts, stack)


def resume(
    run_file: str | PathLike[str],
    objective: Objective,
    *,
    budget: int | None = None,
    target: float | None = None,
    workers: Workers = 1,
    timeout: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    on_error: Literal["fail", "raise"] = "fail",
) -> Result:
    """Continue the search of a run file, with the settings it was begun with.

    Parameters
    ----------
    run_file, objective
        The file that `minimize` kept, and the same objective.
    budget, target
        Those of the whole search; None leaves them as they were.
    workers, timeout, callback, progress, on_error
        As for `minimize`.
    """
    how = _How(objective, workers, timeout, callback, progress, on_error)
    if target is not None:
        _check_settings(target, True, False, None)
    with Interrupts().handled() as interrupts, ExitStack() as stack:
        file = _opened(stack, run_file, (), must_exist=True)
        assert file.record is not None
        settings = Settings.from_dict(file.record.settings)
        if budget is not None:
            settings = replace(settings, budget=checked_count("budget", budget, 1))
        if target is not None:
            settings = replace(settings, target=float(target))
        return _search(settings, how, file, (), (), {}, interrupts, stack)


@dataclass(frozen=True)
class _How:
    """How a search is carried out; this may change when the search is continued."""

    objective: Objective
    workers: Workers
    timeout: float | None
    callback: Callback | None
    progress: bool
    on_error: str

    def __post_init__(self) -> None:
        if not callable(self.objective):
            raise ValueError(f"objective: expected a function of a dict, but got {self.objective!r}; pass a callable")
        checked_workers(self.workers)
        timeout = self.timeout
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, Real) or not timeout > 0):
            raise ValueError(f"timeout: expected a number of seconds above 0, but got {timeout!r}; leave it out")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(
                f"callback: expected a function of a Progress or None, but got {self.callback!r}; pass a callable"
            )
        if self.on_error not in ("fail", "raise"):
            raise ValueError(f'on_error: expected "fail" or "raise", but got {self.on_error!r}; choose one of them')


def _search(
    settings: Settings,
    how: _How,
    file: RunFile | NoFile,
    x0: Sequence[Params],
    history: History,
    notes: Mapping[str, Any],
    interrupts: Interrupts,
    stack: ExitStack,
) -> Result:
    """Open what the search needs (`stack` closes it), begin or continue the search, and let it run."""
    with interrupts.allowed():
        timeout = None if how.timeout is None else float(how.timeout)
        evaluator = open_evaluator(how.objective, how.workers, timeout)
    stack.callback(evaluator.close)
    display = stack.enter_context(progress_display(settings.budget)) if how.progress else None
    account = Account(settings.budget, settings.target, settings.cache, settings.space.size)
    kind = AsynchronousSearch if settings.asynchronous else SynchronousSearch
    search = kind(
        evaluator,
        account,
        file,
        interrupts,
        callback=how.callback,
        display=display,
        raise_errors=how.on_error == "raise",
    )
    optimizer = _first_optimizer(settings, account, file, x0, history, notes)
    if file.record is not None:
        search.go_on_from(file.record, optimizer)
    try:
        stop = search.run_all(optimizer, settings.optimizer, allowed_restarts(settings.restarts))
        if interrupts.waiting:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        stop = INTERRUPTED
        if file.path is not None:
            logger.warning(
                "interrupted after %d evaluations, all of which are in %s; to continue, make the same call again, or "
                "mixcma.resume(%r, objective)",
                account.evaluations, file.path, str(file.path),
            )  # fmt: skip
    file.set("stop", stop.name)
    file.settle()  # the result says where the file is, even if something has happened to it at the very end
    return _result(settings, account, stop, file.path)


def _first_optimizer(
    settings: Settings,
    account: Account,
    file: RunFile | NoFile,
    x0: Sequence[Params],
    history: History,
    notes: Mapping[str, Any],
) -> Optimizer:
    """The optimizer to begin with, or restored from the file; a new file is created with it."""
    if isinstance(file, RunFile):
        if file.record is not None:
            optimizer = settings.optimizer(file.record.snapshot_run)
            if optimizer.run == 0:
                optimizer.know(file.record.history)
            take_up(account, optimizer, file.record)  # what cannot go on is refused before anything is written
            for name in ("target", "restarts", "cache", "stopping"):
                file.set(name, settings.to_dict()[name])
            spent = sum(row.evaluated for row in file.record.rows)
            file.set("budget", max(settings.budget, spent))
            file.set("stop", None)
            return optimizer
        optimizer = settings.optimizer(0, history)
        about = {"versions": versions(), "created": time.time(), "stop": None, "notes": dict(notes)}
        file.create({**settings.to_dict(), **about}, optimizer, x0)
        return optimizer
    return settings.optimizer(0, history)


def _opened(
    stack: ExitStack, run_file: str | PathLike[str] | None, x0: Sequence[Params], must_exist: bool = False
) -> RunFile | NoFile:
    if run_file is None:
        return NoFile(x0)
    if not isinstance(run_file, str | PathLike):
        raise ValueError(f'run_file: expected a path, but got {run_file!r}; write run_file="run.db"')
    file = RunFile(Path(run_file), must_exist)
    stack.callback(file.close)
    return file


def _result(settings: Settings, account: Account, stop: StopReason, path: Path | None) -> Result:
    best = account.best
    return Result(
        params=None if best is None else dict(best.params),
        value=math.inf if best is None else best.value,
        violation=math.inf if best is None else best.violation,
        evaluations=account.evaluations,
        failures=account.failures,
        stop=stop,
        runs=tuple(account.runs),
        seed=settings.seed,
        first_error=account.first_error,
        run_file=path,
        improvements=tuple(account.improvements),
    )


def _checked_notes(notes: object) -> dict[str, Any]:
    if notes is None:
        return {}
    try:
        json.dumps(notes)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"notes: expected values that JSON can hold, but got {notes!r:.80} ({error}); use strings and numbers"
        ) from error
    if not isinstance(notes, Mapping):
        raise ValueError(f'notes: expected a dict, but got {notes!r:.80}; write {{"name": ...}}')
    return dict(notes)


def _points_of(history: History | str | PathLike[str] | None) -> History:
    """The points of a history; of a run file, all points that were evaluated."""
    if history is None:
        return ()
    if isinstance(history, str | PathLike):
        try:
            rows = read(Path(history)).rows
        except DamagedRunFile as error:
            raise DamagedRunFile(f"history: {str(error).removeprefix('run_file: ')}") from error
        return [(row.params, row.outcome) for row in rows if row.evaluated]
    return history


def _check_settings(target: object, restarts: object, asynchronous: object, cache: object) -> None:
    checked_target(target)
    allowed_restarts(restarts)
    if not isinstance(asynchronous, bool):
        raise ValueError(f"asynchronous: expected True or False, but got {asynchronous!r}; leave it out")
    if cache is not None and not isinstance(cache, bool):
        raise ValueError(f"cache: expected True, False or None, but got {cache!r}; leave it out")
