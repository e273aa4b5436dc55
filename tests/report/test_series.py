"""The numbers of a report agree with the result of the search, with the encoding and with the law of the margin."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from mixcma import Bool, Categorical, Discrete, Float, Int, Margin, Outcome, Space, Stopping, minimize
from mixcma.core.coordinates import cell_index
from mixcma.core.methods import METHODS
from mixcma.latent.encoding import Encoding
from mixcma.report import figures, recipe
from mixcma.report.chart import MOST_DECADES, linear_ticks, log_ticks
from mixcma.report.series import (
    LARGE,
    VALUES_SHOWN,
    cell_probabilities,
    encoding_of,
    evaluations_of,
    generations_of,
    improvements_of,
    margin_of,
    model_use_of,
    restarts_of,
    shares_of,
    spreads_of,
    thinned,
)
from mixcma.report.tables import (
    SAME_DESIGN,
    best_designs,
    best_point,
    components,
    failures_of,
    populations,
    reasons_of,
    runs_of,
    summary_of,
)
from mixcma.report.text import number
from mixcma.store import read
from tests.report.runs import MIXED, RUNS, make

FINISHED = sorted(set(RUNS) - {"nothing finished", "evil", "sixty"})


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Name of a run -> its result and its record; each run is made only once."""
    made = {}

    def of(name):
        if name not in made:
            path = tmp_path_factory.mktemp("runs") / "run.db"
            made[name] = make(name, path), read(path)
        return made[name]

    return of


def generations(record):
    encoding = encoding_of(record)
    return encoding, generations_of(record, encoding)


# Evaluations


@pytest.mark.parametrize("name", FINISHED)
def test_the_improvements_are_those_of_the_result(kept, name):
    result, record = kept(name)
    evaluations = evaluations_of(record)
    improvements = improvements_of(evaluations)
    assert len(evaluations) == result.evaluations
    assert evaluations.failed.sum() == result.failures
    found = list(zip(improvements.at.tolist(), improvements.value.tolist(), improvements.violation.tolist()))
    assert found == [(best.evaluation, best.value, best.violation) for best in result.improvements]


def test_evaluations_after_the_target_was_reached_do_not_count(kept):
    result, record = kept("floats")
    reached = result.improvements[2]
    ended = replace(record, settings={**record.settings, "stop": "target", "target": reached.value})
    assert len(evaluations_of(ended)) == reached.evaluation < len(evaluations_of(record))


def test_the_infeasible_part_ends_where_the_feasible_one_begins(kept):
    _, record = kept("constrained")
    improvements = improvements_of(evaluations_of(record))
    before, _ = improvements.steps(feasible=False)
    x, y = improvements.steps(feasible=True)
    assert before[-1] == x[0]
    assert x[-1] == 300
    assert y[-1] == y[-2] == improvements.value[-1]
    assert (np.diff(y) <= 0).all()


def test_a_run_that_was_never_feasible_has_no_feasible_part(kept):
    improvements = improvements_of(evaluations_of(kept("infeasible")[1]))
    assert improvements.steps(feasible=True)[0].size == 0
    assert improvements.steps(feasible=False)[0][-1] == 80


@given(st.integers(0, 5000), st.integers(2, 1200))
def test_thinning_keeps_order_ends_and_the_limit(length, most):
    indices = thinned(length, most)
    assert len(indices) == min(length, most)
    assert (np.diff(indices) > 0).all()
    assert length == 0 or (indices[0], indices[-1]) == (0, length - 1)


# Generations


def test_generations_count_through_all_runs(kept):
    _, record = kept("restarts")
    _, series = generations(record)
    assert len(record.runs) > 2
    assert series.number.tolist() == list(range(1, len(record.generations) + 1))
    firsts = [i + 1 for i, row in enumerate(record.generations) if row.run > 0 and row.generation == 0]
    assert restarts_of(series) == firsts
    assert len(firsts) == len(record.runs) - 1


