"""Compares the workers of a workload: share, times, start lag, CPU, clock, odd workers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.formatting import plain
from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix, percentile_of
from osbench.coordinator.results.statistics.proportions import share_interval

Ints = NDArray[np.int64]

#: Iterations that a worker must have had, and the share of the median by which it must be slower
#: than all others together, to count as different.
_ENOUGH = 100
_APART = 0.15
#: Failed iterations that a worker must have had, and how many times as often as the others they
#: must have failed, to count as different. Failures come in bursts, so that less is chance.
_FEW_FAILED = 10
_MOST_ALIKE = 3.0
#: Points of a line of CPU usage.
_CPU_POINTS = 60
#: A worker that only the timeline has.
_UNKNOWN = WorkerFigures()


@dataclass(frozen=True, kw_only=True)
class OddOne:
    """Mark of a worker process, or of all workers of a host, that is clearly slower than others."""

    #: `process`: more than the others of its host, so that the network is not why. `host`: more
    #: than other hosts. `worker`: the same of a host with one process.
    kind: Literal["process", "host", "worker"]
    #: Its median above that of the others, seconds.
    more_s: float


@dataclass(frozen=True, kw_only=True)
class WorkerRow:
    """A worker process as a row of the page.

    Times are seconds of successful iterations, None without any; `lag_s` is p99 of start lag,
    `share` a fraction of the workload's iterations.
    """

    label: str
    host: str
    pid: str
    lost: bool
    iterations: int
    share: float
    failed: int
    least_s: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    most_s: float | None = None
    #: Its median above that of all others.
    more_s: float = 0.0
    odd: OddOne | None = None
    lag_s: float | None = None
    cpu_mean: float | None = None
    cpu_max: float | None = None
    #: CPU usage over time: seconds after t0 with the share of a core.
    cpu: Sequence[tuple[float, float]] = ()
    offset_s: float | None = None
    uncertainty_s: float | None = None


def worker_rows(workload: WorkloadFacts) -> list[WorkerRow]:
    """Return a row for each worker of a workload, sorted by label and pid.

    Workers that ran nothing are left out unless they were lost.
    """
    described = {one.incarnation: one for one in workload.report.workers}
    measured: Mapping[str, Any] = workload.timeline.get("workers") or {}
    cpu: Mapping[str, Any] = workload.timeline.get("cpu") or {}
    service = {name: _Counts.of(one.get("service")) for name, one in measured.items()}
    names = [*described, *(name for name in measured if name not in described)]
    odd = _odd_ones({name: _host(name, described.get(name, _UNKNOWN)) for name in names}, service)
    ran = {name: _ran(described.get(name, _UNKNOWN), measured.get(name, {})) for name in names}
    total = sum(ran.values()) or 1
    rows = []
    for name in names:
        about, found = described.get(name, _UNKNOWN), measured.get(name, {})
        if not ran[name] and not about.lost:
            continue
        own = service.get(name, _Counts())
        others = _Counts.sum(one for other, one in service.items() if other != name)
        row = _row(name, about, found, (own, others), (ran[name], total))
        rows.append(replace(row, odd=odd.get(name), cpu=_cpu_over_time(cpu.get(name, ()))))
    return sorted(rows, key=lambda row: (row.label, row.pid))


@dataclass(frozen=True, kw_only=True)
class FailingWorker:
    """A worker that failed a far greater fraction of its iterations than the other workers.

    `own` and `others` are these fractions, 0 to 1.
    """

    row: WorkerRow
    #: Fractions of iterations that failed, 0 to 1: its own, and of all other workers together.
    own: float
    others: float


def failing_worker(rows: Sequence[WorkerRow]) -> FailingWorker | None:
    """Return the worker that failed clearly more often than all others together, or None.

    Clearly: at least `_FEW_FAILED` failures, a fraction `_MOST_ALIKE` times as great, and disjoint
    95 % intervals of both fractions. Of several, the one with the greatest fraction.
    """
    ran, failed = sum(row.iterations for row in rows), sum(row.failed for row in rows)
    found = []
    for row in rows:
        other_ran, other_failed = ran - row.iterations, failed - row.failed
        if row.failed < _FEW_FAILED or not other_ran:
            continue
        own, others = row.failed / row.iterations, other_failed / other_ran
        low, _ = share_interval(row.failed, row.iterations)
        _, high = share_interval(other_failed, other_ran)
        if low > high and own >= _MOST_ALIKE * others:
            found.append(FailingWorker(row=row, own=own, others=others))
    return max(found, key=lambda one: one.own, default=None)


def _cpu_over_time(points: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Return at most `_CPU_POINTS` (seconds after t0, cores), each a mean of successive points."""
    size = -(-len(points) // _CPU_POINTS) or 1
    parts = [points[at : at + size] for at in range(0, len(points), size)]
    return [
        (sum(at_s for at_s, _ in part) / len(part), sum(cpu for _, cpu in part) / len(part))
        for part in parts
    ]


def _row(
    name: str,
    about: WorkerFigures,
    found: Mapping[str, Any],
    compared: tuple[_Counts, _Counts],
    ran: tuple[int, int],
) -> WorkerRow:
    own, others = compared
    lag = _Counts.of(found.get("lag"))
    host = _host(name, about)
    return WorkerRow(
        label=plain(about.label or host, 60),
        host=plain(host, 60),
        pid="" if about.pid is None else str(about.pid),
        lost=about.lost,
        iterations=ran[0],
        share=ran[0] / ran[1],
        failed=int(found.get("failed", 0)) + int(found.get("timed_out", 0)),
        least_s=own.percentile(1e-6),
        p50_s=own.percentile(50),
        p95_s=own.percentile(95),
        p99_s=own.percentile(99),
        most_s=own.percentile(100),
        more_s=own.above(others),
        lag_s=lag.percentile(99),
        cpu_mean=about.cpu_mean,
        cpu_max=about.cpu_max,
        offset_s=about.offset_s,
        uncertainty_s=about.uncertainty_s,
    )


def _host(name: str, about: WorkerFigures) -> str:
    """Return the host of a worker; its incarnation `name` if the host is not known."""
    return about.host or name


def _odd_ones(hosts: Mapping[str, str], service: Mapping[str, _Counts]) -> dict[str, OddOne]:
    """Return a mark for each worker that is clearly slower than others, by incarnation.

    `hosts` and `service` (service times) are by incarnation, too. The worker is slower than the
    others of its host, or its host is slower than other hosts.
    """
    found: dict[str, OddOne] = {}
    of_host: dict[str, list[str]] = {}
    for name, host in hosts.items():
        if name in service:
            of_host.setdefault(host, []).append(name)
    for together in of_host.values():
        for name in together:
            others = _Counts.sum(service[one] for one in together if one != name)
            if more_s := _clearly_above(service[name], others):
                found[name] = OddOne(kind="process", more_s=more_s)
    # a slow worker says nothing of the network of its host
    usual = {
        host: _Counts.sum(service[one] for one in together if one not in found)
        for host, together in of_host.items()
    }
    for host, together in of_host.items():
        rest = _Counts.sum(counts for other, counts in usual.items() if other != host)
        if more_s := _clearly_above(usual[host], rest):
            kind: Literal["host", "worker"] = "host" if len(together) > 1 else "worker"
            odd = OddOne(kind=kind, more_s=more_s)
            found |= {name: odd for name in together if name not in found}
    return found


def _clearly_above(own: _Counts, others: _Counts) -> float:
    """Return by how many seconds the own median exceeds the median of `others`, if that is clear.

    0 if not. It is clear from more than `_ENOUGH` own iterations, and more than `_APART` of the
    common median.
    """
    usual, more_s = _Counts.sum((own, others)).percentile(50), own.above(others)
    return more_s if own.total > _ENOUGH and usual and more_s > _APART * usual else 0.0


def _ran(about: WorkerFigures, found: Mapping[str, Any]) -> int:
    if found:
        return sum(int(found.get(state, 0)) for state in ("ok", "failed", "timed_out"))
    return about.iterations


class _Counts:
    """Counts of durations by bucket, over all time; of one worker or of several together."""

    def __init__(self, counts: Ints | None = None, lowest: int = 0) -> None:
        self.counts = np.zeros(0, np.int64) if counts is None else counts
        self.lowest = lowest

    @classmethod
    def of(cls, document: Mapping[str, Any] | None) -> _Counts:
        """Return the counts of a latency matrix in JSON form, summed over time; empty for None."""
        if not document:
            return cls()
        matrix = LatencyMatrix.from_dict(document)
        return cls(matrix.summed(), matrix.lowest)

    @classmethod
    def sum(cls, several: Iterable[_Counts]) -> _Counts:
        """Return the counts of several workers added up; empty without any."""
        parts = [one for one in several if len(one.counts)]
        if not parts:
            return cls()
        low = min(one.lowest for one in parts)
        high = max(one.lowest + len(one.counts) for one in parts)
        counts = np.zeros(high - low, np.int64)
        for one in parts:
            counts[one.lowest - low : one.lowest - low + len(one.counts)] += one.counts
        return cls(counts, low)

    def above(self, others: _Counts) -> float:
        """Return by how many seconds the median of these durations exceeds the median of `others`.

        It may be negative; 0 if either has no durations. Medians are estimates from buckets.
        """
        median, rest = self.percentile(50), others.percentile(50)
        return median - rest if median is not None and rest is not None else 0.0

    @property
    def total(self) -> int:
        """Number of durations counted."""
        return int(self.counts.sum())

    def percentile(self, percent: float) -> float | None:
        """Return a percentile (0 to 100), in seconds; None if there are no durations."""
        value = percentile_of(self.counts, self.lowest, percent)
        return None if math.isnan(value) else value / 1e9
