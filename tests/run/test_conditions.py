"""Conditional variables in a run: a candidate says nothing of what it lacks, and nothing depends on the order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mixcma import Bool, Categorical, Float, Int, Optimizer, Space, minimize, resume
from mixcma.core.conditions import existing, without_absent
from mixcma.core.coordinates import cell_index
from mixcma.latent.encoding import Encoding
from mixcma.store import read

VARIABLES = {
    "model": Categorical(["svm", "forest", "knn"]),
    "scaled": Bool(),
    "C": Float(1e-3, 1e3, log=True, when={"model": "svm"}),
    "kernel": Categorical(["rbf", "linear", "poly"], when={"model": "svm"}),
    "gamma": Float(-3, 3, when={"kernel": "rbf"}),
    "depth": Int(1, 30, when={"model": "forest"}),
    "shift": Float(-5, 5),
}
SPACE = Space(VARIABLES)


def cost(p):
    value = (p["shift"] - 1) ** 2 + 0.5 * p["scaled"]
    if p["model"] == "svm":
        value += np.log10(p["C"]) ** 2 + {"rbf": 0.0, "linear": 0.5, "poly": 0.7}[p["kernel"]]
        return value + (p["gamma"] - 1) ** 2 if p["kernel"] == "rbf" else value
    return value + 1 + (((p["depth"] - 20) / 10) ** 2 if p["model"] == "forest" else 0.3)


@pytest.mark.parametrize("categories", [True, False])
def test_latent_points_and_parameters(categories):
    encoding, rng = Encoding(SPACE, categories), np.random.default_rng(1)
    for row in rng.normal(0.0, 2.0, (200, encoding.dimension)):
        row[-len(encoding.coordinates.choices) :] = rng.integers(0, 2, len(encoding.coordinates.choices))
        (params,) = encoding.decode(row[None])
        assert SPACE.check_params(params) == params
        latent = encoding.encode(params)
        assert without_absent(encoding.coordinates, latent).tolist() == latent.tolist()
        exists = existing(encoding.coordinates, cell_index(encoding.coordinates, row))
        assert {name for name, there in zip(encoding.names, exists) if there} == set(params)


@pytest.mark.parametrize("method", ["mix", "mix-without-model"])
def test_the_best_branch_is_found(method):
    for seed in (1, 2, 3, 4):
        optimizer = Optimizer(SPACE, method=method, seed=seed, target=1e-6, restarts=True)
        while not optimizer.stop and optimizer.evaluations < 20_000:
            candidates = optimizer.ask()
            optimizer.tell(candidates, [cost(c.params) for c in candidates])
            assert np.linalg.eigvalsh(optimizer.state.C)[0] > 0
            if optimizer.best.value <= 1e-6:
                break
        assert optimizer.best.value <= 1e-6
        assert set(optimizer.best.params) == {"model", "scaled", "C", "kernel", "gamma", "shift"}


def alone(optimizer, names):
    """What the state knows of some variables."""
    places = [optimizer.encoding.names.index(name) for name in names]
    state, method = optimizer.state, optimizer.method
    return state.m[places], method.spread(state)[places]


def test_a_branch_that_is_not_drawn_keeps_what_it_has_learnt():
    optimizer = Optimizer(SPACE, method="mix-without-model", seed=3)
    for _ in range(200):
        before = alone(optimizer, ["C", "depth"])
        candidates = optimizer.ask()
        optimizer.tell(candidates, [cost(c.params) for c in candidates])
        after = alone(optimizer, ["C", "depth"])
        for k, name in enumerate(("C", "depth")):
            having = sum(name in c.params for c in candidates)
            if having <= 1 and name == "C":  # integers may be adopted from a single candidate
                assert after[0][k] == pytest.approx(before[0][k], abs=1e-12)
            if having == 0:
                assert after[0][k] == before[0][k]
                assert after[1][k] == pytest.approx(before[1][k], rel=1e-9)


def test_values_of_what_does_not_exist_have_no_effect():
    """Another seed's noise for a variable that no candidate has changes nothing."""
    never = {**VARIABLES, "model": Categorical(["svm"]), "depth": Int(1, 30, when={"scaled": True})}
    with_it = Optimizer(Space(never), method="mix-without-model", seed=5)
    for _ in range(50):
        candidates = with_it.ask()
        values = [1.0 + c.params["shift"] ** 2 + 10.0 * c.params["scaled"] for c in candidates]
        before = alone(with_it, ["depth"])
        with_it.tell(candidates, values)
        if not any("depth" in c.params for c in candidates):
            assert alone(with_it, ["depth"])[0] == before[0]


