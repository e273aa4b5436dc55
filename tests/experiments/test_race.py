"""The race gives all racers the same starts, budgets and targets, and its statistics are correct."""

from __future__ import annotations

import json
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from click.testing import CliRunner, Result

from mixcma.cli import main
from mixcma.experiments.race import runner, tables
from mixcma.experiments.race.beds import BEDS, Case, Choice
from mixcma.experiments.race.beds.coco import PRECISIONS, group_of
from mixcma.experiments.race.racers import RACERS, Racer
from mixcma.experiments.race.racers.others import most_trials
from mixcma.experiments.race.racers.restarts import run_by_generations
from mixcma.experiments.race.runner import Cell, run_bed, run_cell
from mixcma.experiments.race.statistics import areas, rate_interval, ratio, runtimes
from mixcma.experiments.race.task import INFEASIBLE, Over, Scoreboard, Task
from mixcma.problems.paper import coupled, problem, rotated
from mixcma.run.outcome import Outcome

TINY = Task(
    low=np.array([-4.0, -5.0, 0.0, -np.inf]),
    high=np.array([4.0, 5.0, 1.0, np.inf]),
    integer=np.array([True, False, True, False]),
    mean=np.array([2.0, 1.5, 0.5, -1.0]),
    std=np.array([1.0, 0.5, 0.5, 0.25]),
    seed=3,
    budget=6000,
    restarts=True,
)


# Racers with models of the objective take seconds, and are not installed for the tests: they have a few of their own.
HEAVY = ("optuna.GP", "smac.HPO", "nevergrad.NGOpt")
LIGHT = [name for name in RACERS if name not in HEAVY]
# Those that begin with a single point at the mean, and have no runs that end.
SAMPLERS = ("random", "optuna.TPE", "optuna.TPE-group", "mix-optuna")


def sphere(point: np.ndarray) -> float:
    return float(point @ point)


def raced(name: str, task: Task, board: Scoreboard) -> Scoreboard:
    """Run a racer to the end, as `run_cell` does."""
    with warnings.catch_warnings(), suppress(Over):
        warnings.simplefilter("ignore")
        RACERS[name].run(task, board)
    return board


# The area under a runtime distribution


def test_areas_of_runtimes_by_hand() -> None:
    times = np.array([1, 10, 100, 1000, 10_000, np.inf])  # D = 10, to 1000 D: u = 0, 0, 1, 2, 3, never
    np.testing.assert_allclose(areas(times, 10, 10_000), [1, 1, 2 / 3, 1 / 3, 0, 0])


def test_the_area_is_the_integral_of_the_distribution() -> None:
    times = np.random.default_rng(0).integers(1, 9000, 40).astype(float)
    u = np.linspace(0, 3, 30_001)
    share = (times[:, None] <= 5 * 10.0**u).mean(axis=0)
    assert areas(times, 5, 5000).mean() == pytest.approx(share.mean(), abs=1e-3)


def test_targets_that_were_not_hit_are_never_reached() -> None:
    assert runtimes([3, 7], 4).tolist() == [3, 7, np.inf, np.inf]
    with pytest.raises(ValueError, match="more than one evaluation per variable"):
        areas(np.array([1.0]), 10, 10)


def test_a_ratio_has_an_interval_over_the_same_cases() -> None:
    theirs = np.random.default_rng(1).random(60) + 0.5
    same, (low, high) = ratio(2 * theirs, theirs)  # a constant factor does not vary between cases
    assert same == pytest.approx(2) == low == high
    noisy, (low, high) = ratio(theirs[::-1].copy(), theirs)
    assert noisy == pytest.approx(1)
    assert low < 1 < high
    assert np.isnan(ratio(theirs, np.zeros(60))[0])
    assert rate_interval(0, 10) == pytest.approx((0, 0.308), abs=1e-3)


# What every racer is given