def test_a_single_generation_is_drawn_from_its_beginning_to_its_end(kept):
    _, series = generations(kept("one evaluation")[1])
    assert series.thinned(LARGE).number.tolist() == [0.5, 1.5]
    assert series.thinned(LARGE).step_size.tolist() == [1.0, 1.0]


# Variables


def test_the_mean_is_what_the_encoding_makes_of_it(kept):
    _, record = kept("mixed")
    encoding, series = generations(record)
    decoded = encoding.decode(series.mean)
    for spread in spreads_of(encoding, series):
        assert spread.mean.tolist() == [float(params[spread.name]) for params in decoded]
        assert (spread.low <= spread.mean).all()
        assert (spread.mean <= spread.high).all()
        low, high = spread.variable.hull
        assert spread.low.min() >= low
        assert spread.high.max() <= high


def test_variables_come_in_the_order_of_the_space_without_constants(kept):
    _, record = kept("mixed")
    encoding, series = generations(record)
    numbers = [name for name in list(MIXED)[:-1] if name != "on"]  # the search treats it as a category
    assert [spread.name for spread in spreads_of(encoding, series)] == numbers
    discrete = [name for name, variable in MIXED.free.items() if variable.size is not None]
    assert [shares.name for shares in shares_of(record, encoding, series)] == discrete


def test_deviations_start_as_declared_in_the_units_of_the_variable(tmp_path):
    space = Space(
        {
            "x": Float(0, 10, std=2.5),
            "rate": Float(1e-5, 1e-1, log=True, std=1.5),
            "even": Int(0, 40, 2, std=7.0),
            "wire": Discrete([0.1, 0.4, 5], std=0.75),
            "on": Bool(),
        }
    )
    minimize(lambda p: p["x"], space, budget=10, seed=1, run_file=tmp_path / "run.db")
    encoding, series = generations(read(tmp_path / "run.db"))
    first = {spread.name: spread.deviation[0] for spread in spreads_of(encoding, series)}
    assert first == pytest.approx({"x": 2.5, "rate": 1.5, "even": 7.0, "wire": 0.75})


# Values


