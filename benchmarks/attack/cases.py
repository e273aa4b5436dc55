"""What a case is: what it does wrong, what mixcma shall make of it, and where it can be tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

INSIDE, WORKERS, ASYNCHRONOUS = "in-process", "workers", "asynchronous"
POOL, LOKY, DASK, COMMAND_LINE = "process-pool", "loky", "dask", "command-line"
POOLS = (POOL, LOKY, DASK)
WAYS = {
    INSIDE: "in the process of the search",
    WORKERS: "`workers=2`",
    ASYNCHRONOUS: "`workers=2, asynchronous=True, timeout=...`",
    POOL: "`workers=concurrent.futures.ProcessPoolExecutor(2)`",
    LOKY: "`workers=loky.ProcessPoolExecutor(2)`",
    DASK: '`workers="dask:..."`, a LocalCluster of two processes',
    COMMAND_LINE: "`mixcma run problem.toml --quiet <&- >&- 2>&-`: closed standard streams (programs only)",
}
SANDBOXES = (WORKERS, ASYNCHRONOUS)

# What mixcma makes of an evaluation that misbehaves.
FAILED = "failed evaluation"
VALUE = "value believed"
EITHER = "value believed or failed evaluation"
AGAIN = "tried again; in the end a failed evaluation"
MAY_DIE = "value believed; what dies later is tried again"
ENDS_TOO = "ends with the process of the search"

# What a case needs in order to be tried.
NOTHING = "nothing"  # it can be tried everywhere
PROCESS = "a process of its own"  # it harms the process that it runs in, or leaves others behind
TIMEOUT = "a timeout"  # it hangs

# A case during which the process of the search is killed makes this file when it has begun to misbehave.
BEGUN = "begun"

Params = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One way to misbehave.

    Parameters
    ----------
    name, wrong
        What it is called, and what it does wrong.
    makes
        What mixcma makes of an evaluation that misbehaves: one of the sentences above.
    needs
        What it needs in order to be tried: one of the phrases above.
    spoils
        Whether later evaluations in the same process may fail as well.
    value
        The value of an evaluation that misbehaves, if it is not the honest one.
    ways
        Where it is tried, as far as `needs` allows.
    lasts
        Whether it changes its process for good. A cluster that serves other searches then needs sandboxes.
    leaves
        Whether it starts processes that it does not end. Only a sandbox ends those.
    owner_dies
        Whether the process of the search is killed meanwhile.
    refusable
        Whether the problem may be refused before the first evaluation.
    """

    name: str
    wrong: str
    makes: str
    needs: str = NOTHING
    spoils: bool = False
    value: float | None = None
    ways: tuple[str, ...] = tuple(WAYS)
    lasts: bool = False
    leaves: bool = False
    owner_dies: bool = False
    refusable: bool = False

    def can_run(self, way: str) -> bool:
        return way in self.ways and (way != INSIDE or self.needs == NOTHING)


def misbehaves(params: Params) -> bool:
    """Whether a point is one of the quarter at which cases misbehave; n is an integer from 0 to 11."""
    return int(params["n"]) % 4 == 1