def test_a_scoreboard_counts_notes_hits_and_ends_the_race() -> None:
    values = iter([5.0, 0.5, 7.0, 0.01])
    board = Scoreboard(lambda point: next(values), replace(TINY, budget=10), [10.0, 1.0, 0.1])
    inside = np.array([0.0, 0.0, 1.0, 0.0])
    assert [board(inside) for _ in range(3)] == [5.0, 0.5, 7.0]
    with pytest.raises(Over):
        board(inside)
    assert (board.hits, board.evaluations, board.best) == ([1, 2, 4], 4, 0.01)


def test_a_scoreboard_refuses_points_outside_the_space() -> None:
    board = Scoreboard(sphere, TINY, [0.0])
    for point in ([0.5, 0, 0, 0], [0, 6, 0, 0], [0, 0, 2, 0], [np.nan, 0, 0, 0]):
        with pytest.raises(ValueError, match="expected a point of the space"):
            board(np.array(point, dtype=float))
    assert board.evaluations == 0


def test_infeasible_points_hit_nothing_and_are_worse_than_all_others() -> None:
    board = Scoreboard(lambda point: Outcome(-1.0, (-3.0, 0.5)), TINY, [0.0])
    assert board(np.zeros(4)) == INFEASIBLE + 0.5
    assert board.outcome(np.zeros(4)).value == -1.0
    assert (board.hits, board.best) == ([], np.inf)


def test_random_starts_are_the_same_for_all_and_inside() -> None:
    starts = np.array([TINY.start(run) for run in range(50)])
    np.testing.assert_array_equal(starts[0], TINY.mean)
    np.testing.assert_array_equal(starts[7], replace(TINY, std=TINY.std.copy()).start(7))
    assert np.all((starts >= TINY.low) & (starts <= TINY.high))
    assert np.unique(starts[1:]).size == starts[1:].size
    assert len({TINY.seed_of(run) for run in range(50)}) == 50


@pytest.mark.parametrize("name", LIGHT)
def test_the_first_candidates_are_around_the_start(name: str) -> None:
    """Over many seeds their mean is the start, within five standard errors; TPE and random search begin at it."""
    first = 4
    points: list[np.ndarray] = []

    def seen(point: np.ndarray) -> float:
        points.append(point.copy())
        return sphere(point)

    alone = name in SAMPLERS
    for seed in range(5 if alone else 60):
        task = replace(TINY, seed=seed, budget=1 if alone else first, mean=np.array([2.0, 1.0, 0.5, -1.0]))
        raced(name, task, Scoreboard(seen, task, [0.0]))
    drawn = np.array(points)
    if alone:
        np.testing.assert_array_equal(drawn[:, [0, 1, 3]], np.tile([2.0, 1.0, -1.0], (5, 1)))
        return
    assert len(drawn) == 60 * first
    error = np.abs(drawn.mean(axis=0) - TINY.mean * [1, 2 / 3, 1, 1])
    assert np.all(error < 5 * np.sqrt(TINY.std**2 + TINY.integer / 6) / np.sqrt(len(drawn)))
    floats = ~TINY.integer
    assert np.all(drawn.std(axis=0)[floats] == pytest.approx(TINY.std[floats], rel=0.25))


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.parametrize("budget", [1, 37])
def test_no_racer_exceeds_its_budget(name: str, budget: int) -> None:
    task = replace(TINY, budget=budget)
    assert raced(name, task, Scoreboard(sphere, task, [-1.0])).evaluations == budget


@pytest.mark.parametrize("name", [name for name in LIGHT if name == "mix-optuna" or name not in SAMPLERS])
def test_every_racer_solves_a_tiny_sphere_with_integers(name: str) -> None:
    board = raced(name, TINY, Scoreboard(sphere, TINY, [1e-6]))
    assert board.reached, board.best
    assert board.evaluations < TINY.budget


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "mix-optuna"])
def test_racers_that_do_not_converge_come_close(name: str) -> None:
    task = replace(TINY, budget=150)
    assert raced(name, task, Scoreboard(sphere, task, [1e-6])).best < 3.0


