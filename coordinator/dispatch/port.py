"""What dispatch needs of the rest of a run: a port of four methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from osbench.common.intervals import Interval


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedBatch:
    """Iteration numbers of one workload for one worker, under an id of their own."""

    batch: int
    #: Incarnation of the worker.
    worker: str
    workload: int
    #: Half-open intervals of iteration numbers, ascending.
    intervals: list[Interval]
    #: Open runners: due instants, little-endian int64 nanoseconds after t0, one per number.
    dues: bytes = b""
    #: Rows of the workload's data file, one per number, sealed.
    rows: bytes = b""


class DispatchPort(Protocol):
    """The run's side: the journal, and the wire to workers."""

    def next_batch_id(self) -> int:
        """An id that this run has not used."""

    def journal(self, records: Iterable[dict[str, Any]]) -> None:
        """Write decisions; returns when they are on disk."""

    def publish(self, batch: PlannedBatch) -> None:
        """Send a batch. Raises StoreAway where it is not known to have been sent."""

    def revoke(self, batches: Sequence[int]) -> list[bool]:
        """Take batches away; True where no worker had claimed it. Raises StoreAway."""
