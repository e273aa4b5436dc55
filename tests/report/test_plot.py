"""The plot of a result: steps up to the last evaluation, dashed while infeasible, on a scale that suits the values."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

from mixcma import Float, Space, minimize
from mixcma.report.plot import plot_result
from tests.report.runs import PLANE, RUNS, constrained, make, sphere


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def lines(figure):
    (axes,) = figure.axes
    return {line.get_label(): line for line in axes.lines}


def test_steps_reach_from_the_first_improvement_to_the_last_evaluation():
    result = minimize(constrained, PLANE, budget=200, seed=1)
    drawn = lines(plot_result(result))
    best, before = drawn["best so far"], drawn["least violation so far"]
    assert best.get_xdata()[-1] == 200
    assert best.get_ydata()[-1] == result.value
    assert before.get_xdata()[-1] == best.get_xdata()[0]
    assert before.get_linestyle() == "--"
    assert best.get_linestyle() == "-"
    assert "evaluations" not in drawn


def test_values_of_the_run_file_are_in_the_background(tmp_path):
    result = make("restarts", tmp_path / "run.db")
    assert len(lines(plot_result(result))["evaluations"].get_xdata()) == min(result.evaluations, 1000)


def test_a_result_can_be_plotted_after_its_run_file_was_removed(tmp_path):
    result = make("floats", tmp_path / "run.db")
    (tmp_path / "run.db").unlink()
    assert lines(plot_result(result)).keys() == {"best so far"}


@pytest.mark.parametrize(
    ("objective", "scale"), [(sphere, "log"), (lambda p: p["x"] + 20, "linear"), (lambda p: sphere(p) - 1, "linear")]
)
def test_the_scale_fits_the_values(objective, scale):
    options = {"budget": 300, "seed": 1, "method": "mix-without-model"}  # a model finds the very optimum of the sphere
    figure = plot_result(minimize(objective, Space({"x": Float(-5, 5)}), **options))
    assert figure.axes[0].get_yscale() == scale


@pytest.mark.parametrize("name", ["failing", "nothing finished", "infeasible", "infinite", "one evaluation"])
def test_every_kind_of_run_can_be_drawn(tmp_path, name):
    assert name in RUNS
    figure = plot_result(make(name, tmp_path / "run.db"))
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 5000