@pytest.mark.parametrize("name", HEAVY)
def test_a_racer_with_a_model_stays_inside_and_is_given_what_others_are(name: str) -> None:
    """It meets floats, integers, binaries, categories and a constraint, and gets no more than its budget."""
    if RACERS[name].missing is not None:
        pytest.skip(f"{RACERS[name].missing} is not installed: pip install mixcma[bench-heavy]")
    category = np.array([True, False, False, False])
    task = replace(TINY, low=np.where(category, 0.0, TINY.low), budget=15, category=category)

    def constrained(point: np.ndarray) -> Outcome:
        return Outcome(sphere(point), (float(point[1]) - 2.0,))

    board = raced(name, task, Scoreboard(constrained, task, [-1.0]))
    assert board.evaluations == 15
    assert board.best < 30.0


def test_a_racer_may_need_another_package() -> None:
    assert Racer(print, "numpy").missing is None
    assert Racer(print, "numpy", needs="package-that-nobody-has").missing == "package-that-nobody-has"
    assert Racer(print, "package-that-nobody-has", needs="numpy").missing == "package-that-nobody-has"


@pytest.mark.parametrize("name", [name for name in LIGHT if name not in (*SAMPLERS, "scipy.DE")])
def test_restarts_begin_elsewhere(name: str) -> None:
    """A constant objective counts as flat after 10 + 30 N / lambda generations."""
    begun: list[np.ndarray] = []
    task = replace(TINY, budget=3000)

    def constant(point: np.ndarray) -> float:
        begun.append(point.copy())
        return 0.0

    raced(name, task, Scoreboard(constant, task, [-1.0]))
    floats = np.array(begun)[:, 1]
    assert len(begun) == 3000
    assert abs(floats[:8].mean() - 1.5) < 1.0
    assert floats.min() < -1.0  # farther than the first run would get on a constant objective


@pytest.mark.parametrize("restarts", [True, False])
def test_restarts_follow_one_rule(restarts: bool) -> None:
    """A run ends after 10 + 30 N / lambda flat generations: 30, 20 and 15 for N = 4 and lambda = 6, 12 and 24."""
    begun: list[tuple[list[float], int]] = []
    steps: list[int] = []

    class Flat:
        def __init__(self, task: Task, start: np.ndarray, popsize: int | None, seed: int) -> None:
            self.popsize = 6 if popsize is None else popsize
            begun.append((start.tolist(), seed))
            steps.append(0)

        def step(self, evaluate: Scoreboard) -> float:
            steps[-1] += 1
            if len(steps) == 4:
                raise Over
            return 1.0

        def converged(self) -> bool:
            return not restarts and steps[-1] == 100

    task = replace(TINY, restarts=restarts)
    with suppress(Over):
        run_by_generations(Flat, task, Scoreboard(sphere, task, [0.0]))
    assert steps == ([30, 20, 15, 1] if restarts else [100])  # without restarts only the racer itself ends its run
    assert begun == [(task.start(run).tolist(), task.seed_of(run)) for run in range(len(steps))]


def test_tpe_gets_fewer_evaluations_where_it_would_take_hours() -> None:
    assert [most_trials(n) for n in (4, 20, 40, 64)] == [2000, 500, 250, 200]


# Cells


def test_an_error_of_a_racer_is_reported_and_the_others_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: Task, evaluate: Scoreboard) -> None:
        evaluate(np.clip(np.rint(task.mean), task.low, task.high))
        raise ZeroDivisionError("no reason")

    monkeypatch.setitem(RACERS, "broken", Racer(broken, "numpy"))
    case, choice = Case("paper", "SphereInt", 4, 0), Choice(budget=500)
    results = [run_cell(Cell(case, racer), choice) for racer in ("broken", "margin")]
    assert (results[0].end, results[0].error) == ("error", "ZeroDivisionError: no reason")
    assert (results[0].evaluations, results[0].hits) == (1, ())
    assert (results[1].end, results[1].error, results[1].reached) == ("target", None, True)
    rows = tables.paper_rows(results, "margin")
    assert [row["errors"] for row in rows] == ["1: ZeroDivisionError: no reason", None]
    assert [row["success rate"] for row in rows] == [0, 1]
    assert rows[1]["median evaluations"] == results[1].evaluations


