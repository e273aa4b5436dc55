"""The paper's Table 2 on a GPU, and how many evaluations a second it makes.

    python benchmarks/gpu.py --out reproduction/gpu

Prints, for every batch (one method, one dimension, all functions over one space, 100 trials each), the time
with and without compilation; then the throughput of 4096 runs of SphereInt at N = 20. Writes the table too.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import jax

from mixcma.batch import LONGEST, on_jax, run_many
from mixcma.batch.task import prepare
from mixcma.core.stopping import PAPER_STOPPING
from mixcma.experiments.table import METHODS, batches, default_cells, run_cells, table_rows, write_table
from mixcma.problems import problem

PLAIN = {"popsize": None, "alpha": None, "stopping": PAPER_STOPPING}
# SphereInt takes 3800 evaluations; uncut, one straggler in thousands holds the whole batch.
BUDGETS = (LONGEST, 6000)


def timed(work):
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def table(methods: list[str], trials: int, again: bool) -> tuple[list, float, float]:
    """Every batch, first with compilation, then (if `again`) without; the records and both totals."""
    records, first_total, second_total = [], 0.0, 0.0
    for cells in batches(default_cells(methods=methods), "jax"):
        found, first = timed(lambda: run_cells(cells, trials, 0, "jax"))  # noqa: B023 called at once
        second = timed(lambda: run_cells(cells, trials, 0, "jax"))[1] if again else float("nan")  # noqa: B023
        label = f"{cells[0].method}, N = {cells[0].dimension}, {len(cells)} functions"
        print(f"{label:34s} {first:7.2f} s with compilation {second:7.2f} s without", flush=True)
        records += found
        first_total, second_total = first_total + first, second_total + second
    return records, first_total, second_total


def throughput(runs: int, budget: int, repeats: int = 8) -> None:
    """Of the compiled loop itself, and of the whole call, which also sets up the runs in Python."""
    bench = problem("SphereInt", 20)
    run_many(bench, "margin", runs, seed=0, backend="jax", budget=budget)
    for seed in range(1, repeats):
        task, setup = timed(lambda: prepare([bench], "margin", runs, seed, budget=budget, **PLAIN))  # noqa: B023 called at once
        (evaluations, best), loop = timed(lambda: on_jax.run(*task, None))  # noqa: B023
        total = evaluations.sum() / 1e6
        print(
            f"{runs} runs, N = 20: {(best < bench.success).sum()} succeed; {total / loop:.1f} million evaluations "
            f"a second in the loop ({loop:.3f} s), {total / (loop + setup):.1f} with the setup",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--runs", type=int, nargs="+", default=[4096])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--out", type=Path, default=Path("reproduction/gpu"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind}")
    for runs, budget in itertools.product(arguments.runs, BUDGETS):
        print(f"at most {budget} evaluations a run:")
        throughput(runs, budget)
    records, everything = [], 0.0
    for method in sorted(arguments.methods, key=lambda name: name != "margin"):
        found, first, second = table([method], arguments.trials, again=method == "margin")
        print(f"{method}: {first:.1f} s with compilation, {second:.1f} s without", flush=True)
        records += found
        everything += first
        write_table(records, arguments.out)
    print(f"all {len(records)} cells: {everything:.1f} s with compilation")
    for row in table_rows(records):
        print(" | ".join(row))


if __name__ == "__main__":
    main()
