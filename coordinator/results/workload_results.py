"""One workload's results as they come in: ledger, statistics, SLA criteria, charts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from osbench.common.errors import Untrusted
from osbench.common.escaping import escaped
from osbench.common.outcomes import Outcome
from osbench.common.protocol.blocks import Columns, Failure, decode_rows
from osbench.common.protocol.messages import Block
from osbench.coordinator.results.charts.workload_charts import Charts
from osbench.coordinator.results.ledger import Ledger
from osbench.coordinator.results.rows import select
from osbench.coordinator.results.workload_statistics import WorkloadStatistics
from osbench.coordinator.sla.evaluator import SlaEvaluator

#: Characters of a failure that are kept; workers of ours send no more.
TYPE_CHARS, MESSAGE_CHARS, TRACEBACK_CHARS = 200, 1000, 8000

#: Iteration numbers are below it.
_END = 2**62


class WorkloadResults:
    """Takes blocks that are on disk. Kept until the run closes: late results still count."""

    def __init__(self, *, idempotent: bool, sla: SlaEvaluator, warmup_s: float = 0.0) -> None:
        self.ledger = Ledger(idempotent=idempotent)
        self.statistics = WorkloadStatistics()
        self.sla = sla
        self.charts = Charts()
        self.warmup_ns = int(warmup_s * 1e9)
        #: When the load began, seconds since 1970-01-01 UTC; 0 before.
        self.t0_at = 0.0
        #: Rows that count in the ledger alone: the load was warming up.
        self.warmup_rows = 0
        #: User-seconds of all iterations that ran.
        self.busy_s = 0.0
        #: User-nanoseconds that users waited for work that then came, or until the stop instant.
        self.want_ns = 0
        #: Outputs and failures cut for size.
        self.cut = 0
        #: Iterations that started although the lease of their worker had ended meanwhile.
        self.started_late = 0
        #: Blocks that came twice, and blocks of another shape; the receiver counts them.
        self.duplicates = 0
        self.refused = 0

    def add(self, block: Block) -> tuple[int, float]:
        """Count a block; returns how many iterations ran, and their user-seconds.

        Raises Untrusted where it is of another shape; then nothing of it was counted.
        """
        failures, returned = _failures(block.failures), _intervals(block.returned)
        columns = decode_rows(block.columns) if block.columns else None
        self.want_ns += block.want_ns
        self.cut += block.cut
        self.started_late += block.started_late
        worker = block.incarnation
        self.statistics.add_failures(worker, failures)
        ran, busy_s = 0, 0.0
        if columns is not None:
            ran, busy_s = _work(columns)
            self._count(columns, worker)
        self.ledger.give_back(worker, returned)
        return ran, busy_s

    def _count(self, columns: Columns, worker: str) -> None:
        accepted = self.ledger.report(worker, columns.iteration, columns.outcome)
        if not accepted.all():
            columns = select(columns, accepted)
        self.busy_s += float((columns.ended - columns.started).sum()) / 1e9
        columns = self._warm(columns)
        self.statistics.add(columns, worker=worker)
        self.charts.add(columns)
        if self.sla:
            texts = self.statistics.errors.texts(worker, columns.failure)
            self.sla.add(replace(columns, failures=texts, t0_at=self.t0_at))

    def _warm(self, columns: Columns) -> Columns:
        """The rows of iterations that started, or were due and dropped, after the warm-up."""
        if not self.warmup_ns:
            return columns
        ran = columns.outcome <= Outcome.TIMED_OUT
        warm = np.where(ran, columns.started, columns.due) >= self.warmup_ns
        cold = len(columns) - int(np.count_nonzero(warm))
        self.warmup_rows += cold
        return select(columns, warm) if cold else columns


def _work(columns: Columns) -> tuple[int, float]:
    """How many iterations ran, and their user-seconds."""
    lengths = (columns.ended - columns.started)[columns.outcome <= Outcome.TIMED_OUT]
    return len(lengths), float(lengths.sum()) / 1e9


def _failures(entries: Iterable[Iterable[object]]) -> list[Failure]:
    found = []
    try:
        for number, etype, message, traceback in entries:
            if type(number) is not int:
                raise TypeError("a number is none")
            found.append(
                Failure(
                    number=number,
                    etype=str(etype)[:TYPE_CHARS],
                    message=str(message)[:MESSAGE_CHARS],
                    traceback=str(traceback)[:TRACEBACK_CHARS],
                )
            )
    except (TypeError, ValueError, RecursionError) as error:
        raise Untrusted(f"failures of another shape: {escaped(str(error)[:200])}") from None
    return found


def _intervals(pairs: Iterable[Iterable[int]]) -> list[tuple[int, int]]:
    try:
        found = [(low, high) for low, high in pairs]
        if not all(type(low) is type(high) is int and 0 < low < high < _END for low, high in found):
            raise ValueError("an interval that is none")
    except (TypeError, ValueError) as error:
        raise Untrusted(f"numbers of another shape: {escaped(str(error)[:200])}") from None
    return found
