import json

import pytest

from helpers.synthetic_traces import events_of, traces
from osbench.common.errors import UsageError
from osbench.edges.traces.model.spans import LOST_START, LOST_STOP, STEPPED
from osbench.edges.traces.sources.files import merge, open_file
from osbench.edges.traces.sources.otlp import OtlpSpans, to_otlp

BASE = "f12e75d5-5d59-4cbc-b74d-357f19290dd7"
ROOT = "b9b29981-0916-4635-af18-d6c92f991f46"
INNER = "3cdd41b5-318a-4926-a38e-63344b6aef7a"
LOG = f"""\
2020-02-27T08:04:25.789433          {BASE} {BASE} {ROOT} engine-start-workflow-start
2020-02-27T08:04:25.954502          {BASE} {ROOT} {INNER} workflow-set-state-start
2020-02-27T08:04:25.961298 0.006782 {BASE} {ROOT} {INNER} workflow-set-state-stop

something else that got in between
2020-02-27T08:21:05.912889 1000.123456 {BASE} {BASE} {ROOT} engine-start-workflow-stop <- !!!
"""


def report_of(trace):
    """What OSProfiler makes of the events of a trace, as far as it is read."""
    children = {}
    for event in events_of(trace):
        node = children.setdefault(
            event["trace_id"],
            {
                "info": {"name": event["name"].split("-")[0], "started": 0, "finished": 0},
                "children": [],
            },
        )
        node["info"][f"meta.raw_payload.{event['name']}"] = event
    inner = list(children.values())
    inner[0]["children"] = inner[1:]
    return {"info": {"name": "total", "started": 0}, "children": inner[:1], "stats": {}}


