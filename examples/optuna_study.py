"""Several processes design a pressure vessel together, in one Optuna study.

    python examples/optuna_study.py --storage sqlite:///vessel.db --workers 4
    optuna-dashboard sqlite:///vessel.db

The workers need not be on one machine: with a PostgreSQL or MySQL storage each of them may run anywhere, and may join
and leave at any time.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import time

import optuna
from optuna.study import MaxTrialsCallback
from optuna.trial import TrialState

from mixcma.integrations.optuna import MixCmaSampler

STUDY = "pressure vessel"


def cost(trial: optuna.Trial) -> float:
    """The cost in dollars of a cylinder with two heads (Sandgren, 1990); plates come in sixteenths of an inch.

    The ranges are those of examples/designs/pressure_vessel.toml; the best known cost is 6059.714.
    """
    shell = trial.suggest_float("shell", 0.0625, 6.1875, step=0.0625)
    head = trial.suggest_float("head", 0.0625, 6.1875, step=0.0625)
    radius = trial.suggest_float("radius", 10, 200)
    length = trial.suggest_float("length", 10, 200)
    trial.set_constraint("shell", 0.0193 * radius - shell)
    trial.set_constraint("head", 0.00954 * radius - head)
    volume = math.pi * radius**2 * length + 4 / 3 * math.pi * radius**3
    trial.set_constraint("volume", 1 - volume / 1_296_000)
    time.sleep(0.01)  # stands for a longer computation
    plates = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    return plates + 3.1661 * shell**2 * length + 19.84 * shell**2 * radius


def work(storage: str, trials: int) -> None:
    """What every worker does: load the study, and add trials until it has the given number of them."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.load_study(study_name=STUDY, storage=storage, sampler=MixCmaSampler())
    study.optimize(cost, callbacks=[MaxTrialsCallback(trials, states=(TrialState.COMPLETE,))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--storage", default="sqlite:///vessel.db", help="the storage that holds the study")
    parser.add_argument("--workers", type=int, default=4, help="the number of processes")
    parser.add_argument(
        "--trials", type=int, default=500, help="the total number of evaluations, including those of earlier calls"
    )
    arguments = parser.parse_args()
    study = optuna.create_study(study_name=STUDY, storage=arguments.storage, load_if_exists=True)
    processes = multiprocessing.get_context("spawn")
    workers = [
        processes.Process(target=work, args=(arguments.storage, arguments.trials)) for _ in range(arguments.workers)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    best = study.best_trial
    print(f"{len(study.trials)} trials; the best feasible vessel costs ${best.value:.2f}:")
    for name, value in best.params.items():
        print(f"  {name} = {value:g}")


if __name__ == "__main__":
    main()
