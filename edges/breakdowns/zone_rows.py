"""Iterations by zone of the worker that ran them, for loads with shares of zones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from osbench.common.protocol.columns import Columns
from osbench.common.task import WHOLE, Workload
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.load.fleet.zones import zone_of
from osbench.coordinator.results.accounting.breakdown import Breakdown, BreakdownFigures
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.edges.breakdowns.part_times import PartTimes, rows_of

#: Name of workers whose zone has no share.
OTHERS = "(other workers)"


class ZoneRows(Breakdown):
    """Counts iterations by worker; response times of an open load, else service times."""

    def __init__(self, shares: Mapping[str, int], *, is_open: bool) -> None:
        """`shares`: of the load by zone, of `WHOLE`."""
        self._shares = shares
        self._is_open = is_open
        self._workers: dict[str, PartTimes] = {}

    @classmethod
    def of(cls, workload: Workload, *, is_open: bool) -> Self | None:
        """Return the breakdown of a workload whose task gives shares to zones; else None."""
        return cls(workload.zones, is_open=is_open) if workload.zones else None

    def add(self, columns: Columns, worker: str) -> None:
        """Count the iterations of a worker that ran."""
        outcome = columns.outcome
        ok = outcome == Outcome.OK
        times = (
            columns.response if self._is_open else columns.ended - columns.started - columns.idle
        )
        failed = int(np.count_nonzero((outcome <= Outcome.TIMED_OUT) & ~ok))
        self._workers.setdefault(worker, PartTimes()).add(times[ok], failed)

    def figures(self, workers: Sequence[WorkerFigures]) -> BreakdownFigures:
        """Return a row for each zone with a share, and one for all other workers, if any ran."""
        labels = {one.incarnation: one.label for one in workers}
        parts = {zone: PartTimes() for zone in self._shares}
        for worker, times in self._workers.items():
            zone = zone_of(labels.get(worker, ""))
            parts.setdefault(zone if zone in self._shares else OTHERS, PartTimes()).merge(times)
        asked = {zone: share / WHOLE for zone, share in self._shares.items()}
        rest = WHOLE - sum(self._shares.values())
        if OTHERS in parts or rest:
            parts.setdefault(OTHERS, PartTimes())
            asked[OTHERS] = rest / WHOLE
        return BreakdownFigures(by="zone", rows=rows_of(parts, asked))
