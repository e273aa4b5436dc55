"""The sampler for Optuna, one trial after the other: evaluations to the target, beside mixcma alone and Optuna's own.

python benchmarks/optuna_sampler.py --seeds 11
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Outcome, Space, minimize
from mixcma.integrations.optuna import MixCmaSampler
from mixcma.integrations.optuna.parameters import Parameters
from mixcma.problems import DESIGNS, problem

optuna.logging.set_verbosity(optuna.logging.ERROR)
N = 20
# Without a model both must make the same evaluations; with one, only `minimize` has quadratic models.
METHOD = "mix-without-model"


@dataclass(frozen=True)
class Case:
    """A problem as a study: ranges, value and constraints of a point, where a seed starts, and when it is solved."""

    distributions: dict[str, BaseDistribution]
    evaluate: Callable[[dict[str, Any]], Outcome]
    start: Callable[[int], dict[str, Any]]
    target: float
    budget: int
    peer_budget: int  # a trial of CmaEsSampler takes ten times as long

    def solved(self, outcome: Outcome) -> bool:
        return outcome.feasible and outcome.value <= self.target


def paper_case(name: str, budget: int, peer_budget: int) -> Case:
    function = problem(name, N)
    distributions: dict[str, BaseDistribution] = {
        variable: FloatDistribution(-10, 10)
        if variable.startswith("x")
        else IntDistribution(-10, 10)
        if variable.startswith("z")
        else CategoricalDistribution([False, True])
        for variable in function.space
    }

    def start(seed: int) -> dict[str, Any]:
        mean = function.start(seed)
        return {
            name: round(mean[name]) if isinstance(d, IntDistribution) else mean[name]
            for name, d in distributions.items()
            if not isinstance(d, CategoricalDistribution)
        }

    return Case(distributions, lambda params: Outcome(function(params)), start, 1e-10, budget, peer_budget)


def vessel_case(budget: int, peer_budget: int) -> Case:
    design = DESIGNS["pressure_vessel"]
    distributions = {
        "shell": FloatDistribution(0.0625, 6.1875, step=0.0625),
        "head": FloatDistribution(0.0625, 6.1875, step=0.0625),
        "radius": FloatDistribution(10, 200),
        "length": FloatDistribution(10, 240),
    }
    return Case(distributions, design, lambda seed: {}, 6059.72, budget, peer_budget)


CASES = {
    "SphereInt": paper_case("SphereInt", 10_000, 10_000),
    "EllipsoidOneMax": paper_case("EllipsoidOneMax", 30_000, 14_000),
    "pressure_vessel": vessel_case(40_000, 3_000),
}


def alone(case: Case, seed: int) -> int | None:
    """mixcma without Optuna, on the same space and from the same start."""
    space = Parameters(case.distributions).encoding.space
    x0 = case.start(seed)
    started = Space({n: replace(v, mean=float(x0[n])) if n in x0 else v for n, v in space.items()})
    inside = Parameters(case.distributions)
    result = minimize(
        lambda params: case.evaluate(inside.suggested(params)),
        started, budget=case.budget, target=case.target, seed=seed, cache=False, method=METHOD,
    )  # fmt: skip
    return result.evaluations if result.feasible and result.value <= case.target else None


def studied(case: Case, sampler: optuna.samplers.BaseSampler, distributions: dict[str, BaseDistribution]) -> int | None:
    study = optuna.create_study(sampler=sampler)
    for evaluation in range(1, case.budget + 1):
        trial = study.ask(distributions)
        outcome = case.evaluate({n: bool(v) if n.startswith("b") else v for n, v in trial.params.items()})
        if case.solved(outcome):
            return evaluation
        for i, g in enumerate(outcome.constraints):
            trial.set_constraint(str(i), g)
        study.tell(trial, outcome.value)
    return None


def with_mixcma(case: Case, seed: int) -> int | None:
    sampler = MixCmaSampler(case.distributions, seed=seed, x0=case.start(seed), method=METHOD)
    return studied(case, sampler, case.distributions)


def with_optunas_own(case: Case, seed: int) -> int | None:
    """CmaEsSampler with margin; bits as integers, since it draws choices at random; constraints it does not know."""
    distributions = {
        name: IntDistribution(0, 1) if isinstance(d, CategoricalDistribution) else d
        for name, d in case.distributions.items()
    }
    x0 = {
        name: d.low + (d.high - d.low) / 2
        for name, d in distributions.items()  # type: ignore[attr-defined]
    } | case.start(seed)
    sampler = optuna.samplers.CmaEsSampler(x0=x0, sigma0=0.25, with_margin=True, seed=seed)
    return studied(replace(case, budget=case.peer_budget), sampler, distributions)


WAYS = {"mixcma alone": alone, "MixCmaSampler": with_mixcma, "CmaEsSampler, margin": with_optunas_own}


def measure(task: tuple[str, str, int]) -> int | None:
    warnings.simplefilter("ignore")
    name, way, seed = task
    try:
        return WAYS[way](CASES[name], seed)
    except AssertionError as error:  # of cmaes, where its numbers leave their range
        print(name, way, seed, error, file=sys.stderr)
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=11)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    arguments = parser.parse_args()
    tasks = list(product(arguments.cases, arguments.ways, range(arguments.seeds)))
    began = time.time()
    with ProcessPoolExecutor() as pool:
        counts = dict(zip(tasks, track(pool.map(measure, tasks), total=len(tasks), description="runs")))
    table = Table("problem", "sampler", "solved", "median evaluations", "all")
    for name, way in product(arguments.cases, arguments.ways):
        found = sorted(c for seed in range(arguments.seeds) if (c := counts[name, way, seed]) is not None)
        median = f"{statistics.median(found):.0f}" if 2 * len(found) > arguments.seeds else "-"
        table.add_row(name, way, f"{len(found)}/{arguments.seeds}", median, " ".join(map(str, found)))
    Console(width=150).print(table, f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
