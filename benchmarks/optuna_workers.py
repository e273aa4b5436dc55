"""Many worker processes on one study: how many evaluations to the target, and how many of them were used.

python benchmarks/optuna_workers.py --storage postgres --seeds 3
python benchmarks/optuna_workers.py --storage sqlite --seeds 3 --kill-every 10
python benchmarks/optuna_workers.py --dimension 20 --categories
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import random
import signal
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import optuna
from benchmarks.postgres import private_postgres
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma.integrations.optuna import MixCmaSampler
from mixcma.problems import problem

PROCESSES = multiprocessing.get_context("forkserver")  # a worker must begin at once
PROCESSES.set_forkserver_preload(["optuna", "sqlalchemy.dialects.postgresql", "mixcma.integrations.optuna"])
STUDY = "workers"
CHOICES = ("a", "b", "c", "d", "e")


class Task(NamedTuple):
    """SphereInt of `dimension` variables, by `workers` processes, the evaluating one killed every so many trials.

    With `categories`, half of its integers have five choices instead, one of which is the best: each that has another
    costs 1.
    """

    dimension: int
    categories: bool
    workers: int
    seed: int
    kill_every: int | None
    target: float
    budget: int
    seconds: float  # an evaluation lasts this long at the median

    @property
    def integers(self) -> list[str]:
        names = [name for name in problem("SphereInt", self.dimension).space if name.startswith("z")]
        return names[: len(names) // 2] if self.categories else names

    def distribution(self, name: str) -> BaseDistribution:
        if name.startswith("x"):
            return FloatDistribution(-10, 10)
        return IntDistribution(-10, 10) if name in self.integers else CategoricalDistribution(CHOICES)

    def distributions(self) -> dict[str, BaseDistribution]:
        return {name: self.distribution(name) for name in problem("SphereInt", self.dimension).space}

    def start(self) -> dict[str, Any]:
        """All categories start at their first choice; the best is another."""
        drawn = problem("SphereInt", self.dimension).start(self.seed)
        numbers = {name: value for name, value in drawn.items() if name.startswith("x")}
        numbers |= {name: round(drawn[name]) for name in self.integers}
        return {name: numbers.get(name, CHOICES[0]) for name in drawn}

    def value(self, params: dict[str, Any]) -> float:
        numbers = [value for value in params.values() if not isinstance(value, str)]
        choices = [value for value in params.values() if isinstance(value, str)]
        return sum(x**2 for x in numbers) + sum(choice != CHOICES[3] for choice in choices)


class Campaign(NamedTuple):
    solved: bool
    finished: int
    used: float  # the part of the finished trials that entered an update
    kills: int
    seconds: float


def work(url: str, task: Task, solved: Any) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    with storage(url) as database:
        work_on(optuna.load_study(study_name=STUDY, storage=database), task, solved)


def work_on(study: optuna.Study, task: Task, solved: Any) -> None:
    """Ask, evaluate and tell until the problem is solved; this process may kill itself while it evaluates."""
    space = task.distributions()
    study.sampler = MixCmaSampler(space, method="mix-without-model", seed=task.seed, x0=task.start())
    durations = random.Random(os.getpid())
    while not solved.is_set():
        trial = study.ask(space)
        if trial.number >= task.budget:
            solved.set()
        time.sleep(task.seconds * durations.uniform(0.5, 1.5))
        if task.kill_every and trial.number % task.kill_every == task.kill_every - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        value = task.value(trial.params)
        study.tell(trial, value)
        if value <= task.target:
            solved.set()


def sequential(task: Task) -> int:
    """The evaluations of one worker alone, in memory."""
    study, solved = optuna.create_study(), PROCESSES.Event()
    work_on(study, task._replace(workers=1, kill_every=None, seconds=0.0), solved)
    return len(study.get_trials(deepcopy=False))


@contextmanager
def storage(url: str) -> Iterator[RDBStorage]:
    """A storage whose connections are closed in the end."""
    options = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {"pool_size": 1}
    opened = RDBStorage(url, engine_kwargs=options)
    try:
        yield opened
    finally:
        opened.remove_session()
        opened.engine.dispose()


def campaign(url: str, task: Task) -> Campaign:
    """Keep so many workers running until one of them has solved the problem."""
    with storage(url) as database:
        optuna.create_study(study_name=STUDY, storage=database)
    began, kills, solved = time.time(), 0, PROCESSES.Event()

    def begun() -> Any:
        process = PROCESSES.Process(target=work, args=(url, task, solved))
        process.start()
        return process

    workers = [begun() for _ in range(task.workers)]
    while not solved.is_set():
        time.sleep(0.02)
        for i, worker in enumerate(workers):
            code = worker.exitcode
            if code == -signal.SIGKILL:
                kills += 1
                workers[i] = begun()
            elif code:
                raise RuntimeError(f"a worker ended by itself, with {code}")
    for worker in workers:
        worker.join()
    seconds = time.time() - began
    with storage(url) as database:
        study = optuna.load_study(study_name=STUDY, storage=database)
        finished, used = usage(study)
        return Campaign(study.best_value <= task.target, finished, used / finished, kills, seconds)


def usage(study: optuna.Study) -> tuple[int, int]:
    """How many trials are finished, and how many of them entered an update: along the longest chain of records."""
    records = {
        trial.number: about["record"]
        for trial in study.get_trials(deepcopy=False)
        for key, about in trial.system_attrs.items()
        if key.startswith("mixcma:") and "record" in about
    }
    carrier, used = min(records, key=lambda c: (-records[c]["depth"], c)), set[int]()
    while carrier is not None:
        used.update(records[carrier].get("took", []))
        carrier = records[carrier]["after"]
    return len(study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])), len(used)


@contextmanager
def new_database(kind: str) -> Iterator[str]:
    if kind == "postgres":
        with private_postgres() as url:
            yield url
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/study.db"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--storage", choices=["postgres", "sqlite"], nargs="*", default=["postgres", "sqlite"])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--kill-every", type=int)
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--categories", action="store_true", help="half of the integers have five choices instead")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--target", type=float, default=1e-10)
    parser.add_argument("--seconds", type=float, default=0.02)
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    table = Table("storage", "seed", "alone", f"{arguments.workers} workers", "ratio", "used", "kills", "seconds")
    counts: list[tuple[int, int]] = []
    for kind, seed in track(list(itertools.product(arguments.storage, range(arguments.seeds))), description="studies"):
        task = Task(
            arguments.dimension, arguments.categories, arguments.workers, seed, arguments.kill_every,
            arguments.target, 20_000, arguments.seconds,
        )  # fmt: skip
        alone = sequential(task)
        with new_database(kind) as url:
            result = campaign(url, task)
        counts.append((alone, result.finished))
        table.add_row(
            kind, str(seed), str(alone), str(result.finished) if result.solved else "not solved",
            f"{result.finished / alone:.2f}", f"{result.used:.1%}", str(result.kills), f"{result.seconds:.0f}",
        )  # fmt: skip
    console = Console(width=130)
    ratio = statistics.median(many / alone for alone, many in counts)
    alone, many = (statistics.median(column) for column in zip(*counts, strict=True))
    console.print(table, f"median ratio {ratio:.2f}; medians {alone:.0f} and {many:.0f}, ratio {many / alone:.2f}")


if __name__ == "__main__":
    main()