def test_coco_targets_are_the_optimum_plus_51_precisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for function, instance in (("f1", 1), ("f24", 3)):
        challenge = BEDS["bbob-mixint"].open(Case("bbob-mixint", function, 5, instance), Choice())
        optimum = np.array(challenge.targets) - PRECISIONS
        assert np.ptp(optimum) < 1e-9
        rng = np.random.default_rng(0)
        task = challenge.task
        points = np.where(task.integer, rng.integers(task.low, task.high + 1, (200, 5)), rng.uniform(-5, 5, (200, 5)))
        assert min(challenge.objective(point) for point in points) > optimum[0]
    assert (len(PRECISIONS), PRECISIONS[0], PRECISIONS[-1]) == (51, 100, pytest.approx(1e-8))
    assert task.integer.tolist() == [True] * 4 + [False]
    assert task.binary.tolist() == [True] + [False] * 4
    np.testing.assert_allclose(task.mean, [0.5, 1.5, 3.5, 7.5, 0])
    np.testing.assert_allclose(task.std, [0.3, 0.5, 7 / 6, 2.5, 10 / 6])
    assert list(tmp_path.iterdir()) == []  # the file that COCO wrote was removed
    assert [group_of(f"f{number}") for number in (1, 5, 6, 14, 24)] == ["f1-5", "f1-5", "f6-9", "f10-14", "f20-24"]


def test_a_race_on_coco_hits_targets_in_order_and_within_the_budget() -> None:
    choice = Choice(budget=100)
    result = run_cell(Cell(Case("bbob-mixint", "f1", 5, 1), "margin"), choice)
    assert (result.targets, result.budget) == (51, 500)
    assert list(result.hits) == sorted(result.hits)
    assert result.hits
    assert result.hits[-1] <= result.evaluations <= 500
    (row,) = tables.coco_rows([result], "margin")
    assert row["ratio"] == 1
    assert row["targets hit"] == pytest.approx(len(result.hits) / 51, abs=1e-3)
    assert 0 < row["area"] < row["targets hit"]
    assert row["f1-5"] == row["area"]


def test_designs_are_raced_by_index_with_constraints_and_known_targets() -> None:
    case = Case("designs", "coil_spring", 3, 0)
    challenge = BEDS["designs"].open(case, Choice())
    assert challenge.task.high.tolist() == [70, 41, 3]
    outcome = challenge.objective(np.array([9.0, 35.0, 1.22304101]))
    assert isinstance(outcome, Outcome)
    assert outcome.feasible
    assert outcome.value <= challenge.targets[0]
    results = [run_cell(Cell(case, racer), Choice(budget=20)) for racer in ("margin", "cmaes.CMAwM", "optuna.TPE")]
    assert [(result.evaluations, result.end) for result in results] == [(60, "budget")] * 3
    longer = replace(results[0], budget=1000, hits=(400,), end="target"), replace(results[2], budget=1000)
    solved, cut_short = tables.design_rows(longer, "margin")
    assert (solved["at 500"], solved["at the end"]) == (1, 1)
    assert (cut_short["at 500"], cut_short["at the end"]) == (None, None)  # 60 evaluations say nothing about 500


@pytest.mark.parametrize("racer", ["mix", "catmargin", "cmaes.CatCMAwM", "cmaes.CatCMAwM-categories"])
def test_categories_are_solved_by_racers_that_support_them(racer: str) -> None:
    choice = Choice(dimensions=(8,), seeds=1)
    result = run_cell(Cell(Case("categories", "SphereCategories3", 8, 1), racer), choice)
    assert result.error is None
    assert result.reached


@pytest.mark.parametrize("racer", ["margin", "pycma", "cmaes.CMAwM", "DX-NES-ICI", "optuna.TPE", "scipy.DE", "random"])
def test_all_other_racers_treat_categories_as_integers(racer: str) -> None:
    choice = Choice(dimensions=(8,), seeds=1, budget=10)
    result = run_cell(Cell(Case("categories", "SphereCategories3", 8, 1), racer), choice)
    assert result.error is None
    assert result.evaluations == 80


