"""Runs with a planted cause each, whose traces are queried from a Tempo or a Jaeger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from helpers.result_rows import row_of
from helpers.synthetic_traces import (
    MS,
    Fault,
    many_queries,
    queue_wait,
    slow_query,
    traces,
)
from helpers.trace_backends import FakeJaeger, FakeTempo, Spans, StoredTraces
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.collector import (
    Collected,
    Collection,
    CollectionSettings,
)
from osbench.edges.traces.collection.queried_traces import QuerySettings
from osbench.edges.traces.collection.retention import Retention
from osbench.edges.traces.collection.trace_set import of_run
from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.sources.otlp import to_otlp
from osbench.edges.traces.sources.trace_backend import TraceBackend

DEAR = pytest.mark.dear

CAUSES = {
    slow_query: "shop/api db SELECT prices",
    many_queries: "shop/api db SELECT items",
    queue_wait: "waiting in the queue to stock/engine",
}


class Direct(TraceBackend):
    """Queries a backend without a network."""

    def __init__(self, server: StoredTraces) -> None:
        super().__init__(f"{server.kind}+http://backend:3200")  # type: ignore[attr-defined]
        self._server = server

    def _read(self, url: str) -> tuple[int, bytes]:
        version, trace_id = urlsplit(url).path.removeprefix("/api/").split("traces/")
        status, answer = self._server.answer_to(version, trace_id)
        return status, (answer if isinstance(answer, str) else json.dumps(answer)).encode()


def run_of(
    tmp_path: Path, server: StoredTraces, found: list[Trace], **settings: Any
) -> tuple[RunDirectory, Collected]:
    """A run of these traces, which lie in a backend, collected at its end."""
    server.store(to_otlp(found))
    rows = []
    for number, trace in enumerate(found, 1):
        root = min(trace.spans, key=lambda one: one.start_ns)
        took = root.duration_ns
        ids = (bytes.fromhex(trace.trace_id), None, b"")
        rows.append(row_of(number, Outcome.OK, 0, number, number + took, 0, 0, (), ids))
    directory = RunDirectory.create(str(tmp_path), "20260401-a")
    columns = encode_rows(rows, (), 0)
    directory.keep([{"workload": 0, "incarnation": "w", "columns": columns, "failures": []}])
    directory.close()
    query = QuerySettings(backend=Direct(server), late_s=0.0, **settings)
    keep = Retention(slowest=20, failed=1, share=0.0, limit=1 << 30)
    whole = CollectionSettings(retention=keep, late_s=0.0, expiry_s=600, query=query)
    return directory, Collection(directory, ["Shop.buy"], whole, warmup_ns={}).collect(None)


@pytest.fixture(params=[FakeTempo, FakeJaeger])
def server(request: pytest.FixtureRequest) -> Any:
    made = request.param()
    yield made
    made.server_close()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=DEAR) for seed in (1, 2))])
@pytest.mark.parametrize("harm", CAUSES, ids=lambda one: one.__name__)
def test_the_planted_cause_of_a_run_is_named(
    tmp_path: Path, server: StoredTraces, harm: Any, seed: int
) -> None:
    found = list(traces(700, Fault(share=0.05, harm=harm), seed=seed))

    directory, collected = run_of(tmp_path, server, found)

    (sentence,) = collected.sentences
    assert CAUSES[harm] in sentence
    assert of_run(directory).queried[1].startswith("700 of 700 traces found")


def test_a_run_without_a_cause_is_given_none(tmp_path: Path, server: StoredTraces) -> None:
    _, collected = run_of(tmp_path, server, list(traces(700)))

    (sentence,) = collected.sentences
    assert "no single cause stands out" in sentence


def duration_ns(spans: Spans) -> int:
    begin = min(int(one["startTimeUnixNano"]) for _, one in spans)
    return max(int(one["endTimeUnixNano"]) for _, one in spans) - begin


@DEAR
def test_a_backend_that_keeps_all_slow_traces_moves_no_percentile(
    tmp_path: Path, server: StoredTraces
) -> None:
    found = list(traces(4000, Fault(share=0.05, harm=slow_query)))
    # of the fast ones a quarter, of the slow ones all
    server.keep = lambda trace_id, spans, _number: (
        spans if trace_id[-1] in "0123" or duration_ns(spans) > 30 * MS else []
    )

    directory, collected = run_of(tmp_path, server, found)

    (sentence,) = collected.sentences
    assert CAUSES[slow_query] in sentence
    # as in the run: one in twenty is slow, not one in six
    table = of_run(directory).features
    compared = table.total[table.group == 0]
    assert 600 < len(compared) < 1100
    assert 0.03 < (compared > 30 * MS).mean() < 0.07
    assert "how many are there depends on their service time" in " ".join(collected.notes)


def test_of_a_backend_with_slow_traces_only_nothing_is_explained(
    tmp_path: Path, server: StoredTraces
) -> None:
    found = list(traces(1000, Fault(share=0.05, harm=slow_query)))
    server.keep = lambda _id, spans, _number: spans if duration_ns(spans) > 30 * MS else []

    directory, collected = run_of(tmp_path, server, found)

    assert collected.sentences == ("",)
    assert "only 0 of " in " ".join(collected.notes)
    # kept ones can be looked at
    assert len(list(of_run(directory).traces())) > 10


def test_missing_traces_are_not_taken_for_fast_services(
    tmp_path: Path, server: StoredTraces
) -> None:
    found = list(traces(1400, Fault(share=0.05, harm=slow_query)))
    server.keep = lambda trace_id, spans, _number: spans if trace_id[-1] < "8" else []

    directory, collected = run_of(tmp_path, server, found)

    (sentence,) = collected.sentences
    assert CAUSES[slow_query] in sentence
    table = of_run(directory).features
    assert 630 < int((table.group == 0).sum()) < 770
    assert "how many are there" not in " ".join(collected.notes)


@DEAR
def test_a_bounded_sample_explains_a_large_run(tmp_path: Path, server: StoredTraces) -> None:
    found = list(traces(6000, Fault(share=0.05, harm=queue_wait)))

    directory, collected = run_of(tmp_path, server, found, most=1200)

    assert CAUSES[queue_wait] in collected.sentences[0]
    assert 1050 < len(server.queries) < 1350
    assert "others to be kept" in of_run(directory).queried[0]
    # the slowest are kept and not compared, unless they were drawn
    table = of_run(directory).features
    assert (table.group < 0).any()
