"""Receives what workers send: stored on disk, then counted, each block once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from osbench.common.errors import Untrusted
from osbench.common.protocol.messages import Block, Fence
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.results.merging import groups, join
from osbench.coordinator.results.workload_results import WorkloadResults
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.transport.channel import Channel

LOG = logging.getLogger(__name__)


class Receiver:
    """One reader of the result stream for all workloads of a run."""

    def __init__(
        self, channel: Channel, workers: Mapping[str, WorkerHandle], directory: RunDirectory
    ) -> None:
        self._channel = channel
        self._workers = workers
        self._directory = directory
        self._results: dict[int, WorkloadResults] = {}

    def register(self, workload: int, results: WorkloadResults) -> None:
        """Count blocks of a workload there, until the run closes: late results count too."""
        self._results[workload] = results

    def fence(self, incarnation: str) -> None:
        """Results of a worker that are read from now on are late or stale."""
        for results in self._results.values():
            results.ledger.fence(incarnation)

    def receive(self, wait_s: float, on_fence: Callable[[str], None]) -> None:
        """Read, verify, drop duplicates, write to disk, count: in this order.

        `on_fence` is called with the nonce of each fence, after the blocks before it and before
        the blocks behind it are counted. Raises StoreAway, StoreError.
        """
        fresh: list[Block] = []
        fences: list[tuple[int, str]] = []
        seen: dict[str, int] = {}
        for message in self._channel.read(wait_s):
            if isinstance(message, Fence):
                fences.append((len(fresh), message.nonce))
            elif self._is_fresh(message, seen):
                seen[message.incarnation] = message.number
                fresh.append(message)
        self._directory.keep(block.body() for block in fresh)
        for name, number in seen.items():
            self._workers[name].blocks = number
        at = 0
        for stop, nonce in fences:
            self._count_all(fresh[at:stop])
            on_fence(nonce)
            at = stop
        self._count_all(fresh[at:])

    def _is_fresh(self, block: Block, seen: Mapping[str, int]) -> bool:
        worker = self._workers.get(block.incarnation)
        results = self._results.get(block.workload)
        if worker is None or results is None:
            self._channel.refused += 1
            return False
        if block.number <= max(worker.blocks, seen.get(block.incarnation, 0)):
            results.duplicates += 1
            return False
        return True

    def _count_all(self, blocks: Sequence[Block]) -> None:
        for group in groups(blocks):
            self._count(group)

    def _count(self, blocks: Sequence[Block]) -> None:
        """Count blocks of one worker and workload."""
        workload = blocks[0].workload
        results, worker = self._results[workload], self._workers[blocks[0].incarnation]
        try:
            ran, busy_s = results.add(join(blocks))
        except Untrusted as error:
            if len(blocks) > 1:
                for block in blocks:
                    self._count([block])
                return
            LOG.warning("worker %s: %s", worker.incarnation, error)
            results.refused += 1
            # which of its numbers it has reported cannot be known any more
            worker.record_protocol_error()
            return
        if workload == worker.workload:
            worker.measured(ran, busy_s)
