"""The paper's Table 2 through `Optimizer`, ask and tell, one run after another.

    python benchmarks/table2.py --methods margin --dimensions 20 --trials 100

`mixcma reproduce table` makes the same table in batches; this is the long way, as a user would go it.
A run succeeds when its best (penalised) value falls below 1e-10; whole generations are counted.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Optimizer
from mixcma.core.stopping import PAPER_STOPPING
from mixcma.experiments.table import HEADERS, METHODS, Cell, default_cells, summarise, table_rows
from mixcma.problems import PAPER_FUNCTIONS, problem


def run(task: tuple[Cell, int]) -> tuple[int, bool]:
    """One run: its evaluations, and whether it succeeded."""
    cell, seed = task
    bench = problem(cell.function, cell.dimension)
    optimizer = Optimizer(bench.space, method=cell.method, seed=seed, mean=bench.start(seed), stopping=PAPER_STOPPING)
    while not optimizer.stop:
        candidates = optimizer.ask()
        values = [bench(c.params) for c in candidates]
        optimizer.tell(candidates, values)
        if min(v + c.penalty for v, c in zip(values, candidates)) < bench.success:
            return optimizer.evaluations, True
    return optimizer.evaluations, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--functions", nargs="+", default=list(PAPER_FUNCTIONS))
    parser.add_argument("--dimensions", nargs="+", type=int, default=[20])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--trials", type=int, default=100, help="seeds 0 to TRIALS - 1")
    arguments = parser.parse_args()
    cells = default_cells(arguments.functions, arguments.dimensions, arguments.methods)
    tasks = [(cell, seed) for cell in cells for seed in range(arguments.trials)]
    with ProcessPoolExecutor() as pool:
        ends = list(track(pool.map(run, tasks, chunksize=5), "runs", total=len(tasks)))
    table = Table(*HEADERS)
    results = np.array(ends).reshape(len(cells), arguments.trials, 2)
    records = [summarise(cell, r[:, 0], r[:, 1].astype(bool)) for cell, r in zip(cells, results)]
    for row in table_rows(records):
        table.add_row(*row)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