def written(tmp_path, text, name="traces"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_log_keeps_whole_names_long_spans_and_what_it_says_they_took(tmp_path):
    source = open_file(written(tmp_path, LOG))

    (trace,) = source.all()

    root, inner = trace.spans
    assert (root.name, root.parent_id) == ("engine-start-workflow", "")
    assert root.duration_ns == 1_000_123_456_000
    assert (inner.name, inner.parent_id) == ("workflow-set-state", root.span_id)
    assert inner.duration_ns == 6_782_000
    assert trace.is_whole
    assert source.skipped == 1


@pytest.mark.parametrize(
    ("seconds", "duration_ns", "marks"),
    [("8.6e-05", 86_000, 0), ("1e-06", 1000, 0), ("0.0", 0, 0), ("-0.25", 0, STEPPED)],
)
def test_seconds_in_a_log_are_written_as_python_writes_them(tmp_path, seconds, duration_ns, marks):
    text = LOG.replace("0.006782", seconds)
    source = open_file(written(tmp_path, text))

    (trace,) = source.all()

    inner = trace.spans[1]
    assert (inner.duration_ns, inner.marks) == (duration_ns, marks)
    assert source.skipped == 1


def test_a_log_that_was_cut_at_both_ends(tmp_path):
    lines = LOG.splitlines()
    source = open_file(written(tmp_path, "\n".join(lines[1:3])))

    (trace,) = source.all()

    (span,) = trace.spans
    assert span.duration_ns == 6_782_000
    assert not trace.is_whole
    (open_one,) = next(open_file(written(tmp_path, lines[0])).all()).spans
    assert open_one.marks == LOST_STOP
    (closed,) = next(open_file(written(tmp_path, lines[5])).all()).spans
    assert closed.marks == 0


def test_a_stop_without_start_or_duration_is_marked(tmp_path):
    line = f"2020-02-27T08:04:25.961298          {BASE} {ROOT} {INNER} workflow-set-state-stop"

    (span,) = next(open_file(written(tmp_path, line)).all()).spans

    assert span.marks == LOST_START


def test_statements_in_a_log_lose_their_values(tmp_path):
    said = json.dumps({"statement": "SELECT * FROM t WHERE id = 'abc'", "params": {"p": "s3cret"}})
    line = f"2020-02-27T08:04:25.961298 0.01 {BASE} {ROOT} {INNER} db-stop {said}"

    (span,) = next(open_file(written(tmp_path, line)).all()).spans

    assert span.detail == "SELECT * FROM t WHERE id = ?"
    assert not span.attributes


def test_osprofilers_reports_are_read_by_their_events(tmp_path):
    one, other = traces(2)
    source = open_file(written(tmp_path, json.dumps([report_of(one), report_of(other)])))

    found = {trace.trace_id: trace for trace in source.all()}

    assert [span[:7] for span in found[one.trace_id].spans] == [span[:7] for span in one.spans]
    assert [trace.trace_id for trace in source.read([other.trace_id])] == [other.trace_id]


def test_spans_go_out_as_otlp_and_come_back(tmp_path):
    one, other = traces(2)
    whole = written(tmp_path, json.dumps(to_otlp([one, other])), "whole")
    lines = "\n".join(json.dumps(to_otlp([trace])) for trace in (other, one, one))
    by_line = written(tmp_path, f'{{"resourceLogs": []}}\n{lines}', "lines")

    found = {trace.trace_id: trace for trace in open_file(whole).all()}
    again = {trace.trace_id: trace for trace in open_file(by_line).all()}

    for trace in (one, other):
        assert [span._replace(attributes={}) for span in found[trace.trace_id].spans] == [
            *trace.spans
        ]
        assert again[trace.trace_id].spans == found[trace.trace_id].spans
    assert again[one.trace_id].duplicates == len(one.spans)


def test_opentelemetrys_own_words_are_understood():
    span = {
        "traceId": "5B8EFFF798038103D269B633813FC60C",
        "spanId": "EEE19B7EC3C1B174",
        "parentSpanId": "0000000000000000",
        "name": "GET",
        "kind": "SPAN_KIND_SERVER",
        "startTimeUnixNano": "1544712660000000000",
        "endTimeUnixNano": "1544712661000000000",
        "status": {"code": "STATUS_CODE_ERROR"},
        "attributes": [
            {"key": "http.request.method", "value": {"stringValue": "GET"}},
            {"key": "url.path", "value": {"stringValue": "/v2/queues/41/claims"}},
            {"key": "url.query", "value": {"stringValue": "token=s3cret"}},
            {"key": "http.response.status_code", "value": {"intValue": "500"}},
        ],
    }
    host = {"key": "host.name", "value": {"stringValue": "b"}}
    name = {"key": "service.name", "value": {"stringValue": "zaqar"}}
    request = {
        "resourceSpans": [
            {"resource": {"attributes": [host, name]}, "scopeSpans": [{"spans": [span, {}]}]}
        ]
    }

    source = OtlpSpans([request])
    ((found,),) = [trace.spans for trace in source.all()]

    assert (found.service, found.host, found.kind) == ("zaqar", "b", "server")
    assert (found.detail, found.error) == ("GET /v2/queues/{id}/claims", "error")
    assert (found.parent_id, found.duration_ns) == ("", 10**9)
    assert "s3cret" not in str(found)
    assert source.skipped == 1


def test_names_and_destinations_of_opentelemetry_lose_their_values():
    destination = {"stringValue": "reply_3f2504e04f8911d39a0c0305e82c3301"}
    span = {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "name": "SELECT x FROM t WHERE n = 's3cret'",
        "startTimeUnixNano": "1544712660000000000",
        "endTimeUnixNano": "1544712661000000000",
        "attributes": [{"key": "messaging.destination.name", "value": destination}],
    }

    (trace,) = OtlpSpans([{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}]).all()

    (found,) = trace.spans
    assert (found.name, found.detail) == ("SELECT x FROM t WHERE n = ?", "reply_{id}")


@pytest.mark.parametrize(
    "broken",
    [
        {"startTimeUnixNano": str(10**25)},
        {"startTimeUnixNano": "-1"},
        {"startTimeUnixNano": float("inf")},
        {"endTimeUnixNano": float("nan")},
        {"endTimeUnixNano": "soon"},
        {"traceId": 7},
        {"spanId": None},
    ],
)
def test_a_span_that_cannot_be_is_skipped_and_no_other(broken):
    request = to_otlp(traces(1))
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans.append(spans[0] | {"spanId": "ab" * 8} | broken)
    odd = [{"key": "x", "value": {"intValue": value}} for value in ("none", float("inf"))]
    request["resourceSpans"][0]["resource"]["attributes"] += odd

    source = OtlpSpans([request])
    (found,) = source.all()

    assert len(found.spans) == 7
    assert source.skipped == 1


def test_lines_that_cannot_be_are_skipped(tmp_path):
    odd = [
        f"2020-13-45T08:04:25.961298 0.1 {BASE} {ROOT} {INNER} x-stop",
        f"9999-12-01T08:04:25.961298 0.1 {BASE} {ROOT} {INNER} x-stop",
        f"2020-02-27T08:04:25.961298 {'9' * 400} {BASE} {ROOT} {INNER} x-stop",
    ]
    source = open_file(written(tmp_path, "\n".join([*odd, LOG])))

    (trace,) = source.all()

    assert len(trace.spans) == 2
    assert source.skipped == 1 + len(odd)


def test_what_two_sources_know_of_a_trace_counts_once():
    (trace,) = traces(1)
    part = type(trace)(trace_id=trace.trace_id, spans=trace.spans[:4])

    found = merge([part, trace])

    assert found.spans == trace.spans
    assert found.duplicates == 4


@pytest.mark.parametrize("turned", [False, True])
def test_of_what_two_sources_know_of_a_span_the_whole_and_longer_one_counts(turned):
    (trace,) = traces(1)
    first, second, third, *rest = trace.spans
    broken = (
        first._replace(duration_ns=0, marks=LOST_STOP),
        second._replace(duration_ns=10**12, marks=LOST_START),
        third._replace(duration_ns=third.duration_ns - 1),
        *rest,
    )
    part = type(trace)(trace_id=trace.trace_id, spans=broken)

    parts = [trace, part]
    found = merge(parts[::-1] if turned else parts)

    assert found.spans == trace.spans


@pytest.mark.parametrize("turned", [False, True])
def test_of_a_span_that_was_sent_without_and_with_its_end_the_whole_one_counts(turned):
    first, second = to_otlp(traces(1)), to_otlp(traces(1))
    for group in first["resourceSpans"]:
        for span in group["scopeSpans"][0]["spans"]:
            span["endTimeUnixNano"] = "0"

    requests = [first, second]
    (found,) = OtlpSpans(requests[::-1] if turned else requests).all()

    assert found.is_whole


def test_an_unfinished_line_costs_no_other(tmp_path):
    one, other = (json.dumps(to_otlp([trace]), ensure_ascii=False) for trace in traces(2))
    one = one.replace('"name": "', '"name": "\u2028\x85', 1)
    source = open_file(written(tmp_path, f"\ufeff{one}\r\n{other}\n{other[:200]}"))

    assert len(list(source.all())) == 2
    assert source.skipped == 1


def test_a_report_without_an_end_costs_no_other(tmp_path):
    (trace,) = traces(1)
    report = report_of(trace)
    report["children"].append({"children": 5})
    text = f"{json.dumps(report)}\n{json.dumps(report)[:99]}\n"
    source = open_file(written(tmp_path, text))

    assert len(list(source.all())) == 1
    assert source.skipped == 2


@pytest.mark.parametrize(
    "text",
    [
        *('{"children": 5}', '{"children": {}}', '{"x": 1}\n{"resourceSpans": [', "{\n}\n{\n{}\n"),
        *("", "just a log\n", "{}", "[1, 2]", '{"resourceSpans"', '{"children": []}\n{"x": 1}'),
        "[" * 100_000,
    ],
)
def test_other_files_are_refused_with_what_is_known(tmp_path, text):
    with pytest.raises(UsageError, match="traces"):
        open_file(written(tmp_path, text))


def test_a_file_that_is_not_there():
    with pytest.raises(UsageError, match="cannot read"):
        open_file(__import__("pathlib").Path("/nonexistent/file"))
