"""After how many evaluations is a constrained design within 1 % of the best known value?

    python benchmarks/constrained.py --racers mix optuna.GP --seeds 10 --jobs 2

For each design and racer: how many seeds get there within 100 evaluations, and the median number of evaluations that it
takes, where a seed that does not get there within 150 (Optuna's Gaussian processes: 100) takes longer than all that do.
The designs are those of the race and the constrained ones of the bed `practice`. Finished runs are kept in --out, and
are not run again. Optuna's Gaussian processes need the extra `bench-heavy`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import multiprocessing
import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

from mixcma.experiments.ledger import Ledger
from mixcma.experiments.race.beds import BEDS, Case, Choice
from mixcma.experiments.race.racers import RACERS
from mixcma.experiments.race.task import Over, Scoreboard
from mixcma.problems import DESIGNS
from mixcma.problems.practice import PRACTICE
from mixcma.problems.practice.designs import MACHINES
from mixcma.problems.practice.processes import PROCESSES

CLOSE, WITHIN, BUDGET = 0.01, 100, 150
NAMES = (*DESIGNS, *(design.name for design in (*MACHINES, *PROCESSES)), "project_selection", "portfolio")


def run(name: str, racer: str, seed: int) -> dict[str, Any]:
    """The evaluations that a racer needs (None if they do not suffice), and the best value that it found."""
    bed, design = ("designs", DESIGNS[name]) if name in DESIGNS else ("practice", PRACTICE[name])
    challenge = BEDS[bed].open(Case(bed, name, len(design.space), seed), Choice())
    task = replace(challenge.task, budget=BUDGET, target=None)
    near = design.best_known + CLOSE * abs(design.best_known)
    board = Scoreboard(challenge.objective, task, [near])
    with contextlib.suppress(Over):
        RACERS[racer].run(task, board)
    return {"evaluations": board.hits[0] if board.hits else None, "best": board.best}


def show(names: Sequence[str], racers: Sequence[str], seeds: int, found: dict[str, dict[str, Any]]) -> None:
    print("| design | " + " | ".join(f"{racer}: within {WITHIN} | median" for racer in racers) + " |")
    print("| --- |" + " --- | --- |" * len(racers))
    for name in names:
        row = [name]
        for racer in racers:
            spent = [found[key_of(name, racer, seed)]["evaluations"] or math.inf for seed in range(seeds)]
            row += [f"{sum(each <= WITHIN for each in spent)} of {seeds}", f"{statistics.median_low(spent):g}"]
        print("| " + " | ".join(row) + " |")


def key_of(name: str, racer: str, seed: int) -> str:
    return f"{name}/{seed}/{racer} {RACERS[racer].version}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--racers", nargs="+", default=["mix", "mix-without-model"], choices=list(RACERS))
    parser.add_argument("--designs", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("race"))
    arguments = parser.parse_args()
    ledger = Ledger(arguments.out / "constrained.json")
    runs = list(itertools.product(arguments.designs, arguments.racers, range(arguments.seeds)))
    missing = [each for each in runs if key_of(*each) not in ledger]
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        for each, result in zip(missing, pool.map(run, *zip(*missing)) if missing else ()):
            ledger.add({key_of(*each): result})
    show(arguments.designs, arguments.racers, arguments.seeds, {key_of(*each): ledger[key_of(*each)] for each in runs})


if __name__ == "__main__":
    main()
