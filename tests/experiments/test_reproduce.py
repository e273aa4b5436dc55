"""End to end: the paper's experiments, started as a user would type them, at a small size."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mixcma.cli import main
from mixcma.experiments import alpha, stagnation, table
from mixcma.experiments.ledger import Ledger
from mixcma.experiments.table import Cell, Record, paper_records, summarise, verdict
from mixcma.problems import PAPER_FUNCTIONS, problem


def invoke(*words: object) -> Result:
    return CliRunner().invoke(main, ["reproduce", *map(str, words)])


def test_the_paper_has_54_cells_and_the_margin_always_succeeds() -> None:
    paper = paper_records()
    assert set(paper) == set(table.default_cells())
    assert len(paper) == 54
    assert all(record.successes == 100 for cell, record in paper.items() if cell.method == "margin")


def test_a_table_is_made_written_and_judged(tmp_path: Path) -> None:
    words = ["--functions", "SphereInt,SphereOneMax", "--dimensions", 6, "--methods", "margin,im", "--trials", 5]
    result = invoke("table", *words, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    records = json.loads((tmp_path / "table.json").read_text())
    assert [(r["function"], r["dimension"], r["method"]) for r in records] == [
        ("SphereInt", 6, "margin"),
        ("SphereOneMax", 6, "margin"),
        ("SphereInt", 6, "im"),
        ("SphereOneMax", 6, "im"),
    ]
    assert set(records[0]) == {
        "function", "dimension", "method", "median_evaluations", "iqr", "successes", "trials",
    }  # fmt: skip
    assert records[0]["successes"] == records[0]["trials"] == 5
    assert len(list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))) == 4
    assert "SphereOneMax" in (tmp_path / "table.md").read_text()


def test_both_back_ends_make_the_table(tmp_path: Path) -> None:
    for backend in ("numpy", "jax"):
        words = ["--functions", "SphereOneMax,SphereLeadingOnes", "--dimensions", 4, "--methods", "margin"]
        result = invoke("table", *words, "--trials", 4, "--backend", backend, "--out", tmp_path / backend)
        assert result.exit_code == 0, result.output
        records = json.loads((tmp_path / backend / "table.json").read_text())
        assert [record["successes"] for record in records] == [4, 4]


def test_an_interrupted_table_continues_from_its_finished_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--functions", "SphereInt", "--dimensions", "4,5,6", "--methods", "margin", "--trials", 3]
    original, calls = table.run_cells, []

    def interrupted(cells: list[Cell], *rest: object) -> list[Record]:
        calls.append(cells[0].dimension)
        if calls == [4, 5]:
            raise KeyboardInterrupt
        return original(cells, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(table, "run_cells", interrupted)
    stopped = invoke("table", *words, "--out", tmp_path)
    assert stopped.exit_code == 1
    assert "the same command continues from there" in " ".join(stopped.output.split())
    resumed = invoke("table", *words, "--out", tmp_path)
    assert resumed.exit_code == 0, resumed.output
    assert calls == [4, 5, 5, 6]  # the finished cell is not run again
    broken = json.loads((tmp_path / "table.json").read_text())
    monkeypatch.undo()
    invoke("table", *words, "--out", tmp_path / "unbroken")
    assert broken == json.loads((tmp_path / "unbroken" / "table.json").read_text())


def test_other_settings_do_not_reuse_cells(tmp_path: Path) -> None:
    for trials in (2, 3):
        words = ["--functions", "SphereInt", "--dimensions", 4, "--methods", "margin", "--trials", trials]
        assert invoke("table", *words, "--out", tmp_path).exit_code == 0
        assert json.loads((tmp_path / "table.json").read_text())[0]["trials"] == trials


def test_a_damaged_ledger_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text("{half a fi")
    result = invoke("table", "--functions", "SphereInt", "--dimensions", 4, "--trials", 2, "--out", tmp_path)
    assert result.exit_code == 1
    assert "move the file away" in " ".join(result.output.split())
    with pytest.raises(ValueError, match="expected the finished cells"):
        Ledger(tmp_path / "cells.json")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["table", "--functions", "Sphere"], "'Sphere' is not one of SphereOneMax"),
        (["table", "--methods", "margin,magic"], "'magic' is not one of"),
        (["table", "--dimensions", "twenty"], "not a comma-separated list of whole numbers"),
        (["table", "--dimensions", "1"], "too small a dimension"),
        (["table", "--trials", "0"], "--trials"),
        (["table", "--backend", "torch"], "--backend"),
        (["alpha", "--dimensions", ""], "not a comma-separated list"),
        (["stagnation", "--seed", "-1"], "--seed"),
    ],
)
def test_bad_options_are_refused_with_status_2(words: list[str], told: str) -> None:
    result = invoke(*words)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


def test_a_summary_counts_only_successful_runs() -> None:
    cell = Cell("SphereInt", 20, "im")
    record = summarise(cell, np.array([10, 20, 30, 1000]), np.array([True, True, True, False]))
    assert (record.median_evaluations, record.iqr, record.successes, record.trials) == (20.0, 10.0, 3, 4)
    assert summarise(cell, np.array([10]), np.array([False])).median_evaluations is None


@pytest.mark.parametrize(
    ("successes", "median", "passed"),
    [(83, 2964.0, True), (83, 3260.0, True), (83, 3270.0, False), (60, 2964.0, False), (95, 2964.0, False)],
)
def test_a_verdict_looks_at_the_rate_and_the_median(successes: int, median: float, passed: bool) -> None:
    paper = paper_records()[Cell("SphereOneMax", 20, "im")]  # 83 of 100, 2964
    ours = Record("SphereOneMax", 20, "im", median, 0.0, successes, 100)
    assert verdict(ours, paper).passed is passed


def test_the_grid_of_alpha_has_48_settings_per_dimension() -> None:
    points = alpha.grid()
    assert len(points) == 3 * 48
    assert max(point.alpha for point in points) < 0.3
    default = next(p for p in points if (p.dimension, p.m, p.n) == (20, 1.0, 1.0))
    assert default.alpha == pytest.approx(1 / (20 * 12))


def test_the_alpha_experiment_draws_its_heat_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpha, "BUDGET", 4000)
    result = invoke("alpha", "--dimensions", 4, "--trials", 2, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    records = json.loads((tmp_path / "alpha.json").read_text())
    assert len(records) == 48
    best = next(r for r in records if (r["m"], r["n"]) == (1.0, 1.0))
    assert best["successes"] == 2
    assert (tmp_path / "alpha.png").stat().st_size > 10_000
    assert (tmp_path / "alpha.svg").read_text().startswith("<?xml")


def test_the_stagnation_experiment_finds_stuck_runs_and_draws_them(tmp_path: Path) -> None:
    result = invoke("stagnation", "--dimension", 20, "--out", tmp_path)
    assert result.exit_code == 0 or "choose a larger dimension" in result.output
    bench = problem("SphereOneMax", 20)
    trial = stagnation.first_failure(bench, "im", seed=0)
    stuck, freed = stagnation.trace(bench, "im", trial, 0), stagnation.trace(bench, "margin", trial, 0)
    assert not stuck.success
    assert freed.success
    assert stuck.sigma[-1] < 1e-10
    assert stuck.mean.shape == stuck.deviation.shape == (len(stuck.best), 20)
    from mixcma.experiments import figures

    paths = figures.save(figures.stagnation_figure([(stuck, freed)]), tmp_path / "figure")
    assert all(path.stat().st_size > 10_000 for path in paths)


def test_the_command_names_all_six_functions() -> None:
    assert all(name in invoke("table", "--functions", "?").output for name in PAPER_FUNCTIONS)