def test_the_discrete_bed_shows_which_racers_stop_by_themselves() -> None:
    choice = Choice(budget=25)
    results = [run_cell(Cell(Case("discrete", "OneMax", 40, 0), racer), choice) for racer in ("margin", "cmaes.CMAwM")]
    assert [result.reached for result in results] == [True, True]
    assert [result.end for result in results] == ["itself", "budget"]
    assert [row["stop by themselves"] for row in tables.discrete_rows(results, "margin")] == [1, 0]
    assert results[0].hits[0] < results[0].evaluations


@pytest.mark.parametrize("racer", ["margin", "cma", "im", "im-box", "scipy.DE", "optuna.TPE", "pycma"])
def test_a_design_with_categories_is_raced_by_all(racer: str) -> None:
    result = run_cell(Cell(Case("designs", "welded_beam", 6, 3), racer), Choice(budget=50))
    assert result.error is None
    assert result.evaluations == 300
    assert result.best < 1000  # feasible


def test_binaries_as_categories_are_raced_only_where_there_are_bits() -> None:
    choice = Choice(problems=("SphereInt", "SphereOneMax"), dimensions=(4,), seeds=1)
    cells = runner.cells_of("paper", ["cmaes.CatCMAwM", "cmaes.CatCMAwM-categories"], choice)
    assert [(cell.case.problem, cell.racer) for cell in cells] == [
        ("SphereOneMax", "cmaes.CatCMAwM"),
        ("SphereOneMax", "cmaes.CatCMAwM-categories"),
        ("SphereInt", "cmaes.CatCMAwM"),
    ]


# The problems of the race that are not the paper's


@pytest.mark.parametrize("name", ["EllipsoidOneMax", "ReversedEllipsoidInt"])
def test_a_rotation_keeps_the_optimum_lengths_and_integers(name: str) -> None:
    straight = problem(name, 10)
    turned, other = rotated(straight, 1), rotated(straight, 2)
    x = np.random.default_rng(0).normal(size=(3, 4, 10))
    bits = "OneMax" in name
    x[..., 5:] = 1.0 if bits else np.round(x[..., 5:])
    assert turned.function(x).shape == (3, 4)
    assert np.all(np.abs(turned.function(x) - other.function(x)) > 1e-3)
    np.testing.assert_array_equal(rotated(straight, 1).function(x), turned.function(x))
    best = np.concatenate([np.zeros(5), np.full(5, 1.0 if bits else 0.0)])
    assert turned.function(best) == 0
    np.testing.assert_allclose(rotated(problem("SphereInt", 10), 3).function(x), problem("SphereInt", 10).function(x))
    with jax.enable_x64(True):
        np.testing.assert_allclose(np.asarray(jax.jit(turned.function)(jax.numpy.asarray(x))), turned.function(x))


def test_coupled_floats_follow_their_integers() -> None:
    x = np.array([0.0, 0.1, 2.0, 3.0])  # the second integer and its float have moved together
    function = coupled(4).function
    assert function(np.array([0.0, 0.0, 2.0, 2.0])) == 0
    assert function(x) == pytest.approx(1)
    assert function(x - np.array([0.0, 0.1, 0.0, 0.0])) == pytest.approx(1 + 1e4 * 0.01)
    assert function(np.array([0.0, 2.0, 5.0])) == 9  # an integer that no float follows
    with jax.enable_x64(True):
        assert float(jax.jit(function)(jax.numpy.asarray(x))) == pytest.approx(1)


# The command


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, ["race", *map(str, words)])


TINY_RACE = (
    *("--beds", "paper,bbob-mixint", "--problems", "SphereInt,f1", "--dimensions", 5, "--instances", "1"),
    *("--seeds", 1, "--budget", 20, "--methods", "margin,cmaes.CMAwM,pycma"),
)