def test_probabilities_are_the_frequencies_of_what_is_drawn(kept):
    _, record = kept("mixed")
    encoding, series = generations(record)
    shown = series[np.array([0, len(series) // 3, len(series) - 1])]
    noise = np.random.default_rng(1).standard_normal((20_000, encoding.dimension))
    for g in range(len(shown)):
        latent = shown.mean[g] + shown.deviation[g] * noise
        latent[:, -1] = np.random.default_rng(2).choice(2, len(noise), p=shown.theta[g, 0])  # "on"
        drawn = encoding.decode(latent)
        for shares in shares_of(record, encoding, shown):
            values = [number(params[shares.name]) for params in drawn]
            for value, probability in zip(shares.values, shares.probability[:, g]):
                frequency = values.count(value) / len(values)
                assert (
                    abs(frequency - probability) < 5 * math.sqrt(probability * (1 - probability) / len(values)) + 1e-4
                )


def test_the_probabilities_of_all_values_add_up_to_one(kept):
    _, record = kept("mixed")
    encoding, series = generations(record)
    for shares in shares_of(record, encoding, series):
        others = 0.0 if shares.others is None else shares.others
        assert np.allclose(shares.probability.sum(axis=0) + others, 1.0, rtol=1e-12)
        assert (shares.others is None) == (shares.name in ("n", "on", "wire"))
        assert len(shares.values) <= 12


def test_far_tails_have_all_their_digits():
    encoding = Encoding(Space({"n": Int(0, 9, std=1.0)}))
    thresholds = np.arange(10) + 0.5
    mean, deviation = np.array([0.0, 9.0]), np.array([0.25, 0.3])
    found = cell_probabilities(encoding.coordinates, 0, np.arange(10.0), mean, deviation)
    upper = norm.sf(thresholds[:8] / 0.25) - norm.sf(thresholds[1:9] / 0.25)
    assert found[1:9, 0] == pytest.approx(upper, rel=1e-10)
    assert found[9, 0] == pytest.approx(norm.sf(8.5 / 0.25), rel=1e-10)
    assert 0 < found[9, 0] < 1e-250
    assert found[0, 1] == pytest.approx(norm.cdf((0.5 - 9.0) / 0.3), rel=1e-10)


def test_a_deviation_of_zero_gives_a_probability_of_one():
    encoding = Encoding(Space({"on": Bool()}))
    found = cell_probabilities(encoding.coordinates, 0, np.arange(2.0), np.array([5.0]), np.array([0.0]))
    assert found[:, 0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("method", ["margin", Margin(alpha=0.03)])
def test_the_probability_of_a_step_to_either_side_keeps_the_margin(tmp_path, method):
    space = Space({"n": Int(0, 9), "on": Bool(), "wire": Discrete([0.1, 0.5, 0.2, 3.0]), "x": Float(-5, 5)})
    path = tmp_path / "run.db"
    minimize(lambda p: (p["n"] - 4) ** 2 + p["on"] + p["wire"] + p["x"] ** 2, space, budget=800, seed=1,
             run_file=path, method=method)  # fmt: skip
    record = read(path)
    encoding, series = generations(record)
    home = cell_index(encoding.coordinates, series.mean)
    tight = 0
    for shares in shares_of(record, encoding, series):
        j = encoding.names.index(shares.name)
        for g in range(len(series)):
            if series.generation[g] == 0:  # nothing has been corrected yet
                continue
            k, probability = int(home[g, j]), shares.probability[:, g]
            sides = [side.sum() for side in (probability[:k], probability[k + 1 :]) if side.size]
            assert min(sides) >= shares.margin[g] * (1 - 1e-9)
            tight += min(sides) < shares.margin[g] * (1 + 1e-6)
    assert tight > 100  # the bound in the figure is the one that the search runs into


def test_the_margin_shrinks_with_the_population(kept):
    _, record = kept("restarts")
    encoding, series = generations(record)
    margin = margin_of(record, encoding, series)
    popsizes = np.array([record.runs[run].popsize for run in series.run])
    assert margin == pytest.approx(1 / (2 * popsizes))


def test_other_methods_have_no_margin(kept):
    _, record = kept("integer mutation")
    encoding, series = generations(record)
    assert all(shares.margin is None for shares in shares_of(record, encoding, series))


def test_of_many_values_the_most_probable_are_listed_in_their_order(kept):
    _, record = kept("mixed")
    encoding, series = generations(record)
    batch = next(shares for shares in shares_of(record, encoding, series) if shares.name == "batch")
    j = encoding.names.index("batch")
    every = cell_probabilities(
        encoding.coordinates, j, np.arange(4089.0), series.mean[:, j], series.deviation[:, j]
    ).sum(axis=1)
    assert len(batch.values) == VALUES_SHOWN
    assert batch.values == sorted(batch.values, key=int)
    likeliest = 8 + int(every.argmax())
    assert str(likeliest) in batch.values


# Tables


@pytest.mark.parametrize("name", FINISHED)
def test_the_best_point_is_that_of_the_result(kept, name):
    result, record = kept(name)
    designs, best = best_designs(record.space, evaluations_of(record)), best_point(evaluations_of(record))
    if result.params is None:
        assert designs == []
        assert best is None
        return
    for point in (best, designs[0]):
        assert (point.params, point.value, point.violation) == (result.params, result.value, result.violation)
    ranks = [(point.violation, point.value) for point in designs]
    assert ranks == sorted(ranks)
    assert len({tuple(point.params.values()) for point in designs}) == len(designs) <= 50


@pytest.mark.parametrize("name", FINISHED)
def test_every_evaluation_belongs_to_one_design(kept, name):
    _, record = kept(name)
    evaluations = evaluations_of(record)
    designs = best_designs(record.space, evaluations, most=len(evaluations))
    assert sum(point.times for point in designs) == len(evaluations) - int(evaluations.failed.sum())


def test_points_that_nearly_agree_are_one_design(tmp_path):
    space = Space({"x": Float(0, 1), "n": Int(0, 200), "wide": Int(0, 10**6), "kind": Categorical(["a", "b", "c"])})
    first = {"x": 0.5, "n": 100, "wide": 5000, "kind": "a"}
    near = {"x": 0.5 + 0.9 * SAME_DESIGN, "n": 100, "wide": 5001, "kind": "a"}
    others = [{**first, "x": 0.5 - 1.1 * SAME_DESIGN}, {**first, "n": 101}, {**first, "kind": "c"}]
    points = [first, near, *others, first]
    values = iter([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    minimize(lambda p: next(values), space, budget=6, x0=points, run_file=tmp_path / "run.db")
    record = read(tmp_path / "run.db")
    designs = best_designs(record.space, evaluations_of(record))
    assert [point.params for point in designs] == [first, *others]
    assert [point.times for point in designs] == [3, 1, 1, 1]


def test_the_populations_of_all_runs_are_named(kept):
    _, record = kept("restarts")
    runs = [run._replace(popsize=size) for run, size in zip(record.runs, (6, 6, 12, 6))]
    assert populations(replace(record, runs=runs[:2])) == "population 6"
    assert populations(replace(record, runs=runs)) == "population 6 to 12"


def test_every_end_of_a_run_is_explained(kept):
    _, record = kept("restarts")
    runs = runs_of(record, evaluations_of(record))
    assert set(reasons_of(runs)) == {run.stop for run in runs}
    assert all(message.endswith(".") for message in reasons_of(runs).values())


@pytest.mark.parametrize("name", FINISHED)
def test_the_runs_are_those_of_the_result(kept, name):
    result, record = kept(name)
    runs = runs_of(record, evaluations_of(record))
    assert [run.popsize for run in runs] == [run.popsize for run in result.runs]
    assert sum(run.evaluations for run in runs) == result.evaluations
    assert [run.stop for run in runs] == [run.stop.name for run in result.runs]


@pytest.mark.parametrize("name", FINISHED)
def test_the_summary_says_why_it_stopped(kept, name):
    result, record = kept(name)
    summary = summary_of(record, evaluations_of(record))
    assert f"{summary.stop} {summary.advice}" == str(result.stop)
    assert (summary.evaluations, summary.failures, summary.runs) == (
        result.evaluations,
        result.failures,
        len(result.runs),
    )


def test_failures_are_grouped_by_what_they_say(kept):
    result, record = kept("twenty")
    failures = failures_of(evaluations_of(record))
    assert failures[0].count >= failures[1].count
    assert sum(failure.count for failure in failures) == result.failures
    assert min(failures, key=lambda failure: failure.numbers[0]).error == result.first_error
    by_title = {failure.title.split(":")[0]: failure for failure in failures}
    assert by_title.keys() == {"RuntimeError", "ValueError"}
    assert by_title["RuntimeError"].first.params["x0"] > 2.5
    assert by_title["RuntimeError"].error.endswith("second line")


def test_errors_that_differ_in_whole_numbers_stay_apart(tmp_path):
    def objective(p):
        raise RuntimeError(f"exit status {p['n']} after {p['x']} s at 0x{id(p):x}")

    minimize(objective, Space({"n": Int(1, 2), "x": Float(0, 1)}), budget=15, seed=1, run_file=tmp_path / "run.db")
    failures = failures_of(evaluations_of(read(tmp_path / "run.db")))
    assert sorted(failure.title.split(" after")[0] for failure in failures) == [
        "RuntimeError: exit status 1",
        "RuntimeError: exit status 2",
    ]


def test_a_design_knows_where_it_lies_in_its_range():
    space = Space(
        {"x": Float(0, 10), "rate": Float(1e-4, 1.0, log=True), "free": Float(), "on": Bool(), "c": Int(3, 3)}
    )
    parts = components(space, {"x": 2.5, "rate": 1e-2, "free": 7.0, "on": True, "c": 3})
    assert [part.place for part in parts] == [0.25, pytest.approx(0.5), None, None, None]
    assert [part.at_bound for part in parts] == [False, False, False, False, False]


@pytest.mark.parametrize("variable", [Bool(), Int(0, 1), Discrete([2, 5]), Categorical(["a", "b"])])
def test_of_two_values_neither_is_a_bound(variable):
    space = Space({"v": variable})
    value = {"bool": True, "int": 1, "discrete": 5, "categorical": "b"}[variable.kind]
    assert not components(space, {"v": value})[0].at_bound
    assert components(Space({"n": Int(0, 2)}), {"n": 2})[0].at_bound


# Axes


@given(st.floats(1e-300, 1e300), st.floats(1, 1e290))
def test_a_logarithmic_axis_has_few_ticks(low, factor):
    high = low * factor
    distance = log_ticks(low, high)
    if isinstance(distance, int):
        assert 1 <= (math.log10(high) - math.log10(low)) / distance <= MOST_DECADES


@pytest.mark.parametrize("largest", [0.0, 0.02, 2.0, 4e3, 9e6])
def test_usual_numbers_are_written_in_full(largest):
    assert linear_ticks(-largest, largest / 2) == {"exponentformat": "none", "separatethousands": True}


@pytest.mark.parametrize("largest", [1e-9, 1e9])
def test_long_numbers_have_an_exponent(largest):
    assert linear_ticks(0.0, largest) == {"tickformat": "~g"}


def test_what_a_figure_leaves_out_is_said(kept):
    _, record = kept("decades")
    evaluations = evaluations_of(record)
    chart = figures.best_value(improvements_of(evaluations), evaluations, None, [])
    low, high = chart.views["linear"].layout["yaxis"]["range"]
    outside = int(((evaluations.value < low) | (evaluations.value > high)).sum())
    assert outside > 0
    assert chart.views["linear"].note == (
        f"{outside} of 300 values lie outside this range; double-click the figure to see them."
    )
    assert chart.views["log"].note == ""


def test_the_gaps_of_a_deviation_are_explained(kept):
    _, record = kept("twenty")
    encoding, series = generations(record)
    notes = {}
    for spread in spreads_of(encoding, series):
        views = figures.spread(spread, series, None, []).views
        assert views[figures.SPREAD].note == ""
        notes[spread.name] = views[figures.DEVIATION].note
        assert bool(notes[spread.name]) == bool((spread.deviation == 0).any())
    assert notes["x0"] == ""
    assert "only by mutation" in notes["n0"]


# How to repeat a run


@pytest.mark.parametrize(
    "name", ["mixed", "choices", "constrained", "target", "restarts", "cached", "given points", "integer mutation"]
)
def test_the_call_in_the_report_repeats_the_run(kept, tmp_path, monkeypatch, name):
    result, record = kept(name)
    monkeypatch.chdir(tmp_path)
    names = {"objective": RUNS[name][0]}
    exec(recipe.python_call(record), names)
    again = read(tmp_path / recipe.AGAIN)
    assert [(row.params, row.outcome) for row in evaluations_of(again).rows] == [
        (row.params, row.outcome) for row in evaluations_of(record).rows
    ]
    assert replace(names["result"], run_file=None) == replace(result, run_file=None)


def test_unusual_settings_are_in_the_call(tmp_path):
    path = tmp_path / "run.db"
    space = Space({"x": Float(high=3.0), "n": Int(0, 8, 2, mean=3.0)})
    minimize(lambda p: p["n"] - 4.0, space, budget=20, seed=7, popsize=9, restarts=1, cache=True, run_file=path,
             target=-9.0, method=Margin(alpha=0.02), stopping=Stopping(failing_generations=5))  # fmt: skip
    call = recipe.python_call(read(path))
    for line in (
        "from mixcma import Float, Int, Margin, Space, Stopping, minimize",
        "'x': Float(high=3.0),",
        "'n': Int(0, 8, mean=3.0, step=2),",
        "budget=20,",
        "seed=7,",
        "popsize=9,",
        "restarts=1,",
        "cache=True,",
        "target=-9.0,",
        "method=Margin(alpha=0.02),",
        "stopping=Stopping(failing_generations=5),",
    ):
        assert line in call
    compile(call, "call", "exec")


def test_a_warm_start_is_mentioned(tmp_path):
    history = [({"x": x / 10}, (x / 10 - 1) ** 2) for x in range(-30, 30)]
    space = Space({"x": Float(-5, 5)})
    minimize(lambda p: p["x"] ** 2, space, budget=20, seed=1, history=history, run_file=tmp_path / "run.db")
    assert "history=" in recipe.python_call(read(tmp_path / "run.db"))


@pytest.mark.parametrize("name", RUNS)
def test_without_a_history_none_is_asked_for(kept, name):
    assert "history=" not in recipe.python_call(kept(name)[1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("x0", [(), {"on": True, "x": 2.0, "n": 9}])
def test_no_method_looks_like_a_warm_start(tmp_path, method, x0):
    space = Space({"on": Bool(mean=0.2), "x": Float(-5, 5, std=0.01), "n": Int(0, 9, mean=8.6)})
    minimize(lambda p: p["x"] ** 2, space, budget=30, seed=1, method=method, x0=x0, run_file=tmp_path / "run.db")
    assert "history=" not in recipe.python_call(read(tmp_path / "run.db"))


def test_a_warm_start_of_categories_alone_is_mentioned(tmp_path):
    space = Space({"on": Bool(), "kind": Categorical(["a", "b", "c"])})
    history = [({"on": True, "kind": "b"}, 1.0)]
    minimize(lambda p: p["on"], space, budget=6, seed=1, history=history, run_file=tmp_path / "run.db")
    assert "history=" in recipe.python_call(read(tmp_path / "run.db"))


def test_commands_are_for_runs_that_a_command_began(kept, tmp_path):
    _, record = kept("mixed")
    assert recipe.commands(record) is None
    problem = {"text": "", "folder": ".", "path": "my problem.toml"}
    begun = replace(record, settings={**record.settings, "notes": {"problem": problem}})
    assert recipe.commands(begun).splitlines() == [
        "mixcma run 'my problem.toml' --seed 1 --budget 400 --run-file again.db",
        "mixcma resume run.db --budget 800",
    ]


def test_constraints_of_the_best_are_kept(kept):
    _, record = kept("constrained")
    best = summary_of(record, evaluations_of(record)).best
    assert Outcome(best.value, best.constraints).feasible
    assert len(best.constraints) == 2


@pytest.mark.parametrize("name", FINISHED)
def test_every_evaluation_is_the_models_own_point_or_not(kept, name):
    _, record = kept(name)
    evaluations = evaluations_of(record)
    use = model_use_of(record, evaluations)
    np.testing.assert_array_equal(use.proposed + use.drawn, 1 + np.arange(len(evaluations)))
    assert (np.diff(use.unseen) >= 0).all()


def test_what_the_model_did_is_counted(tmp_path):
    """Candidates are those that were evaluated and those that were ranked unseen; without the model there are none."""
    space, counts = Space({"x": Float(-5, 5), "y": Float(-5, 5), "n": Int(0, 9)}), {}
    for method in ("mix", "mix-without-model"):
        path = tmp_path / f"{method}.db"
        minimize(lambda p: abs(p["x"]) + p["y"] ** 4 + p["n"], space, budget=200, seed=1, method=method, run_file=path)
        record = read(path)
        evaluations = evaluations_of(record)
        use, popsize = model_use_of(record, evaluations), record.runs[0].popsize
        counts[method] = int(use.proposed[-1]), int(use.unseen[-1])
        last = evaluations.rows[-1].generation  # the budget may have cut it off
        drawn = {row.generation for row in evaluations.rows if row.slot < popsize} - {last}
        if len(record.runs) == 1 and method == "mix":
            before = [row.generation for row in evaluations.rows if row.generation < last]
            whole = sum(generation in drawn for generation in before)
            assert whole + use.unseen[len(before) - 1] == popsize * len(drawn)
    assert counts["mix-without-model"] == (0, 0)
    assert min(counts["mix"]) > 0
