"""The paper's Table 2 through `Optimizer`: success rates and medians beside the paper's.

    python benchmarks/table2.py --methods margin --dimensions 20 --trials 100

A run succeeds when its best penalised value falls below 1e-10; evaluations are counted by whole
generations, as in the paper. Rates are compared by the 99 % interval (Clopper-Pearson) of the paper's
count, medians by their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.stats import binomtest

from mixcma import Optimizer
from mixcma.core.methods import IntegerMutation
from mixcma.core.stopping import PAPER_STOPPING
from mixcma.problems.paper import PAPER_FUNCTIONS, problem

PAPER = Path(__file__).parent / "table2_paper.json"
LONGEST = 1_000_000  # evaluations; no run of the paper comes near


def run(task: tuple[str, int, str, dict, int]) -> int | None:
    """One run; the evaluations to success, or None."""
    name, dimension, method, choices, seed = task
    bench = problem(name, dimension)
    chosen = IntegerMutation(box=method == "im-box", **choices) if choices else method
    optimizer = Optimizer(
        bench.space, method=chosen, seed=seed, mean=bench.start(seed), stopping=PAPER_STOPPING
    )
    while not optimizer.stop and optimizer.evaluations < LONGEST:
        candidates = optimizer.ask()
        values = [bench(c.params) for c in candidates]
        penalised = [v + c.penalty for v, c in zip(values, candidates, strict=True)]
        optimizer.tell(candidates, values)
        if min(penalised) < bench.success:
            return optimizer.evaluations
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--functions", nargs="+", default=list(PAPER_FUNCTIONS))
    parser.add_argument("--dimensions", nargs="+", type=int, default=[20])
    parser.add_argument("--methods", nargs="+", default=["im", "im-box", "margin"])
    parser.add_argument("--trials", type=int, default=100, help="seeds 0 to TRIALS - 1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--choices", type=json.loads, default={}, help="of IntegerMutation, as JSON")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    paper = {(r["function"], r["dimension"], r["method"]): r for r in json.loads(PAPER.read_text())}
    cells = [(f, n, m) for n in arguments.dimensions for m in arguments.methods for f in arguments.functions]
    tasks = [
        (f, n, m, arguments.choices if m != "margin" else {}, seed)
        for f, n, m in cells
        for seed in range(arguments.trials)
    ]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        results = list(track(pool.map(run, tasks, chunksize=5), "runs", total=len(tasks)))
    table = Table(
        *["function", "N", "method", "median", "paper", "ratio", "successes", "paper", "99%-interval", "rate"]
    )
    records = []
    for i, cell in enumerate(cells):
        record = summary(cell, results[i * arguments.trials : (i + 1) * arguments.trials])
        records.append(record)
        table.add_row(*row(record, paper[cell]))
    Console(width=130).print(table)
    if arguments.out:
        arguments.out.write_text(json.dumps(records, indent=1))


def summary(cell: tuple[str, int, str], counts: list[int | None]) -> dict:
    solved = sorted(c for c in counts if c is not None)
    quartiles = statistics.quantiles(solved, n=4, method="inclusive") if len(solved) > 1 else [0, 0, 0]
    return {
        "function": cell[0],
        "dimension": cell[1],
        "method": cell[2],
        "median_evaluations": statistics.median(solved) if solved else None,
        "iqr": quartiles[2] - quartiles[0],
        "successes": len(solved),
        "trials": len(counts),
    }


def row(record: dict, paper: dict) -> list[str]:
    ours, theirs = record["median_evaluations"], paper["median_evaluations"]
    ratio = f"{ours / theirs:.3f}" if ours and theirs else "-"
    interval = binomtest(paper["successes"], paper["trials"]).proportion_ci(0.99)
    rate = record["successes"] / record["trials"]
    inside = "inside" if interval.low <= rate <= interval.high else "OUTSIDE"
    return [
        record["function"], str(record["dimension"]), record["method"], f"{ours}", f"{theirs}", ratio,
        f"{record['successes']}/{record['trials']}", f"{paper['successes']}/{paper['trials']}",
        f"{interval.low:.3f}-{interval.high:.3f}", inside,
    ]  # fmt: skip


if __name__ == "__main__":
    main()