def test_a_race_as_a_user_types_it(tmp_path: Path) -> None:
    result = invoke(*TINY_RACE, "--beds", "bbob-mixint", "--against", "pycma", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "results.json").read_text())
    rows = written["beds"]["bbob-mixint"]
    assert [(row["D"], row["racer"]) for row in rows] == [(5, "margin"), (5, "cmaes.CMAwM"), (5, "pycma")]
    assert rows[2]["ratio"] == 1
    assert set(written["about"]["versions"]) == {"mixcma", "cmaes", "cma"}
    text = (tmp_path / "results.md").read_text()
    assert "## bbob-mixint" in text
    assert "Ratios are to pycma" in text
    assert (tmp_path / "bbob-mixint.png").stat().st_size > 5000
    assert (tmp_path / "bbob-mixint.svg").read_text().startswith("<?xml")
    assert len(json.loads((tmp_path / "bbob-mixint.cells.json").read_text())) == 3


def test_finished_cells_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The race is interrupted after two cells, and continues with the other two."""
    ran: list[Cell] = []

    def in_this_process(missing, choice, jobs):
        for cell in missing:
            if len(ran) == 2 and limited:
                raise KeyboardInterrupt
            ran.append(cell)
            yield cell, run_cell(cell, choice)

    monkeypatch.setattr(runner, "_results", in_this_process)
    choice = Choice(problems=("SphereInt",), dimensions=(4,), seeds=2, budget=20)
    limited = True
    with pytest.raises(KeyboardInterrupt):
        run_bed("paper", ["margin", "random"], choice, out=tmp_path)
    limited = False
    counts: list[int] = []
    resumed = run_bed("paper", ["margin", "random"], choice, out=tmp_path, finished=counts.append)
    assert len(ran) == len(set(ran)) == 4
    assert counts == [2, 1, 1]
    again = run_bed("paper", ["margin", "random"], choice, out=tmp_path)
    assert again == resumed
    assert [(result.racer, result.instance) for result in resumed] == [(c.racer, c.case.instance) for c in ran]
    run_bed("paper", ["margin"], replace(choice, budget=30), out=tmp_path)
    assert len(ran) == 6  # cells with other settings are run again


def test_a_missing_package_leaves_out_only_its_racer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RACERS, "pycma", replace(RACERS["pycma"], package="cma-that-nobody-has"))
    monkeypatch.setitem(BEDS, "bbob-mixint", replace(BEDS["bbob-mixint"], package="coco-that-nobody-has"))
    monkeypatch.setattr(
        runner, "_results", lambda missing, choice, jobs: ((cell, run_cell(cell, choice)) for cell in missing)
    )
    result = invoke(*TINY_RACE, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "pycma is left out: the package cma-that-nobody-has is not installed" in said
    assert "bbob-mixint is left out: the package coco-that-nobody-has is not installed" in said
    assert "pip install cma-that-nobody-has" in said
    written = json.loads((tmp_path / "results.json").read_text())["beds"]
    assert [row["racer"] for row in written["paper"]] == ["margin", "cmaes.CMAwM"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--beds", "sand"], "'sand' is not one of paper"),
        (["--methods", "margin,magic"], "'magic' is not one of cma"),
        (["--instances", "3-x"], "like 1-3,7"),
        (["--instances", "5-3"], "ascending order"),
        (["--budget", "1"], "--budget"),
        (["--methods", "margin", "--against", "pycma"], "'pycma' is not one of the racers: margin"),
    ],
)
def test_bad_options_are_refused_with_status_2(words: list[str], told: str) -> None:
    result = invoke(*words)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


def test_a_race_that_cannot_be_run_is_refused_with_a_sentence(tmp_path: Path) -> None:
    for words, told in (
        (["--beds", "bbob-mixint", "--dimensions", 7], "expected some of 5, 10, 20, 40, 80, 160, but got 7"),
        (["--beds", "designs", "--problems", "f1"], "nothing to run"),
    ):
        result = invoke(*words, "--methods", "margin", "--out", tmp_path)
        assert result.exit_code == 1
        assert told in " ".join(result.output.split())
