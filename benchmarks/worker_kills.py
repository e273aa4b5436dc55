"""SIGKILL to random workers while they evaluate: is the result the one without kills?

    python benchmarks/worker_kills.py                       # 10 kills an engine, all engines
    python benchmarks/worker_kills.py --engines loky dask --kills 30 --seed 2

A sphere of two floats whose evaluations take 30 ms, on two workers of each engine. From a random moment of
every other generation on, a random worker is killed, whatever it does: it may evaluate, wait or still start.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import psutil
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mixcma import Float, Progress, Space, minimize
from mixcma.evaluation.sandbox import PROGRAM

PLANE = Space({"x": Float(-5, 5), "y": Float(-5, 5)})
POPSIZE = 6
Workers = Callable[[], list[psutil.Process]]


def slow(seconds: float):
    def objective(p):
        time.sleep(seconds)
        return p["x"] ** 2 + p["y"] ** 2

    return objective


class Killer:
    """A callback: in every other generation it kills one of the workers, until it has done so often enough."""

    def __init__(self, workers: Workers, kills: int, seed: int, span: float) -> None:
        self._workers, self._left, self._span = workers, kills, span
        self._random = random.Random(seed)
        self._thread: threading.Thread | None = None
        self.delivered = 0

    def __call__(self, progress: Progress) -> None:
        self.join()
        if progress.generation % 2 and self._left:
            self._left -= 1
            self._thread = threading.Thread(target=self._kill, args=(self._random.uniform(0.0, self._span),))
            self._thread.start()

    def _kill(self, delay: float) -> None:
        time.sleep(delay)
        workers = self._workers()
        while not workers:  # all are being replaced
            time.sleep(0.01)
            workers = self._workers()
        self._random.choice(workers).kill()
        self.delivered += 1

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()


def running(wanted: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """The child processes that are wanted and have not ended."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if child.status() != psutil.STATUS_ZOMBIE and wanted(child):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


@contextmanager
def processes() -> Iterator[tuple[object, Workers]]:
    yield 2, lambda: running(lambda child: PROGRAM.name in " ".join(child.cmdline()))


@contextmanager
def process_pool() -> Iterator[tuple[object, Workers]]:
    others = set(psutil.Process().children(recursive=True))
    with ProcessPoolExecutor(2) as pool:
        yield pool, lambda: running(lambda child: child not in others)


@contextmanager
def loky() -> Iterator[tuple[object, Workers]]:
    import loky

    others = set(psutil.Process().children(recursive=True))
    pool = loky.get_reusable_executor(2)
    pool.submit(int).result()
    yield pool, lambda: running(lambda child: child not in others and "tracker" not in " ".join(child.cmdline()))
    pool.shutdown(kill_workers=True)


@contextmanager
def dask() -> Iterator[tuple[object, Workers]]:
    from distributed import Client, LocalCluster

    def workers() -> list[psutil.Process]:
        pids = {worker.pid for worker in cluster.workers.values()}
        return running(lambda child: child.pid in pids)

    made = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL")
    with made as cluster, Client(cluster) as client:
        yield client.get_executor(), workers


ENGINES = {"workers=2": processes, "ProcessPoolExecutor": process_pool, "loky": loky, "dask": dask}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--kills", type=int, default=10, help="for each engine")
    parser.add_argument("--seconds", type=float, default=0.03, help="that an evaluation takes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    search = {"budget": POPSIZE * 2 * (options.kills + 1), "popsize": POPSIZE, "seed": options.seed}
    expected = minimize(slow(0.0), PLANE, **search)
    table = Table("engine", "kills delivered", "equal", "failures", "seconds")
    for name in track(options.engines, description="engines"):
        with ENGINES[name]() as (workers, alive):
            killer = Killer(alive, options.kills, options.seed, POPSIZE * options.seconds / 2)
            began = time.perf_counter()
            try:
                result = minimize(slow(options.seconds), PLANE, workers=workers, callback=killer, **search)
                equal, failures = "yes" if result == expected else "no", str(result.failures)
            except Exception as error:
                equal, failures = f"no: {type(error).__name__}: {error}"[:60], "-"
            killer.join()
            seconds = time.perf_counter() - began
        table.add_row(name, str(killer.delivered), equal, failures, f"{seconds:.1f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
