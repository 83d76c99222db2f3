"""Selects the traces to keep: the slowest, the failed, and a sample of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.common.outcomes import Outcome
from osbench.coordinator.traces.collection.traced_iterations import TracedIterations

#: Why a trace is kept; 0 if it is not.
SLOW, FAILED, RANDOM = 1, 2, 3


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Limits on kept traces."""

    #: For each workload: number of the slowest successful traces, and of failed ones.
    slowest: int
    failed: int
    #: Share of all others, 0 to 1.
    share: float
    #: Bytes on disk; above half of them no random trace is kept, above all of them none.
    limit: int

    def choose(self, rows: TracedIterations) -> NDArray[np.uint8]:
        """Why each of the traced iterations is kept."""
        kept = np.where(rows.drawn(self.share), RANDOM, 0).astype(np.uint8)
        kept[rows.warming] = 0
        for workload in np.unique(rows.workload).tolist():
            mine = (rows.workload == workload) & ~rows.warming
            ok = np.flatnonzero(mine & (rows.outcome == Outcome.OK))
            slow = ok[np.argsort(-rows.service[ok], kind="stable")][: self.slowest]
            kept[slow] = SLOW
            bad = np.flatnonzero(mine & (rows.outcome != Outcome.OK))
            if len(bad) > self.failed:
                bad = bad[np.linspace(0, len(bad) - 1, self.failed).astype(int)]
            kept[bad] = FAILED
        return kept

    def has_room(self, reason: int, size: int) -> bool:
        """Whether a trace may still be kept for this reason, given `size` bytes on disk."""
        return size < (self.limit // 2 if reason == RANDOM else self.limit)
