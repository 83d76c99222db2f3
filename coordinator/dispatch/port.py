"""Port of dispatch to the rest of a run, with two methods."""

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
    #: Open runners: due times, little-endian int64 nanoseconds after t0, one per number.
    dues: bytes = b""
    #: Rows of the workload's data file, one per number, encrypted.
    rows: bytes = b""


class DispatchPort(Protocol):
    """The journal of a run, and its wire to workers."""

    def decide(self, records: Iterable[dict[str, Any]]) -> None:
        """Write decisions to the journal; when they are on disk, apply them."""

    def publish(self, batches: Sequence[PlannedBatch]) -> None:
        """Send batches. Raises StoreUnreachable if not all are known to have been sent."""
