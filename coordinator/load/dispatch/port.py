"""The port by which dispatch writes decisions and sends batches: two methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from osbench.common.values.intervals import Interval
from osbench.coordinator.load.fleet.worker import WorkerHandle


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedBatch:
    """A batch: iteration numbers of one workload for one membership, in the form that is sent."""

    worker: WorkerHandle
    #: Counts the batches of the membership from 1, without gaps.
    seq: int
    workload: int
    #: Half-open intervals of iteration numbers, ascending.
    intervals: list[Interval]
    #: Open runners: due times, little-endian int64 nanoseconds after t0, one per number.
    dues: bytes = b""
    #: Rows of the workload's data file, one per number, encrypted.
    rows: bytes = b""


class DispatchPort(Protocol):
    """Interface by which dispatch writes to the journal of a run and sends batches to workers."""

    def decide(self, records: Iterable[dict[str, Any]]) -> None:
        """Write decisions to the journal and, once on disk, apply them to the run's accounts."""

    def publish(self, batches: Sequence[PlannedBatch]) -> None:
        """Send batches to the queues of their workers.

        Raises StoreUnreachable if some may not have been sent, StoreError without permission.
        """
