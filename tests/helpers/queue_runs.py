"""Synthetic runs: the latencies of a queue with one server (M/M/1), whose percentiles are known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.histogram import Histogram
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix
from osbench.coordinator.results.statistics.percentiles import percentile_key, percentiles
from osbench.edges.history.comparison.compared_run import ComparedRun

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Arrivals and service times are exponential; latency is waiting time plus service time."""

    #: Arrivals a second.
    rate: float = 100.0
    #: Share of time that the server is busy.
    load: float = 0.5
    #: Seconds of a run.
    duration_s: float = 200.0

    @property
    def service_rate(self) -> float:
        """Services a second."""
        return self.rate / self.load

    def percentile_s(self, percent: float) -> float:
        """The true percentile of latency: it is exponential, too."""
        return -math.log(1 - percent / 100) / (self.service_rate - self.rate)

    def run(self, random: np.random.Generator, slower: float = 1.0) -> tuple[Ints, Ints]:
        """Arrivals and latencies in nanoseconds of a run of a server that is `slower` times slow.

        The queue is in equilibrium at the start (Lindley's recursion, begun long before it).
        """
        before_s = max(20.0, 20 / self.service_rate / (1 - math.sqrt(self.load)) ** 2)
        number = int((before_s + self.duration_s) * self.rate * 1.1) + 100
        arrivals = np.cumsum(random.exponential(1 / self.rate, number))
        services = random.exponential(slower / self.service_rate, number)
        latencies = lindley(arrivals, services)
        kept = (arrivals >= before_s) & (arrivals < before_s + self.duration_s)
        instants = ((arrivals[kept] - before_s) * 1e9).astype(np.int64)
        return instants, (latencies[kept] * 1e9).astype(np.int64)

    def matrix(self, random: np.random.Generator, slower: float = 1.0) -> LatencyMatrix:
        """The same as a run keeps it."""
        found = LatencyMatrix()
        found.add(*self.run(random, slower))
        return found


def lindley(arrivals: Floats, services: Floats) -> Floats:
    """Waiting time plus service time in a queue that begins empty (Lindley's recursion)."""
    steps = np.concatenate(([0.0], np.cumsum(services[:-1] - np.diff(arrivals))))
    found: Floats = steps - np.minimum.accumulate(steps) + services
    return found


def compared_run(
    run_id: str,
    latencies: tuple[Ints, Ints],
    *,
    actions: Mapping[str, Ints] | None = None,
    rate: float = 100.0,
    **changed: Any,
) -> ComparedRun:
    """A run of arrivals and latencies, as a run directory has it.

    `changed`: keys of the summary's only workload that are to be different.
    """
    instants, values = latencies
    parts = {"all": values} if actions is None else dict(actions)
    matrices = {path: LatencyMatrix() for path in ("", *parts)}
    for path, matrix in matrices.items():
        matrix.add(instants, parts.get(path, values))
    span_s = float(instants[-1]) / 1e9
    workload = {
        "name": "Queue.get",
        "subtask": "queue",
        "position": 0,
        "runner": {"type": "rps", "config": {"rps": rate}},
        "accounting": {"ok": len(values), "failed": 0, "timed_out": 0, "lost": 0},
        "warmup": {"seconds": 0.0},
        "latency": {"service": {"ok": times_of(values)}},
        "actions": {path: {"ok": times_of(part)} for path, part in parts.items()},
        "offered": {
            "duration_s": span_s,
            "concurrency": None,
            "rate_planned": rate,
            "rate_offered": rate,
        },
        "throughput": {"ok_per_s": rate},
        "start_lag": times_of(values),
        "tracing": {},
        "errors": [],
        "sla": [],
        "hooks": [],
        "contexts": [],
        "workers": [{"host": "a"}, {"host": "b"}],
        **changed,
    }
    summary = {
        "format": 1,
        "run_id": run_id,
        "task": "a queue",
        "started_at": "2026-04-01T10:15:00.000Z",
        "finished_at": "2026-04-01T10:20:00.000Z",
        "exit_code": 0,
        "tags": [],
        "notes": [],
        "workloads": [workload],
    }
    document = {path: matrix.to_dict() for path, matrix in matrices.items()}
    return ComparedRun(
        manifest={
            "osbench": "1.0",
            "deployment": "lab",
            "task": "a queue",
            "started_at": 1_775_000_000.0,
            "workloads": [{"scenario": "Queue.get", "args": {"size": 10}}],
        },
        summary=summary,
        timeline={
            "workloads": [
                {
                    "service": document[""],
                    "actions": {path: one for path, one in document.items() if path},
                }
            ]
        },
    )


def times_of(values: Ints) -> dict[str, Any]:
    """Times of the summary."""
    histogram = Histogram.of(values)
    return {
        "count": histogram.count,
        "mean": histogram.mean / 1e9,
        **{
            percentile_key(one.percent): one.value / 1e9
            for one in percentiles(histogram, (50.0, 95.0, 99.0))
        },
    }


def side(
    queue: Queue,
    random: np.random.Generator,
    name: str,
    runs: int = 5,
    *,
    spread: float = 0.02,
    slower: float = 1.0,
) -> list[ComparedRun]:
    """Runs of one server, which is a little faster or slower in each of them (`spread`)."""
    found = []
    for number in range(runs):
        instants, latencies = queue.run(random, slower)
        one_run = math.exp(random.normal(0, spread))
        values = (latencies * one_run).astype(np.int64)
        found.append(compared_run(f"{name}{number}", (instants, values), rate=queue.rate))
    return found
