"""Counters beside traces: the host of the slow span is full while it is slow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.planted_counters import counters_of, share, wandering
from helpers.result_rows import row_of
from helpers.synthetic_traces import MS, Fault, slow_query, traces
from helpers.trace_backends import FakeTempo, StoredTraces
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.explanation import explain
from osbench.edges.traces.collection.collector import Collection, CollectionSettings
from osbench.edges.traces.collection.queried_traces import QuerySettings
from osbench.edges.traces.collection.retention import Retention
from osbench.edges.traces.collection.trace_set import of_run
from osbench.edges.traces.counters.counter_file import write_counters
from osbench.edges.traces.counters.counter_series import WorkloadCounters
from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.sources.otlp import to_otlp
from osbench.edges.traces.sources.trace_backend import BackendResponse, TraceBackend

#: Host of the API and of its queries.
HOST = "b"
#: Nanoseconds from start to start.
APART = 100 * MS


class _Direct(TraceBackend):
    """Queries a backend without a network."""

    def __init__(self, server: StoredTraces) -> None:
        super().__init__("tempo+http://backend:3200")
        self._server = server

    def ask(self, trace_id: str) -> BackendResponse:
        _, answer = self._server.answer_to("v2/", trace_id)
        return self._answer(trace_id, json.dumps(answer).encode())


@pytest.fixture
def server() -> Any:
    made = FakeTempo()
    yield made
    made.server_close()


def lasts(trace: Trace) -> int:
    return int(min(trace.spans, key=lambda one: one.start_ns).duration_ns)


def test_the_host_of_the_slow_span_is_named_with_its_load(
    tmp_path: Path, server: FakeTempo
) -> None:
    found = list(traces(1000, Fault(share=0.05, harm=slow_query)))
    server.store(to_otlp(found))
    rows, slow_at = [], []
    for number, trace in enumerate(found, 1):
        begin, took = number * APART, lasts(trace)
        ids = (bytes.fromhex(trace.trace_id), None, b"")
        rows.append(row_of(number, Outcome.OK, begin, begin, begin + took, 0, 0, (), ids))
        slow_at += [round(begin / 1e9)] if took > 30 * MS else []
    directory = RunDirectory.create(str(tmp_path), "20260401-a")
    columns = encode_rows(rows, (), 0)
    directory.keep([{"workload": 0, "incarnation": "w", "columns": columns, "failures": []}])
    counters = {0: _counters(np.array(slow_at))}
    write_counters(directory, counters)
    directory.close()
    settings = CollectionSettings(
        retention=Retention(slowest=20, failed=1, share=0.0, limit=1 << 30),
        late_s=0.0,
        expiry_s=600,
        query=QuerySettings(backend=_Direct(server), late_s=0.0),
        counters=counters,
    )

    collected = Collection(directory, ["Shop.buy"], settings, warmup_ns={}).collect(None)

    (sentence,) = collected.sentences
    assert "shop/api db SELECT prices" in sentence
    assert "While they ran, CPU of b, the host of that span, was at 97 % (others: 53 %)" in sentence
    again = of_run(directory)
    told = explain(again.features, again.clocks, counters=again.counters()).answers[0]
    assert told.sentence == sentence
    assert told.watched == 3


def _counters(slow_at: np.ndarray) -> WorkloadCounters:
    chance = np.random.default_rng(2)
    series = [share("CPU", host, 0.3 + 0.05 * wandering(chance, 101)) for host in ("a", "b", "c")]
    for one in series:
        if one.host == HOST:
            one.values[slow_at] = 0.98
    return counters_of(*series)