@pytest.mark.parametrize("method", ["mix", "mix-without-model", "catmargin"])
def test_runs_are_kept_and_resumed(method, tmp_path):
    whole = minimize(cost, SPACE, budget=120, seed=4, method=method, run_file=tmp_path / "whole.db")
    calls = []

    def stops(p):
        calls.append(p)
        if len(calls) == 70:
            raise KeyboardInterrupt
        return cost(p)

    minimize(stops, SPACE, budget=120, seed=4, method=method, run_file=tmp_path / "broken.db")
    result = resume(tmp_path / "broken.db", cost)
    assert (result.params, result.value) == (whole.params, whole.value)
    rows = [read(tmp_path / name).rows for name in ("whole.db", "broken.db")]
    assert [row.params for row in rows[0]] == [row.params for row in rows[1]]
    assert all(SPACE.check_params(row.params) == row.params for row in rows[0])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_eight_workers(asynchronous, tmp_path):
    with ThreadPoolExecutor(8) as pool:
        result = minimize(
            cost, SPACE, budget=300, seed=1, workers=pool, asynchronous=asynchronous, run_file=tmp_path / "run.db"
        )
    assert result.value < 1e-3
    assert set(result.params) == {"model", "scaled", "C", "kernel", "gamma", "shift"}
    rows = read(tmp_path / "run.db").rows
    assert len(rows) >= 300
    assert all(SPACE.check_params(row.params) == row.params for row in rows)


def test_an_asynchronous_run_goes_on(tmp_path):
    """It depends on the order in which results come, which the file keeps: known evaluations are not made again."""
    calls = []

    def counted(p):
        calls.append(p)
        if len(calls) == 70:
            raise KeyboardInterrupt
        return cost(p)

    minimize(counted, SPACE, budget=120, seed=4, asynchronous=True, run_file=tmp_path / "run.db")
    before = [row for row in read(tmp_path / "run.db").rows if row.finished]
    resume(tmp_path / "run.db", counted)
    after = {row.id: row for row in read(tmp_path / "run.db").rows}
    assert all((after[row.id].params, after[row.id].outcome) == (row.params, row.outcome) for row in before)
    assert len([row for row in after.values() if row.evaluated]) == 120


def test_points_of_ones_own_need_only_what_exists():
    optimizer = Optimizer(SPACE, seed=1, x0={"model": "knn", "scaled": True, "shift": 0.0})
    (first,) = optimizer.ask()
    assert first.params == {"model": "knn", "scaled": True, "shift": 0.0}
    optimizer.tell([first], [cost(first.params)])
    own = {"model": "forest", "scaled": False, "shift": 1.0, "depth": 20}
    optimizer.tell([own], [cost(own)])
    assert optimizer.best.params == {name: own[name] for name in SPACE if name in own}
    history = [(c.params, cost(c.params)) for c in optimizer.ask()]
    again = Optimizer(SPACE, seed=2, history=history)
    assert all(np.isfinite(part).all() for part in (again.state.m, again.state.C, again.state.categories.theta))
    assert again.state.categories.theta.sum(axis=-1) == pytest.approx(1.0)


def test_two_points_that_differ_in_what_does_not_exist_are_one():
    space = Space({"on": Bool(), "n": Int(0, 9, when={"on": True})})
    called = []
    result = minimize(lambda p: called.append(p) or p.get("n", -1.0), space, budget=100, seed=1)
    assert len({tuple(p.items()) for p in called}) == len(called) <= 11
    assert result.params == {"on": False}
