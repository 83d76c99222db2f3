"""Exporters that send a run to a server, which is busy at times, or refuses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from helpers.export_servers import collector, search_server
from helpers.otlp_reading import attribute, metrics_of, spans_of, states_of
from helpers.raw_answers import HUGE, answering
from helpers.recording_server import recording_server
from helpers.result_rows import row
from helpers.stored_runs import RUN, T0_AT, stored_run
from osbench.common.errors import ExportError
from osbench.common.plugin.exporter import DurationCounts
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.report.stored_run import LiveRun, StoredRun
from osbench.coordinator.results.accounting.totals import Accounting
from osbench.coordinator.results.storage.run_documents import read_timeline
from osbench.edges.history.exporters import opensearch, otlp_metrics, posting
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.model.spans import Span, Trace

ROWS = [
    row(at, due=100 * at, started=100 * at, ended=100 * at + 20, outcome=outcome)
    for at, outcome in enumerate([Outcome.OK] * 8 + [Outcome.TIMED_OUT, Outcome.DROPPED_LATE], 1)
]
SECRET = "hunter2"


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    return stored_run(tmp_path, ROWS, ROWS[:2])


def send(name: str, run: StoredRun, url: str, **options: Any) -> str:
    """Send a run; what is sent again is sent at once."""
    exporter: Any = Plugins().get("exporter", name)({"pause_s": 0, **options})
    said: str = exporter.send(run, url)
    return said


def test_each_iteration_and_workload_is_a_document(run: StoredRun) -> None:
    with search_server() as server:
        said = send("opensearch", run, server.url, prefix="mine")

        assert said == f"sent 14 documents to {server.url}"
        rows = server.found("mine-iterations")
        states = Counter((one["workload"], one["state"]) for one in rows)
        assert states == {(0, "ok"): 8, (0, "timed_out"): 1, (0, "dropped"): 1, (1, "ok"): 2}
        first = server.documents["mine-iterations"][f"{RUN}-0-1"]
        assert first["service_s"] == 0.02
        assert first["@timestamp"] == "2026-04-01T12:00:01.350Z"
        # neither empty texts nor nulls, which would be fields of some type or other
        assert not {"error", "trace_id"} & set(first)
        assert "service_s" not in server.documents["mine-iterations"][f"{RUN}-0-10"]
        one, _ = server.found("mine-workloads")
        assert (one["planned"], one["ok"], one["service"]["count"]) == (10, 8, 8)


def test_a_document_has_the_instant_of_the_start_and_the_sla_of_all_criteria(
    tmp_path: Path,
) -> None:
    met, missed = (
        Verdict(criterion="throughput", success=success, detail="") for success in (True, False)
    )
    late = [row(1, due=100, started=350, ended=370)]
    run = stored_run(tmp_path, late, verdicts=(met, missed))

    with search_server() as server:
        send("opensearch", run, server.url)

        (found,) = server.found("osbench-iterations")
        (one,) = server.found("osbench-workloads")
    assert found["@timestamp"] == "2026-04-01T12:00:01.600Z"
    assert one["sla_passed"] is False


def test_the_first_reason_of_a_refusal_is_told(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opensearch, "DOCUMENTS", 1)
    statuses = {f"{RUN}-0-2": 400, f"{RUN}-0-3": 413}

    with (
        search_server(lambda key, _: statuses.get(key, 200)) as server,
        pytest.raises(ExportError, match="refused 2 of 14 documents; the first: HTTP 400 "),
    ):
        send("opensearch", run, server.url)


def test_each_pause_is_twice_as_long_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    monkeypatch.setattr(posting.time, "sleep", paused.append)

    attempts = len(list(posting.Poster({}, 1.0).pauses()))

    assert attempts == posting.TRIES
    assert paused == [1, 2, 4, 8, 15, 15]


def test_refused_documents_are_sent_again_and_none_twice(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opensearch, "DOCUMENTS", 5)

    def fate(key: str, before: int) -> int:
        if not key:  # every other request finds the server busy as a whole
            return 429 if before % 2 else 200
        return 429 if key.endswith(("-3", "-7")) and before < 2 else 200

    with search_server(fate) as server:
        send("opensearch", run, server.url)

        assert len(server.found("osbench-iterations")) == 12
        assert server.attempts[f"{RUN}-0-3"] == 3
        assert server.attempts[f"{RUN}-0-4"] == 1


def test_a_document_refused_for_good_is_counted_and_not_sent_again(run: StoredRun) -> None:
    with search_server(lambda key, _: 400 if key.endswith("-0-2") else 200) as server:
        with pytest.raises(ExportError, match="refused 1 of 14 documents") as found:
            send("opensearch", run, server.url)

        assert "mapper_parsing_exception" in str(found.value)
        assert "\x1b" not in str(found.value)
        assert server.attempts[f"{RUN}-0-2"] == 1
        assert len(server.found("osbench-iterations")) == 11


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_stays_busy_is_given_up(run: StoredRun, status: int) -> None:
    with search_server(lambda key, _: status if key else 200) as server:
        with pytest.raises(ExportError, match="did not take 14 documents"):
            send("opensearch", run, server.url)

        assert set(server.attempts.values()) == {7}
    with search_server(lambda key, _: 200 if key else status) as server:
        with pytest.raises(ExportError, match=f"HTTP {status}"):
            send("opensearch", run, server.url)

        assert server.requests == 7


@pytest.mark.parametrize("status", [401, 404, 302])
def test_an_answer_that_will_not_change_is_asked_for_once(run: StoredRun, status: int) -> None:
    with search_server(lambda key, _: 200 if key else status) as server:
        url = server.url.replace("://", f"://user:{SECRET}@")
        with pytest.raises(ExportError, match=f"HTTP {status}") as found:
            send("opensearch", run, url)

        assert SECRET not in str(found.value)
        assert server.requests == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense://x", "http://"])
@pytest.mark.parametrize("name", ["opensearch", "otlp"])
def test_a_server_that_is_not_there(run: StoredRun, name: str, url: str) -> None:
    with pytest.raises(ExportError):
        send(name, run, url)


def test_an_answer_of_another_form_is_an_error(run: StoredRun) -> None:
    with (
        recording_server() as other,
        pytest.raises(ExportError, match="the response to a bulk request is of another form"),
    ):
        send("opensearch", run, other.url)


def test_opentelemetry_reads_what_is_sent(run: StoredRun) -> None:
    with collector() as server:
        said = send("otlp", run, server.url)

        (request,) = server.metrics
        assert said == f"sent metrics and 0 spans to {server.url}"
    states = states_of(request)
    assert (states[0]["ok"], states[0]["timed_out"], states[0]["dropped"]) == (8, 1, 1)
    first, second = metrics_of(request)["osbench.iteration.service_time"]
    assert (first.count, second.count) == (8, 2)
    assert first.sum == pytest.approx(0.16)
    assert first.start_time_unix_nano == int(T0_AT * 1e9)
    assert attribute(second, "osbench.workload") == 1
    assert metrics_of(request)["osbench.iteration.start_lag"][0].count == 9


def test_opentelemetry_reads_every_state_of_cumulative_metrics(tmp_path: Path) -> None:
    states = {"ok": 1, "failed": 2, "timed_out": 3, "dropped": 4, "lost": 5, "not_started": 6}
    run = stored_run(tmp_path, ROWS, accounting=Accounting(planned=21, **states))

    request = otlp_metrics.metrics_request(run)

    assert states_of(json.dumps(request)) == [states]
    (point, *_) = metrics_of(json.dumps(request))["osbench.iteration.service_time"]
    assert point.scale == otlp_metrics.SCALE
    metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    kinds = [one.get("sum") or one["exponentialHistogram"] for one in metrics]
    # AGGREGATION_TEMPORALITY_CUMULATIVE
    assert {kind["aggregationTemporality"] for kind in kinds} == {2}


def test_a_busy_collector_is_asked_again(run: StoredRun) -> None:
    with collector() as server:
        server.refusals = [503, 429]

        send("otlp", run, server.url)

        assert len(server.metrics) == 1
        assert len(server.headers) == 3


def test_headers_of_the_environment_are_sent(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"api-key={SECRET}, x-other=a%20b")
    with collector() as server:
        send("otlp", run, server.url)

        (headers,) = server.headers
        assert (headers["api-key"], headers["x-other"]) == (SECRET, "a b")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", SECRET)
    with pytest.raises(ExportError, match="must be name=value") as found:
        send("otlp", run, "http://127.0.0.1:1")
    assert SECRET not in str(found.value)


def test_what_a_collector_rejects_is_reported(run: StoredRun) -> None:
    with collector() as server:
        server.answered = {"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "too old"}}

        with pytest.raises(ExportError, match="refused 3 of the metrics: too old"):
            send("otlp", run, server.url)


def test_kept_traces_are_sent_as_spans(run: StoredRun) -> None:
    archive = Archive(run.directory.path)
    for number in range(250):
        spans = tuple(
            Span(f"{at:x}", "" if not at else "0", "n", "s", "h", 10**18 + at, 5, "", "", "", 0, {})
            for at in range(3)
        )
        archive.keep(Trace(trace_id=f"{number + 1:032x}", spans=spans, duplicates=0))
    archive.release()

    with collector() as server:
        said = send("otlp", run, server.url)
        without = send("otlp", run, server.url, spans=False)

        assert "750 spans" in said
        assert "0 spans" in without
        assert len(server.traces) == 3
    found = spans_of(server.traces)
    assert len({one.trace_id for one in found}) == 250
    assert len(found) == 750


def test_a_run_under_load_is_pushed(run: StoredRun) -> None:
    timeline = read_timeline(run.directory)
    assert timeline is not None
    exporter: Any = Plugins().get("exporter", "otlp")({"pause_s": 0})

    with collector() as server:
        exporter.push(LiveRun(timeline), server.url)
        exporter.push(LiveRun(timeline), "a/folder")
        exporter.send(run, server.url)

        live, final = server.metrics
    for name, points in metrics_of(live).items():
        for before, after in zip(points, metrics_of(final)[name], strict=True):
            before.time_unix_nano = after.time_unix_nano = 0
            assert before == after


def test_the_buckets_of_a_histogram_hold_its_values() -> None:
    values = [1, 1000, 1023, 1024, 1025, 10**6, 31_250_000, 10**9, 2 * 10**9]
    counts = DurationCounts(upper_ns=[0, *values], counts=[4, *range(1, 10)], sum_s=1.5)

    found = otlp_metrics.exponential(counts)

    buckets = [int(one) for one in found["positive"]["bucketCounts"]]
    assert (found["zeroCount"], found["count"], found["sum"]) == ("4", "49", 1.5)
    assert sum(buckets) == 45
    first, parts = found["positive"]["offset"], 2 ** found["scale"]
    edges = [2 ** ((first + at) / parts) for at in range(len(buckets) + 1)]
    for value in values:
        (at,) = [at for at in range(len(buckets)) if edges[at] < value / 1e9 <= edges[at + 1]]
        assert buckets[at] > 0
    assert json.dumps(otlp_metrics.exponential(DurationCounts()))


def test_no_larger_response_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TRIES", 2)
    with (
        answering(HUGE, bytes(65536), for_ever=True) as url,
        pytest.raises(ExportError, match="the response has 10,000,000,000 bytes, more than the 64"),
    ):
        posting.Poster({}, pause_s=0).post(url, b"{}")
