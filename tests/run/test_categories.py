"""Categories through the whole house: spaces, searches, run files, reports, exports, problem files."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from mixcma import Bool, Categorical, Discrete, Float, Int, Optimizer, Outcome, Space, minimize, resume
from mixcma.cli import main
from mixcma.latent.encoding import Encoding
from mixcma.report import build_report
from mixcma.report.export import write_csv, write_json
from mixcma.report.series import encoding_of, generations_of, shares_of
from mixcma.run.warm_start import started_at, warm_start
from mixcma.store import read

KINDS = ["a", "b", None, 2.5, True]
MIXED = Space(
    {
        "kind": Categorical(KINDS),
        "x": Float(-5, 5),
        "n": Int(-10, 10),
        "two": Categorical(["no", "yes"]),
        "fixed": Categorical([None]),
        "on": Bool(),
    }
)
COST = {"a": 3.0, "b": 1.0, None: 0.0, 2.5: 2.0, True: 4.0}


def bowl(params):
    wrong = COST[params["kind"]] + (params["two"] != "yes") + params["on"]
    return params["x"] ** 2 + (params["n"] - 3) ** 2 + wrong


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        (Categorical([]), "at least one choice"),
        (Categorical("abc"), "a list of choices"),
        (Categorical(3), "a list of choices"),
        (Categorical([1, True]), "distinct choices"),
        (Categorical(["a", "b", "a"]), "distinct choices"),
        (Categorical([float("nan")]), "strings, finite numbers"),
        (Categorical([(1, 2), (3, 4)]), "strings, finite numbers"),
        (Categorical(["a", "b"], mean=0.5), "without mean"),
        (Categorical(["a", "b"], std=0.5), "without mean"),
    ],
)
def test_what_is_wrong_with_a_category_is_said(variable, said):
    with pytest.raises(ValueError, match=said) as caught:
        Space({"kind": variable})
    assert "'kind'" in str(caught.value)


def test_a_value_must_be_one_of_the_choices():
    assert MIXED.check_params({"kind": None, "x": 0, "n": 0, "two": "no", "fixed": None, "on": False})["kind"] is None
    with pytest.raises(ValueError, match="'kind': expected one of its choices"):
        MIXED.check_params({"kind": "c", "x": 0, "n": 0, "two": "no", "fixed": None, "on": False})
    with pytest.raises(ValueError, match="expected one of its choices"):
        Space({"k": Categorical([0, 1])}).check_params({"k": True})
    assert Space({"k": Categorical([0, 1])}).check_params({"k": np.int64(1)}) == {"k": 1}


def test_a_space_with_categories_goes_through_json():
    assert Space.from_json(MIXED.to_json()) == MIXED
    assert Space({"k": Categorical(["a", "b", "c"]), "on": Bool()}).size == 6
    assert Space.from_dict({"k": {"type": "categorical", "choices": ["a", 1]}})["k"] == Categorical(("a", 1))
    with pytest.raises(ValueError, match="choices of the categorical"):
        Space.from_dict({"k": {"type": "categorical"}})


@pytest.mark.parametrize("categories", [False, True])
def test_params_are_encoded_and_decoded(categories):
    space = Space({**MIXED, "bit": Int(4, 9, step=5), "pair": Discrete([0.5, 2.0])})
    encoding = Encoding(space, categories)
    for place, kind in enumerate(KINDS):
        params = {"kind": kind, "x": 1.25, "n": -4, "two": "yes", "fixed": None, "on": True, "bit": 9, "pair": 0.5}
        latent = encoding.encode(params)
        assert encoding.decode(latent[None]) == [params]
        assert latent[encoding.names.index("kind")] == place
    assert len(encoding.coordinates.choices) == (5 if categories else 1)


@pytest.mark.parametrize("method", ["mix", "catmargin"])
def test_the_best_choices_are_found(method):
    result = minimize(bowl, MIXED, budget=6000, seed=3, target=1e-8, method=method, progress=False)
    assert result.stop.name == "target"
    assert {**result.params, "x": 0.0} == {"kind": None, "x": 0.0, "n": 3, "two": "yes", "fixed": None, "on": False}
    assert list(result.params) == list(MIXED)


@pytest.mark.parametrize("method", ["cma", "margin", "im", "im-box"])
def test_methods_without_categories_refuse_them_but_take_two_choices(method):
    with pytest.raises(ValueError, match=r"variable 'kind' have no order.*use method='mix'"):
        Optimizer(MIXED, method=method)
    space = Space({"two": Categorical(["no", "yes"]), "x": Float(-1, 1)})
    result = minimize(
        lambda p: p["x"] ** 2 + (p["two"] == "no"), space, budget=2000, seed=1, target=1e-6, method=method
    )
    assert result.params["two"] == "yes"


@pytest.mark.parametrize("method", ["mix", "catmargin"])
@pytest.mark.parametrize(
    "space",
    [
        Space({"only": Categorical(["a", "b", "c"])}),
        Space({f"c{i}": Categorical(range(4)) for i in range(6)}),
        Space({"one": Categorical([1]), "two": Categorical(["a", "b"])}),
        Space({f"b{i}": Bool() for i in range(8)}),
    ],
    ids=["one", "six", "constant and pair", "booleans"],
)
def test_spaces_of_categories_alone_are_searched_and_left(space, method):
    best = {name: values[-1] for name, values in ((n, _values(v)) for n, v in space.items())}
    result = minimize(
        lambda p: sum(p[n] != best[n] for n in p), space, budget=3000, seed=2, method=method, restarts=False
    )
    assert result.value == 0
    assert result.evaluations <= (space.size or 1)
    assert result.stop.name in ("exhausted", "flat", "budget", "variance")


def _values(variable):
    return [False, True] if isinstance(variable, Bool) else list(variable.choices)


def test_relabelling_the_choices_changes_nothing_but_the_labels():
    def run(labels):
        space = Space({"kind": Categorical(labels), "two": Categorical([f"{labels[0]}1", "2"]), "x": Float(-5, 5)})
        optimizer = Optimizer(space, seed=5)
        places = []
        for _ in range(30):
            candidates = optimizer.ask()
            points = [(labels.index(c.params["kind"]), c.params["x"], c.params["two"] == "2") for c in candidates]
            optimizer.tell(candidates, [(k - 1) ** 2 + x**2 + two for k, x, two in points])
            places.append(points)
        return places

    assert run(["a", "b", "c"]) == run(["z", "y", "x"])


def test_history_and_points_say_where_the_choices_start():
    points = [({"kind": "b", "x": 0.1 * i, "n": 3, "two": "yes", "fixed": None, "on": False}, i) for i in range(40)]
    encoding = Encoding(MIXED, True)
    start = warm_start(encoding, points)
    named = dict(zip(encoding.names[-3:], start.theta))
    np.testing.assert_allclose(named["kind"], [0.1, 0.6, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(named["two"][:2], [0.25, 0.75])
    optimizer = Optimizer(MIXED, seed=1)
    optimizer.move_to(points[0][0])
    once = optimizer.state.categories.theta.copy()
    optimizer.move_to(points[0][0])
    np.testing.assert_array_equal(optimizer.state.categories.theta, once)
    np.testing.assert_allclose(dict(zip(encoding.names[-3:], once))["kind"], [0.1, 0.6, 0.1, 0.1, 0.1])


def test_the_mean_of_a_boolean_is_where_its_probability_starts():
    for variable, expected in (
        (Bool(mean=0.75), 0.75),
        (Bool(), 0.5),
        (Bool(mean=1.0), 0.9),
        (Int(3, 4, mean=3.2), 0.2),
    ):
        encoding = Encoding(Space({"on": variable}), True)
        np.testing.assert_allclose(started_at(encoding, encoding.initial_mean).theta, [[1 - expected, expected]])
    optimizer = Optimizer(Space({"on": Bool(), "x": Float(0, 1)}), mean={"on": 0.3})
    np.testing.assert_allclose(optimizer.state.categories.theta, [[0.7, 0.3]])


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "run.db"
    minimize(bowl, MIXED, budget=150, seed=4, run_file=path, progress=False)
    return path


def test_a_run_with_categories_goes_on_as_if_nothing_had_been(tmp_path, run_file):
    whole = minimize(bowl, MIXED, budget=400, seed=4, progress=False)
    again = resume(run_file, bowl, budget=400, progress=False)
    assert (again.params, again.value, again.evaluations) == (whole.params, whole.value, whole.evaluations)


def test_the_report_shows_the_probability_of_every_choice(run_file):
    record = read(run_file)
    encoding = encoding_of(record)
    shares = {s.name: s for s in shares_of(record, encoding, generations_of(record, encoding))}
    assert shares["kind"].values == ["a", "b", "None", "2.5", "True"]
    np.testing.assert_allclose(shares["kind"].probability[:, 0], 0.2)
    np.testing.assert_allclose(shares["kind"].probability.sum(axis=0), 1.0)
    assert shares["on"].values == ["False", "True"]
    assert "5 choices" in build_report(record)


def test_choices_are_exported(run_file):
    record, csv, text = read(run_file), io.StringIO(), io.StringIO()
    write_csv(record, csv)
    write_json(record, text)
    assert {row["params"]["kind"] for row in json.loads(text.getvalue())["evaluations"]} <= set(KINDS)
    assert ",yes," in csv.getvalue()


def test_a_failing_choice_is_avoided():
    def fragile(params):
        if params["kind"] == "b":
            raise RuntimeError("no such kernel")
        return Outcome(bowl(params))

    results = [minimize(fragile, MIXED, budget=4000, seed=seed, target=1e-6, progress=False) for seed in range(5)]
    assert all(result.params["kind"] is None for result in results)
    assert 0 < sum(result.failures for result in results) < sum(result.evaluations for result in results) / 4


def test_a_problem_file_has_categories(tmp_path, capsys):
    problem = tmp_path / "problem.toml"
    problem.write_text(
        "[space.kernel]\n"
        'type = "categorical"\n'
        'choices = ["rbf", "linear", "poly"]\n'
        "[space.x]\n"
        'type = "float"\n'
        "low = -1\n"
        "high = 1\n"
        "[objective]\n"
        'command = ["python3", "{here}/cost.py", "{kernel}", "{x}"]\n'
        'value = "stdout"\n'
        "[run]\n"
        "budget = 60\n"
        "seed = 1\n"
    )
    (tmp_path / "cost.py").write_text(
        "import sys\nprint({'rbf': 2.0, 'linear': 0.0, 'poly': 1.0}[sys.argv[1]] + float(sys.argv[2]) ** 2)\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["check", str(problem)])
    assert ended.value.code == 0
    assert "categorical" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["run", str(problem), "--quiet"])
    assert "linear" in capsys.readouterr().out
