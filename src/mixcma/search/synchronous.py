"""Generation by generation: the result does not depend on how many workers there are, or which finishes first."""

from __future__ import annotations

from mixcma.core.stopping import StopReason
from mixcma.run.optimizer import Optimizer
from mixcma.search.base import Search
from mixcma.store import Record


class SynchronousSearch(Search):
    def go_on_from(self, record: Record, optimizer: Optimizer) -> None:
        """There is nothing to do: when a generation is asked for again, the file answers with what it holds of it."""

    def _run(self, optimizer: Optimizer) -> StopReason:
        while not optimizer.stop:
            candidates = optimizer.ask()
            entries = self.file.asked(optimizer, [candidate.params for candidate in candidates])
            outcomes, reason = self._together(optimizer, entries)
            if reason is not None:
                return reason
            self.file.flush()
            optimizer.tell(candidates, outcomes)
            reason = self._generation_ended(optimizer)
            if reason is not None:
                return reason
        return optimizer.stop
