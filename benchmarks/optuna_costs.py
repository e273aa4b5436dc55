"""What the sampler for Optuna costs: a suggestion, the storage, and a process that joins a study.

python benchmarks/optuna_costs.py --trials 2000 --dimension 20
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from rich.console import Console
from rich.table import Table

from mixcma.integrations.optuna import MixCmaSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)

JOIN = """
import time
began = time.perf_counter()
import optuna
from mixcma.integrations.optuna import MixCmaSampler
optuna.logging.set_verbosity(optuna.logging.ERROR)
imported = time.perf_counter()
study = optuna.load_study(study_name="costs", storage={url!r}, sampler=MixCmaSampler())
trial = study.ask()
trial.suggest_float("x0", -5, 5)
print(imported - began, time.perf_counter() - imported)
"""


def space(dimension: int) -> dict[str, BaseDistribution]:
    kinds = [FloatDistribution(-5, 5), IntDistribution(-5, 5), CategoricalDistribution([False, True])]
    return {f"x{i}": kinds[i % 3] for i in range(dimension)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--dimension", type=int, default=20)
    arguments = parser.parse_args()
    distributions = space(arguments.dimension)
    study = optuna.create_study(sampler=MixCmaSampler(seed=1))
    asking, block = [], 50  # clocks may be coarse, so trials are timed in blocks
    for _ in range(arguments.trials // block):
        began = time.perf_counter()
        for _ in range(block):
            trial = study.ask(distributions)
            study.tell(trial, sum(float(value) ** 2 for value in trial.params.values()))
        asking.append((time.perf_counter() - began) / block)
    attributes = [
        len(key) + len(json.dumps(about))
        for trial in study.get_trials(deepcopy=False)
        for key, about in trial.system_attrs.items()
    ]
    table = Table("what", "figure")
    table.add_row("a trial with all that Optuna does, median", f"{1e3 * statistics.median(asking):.2f} ms")
    table.add_row("the same, in the last tenth", f"{1e3 * statistics.median(asking[-len(asking) // 10 :]):.2f} ms")
    table.add_row("stored a trial, mean", f"{statistics.mean(attributes):.0f} bytes")
    table.add_row("stored a trial, most", f"{max(attributes)} bytes")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/study.db"
        optuna.copy_study(
            from_study_name=study.study_name, from_storage=study._storage, to_storage=url, to_study_name="costs"
        )
        joined = [
            [float(s) for s in subprocess.check_output([sys.executable, "-c", JOIN.format(url=url)]).split()]
            for _ in range(3)
        ]
    table.add_row("a process joins, imports", f"{statistics.median(j[0] for j in joined):.2f} s")
    table.add_row("a process joins, to the first suggestion", f"{statistics.median(j[1] for j in joined):.2f} s")
    Console().print(table)


if __name__ == "__main__":
    main()
