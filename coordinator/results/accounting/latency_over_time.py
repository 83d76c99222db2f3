"""Latency over time of a workload, its actions and its workers: data of charts and intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.examples import FailedIterations
from osbench.coordinator.results.statistics.latency_matrix import Extent, LatencyMatrix, buckets_of

Ints = NDArray[np.int64]

#: Bins of time of an action or a worker.
PART_BINS = 128
#: Bins of a worker's start lag: only its percentiles are shown.
LAG_BINS = 8
#: Most actions with an own matrix, the first ones; all others share one.
ACTIONS = 20
#: Name of the actions beyond.
OTHERS = "(other actions)"


@dataclass(slots=True)
class WorkerLatency:
    """Latency over time of one worker process, and its counts of iterations by outcome."""

    #: Service time of ok iterations.
    service: LatencyMatrix = field(default_factory=lambda: LatencyMatrix(PART_BINS))
    #: Start lag of all that ran.
    lag: LatencyMatrix = field(default_factory=lambda: LatencyMatrix(LAG_BINS))
    ok: int = 0
    failed: int = 0
    timed_out: int = 0

    @property
    def iterations(self) -> int:
        """Number of iterations that the worker ran, whatever their outcome."""
        return self.ok + self.failed + self.timed_out


class LatencyOverTime:
    """Counts of durations by bin of due time: of a workload, its actions and its workers.

    An iteration counts at its due time, whenever it was started: late starts of the generator do
    not move it.
    """

    def __init__(self) -> None:
        #: Of ok iterations.
        self.service = LatencyMatrix()
        self.response = LatencyMatrix()
        #: Of all that ran.
        self.start_lag = LatencyMatrix()
        #: Ok calls by name path.
        self.actions: dict[str, LatencyMatrix] = {}
        #: By incarnation.
        self.workers: dict[str, WorkerLatency] = {}
        self.failures = FailedIterations()

    def add(
        self, columns: Columns, worker: str, service: Ints, counts: tuple[int, int, int]
    ) -> None:
        """Count the result rows of a worker; `service` has their service times in ns.

        Times count for ok iterations, start lags for all that ran, and dropped ones not at all.
        `counts`: numbers of ok, failed and timed out iterations among the rows.
        """
        part = self.workers.get(worker)
        if part is None:
            part = self.workers[worker] = WorkerLatency()
        ok, failed, timed_out = counts
        part.ok += ok
        part.failed += failed
        part.timed_out += timed_out
        due, lag, response = columns.due, columns.started - columns.due, columns.response
        if ok < len(columns):
            ran = columns.outcome <= Outcome.TIMED_OUT
            if ran.any():
                self._add_lag(part, Extent.of(due[ran]), Extent.of(buckets_of(lag[ran])))
            if not ok:
                return
            well = columns.outcome == Outcome.OK
            due, service, response = due[well], service[well], response[well]
        # a small block costs as much as there are calls of numpy
        buckets = buckets_of(np.concatenate((service, response, lag)))
        instants, each = Extent.of(due), len(due)
        times = Extent.of(buckets[:each])
        self.service.add_buckets(instants, times)
        part.service.add_buckets(instants, times)
        self.response.add_buckets(instants, Extent.of(buckets[each : 2 * each]))
        if ok == len(columns):
            self._add_lag(part, instants, Extent.of(buckets[2 * each :]))

    def add_action(self, path: str, due: Ints, durations: Ints) -> None:
        """Count successful calls of an action; times in ns.

        `path`: the action's name path; `due`: due times of the iterations with the calls. Beyond
        `ACTIONS` actions, new ones count as `OTHERS`.
        """
        matrix = self.actions.get(path)
        if matrix is None:
            name = path if len(self.actions) < ACTIONS else OTHERS
            matrix = self.actions.setdefault(name, LatencyMatrix(PART_BINS))
        matrix.add(due, durations)

    def to_dict(self) -> dict[str, Any]:
        """Return the matrices of service, response, start lag, actions and workers, for msgpack.

        `actions` are by name path, `workers` by incarnation, with counts of outcomes.
        """
        return {
            "service": self.service.to_dict(),
            "response": self.response.to_dict(),
            "start_lag": self.start_lag.to_dict(),
            "actions": {path: matrix.to_dict() for path, matrix in self.actions.items()},
            "workers": {name: _worker(part) for name, part in sorted(self.workers.items())},
        }

    def _add_lag(self, part: WorkerLatency, due: Extent, buckets: Extent) -> None:
        self.start_lag.add_buckets(due, buckets)
        part.lag.add_buckets(due, buckets)


def _worker(part: WorkerLatency) -> Mapping[str, Any]:
    return {
        "service": part.service.to_dict(),
        "lag": part.lag.to_dict(),
        "ok": part.ok,
        "failed": part.failed,
        "timed_out": part.timed_out,
    }
