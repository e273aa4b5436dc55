"""The bed practice: every problem can be raced, and regrets and ranks are what they are by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mixcma.cli import main
from mixcma.experiments.race import tables
from mixcma.experiments.race.beds import BEDS, Case, Choice
from mixcma.experiments.race.beds.practice import REGRETS, regret_at
from mixcma.experiments.race.runner import Cell, Result, run_cell
from mixcma.experiments.race.statistics import mean_interval, ranks
from mixcma.problems.practice import PRACTICE
from mixcma.run.outcome import Outcome

BED = BEDS["practice"]


def opened(name: str):
    return BED.open(Case("practice", name, len(PRACTICE[name].space), 0), Choice())


@pytest.mark.parametrize("name", PRACTICE)
def test_every_case_opens_and_its_targets_are_regrets(name: str) -> None:
    challenge, design = opened(name), PRACTICE[name]
    task = challenge.task
    assert (task.budget, task.restarts, task.target) == (1000, True, None)
    assert task.dimension == len(design.space)
    outcome = challenge.objective(np.clip(np.where(task.integer, np.rint(task.mean), task.mean), task.low, task.high))
    assert math.isfinite(outcome.value if isinstance(outcome, Outcome) else outcome)
    assert list(challenge.targets) == sorted(challenge.targets, reverse=True)
    assert challenge.targets[0] == pytest.approx(design.typical)
    distance = (challenge.targets[50] - design.best_known) / (design.typical - design.best_known)
    assert distance == pytest.approx(0.01, rel=1e-3)


def test_cases_are_seeds_of_the_chosen_problems() -> None:
    cases = BED.cases(Choice(problems=("svm", "f1", "flowsheet"), seeds=2))
    assert [(case.problem, case.dimension, case.instance) for case in cases] == [
        ("flowsheet", 3, 0),
        ("flowsheet", 3, 1),
        ("svm", 4, 0),
        ("svm", 4, 1),
    ]


def test_floats_on_a_logarithmic_scale_are_raced_as_logarithms() -> None:
    challenge, design = opened("svm"), PRACTICE["svm"]
    names = list(design.space)
    C = names.index("C")
    assert (challenge.task.low[C], challenge.task.high[C]) == pytest.approx((math.log(10**-2.5), math.log(1000)))
    point = challenge.task.high.copy()
    assert challenge.objective(point) == design({"kernel": "sigmoid", "degree": 4, "C": 1000.0, "gamma": 10.0})


def test_regrets_are_read_from_the_targets_hit() -> None:
    assert (REGRETS[0], REGRETS[25], REGRETS[-1]) == pytest.approx((1, 0.1, 1e-4))
    hits = [7] * 26 + [40]
    assert [regret_at(hits, count) for count in (6, 7, 39, 40)] == pytest.approx([1, 0.1, 0.1, REGRETS[26]])
    assert regret_at((), 1000) == 1


def test_ranks_and_intervals_by_hand() -> None:
    np.testing.assert_array_equal(ranks(np.array([[0.2, 0.1, 0.4], [0.3, 0.3, 0.1]])), [[2, 1, 3], [2.5, 2.5, 1]])
    mean, (low, high) = mean_interval(np.array([1.0, 2.0, 3.0]))
    assert mean == 2
    assert 1 <= low < 2 < high <= 3
    assert mean_interval(np.array([0.5])) == (0.5, (0.5, 0.5))


def result(racer: str, problem: str, hits: list[int], evaluations: int, end: str = "budget", seed: int = 0) -> Result:
    best, seconds = 1.0, 2.0 if racer == "slow" else 1.0
    fixed = {"bed": "practice", "dimension": 3, "targets": 101, "budget": 1000, "error": None}
    of_the_run = {"hits": tuple(hits), "evaluations": evaluations, "best": best, "end": end, "seconds": seconds}
    return Result(problem=problem, instance=seed, racer=racer, **fixed, **of_the_run)


def test_the_table_by_hand() -> None:
    """Two problems; the slow racer gets only 100 evaluations, the quick one has two seeds of the first problem."""
    results = [
        result("quick", "a", [10] * 26, 1000),  # a regret of 0.1 after 10 evaluations
        result("quick", "a", [], 1000, seed=1),
        result("quick", "b", [60] * 101, 60, "target"),
        result("slow", "a", [90] * 51, 100),
        result("slow", "b", [40] * 26, 100),
        result("slow", "c", [40] * 26, 100),  # nobody else had it
    ]
    rows = tables.practice_rows(results, "quick")
    found = {(row["evaluations"], row["racer"]): (row["regret"], row["rank"]) for row in rows}
    assert found == {
        (50, "quick"): (0.775, 1.5),  # a: the mean of 0.1 and 1, b: 1
        (50, "slow"): (0.55, 1.5),  # a: 1, b: 0.1
        (100, "quick"): (0.275, 1.5),
        (100, "slow"): (0.055, 1.5),
        (200, "quick"): (0.275, 1),
        (500, "quick"): (0.275, 1),
        (1000, "quick"): (0.275, 1),
    }
    assert [row["problems"] for row in rows] == [2] * 7
    assert {(row["racer"], row["runs"], row["seconds"]) for row in rows} == {("quick", 3, 1.0), ("slow", 3, 2.0)}
    assert rows[0]["95 % interval"] == pytest.approx([0.55, 1.0])


@pytest.mark.parametrize("racer", ["mix", "random", "scipy.DE", "cmaes.CatCMAwM", "optuna.TPE"])
@pytest.mark.parametrize("name", ["flowsheet", "network", "job_shop"])
def test_racers_get_their_evaluations(racer: str, name: str) -> None:
    dimension = len(PRACTICE[name].space)
    found = run_cell(Cell(Case("practice", name, dimension, 1), racer), Choice(budget=23))
    assert (found.error, found.budget, found.evaluations) == (None, 23, 23)
    assert found.targets == len(REGRETS)


def test_a_race_in_practice_as_a_user_types_it(tmp_path: Path) -> None:
    words = ["--beds", "practice", "--problems", "flowsheet,svm", "--seeds", "1", "--budget", "60"]
    run = CliRunner().invoke(main, ["race", *words, "--methods", "mix,random", "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    rows = json.loads((tmp_path / "results.json").read_text())["beds"]["practice"]
    assert [(row["evaluations"], row["racer"]) for row in rows] == [(50, "mix"), (50, "random")]
