"""Batches offered to a worker process, and the state of their claims."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from osbench.common.protocol.messages import Batch


class Intake:
    """Batches offered and not yet claimed, in order of arrival. Not thread-safe."""

    def __init__(self, run: str, epoch: str, incarnation: str) -> None:
        self._run = run
        self._epoch = epoch
        self._incarnation = incarnation
        self._offered: deque[Batch] = deque()
        #: Ids of batches whose claim has no reply yet: this worker may own them.
        self._asked: set[int] = set()
        self._workload = -1
        self._last = 0

    def __len__(self) -> int:
        return len(self._offered)

    def offer(self, batch: Batch) -> str:
        """Take a verified batch; returns why it is refused, or "".

        A batch for another run, epoch or process, or one seen before, is never started: it may
        be a replayed message.
        """
        if batch.run != self._run or batch.epoch != self._epoch:
            return "of another run"
        if batch.incarnation != self._incarnation:
            return "for another worker process"
        if batch.batch <= self._last:
            return "seen before"
        self._last = batch.batch
        self._offered.append(batch)
        return ""

    def serve(self, workload: int) -> None:
        """Serve the batches of this workload from now on; forget those of earlier ones."""
        self._workload = workload
        self._offered = deque(batch for batch in self._offered if batch.workload >= workload)
        self._asked.intersection_update(batch.batch for batch in self._offered)

    def first(self, count: int) -> list[Batch]:
        """The first batches that together hold `count` numbers; none where count is 0."""
        wanted: list[Batch] = []
        for batch in self._served():
            if count <= 0:
                break
            wanted.append(batch)
            count -= len(batch)
        return wanted

    def due_before(self, instant_ns: int) -> list[Batch]:
        """The batches whose first arrival is due before an instant, nanoseconds after t0."""
        return [
            batch
            for batch in self._served()
            if np.frombuffer(batch.dues, "<i8", count=1)[0] < instant_ns
        ]

    def _served(self) -> list[Batch]:
        return [batch for batch in self._offered if batch.workload == self._workload]

    def ask(self, batches: Sequence[Batch]) -> list[int]:
        """The ids to claim. Until `settle` is called the owners are not known."""
        found = [batch.batch for batch in batches]
        self._asked.update(found)
        return found

    def unanswered(self) -> list[Batch]:
        """Batches whose claim had no reply: it must be repeated in any case."""
        return [batch for batch in self._offered if batch.batch in self._asked]

    def settle(self, batches: Sequence[Batch], owners: Sequence[str]) -> list[Batch]:
        """Remove claimed batches; returns those that this worker owns."""
        asked = {batch.batch for batch in batches}
        self._asked -= asked
        self._offered = deque(batch for batch in self._offered if batch.batch not in asked)
        return [
            batch
            for batch, owner in zip(batches, owners, strict=True)
            if owner == self._incarnation
        ]

    def clear(self) -> None:
        """Forget batches without a claim: the coordinator reassigns them."""
        self._offered = deque(self.unanswered())
