"""salvage(): from what is left of a damaged run file to a new one, from which the search can go on."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from mixcma.core.stopping import INTERRUPTED, Stopping
from mixcma.core.strategy import default_popsize
from mixcma.latent.encoding import Encoding
from mixcma.run.arguments import checked_method
from mixcma.run.noise import fresh_seed
from mixcma.run.optimizer import DEFAULT_METHOD
from mixcma.run.outcome import Outcome
from mixcma.run.restarts import restart_popsize
from mixcma.run.snapshot import Snapshot
from mixcma.search.settings import Settings, versions
from mixcma.space import Params, Space
from mixcma.store import DamagedRunFile, Remains, remains_of, snapshot_row, write_run_file
from mixcma.store.held import Cells
from mixcma.store.reading import row_of
from mixcma.store.run_file import X0_GENERATION
from mixcma.store.schema import KNOWN, PENDING, unpack

# Without these settings the candidates that come next cannot be drawn.
NEEDED = ("method", "seed", "popsize", "asynchronous", "stopping")
RUN, GENERATION, STATUS = 1, 2, 5  # columns of an evaluation


@dataclass(frozen=True)
class Salvaged:
    """What was saved from a damaged run file.

    Attributes
    ----------
    run_file
        The new file.
    saved, lost
        How many rows of the old file are intact, and how many are not; None if the old file no longer says.
    evaluations
        How many of those saved are evaluations.
    continues
        Whether the search goes on where it stood; if not, it begins again with what was evaluated.
    has_problem
        Whether the problem of a `mixcma run` is stored in the file; None if the old file no longer says.
    """

    run_file: Path
    saved: int
    lost: int | None
    evaluations: int
    continues: bool
    has_problem: bool | None


def salvage(run_file: str | PathLike[str], new: str | PathLike[str]) -> Salvaged:
    """Save what is intact in a damaged run file into the new file `new`; the old one is left as it is.

    If a state of the optimizer is intact, the search goes on from there: generations since then are used as far as they
    are complete, and what is lost is evaluated again. Earlier evaluations that are lost are missing from the new file
    and do not count towards the budget. If the state is lost, the search begins again: all evaluations that were saved
    count as its first ones, it starts at the best of them, and the others shape its first step size and covariance, as
    a `history` does.
    """
    remains = remains_of(Path(run_file))
    if "space" not in remains.tables["setting"]:
        raise DamagedRunFile(
            f"run_file: {_evaluations(remains)} evaluations in {run_file} are intact, but the variables they belong to "
            "are lost, so they cannot be used; restore the file from a copy"
        )
    settings = _completed(remains)
    state = _state(remains, settings)
    rows = _begun_again(remains, settings) if state is None else _as_it_stood(remains, settings, state)
    write_run_file(Path(new), rows)
    notes = remains.settings.get("notes")
    has_problem = "problem" in notes if isinstance(notes, dict) else None
    return Salvaged(Path(new), remains.saved, remains.lost, _evaluations(remains), state is not None, has_problem)


def _completed(remains: Remains) -> dict[str, Any]:
    """The settings; what is lost is as if it had been left out of the call."""
    saved = remains.settings
    space = Space.from_dict(saved["space"])
    method = checked_method(DEFAULT_METHOD)
    default = Settings(
        space=space,
        method=method,
        seed=fresh_seed(),
        popsize=default_popsize(Encoding(space).dimension),
        budget=max(1, _evaluations(remains)),
        target=None,
        restarts=True,
        cache=space.size is not None,
        asynchronous=False,
        stopping=Stopping(),
    )
    about = {"versions": versions(), "created": time.time(), "stop": None, "notes": {}}
    return {**default.to_dict(), **about, **saved}


def _state(remains: Remains, settings: dict[str, Any]) -> Cells | None:
    """The snapshot, if the search can go on from it."""
    row: Any = remains.tables["snapshot"].get(1)
    if row is None or any(name not in remains.tables["setting"] for name in NEEDED):
        return None
    _, run, numbers, layout, arrays = row
    try:
        optimizer = Settings.from_dict(settings).optimizer(run)
        optimizer.restore(Snapshot(json.loads(numbers), unpack(layout, arrays)))
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    at_the_start = (optimizer.run, optimizer.generation) == (0, 0)
    return None if at_the_start and remains.lost != 0 else tuple(row)  # the points of x0 would be taken again


def _settings_rows(settings: dict[str, Any]) -> Iterator[tuple[str, Cells]]:
    for name, value in settings.items():
        yield "setting", (name, json.dumps(value))


def _as_it_stood(remains: Remains, settings: dict[str, Any], state: Any) -> Iterator[tuple[str, Cells]]:
    """All rows; the runs until that of the state are complete, and count the evaluations that were saved."""
    _, last, numbers, _, _ = state
    evaluations: list[Any] = [row for _, row in sorted(remains.tables["evaluation"].items())]
    if not settings["asynchronous"]:
        remembers = Settings.from_dict(settings).method.guided
        evaluations = _set_apart(evaluations, (last, json.loads(numbers)["draws"]), remembers)
    evaluated = [row for row in evaluations if _is_evaluated(row)]
    yield from _settings_rows(settings if remains.lost == 0 else {**settings, "stop": None})
    yield "snapshot", state
    for run in range(last + 1):
        known: Any = remains.tables["run"].get(run, (run, restart_popsize(settings["popsize"], run), 0, None))
        stop = known[3] or (INTERRUPTED.name if run < last else None)
        yield "run", (run, known[1], sum(row[RUN] < run for row in evaluated), stop)
    for _, generation in sorted(remains.tables["generation"].items()):
        yield "generation", generation
    for row in evaluations:
        yield "evaluation", row


def _set_apart(rows: list[Any], state: tuple[int, int], remembers: bool) -> list[Any]:
    """The rows behind the first generation of which some are lost become points of x0.

    After a lost value is evaluated again, the search may draw other candidates than it had. The `state` is the run and
    generation that the search goes on with: what was lost before it does not matter, unless the method `remembers` all
    evaluations; then everything from the state on is set apart. Rows have consecutive numbers.
    """
    numbers = [row[0] for row in rows]
    first_lost = next((k for k, number in enumerate(numbers, start=1) if number != k), len(rows) + 1)
    if remembers and first_lost <= len(rows):
        return _as_x0(rows, lambda place: place < state)
    earlier = max((row[0] for row in rows if _place(row) < state), default=0)
    first_lost = next(k for k in itertools.count(earlier + 1) if k not in set(numbers))
    intact = max([state, *(_place(row) for row in rows if row[0] < first_lost)])
    return _as_x0(rows, lambda place: place <= intact)


def _as_x0(rows: list[Any], stays: Callable[[tuple[int, int]], bool]) -> list[Any]:
    """The evaluated rows that do not stay where they are become points of x0; the others that do not are left out."""
    first = sum(_place(row) == (0, X0_GENERATION) for row in rows)
    moved = [row for row in rows if not stays(_place(row)) and _is_evaluated(row)]
    kept = [row for row in rows if stays(_place(row))]
    return kept + [(row[0], 0, X0_GENERATION, first + place, *row[4:]) for place, row in enumerate(moved)]


def _place(row: Any) -> tuple[int, int]:
    return row[RUN], row[GENERATION]


def _is_evaluated(row: Any) -> bool:
    return row[STATUS] not in (PENDING, KNOWN)


def _evaluations(remains: Remains) -> int:
    return sum(map(_is_evaluated, remains.tables["evaluation"].values()))


def _begun_again(remains: Remains, settings: dict[str, Any]) -> Iterator[tuple[str, Cells]]:
    """A search that has evaluated the points that were saved, and nothing else."""
    chosen = Settings.from_dict(settings)
    yield from _settings_rows({**settings, "stop": None})
    saved: list[Any] = [row for _, row in sorted(remains.tables["evaluation"].items())]
    evaluated = [row for row in saved if _is_evaluated(row)]
    yield "run", (0, chosen.popsize, 0, None)
    yield "snapshot", snapshot_row(chosen.optimizer(0, [_point(chosen.space, row) for row in evaluated]), 0)
    for slot, row in enumerate(evaluated):
        params, result, traceback = row[4], row[STATUS:11], row[13]
        yield "evaluation", (slot + 1, 0, X0_GENERATION, slot, params, *result, None, None, traceback)


def _point(space: Space, row: Any) -> tuple[Params, Outcome]:
    outcome = row_of(space, *row).outcome
    assert outcome is not None
    return row_of(space, *row).params, outcome
