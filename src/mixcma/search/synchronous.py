"""Generation by generation: the result does not depend on which evaluation finishes first."""

from __future__ import annotations

from mixcma.core.stopping import StopReason
from mixcma.run.optimizer import Optimizer
from mixcma.search.base import Search
from mixcma.space import Params
from mixcma.store import Record


class SynchronousSearch(Search):
    def go_on_from(self, record: Record, optimizer: Optimizer) -> None:
        """There is nothing to do: when a generation is asked for again, the file answers with what it holds of it."""

    def _known(self, params: Params) -> bool:
        return self.account.recall(params) is not None

    def _run(self, optimizer: Optimizer) -> StopReason:
        while not optimizer.stop:
            slots = self.file.slots(optimizer)  # a generation that the file holds does not grow with more workers
            at_least = 1 if slots else self.evaluator.capacity or optimizer.popsize
            known = self._known if self.account.cache else None
            candidates = optimizer.ask(at_least=at_least, including=slots, known=known)
            entries = self.file.asked(optimizer, candidates)
            spent = self.account.evaluations
            outcomes, reason = self._together(optimizer, entries)
            if reason is not None:
                return reason
            self.file.flush()
            if 2 * (self.account.evaluations - spent) < len(outcomes):
                optimizer.monitor.reset_failures()  # failures that are remembered do not show that everything fails
            optimizer.tell(candidates, outcomes)
            reason = self._generation_ended(optimizer)
            if reason is not None:
                return reason
        return optimizer.stop
