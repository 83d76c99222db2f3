"""Metrics of the worker processes of a host, from their heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from oslo_config import cfg
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from osbench.common.errors import OsbenchError
from osbench.common.protocol.messages import Heartbeat
from osbench.worker.process.heard_processes import beats

_LABELS = ("host", "pid", "label")


def worker_metrics(conf: cfg.ConfigOpts) -> Iterator[Metric]:
    """Yield the metrics of this host's worker processes for Prometheus, from heartbeats in Redis.

    If they cannot be read, only `osbench_worker_up 0`.
    """
    try:
        found = beats(conf)
    except OsbenchError:
        found = None
    up = GaugeMetricFamily("osbench_worker_up", "Whether Redis gave the heartbeats.")
    up.add_metric((), float(found is not None))
    yield up
    if found is not None:
        yield from _families(found)


_Read = Callable[[Heartbeat], float]

#: Metrics of a process by the name behind `osbench_worker_`: help, and what of a heartbeat it is.
GAUGES: Mapping[str, tuple[str, _Read]] = {
    "capacity": ("Virtual users it can have as threads.", lambda beat: beat.capacity),
    "coroutines": ("Virtual users it can have as coroutines.", lambda beat: beat.coroutines),
    "busy": ("Virtual users with an iteration in hand.", lambda beat: beat.busy),
    "queued": ("Iterations claimed and not started.", lambda beat: beat.queued),
    "stuck": ("Threads still running after a timeout.", lambda beat: beat.stuck),
    "cpu": ("CPU usage since the last heartbeat; 1 is one core.", lambda beat: beat.cpu),
    "clock_offset_seconds": ("Redis time minus own time.", lambda beat: beat.offset_s),
    "spans_waiting": ("Spans that wait to be written.", lambda beat: beat.spans[2]),
}
_COUNTERS: Mapping[str, tuple[str, _Read]] = {
    "refused": ("Messages refused.", lambda beat: beat.refused),
    "spans_written": ("Spans written.", lambda beat: beat.spans[0]),
    "spans_dropped": ("Spans dropped.", lambda beat: beat.spans[1]),
}


def _families(found: Sequence[Heartbeat]) -> Iterator[Metric]:
    processes = GaugeMetricFamily("osbench_worker_processes", "Processes that are heard.")
    processes.add_metric((), len(found))
    yield processes
    state = GaugeMetricFamily(
        "osbench_worker_state", "1 for the state of the process.", labels=(*_LABELS, "state")
    )
    for beat in found:
        state.add_metric((*_place(beat), beat.state), 1)
    yield state
    for name, (text, read) in GAUGES.items():
        gauge = GaugeMetricFamily(f"osbench_worker_{name}", text, labels=_LABELS)
        for beat in found:
            gauge.add_metric(_place(beat), read(beat))
        yield gauge
    for name, (text, read) in _COUNTERS.items():
        counter = CounterMetricFamily(f"osbench_worker_{name}", text, labels=_LABELS)
        for beat in found:
            counter.add_metric(_place(beat), read(beat))
        yield counter


def _place(beat: Heartbeat) -> tuple[str, str, str]:
    return beat.host, str(beat.pid), beat.label
