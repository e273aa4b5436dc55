"""Many runs at once: company does not matter, back ends agree, finished runs are left alone."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

from mixcma import Float, Int, Margin, Optimizer, Space
from mixcma.batch import run_many
from mixcma.core.stopping import PAPER_STOPPING
from mixcma.problems import PAPER_FUNCTIONS, Problem, problem
from mixcma.run.noise import NoiseBatch, NoiseSource

METHODS = ["cma", "im", "im-box", "margin", "mix-without-model", "catmargin"]


@pytest.mark.parametrize("method", METHODS)
def test_a_trial_is_the_same_in_any_company_bit_for_bit(method: str) -> None:
    bench = problem("SphereOneMax", 6)
    together = run_many(bench, method, 12, seed=3, budget=3000)
    for trial in (0, 7, 11):
        alone = run_many(bench, method, [trial], seed=3, budget=3000)
        assert alone.evaluations[0] == together.evaluations[trial]
        assert alone.best_value[0] == together.best_value[trial]
        assert alone.success[0] == together.success[trial]


@pytest.mark.parametrize("method", METHODS)
def test_on_jax_too_a_trial_is_the_same_in_any_company(method: str) -> None:
    bench = problem("SphereInt", 6)
    one = run_many(bench, method, [0, 1, 2, 5], seed=3, backend="jax", budget=2000)
    other = run_many(bench, method, [5, 9, 8, 7], seed=3, backend="jax", budget=2000)
    assert one.evaluations[3] == other.evaluations[0]
    np.testing.assert_allclose(one.best_value[3], other.best_value[0], rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_trial_of_a_batch_ends_as_the_run_of_an_optimizer(method: str) -> None:
    """Both trials are runs that need not go back to their best point, as runs of a batch never do."""
    bench, trials = problem("EllipsoidInt", 8), [2, 3]
    batch = run_many(bench, method, trials, seed=9)
    for i, trial in enumerate(trials):
        optimizer = Optimizer(
            bench.space, method=method, seed=9, run=trial, mean=bench.start(trial), stopping=PAPER_STOPPING
        )
        best = np.inf
        while best >= bench.success and optimizer.evaluations < batch.evaluations[i]:
            candidates = optimizer.ask()
            values = [bench(c.params) for c in candidates]
            optimizer.tell(candidates, values)
            best = min(best, *(v + c.penalty for v, c in zip(values, candidates)))
        assert optimizer.evaluations == batch.evaluations[i]
        np.testing.assert_allclose(best, batch.best_value[i], rtol=1e-6)


def test_the_noise_of_a_batch_is_that_of_its_runs() -> None:
    runs = np.array([4, 0, 9])
    batch = NoiseBatch(5, runs, 30, 100, uniforms=True)
    sources = [NoiseSource(5, int(run), 30, 100, uniforms=True) for run in runs]
    for generation in range(15):
        alive = np.array([0, 1, 2]) if generation < 7 else np.array([0, 2])
        drawn = batch(generation, alive)
        for row, run in enumerate(alive):
            for left, right in zip(drawn, sources[run](generation)):
                assert np.array_equal(left[row], right)


def test_the_noise_of_a_generation_does_not_depend_on_what_was_asked_for_before() -> None:
    source, other = (NoiseSource(5, 1, 30, 100, uniforms=True) for _ in range(2))
    in_order = [[part.copy() for part in source(generation)] for generation in range(12)]
    for generation in (11, 3, 7, 0, 11):
        assert all(np.array_equal(*pair) for pair in zip(in_order[generation], other(generation)))


def test_chunks_of_noise_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_many(problem("SphereInt", 4), "im", 5, seed=1)
    monkeypatch.setattr("mixcma.run.noise.CHUNK_NUMBERS", 300)
    chunked = run_many(problem("SphereInt", 4), "im", 5, seed=1)
    assert np.array_equal(whole.evaluations, chunked.evaluations)


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("bits", [False, True])
def test_the_margin_solves_the_papers_functions(bits: bool, backend: str) -> None:
    benches = [problem(name, 6) for name in PAPER_FUNCTIONS if ("Int" not in name) == bits]
    result = run_many(benches, "margin", 8, seed=1, backend=backend)
    assert len(result.success) == 8 * len(benches)
    assert result.success.all()
    assert (result.best_value < 1e-10).all()
    assert (result.evaluations % 9 == 0).all()


def test_several_problems_of_one_space_share_a_batch() -> None:
    benches = [problem(name, 6) for name in ("SphereOneMax", "EllipsoidOneMax", "SphereLeadingOnes")]
    joined = run_many(benches, "margin", 4, seed=2)
    for i, bench in enumerate(benches):
        alone = run_many(bench, "margin", 4, seed=2)
        assert np.array_equal(joined.evaluations[4 * i : 4 * i + 4], alone.evaluations)


def test_problems_of_different_spaces_are_refused() -> None:
    with pytest.raises(ValueError, match="expected the same space"):
        run_many([problem("SphereInt", 6), problem("SphereOneMax", 6)])


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_alpha_rides_along(backend: str) -> None:
    bench, alphas = problem("SphereInt", 6), [1e-4, 1e-2, 1e-1]
    joined = run_many(bench, "margin", [1, 1, 1], seed=2, alpha=alphas, backend=backend, budget=20_000)
    for i, alpha in enumerate(alphas if backend == "numpy" else alphas[:1]):  # each is compiled
        alone = run_many(bench, Margin(alpha=alpha), [1], seed=2, backend=backend, budget=20_000)
        assert alone.evaluations[0] == joined.evaluations[i]


def test_alpha_needs_the_margin_and_one_number_a_run() -> None:
    with pytest.raises(ValueError, match="alpha: expected a margin for each of the 4 runs"):
        run_many(problem("SphereInt", 6), "margin", 4, alpha=[0.1])
    with pytest.raises(ValueError, match="alpha: expected"):
        run_many(problem("SphereInt", 6), "im", 2, alpha=[0.1, 0.1])


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_a_run_that_cannot_succeed_ends_by_the_papers_conditions(backend: str) -> None:
    bench = Problem("shifted sphere", 4, lambda x: ((x - 0.25) ** 2).sum(axis=-1), problem("SphereInt", 4).space)
    result = run_many(bench, "margin", 5, seed=1, backend=backend)
    assert not result.success.any()
    assert (result.evaluations < 100_000).all()
    np.testing.assert_allclose(result.best_value, 2 * 0.25**2, rtol=1e-9)  # two integers stay at 0


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_the_budget_holds(backend: str) -> None:
    result = run_many(problem("EllipsoidInt", 8), "margin", 3, backend=backend, budget=100)
    assert (result.evaluations <= 100).all()
    assert (result.evaluations > 80).all()


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_the_watch_sees_runs_finish(backend: str) -> None:
    seen: list[tuple[int, int]] = []
    run_many(problem("SphereInt", 6), "margin", 6, backend=backend, watch=lambda g, alive: seen.append((g, alive)))
    alive = [count for _, count in seen]
    assert alive[0] == 6
    assert alive == sorted(alive, reverse=True)


@dataclass(frozen=True)
class OwnProblem:
    """A user's own: bounded floats, wide integers, any vectorised function."""

    space: Space = field(default_factory=lambda: Space({"x": Float(-4, 4), "n": Int(0, 2**40, mean=100, std=30.0)}))
    success: float = 1e-8

    @staticmethod
    def function(x: np.ndarray) -> np.ndarray:
        return (x[..., 0] + 4) ** 2 + (x[..., 1] - 7) ** 2

    def start(self, seed: int) -> dict[str, float]:
        return {"x": 1.0}


