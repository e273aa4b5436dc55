"""The results of a race as tables, written as JSON and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixcma.experiments.ledger import grouped
from mixcma.experiments.race.beds.branches import CHECKPOINTS as BRANCH_CHECKPOINTS
from mixcma.experiments.race.beds.coco import GROUPS, group_of
from mixcma.experiments.race.beds.designs import checkpoints
from mixcma.experiments.race.beds.practice import CHECKPOINTS, regret_at
from mixcma.experiments.race.runner import Result
from mixcma.experiments.race.statistics import (
    FloatArray,
    areas,
    mean_interval,
    median,
    ranks,
    rate_interval,
    ratio,
    runtimes,
)

Row = dict[str, Any]  # header -> number, text or None


def paper_rows(results: Sequence[Result], against: str) -> list[Row]:
    """Success rates with their intervals, and the median evaluations of the successes."""
    return [_rates(group) for group in grouped(results, lambda r: (r.problem, r.dimension, r.racer))]


def discrete_rows(results: Sequence[Result], against: str) -> list[Row]:
    """The columns of `paper_rows`, and the share of runs that stopped by themselves."""
    return [
        {**_rates(group), "stop by themselves": round(sum(r.end == "itself" for r in group) / len(group), 3)}
        for group in grouped(results, lambda r: (r.problem, r.racer))
    ]


def _rates(group: Sequence[Result]) -> Row:
    first, solved = group[0], [result.hits[-1] for result in group if result.reached]
    return {
        "problem": first.problem,
        "N": first.dimension,
        "racer": first.racer,
        "runs": len(group),
        "success rate": round(len(solved) / len(group), 3),
        "95 % interval": [round(end, 3) for end in rate_interval(len(solved), len(group))],
        "median evaluations": median(solved),
    } | _errors(group)


def design_rows(results: Sequence[Result], against: str) -> list[Row]:
    """The share of seeds that reach the best known value, at several numbers of evaluations that all runs got to."""
    rows = []
    for group in grouped(results, lambda r: (r.problem, r.racer)):
        times = np.array([result.hits[-1] if result.reached else np.inf for result in group])
        row: Row = {"design": group[0].problem, "racer": group[0].racer, "seeds": len(group)}
        for header, count in checkpoints(group[0].budget).items():
            known = all(r.end != "budget" or r.evaluations >= count for r in group)
            row[header] = round(float(np.mean(times <= count)), 3) if known else None
        rows.append(row | _errors(group))
    return rows


def practice_rows(results: Sequence[Result], against: str) -> list[Row]:
    """Mean regrets and mean ranks over the problems, at several numbers of evaluations, and the mean seconds of a run.

    The regret on a problem is the mean over its seeds, and the intervals are bootstrap intervals over the problems. At
    each number of evaluations, only the racers are compared all of whose runs got there, on the problems that all had.
    """
    groups = grouped(results, lambda r: r.racer)
    rows = []
    for count in (count for count in CHECKPOINTS if count <= max(result.budget for result in results)):
        able = [group for group in groups if all(_got_to(result, count) for result in group)]
        if able:
            regrets = _regrets(able, count)
            rows += [
                _practice_row(count, group, found, rank) | _errors(group)
                for group, found, rank in zip(able, regrets.T, ranks(regrets).T)
            ]
    return rows


def branch_rows(results: Sequence[Result], against: str) -> list[Row]:
    """Median regrets over the seeds, for each problem and racer."""
    rows = []
    for group in grouped(results, lambda r: (r.problem, r.racer)):
        row: Row = {"problem": group[0].problem, "racer": group[0].racer, "seeds": len(group)}
        for count in BRANCH_CHECKPOINTS:
            able = all(_got_to(result, count) for result in group)
            row[f"at {count}"] = round(float(np.median([regret_at(r.hits, count) for r in group])), 4) if able else None
        rows.append(row | _errors(group))
    return rows


def _got_to(result: Result, count: int) -> bool:
    """Whether a run says what its racer has after so many evaluations."""
    return result.end != "budget" or result.evaluations >= count


def _regrets(groups: Sequence[Sequence[Result]], count: int) -> FloatArray:
    """(problems, racers): the mean regret over the seeds, on the problems that all of the racers had."""
    found = [
        {runs[0].problem: [regret_at(r.hits, count) for r in runs] for runs in grouped(group, lambda r: r.problem)}
        for group in groups
    ]
    common = [problem for problem in found[0] if all(problem in others for others in found)]
    return np.array([[np.mean(regrets[problem]) for regrets in found] for problem in common])


def _practice_row(count: int, group: Sequence[Result], regrets: FloatArray, places: FloatArray) -> Row:
    regret, interval = mean_interval(regrets)
    rank, interval_of_rank = mean_interval(places)
    return {
        "evaluations": count,
        "racer": group[0].racer,
        "problems": len(regrets),
        "runs": len(group),
        "regret": round(regret, 3),
        "95 % interval": [round(end, 3) for end in interval],
        "rank": round(rank, 2),
        "its interval": [round(end, 2) for end in interval_of_rank],
        "seconds": round(sum(result.seconds for result in group) / len(group), 2),
    }


def coco_rows(results: Sequence[Result], against: str) -> list[Row]:
    """Areas under the runtime distributions, for all functions and per group, and their ratio to those of one racer."""
    rows = []
    for in_dimension in grouped(results, lambda r: r.dimension):
        theirs = {result.case: _area(result) for result in in_dimension if result.racer == against}
        for group in grouped(in_dimension, lambda r: r.racer):
            rows.append(_coco_row(group, theirs) | _errors(group))
    return rows


def _coco_row(group: Sequence[Result], theirs: dict[Any, float]) -> Row:
    ours = {result.case: _area(result) for result in group}
    both = [case for case in ours if case in theirs]
    quotient, interval = ratio(np.array([ours[c] for c in both]), np.array([theirs[c] for c in both]))
    by_group = {name: [area for case, area in ours.items() if group_of(case.problem) == name] for name in GROUPS}
    hit = sum(len(result.hits) for result in group) / sum(result.targets for result in group)
    return {
        "D": group[0].dimension,
        "racer": group[0].racer,
        "runs": len(group),
        "area": round(float(np.mean(list(ours.values()))), 4),
        "targets hit": round(hit, 3),
        "ratio": round(quotient, 3) if both else None,
        "95 % interval": [round(end, 3) for end in interval] if both else None,
        **{name: round(float(np.mean(found)), 4) if found else None for name, found in by_group.items()},
    }


def _area(result: Result) -> float:
    times = runtimes(result.hits, result.targets)
    return float(np.mean(areas(times, result.dimension, result.budget)))


def _errors(group: Sequence[Result]) -> Row:
    """How many runs ended with an error, and the first error message."""
    errors = [result.error for result in group if result.error is not None]
    return {"errors": f"{len(errors)}: {errors[0]}" if errors else None}


ROWS: dict[str, Callable[[Sequence[Result], str], list[Row]]] = {
    "paper": paper_rows,
    "categories": paper_rows,
    "bbob-mixint": coco_rows,
    "designs": design_rows,
    "discrete": discrete_rows,
    "practice": practice_rows,
    "branches": branch_rows,
}


def headers(rows: Sequence[Row]) -> list[str]:
    """The names of the columns that are not empty."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if any(row.get(name) is not None for row in rows)]


def markdown(rows: Sequence[Row]) -> str:
    names = headers(rows)
    lines = [names, ["---"] * len(names), *([shown(row.get(name)) for name in names] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shown(entry: object) -> str:
    """An entry of a table as text; a list is an interval."""
    if entry is None:
        return "-"
    if isinstance(entry, list):
        return " to ".join(shown(end) for end in entry)
    return f"{entry:g}" if isinstance(entry, float) else str(entry).replace("|", "/").replace("\n", " ")


def write_results(rows: dict[str, list[Row]], about: dict[str, Any], out: Path) -> list[Path]:
    """Write results.json and results.md."""
    as_json, as_text = out / "results.json", out / "results.md"
    as_json.write_text(json.dumps({"about": about, "beds": rows}, indent=1))
    versions = ", ".join(f"{package} {version}" for package, version in about["versions"].items())
    parts = [f"# Race\n\n{versions}.\n", *(f"\n## {bed}\n\n{markdown(found)}" for bed, found in rows.items())]
    if "bbob-mixint" in rows:
        parts.append(f"\nRatios are to {about['against']}, with bootstrap intervals over (function, instance).\n")
    as_text.write_text("".join(parts))
    return [as_json, as_text]
