"""The batches of one membership (a worker process's part in one run), in order.

Each batch is taken once, or never.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from osbench.common.protocol.messages import Batch
from osbench.worker.session.refusals import OTHER_RUN, OTHER_SESSION, OTHER_WORKER, TOO_EARLY

#: Batches that may wait for earlier ones: those further ahead are sent again by the coordinator.
EARLY_MOST = 64


@dataclass(kw_only=True)
class Recalled:
    """Result of `Intake.recall`: the sequence numbers of recalled batches, and batches to begin."""

    #: Batches taken earlier: what is not started of them goes back.
    held: list[int] = field(default_factory=list)
    #: Batches that did not come before their recall and are refused from now on.
    voids: list[int] = field(default_factory=list)
    #: Batches that only waited for those.
    taken: list[Batch] = field(default_factory=list)


class Intake:
    """Puts the batches of a membership in order by sequence number, and takes each once.

    Refuses batches of another run, worker or session, and batches too far ahead. Not thread-safe.
    """

    def __init__(self, *, run: str, incarnation: str, session: str) -> None:
        self._run = run
        self._incarnation = incarnation
        self._session = session
        #: Sequence number of the last batch that was taken or void; all before it were, too.
        self.got = 0
        self._early: dict[int, Batch] = {}
        self._recalled: set[int] = set()

    def offer(self, batch: Batch) -> tuple[list[Batch], str]:
        """Take a verified batch; return the batches that begin now, in order, and a refusal or "".

        A batch that is ahead of a missing batch waits, and begins with the missing batch. A batch
        that was taken or recalled before is ignored: returns [] and "".
        """
        refusal = self._refusal(batch)
        if refusal or batch.seq <= self.got or batch.seq in self._recalled:
            return [], refusal
        self._early[batch.seq] = batch
        return self._advance(), ""

    def _refusal(self, batch: Batch) -> str:
        if batch.run != self._run:
            return OTHER_RUN
        if batch.incarnation != self._incarnation:
            return OTHER_WORKER
        if batch.session != self._session:
            return OTHER_SESSION
        if batch.seq > self.got + EARLY_MOST:
            return TOO_EARLY
        return ""

    def recall(self, seqs: Iterable[int]) -> Recalled:
        """Recall batches by number; return which were taken, which are void, which begin now.

        A recalled batch that has not begun is void: it will never be taken. Batches that waited
        only for void ones begin. Batches recalled before are ignored.
        """
        found = Recalled()
        for seq in sorted(set(seqs) - self._recalled):
            self._recalled.add(seq)
            if seq <= self.got:
                found.held.append(seq)
            else:
                found.voids.append(seq)
                self._early.pop(seq, None)
        found.taken = self._advance()
        return found

    def rebind(self, session: str) -> None:
        """Accept batches of `session` only; drop waiting batches, which will be sent again."""
        self._session = session
        self._early.clear()

    def _advance(self) -> list[Batch]:
        found = []
        while (seq := self.got + 1) in self._early or seq in self._recalled:
            self.got = seq
            # a recalled batch is not an early one
            if seq in self._early:
                found.append(self._early.pop(seq))
        return found
