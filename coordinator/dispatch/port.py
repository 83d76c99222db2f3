"""What dispatch needs of the rest of a run: a port of two methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from osbench.common.intervals import Interval
from osbench.coordinator.fleet.worker import WorkerHandle


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedBatch:
    """Iteration numbers of one workload, granted to one membership."""

    worker: WorkerHandle
    #: Counts the batches of the membership from 1, without gaps.
    seq: int
    workload: int
    #: Half-open intervals of iteration numbers, ascending.
    intervals: list[Interval]
    #: Open runners: due instants, little-endian int64 nanoseconds after t0, one per number.
    dues: bytes = b""
    #: Rows of the workload's data file, one per number, sealed.
    rows: bytes = b""


class DispatchPort(Protocol):
    """The run's side: the journal, and the wire to workers."""

    def decide(self, records: Iterable[dict[str, Any]]) -> None:
        """Write decisions, and when they are on disk, follow them."""

    def publish(self, batches: Sequence[PlannedBatch]) -> None:
        """Send batches. Raises StoreAway where not all are known to have been sent."""