def test_a_users_own_problem_runs_with_bounds_and_wide_integers() -> None:
    assert run_many(OwnProblem(), trials=5, seed=1).success.all()


def test_an_unknown_back_end_is_refused() -> None:
    with pytest.raises(ValueError, match='backend: expected "numpy" or "jax", but got \'torch\''):
        run_many(problem("SphereInt", 4), backend="torch")  # type: ignore[arg-type]


def test_without_jax_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mixcma.batch.on_jax", raising=False)
    monkeypatch.setitem(sys.modules, "jax", None)
    import mixcma.batch

    monkeypatch.delattr(mixcma.batch, "on_jax", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install jax"):
        run_many(problem("SphereInt", 4), backend="jax")


BAD_BATCHES = {
    "no trials": ({"trials": 0}, "trials"),
    "negative trials": ({"trials": -1}, "trials"),
    "an empty list of trials": ({"trials": []}, "trials"),
    "fractional trials": ({"trials": [1.5]}, "trials"),
    "a tiny budget": ({"trials": 2, "budget": -5}, "budget"),
    "a margin above one": ({"trials": 2, "alpha": [2.0, 0.1]}, "alpha"),
    "stopping of another kind": ({"trials": 2, "stopping": None}, "stopping"),
    "a small population": ({"trials": 2, "popsize": 1}, "popsize"),
}


@pytest.mark.parametrize(("settings", "name"), BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_bad_settings_of_a_batch_are_refused_by_name(settings: dict[str, object], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}.*expected.*but got.*;"):
        run_many(problem("SphereInt", 4), "margin", **settings)  # type: ignore[arg-type]


def test_a_batch_needs_a_problem() -> None:
    with pytest.raises(ValueError, match="problem: expected at least one"):
        run_many([])


def test_trials_may_be_a_numpy_integer() -> None:
    assert len(run_many(problem("SphereInt", 4), trials=np.int64(3)).success) == 3  # type: ignore[arg-type]
