"""What the coordinator does with a read of the result stream, without the read itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.harness.stream import WORKERS, Stream
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.messages import Block
from osbench.common.task import Named
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.merging import groups
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.storage.run_directory import RunDirectory


class Intake:
    """Verifies, decodes, writes to disk, settles and counts, in the coordinator's order."""

    def __init__(self, folder: Path, stream: Stream, signer: Signer) -> None:
        self._signer = signer
        self._stream = stream
        self.directory = RunDirectory.create(str(folder), "bench")
        # the criterion of a workload that names none
        none_fails = Named(name="failure_rate", config={"max": 0})
        self.book = WorkloadResults(idempotent=False, sla=SlaEvaluator((none_fails,), Plugins()))
        self._accounts = Accounts()
        self._accounts.register(0, self.book)
        for name in WORKERS:
            self._accounts.apply({"do": "member", "mid": name, "incarnation": name, "name": name})

    def cut(self, blocks: Sequence[int]) -> None:
        """Give the iterations of some blocks out, as they were before their results come."""
        ledger = self.book.ledger
        for block in blocks:
            worker, numbers = self._stream.numbers(block)
            allotted = ledger.allot(self._stream.rows, None)
            assert list(allotted) == list(numbers), "blocks are cut in order"
            ledger.cut(worker, 1 + block, allotted)

    def take(self, entries: Sequence[bytes]) -> None:
        """One read."""
        blocks = [Block.parse(self._signer.verify(Block.KIND, data)) for data in entries]
        ordered = [block for group in groups(blocks) for block in group]
        self.directory.keep(block.body() for block in ordered)
        self._accounts.take(ordered)

    def close(self, rows: int) -> None:
        """Check that every row was counted, and clean up."""
        sums = self.book.ledger.accounting()
        assert sums.ok + sums.failed == rows, sums
        assert self.book.statistics.service.ok.count == sums.ok
        self.directory.close()
