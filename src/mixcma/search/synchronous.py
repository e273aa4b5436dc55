"""Generation by generation: the result does not depend on the number of workers, or on who finishes first."""

from __future__ import annotations

from mixcma.core.stopping import CALLBACK, StopReason
from mixcma.run.optimizer import Optimizer
from mixcma.search.base import Search
from mixcma.store import Record


class SynchronousSearch(Search):
    def go_on_from(self, record: Record, optimizer: Optimizer) -> None:
        """Nothing to do: asked for a generation it holds, the file answers with what it knows of it."""

    def _run(self, optimizer: Optimizer) -> StopReason:
        while not optimizer.stop:
            candidates = optimizer.ask()
            entries = self.file.asked(optimizer, [candidate.params for candidate in candidates])
            outcomes, reason = self._together(optimizer, entries)
            if reason is not None:
                return reason
            self.file.settle()
            optimizer.tell(candidates, outcomes)
            if self._asks_to_stop(optimizer):
                return CALLBACK
        return optimizer.stop
