"""What `workers=` may be, and how each kind is opened, counted, replaced and closed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from mixcma.evaluation.objective import CallResult, Objective, Portable
from mixcma.evaluation.sandbox import Sandboxes
from mixcma.space import Params

Workers = int | str | Executor
DASK = "dask:"
# The packages whose executors pickle their tasks.
PICKLING = ("loky", "distributed", "mpi4py")


def checked_workers(workers: object) -> Workers:
    if isinstance(workers, Executor):
        return workers
    if isinstance(workers, str) and workers.startswith(DASK) and len(workers) > len(DASK):
        return workers
    if isinstance(workers, int) and not isinstance(workers, bool) and workers >= 1:
        return workers
    raise ValueError(
        'workers: expected a number of processes, a concurrent.futures.Executor or "dask:tcp://host:8786", '
        f"but got {workers!r}; pass workers=1"
    )


class Engine:
    """An executor, and the objective as its task. The executor schedules; this class only opens and closes it."""

    def __init__(self, workers: Workers, objective: Objective, timeout: float | None) -> None:
        sandboxed = timeout is not None or isinstance(workers, int)
        self.task: Any = Sandboxes(objective, timeout) if sandboxed else Portable(objective)
        if isinstance(self.task, Portable) and (isinstance(workers, str) or _pickles(workers)):
            self.task.pickled()  # an objective that cannot be sent fails here, before anything is opened
        self._own: Callable[[], object] | None = None  # closes what was opened here
        if isinstance(workers, int):
            # each thread has a process of its own; if that dies or hangs, it is replaced without affecting the others
            self.executor: Executor = ThreadPoolExecutor(workers, thread_name_prefix="mixcma")
            self._own = self._shut_down
        elif isinstance(workers, str):
            self.executor, self._own = _dask_executor(workers.removeprefix(DASK))
        else:
            self.executor = workers
        self.capacity = _capacity(self.executor)
        # dask takes equal calls to be the same, and would answer a second search with the results of the first
        self._options = {"pure": False} if _package(self.executor) == "distributed" else {}

    def submit(self, request: str, params: Params, id: int) -> Future[CallResult]:
        """Send a request; what comes back is its answer only if it repeats the name of the request."""
        future: Future[CallResult] = self.executor.submit(_answer, self.task, request, params, id, **self._options)
        return future

    def check(self) -> None:
        """Load the objective in one worker, so that a failure to load is found before the search starts."""
        self.executor.submit(_load, self.task, **self._options).result()

    def make_again(self) -> None:
        """Replace a broken pool by a new one of the same kind."""
        broken, self.executor = self.executor, _another(self.executor)
        _end_processes(broken)
        self._own = self._shut_down

    def close(self) -> None:
        if isinstance(self.task, Sandboxes):
            self.task.close()
        if getattr(self.executor, "_broken", False):
            _end_processes(self.executor)
        if self._own is not None:
            self._own()

    def _shut_down(self) -> None:
        """Close an executor that was opened here, without waiting for evaluations that are no longer needed."""
        executor: Any = self.executor
        if _package(executor) == "loky":
            executor.shutdown(wait=True, kill_workers=True)
            return
        processes = list((getattr(executor, "_processes", None) or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        executor.shutdown(wait=True)


def _end_processes(broken: Executor) -> None:
    """End what is left of a broken pool: a process that it started just as it broke would never be ended, and whoever
    shuts the pool down would wait for it for ever."""
    if isinstance(broken, ProcessPoolExecutor):
        for process in list((broken._processes or {}).values()):
            # one whose fork server died while it started has a number that was never that of a process
            with contextlib.suppress(OSError, OverflowError):
                process.kill()


def _package(executor: object) -> str:
    return type(executor).__module__.partition(".")[0]


def _answer(task: Any, request: str, params: Params, id: int) -> CallResult:
    call: CallResult = task(params, id)
    return replace(call, request=request)


def _load(task: Any) -> None:
    task.load()


def _pickles(executor: object) -> bool:
    return isinstance(executor, ProcessPoolExecutor) or _package(executor) in PICKLING


def _capacity(executor: Executor) -> int | None:
    """How many evaluations can run at once, if that can be known."""
    for name in ("_max_workers", "num_workers"):  # the standard library and loky; mpi4py
        count = getattr(executor, name, None)
        if isinstance(count, int):
            return count
    client = getattr(executor, "_client", None)  # dask's ClientExecutor has one
    return None if client is None else sum(client.ncores().values())


def _another(broken: Executor) -> Executor:
    """A pool like the broken one. Both kinds keep the arguments they were made with in these attributes."""
    if isinstance(broken, ProcessPoolExecutor):
        made: Any = broken
        return ProcessPoolExecutor(
            made._max_workers,
            mp_context=made._mp_context,
            initializer=made._initializer,
            initargs=made._initargs,
            max_tasks_per_child=made._max_tasks_per_child,
        )
    if _package(broken) == "loky":
        import loky

        made = broken
        another: Executor = loky.ProcessPoolExecutor(
            made._max_workers,
            timeout=made._timeout,
            context=made._context,
            initializer=made._initializer,
            initargs=made._initargs,
        )
        return another
    raise RuntimeError(
        f"workers: the {type(broken).__name__} is broken, and mixcma cannot replace it; start the run again with a new "
        "one (with run_file=, it continues where it stood)"
    )


def _dask_executor(address: str) -> tuple[Executor, Callable[[], object]]:
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            f'workers: expected dask to be installed for "{DASK}{address}", but it is not; pip install distributed'
        ) from None
    try:
        client = Client(address)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"workers: expected a dask scheduler at {address}, but connecting failed ({error}); start one with "
            '"dask scheduler", or correct the address'
        ) from error
    return client.get_executor(), client.close
