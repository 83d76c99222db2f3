"""What is exported is what the formats' own documents ask for."""

import base64
import copy
import json
import re

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from helpers.synthetic_traces import Fault, Work, many_queries, spans_of, traces
from osbench.edges.traces.analysis.coverage import TraceCoverage
from osbench.edges.traces.analysis.digest import digest_of
from osbench.edges.traces.analysis.explanation import explain
from osbench.edges.traces.analysis.notes import trace_notes
from osbench.edges.traces.collection.trace_set import TraceSet, of_file
from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.spans import LOST_START, LOST_STOP, STEPPED, Span, Trace
from osbench.edges.traces.output.trace_formats import chrome, folded_stacks
from osbench.edges.traces.sources.otlp import OtlpSpans, to_otlp


def trace_set(found):
    return TraceSet(
        name="some",
        features=digest_of(found).table.close(),
        clocks=Clocks(),
        usual={},
        coverage=TraceCoverage(),
        ranking=(),
        traces=lambda: iter(found),
        traced=len(found),
        skipped=0,
    )


def parsed(request):
    """A request as OpenTelemetry's own code reads it; raises ParseError for a field it lacks."""
    request = copy.deepcopy(request)
    for group in request["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                # JSON's bytes are base64; OTLP alone wants hexadecimal ids
                for name in ("traceId", "spanId", "parentSpanId"):
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    found = json_format.ParseDict(request, ExportTraceServiceRequest())
    return [
        (
            {pair.key: pair.value.string_value for pair in group.resource.attributes},
            span,
        )
        for group in found.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def test_otlp_is_read_by_opentelemetrys_own_code():
    (trace,) = traces(1, Fault(share=1.0, harm=many_queries))

    found = {span.span_id.hex(): (about, span) for about, span in parsed(to_otlp([trace]))}

    assert len(found) == len(trace.spans)
    for span in trace.spans:
        about, other = found[span.span_id]
        assert about == {"service.name": span.service, "host.name": span.host}
        assert (other.name, other.trace_id.hex()) == (span.name, trace.trace_id)
        assert other.parent_span_id.hex() == span.parent_id
        assert other.start_time_unix_nano == span.start_ns
        assert other.end_time_unix_nano == span.end_ns
        assert other.kind == OtlpSpan.SpanKind.Value(
            f"SPAN_KIND_{span.kind.upper()}" if span.kind else "SPAN_KIND_UNSPECIFIED"
        )


def test_otlp_of_values_errors_and_ids_that_are_none_of_w3c():
    said = {"iteration": 0, "unfinished": False, "share": 0.5, "nothing": None, "odd": ["a"]}
    root = Span("made-up", "", "a", "s", "h", 10**18, 5, attributes=said)
    inner = Span("0" * 16, "made-up", "b", "s", "h", 10**18, 5, error="Boom")
    request = to_otlp([Trace(trace_id="of our own", spans=(root, inner))])

    (_, one), (_, other) = parsed(request)

    assert len(one.trace_id) == 16
    assert len(one.span_id) == len(other.span_id) == 8
    assert other.parent_span_id == one.span_id
    # an id of zeros is none
    assert any(other.span_id)
    values = {pair.key: pair.value for pair in one.attributes}
    assert values["iteration"].int_value == 0
    assert values["iteration"].WhichOneof("value") == "int_value"
    assert values["unfinished"].WhichOneof("value") == "bool_value"
    assert values["share"].double_value == 0.5
    assert values["odd"].WhichOneof("value") == "string_value"
    assert "nothing" not in values
    assert other.status.code == Status.STATUS_CODE_ERROR
    (again,) = OtlpSpans([request]).all()
    assert [span.error for span in again.spans if span.name == "b"] == ["Boom"]


def test_otlp_of_spans_that_were_lost_names_no_parent_that_is_not_there():
    root = Span("a" * 16, "", "a", "s", "h", 10**18, 0, marks=LOST_STOP)
    inner = Span("b" * 16, "a" * 16, "b", "s", "h", 10**18, 5, marks=LOST_START)
    last = Span("c" * 16, "b" * 16, "c", "s", "h", 10**18, 5, marks=STEPPED)
    request = to_otlp([Trace(trace_id="d" * 32, spans=(root, inner, last))])

    found = [span for _, span in parsed(request)]

    known = {span.span_id for span in found}
    assert all(span.parent_span_id in known for span in found if span.parent_span_id)
    assert {pair.key: pair.value.string_value for pair in found[0].attributes} == {
        "osbench.lost": "stop"
    }
    (again,) = OtlpSpans([request]).all()
    assert [span.marks for span in again.spans] == [LOST_STOP, LOST_START, 0]


def test_otlp_says_no_attribute_twice():
    said = {"error.type": "of the service", "osbench.detail": "old"}
    root = Span("a" * 16, "", "a", "s", "h", 10**18, 0, "new", error="Boom", attributes=said)

    ((_, span),) = parsed(to_otlp([Trace(trace_id="d" * 32, spans=(root,))]))

    found = [(pair.key, pair.value.string_value) for pair in span.attributes]
    assert sorted(found) == [("error.type", "of the service"), ("osbench.detail", "new")]


def test_trace_events_have_the_fields_that_the_format_requires():
    """By the Trace Event Format: metadata, and complete events with instant and duration in us."""
    found = list(traces(3))

    document = chrome(trace_set(found), found)

    events = document["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    for event in events:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert event["args"].keys() == {"name"}
        else:
            assert event.keys() == {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"}
            assert isinstance(event["name"], str)
            assert event["dur"] >= 0
    root = next(event for event in events if event["name"] == "osbench.iteration")
    span = next(span for span in found[0].spans if not span.parent_id)
    assert (root["ts"], root["dur"]) == (0, span.duration_ns / 1000)
    assert document["otherData"] == {"begin_ns_since_1970": str(span.start_ns)}
    named = {event["pid"] for event in events if event["name"] == "process_name"}
    assert named == {event["pid"] for event in events}


def overlapping():
    """A span whose calls overlap, on the host of one of them and on another."""
    root = Work(name="osbench.iteration", start=0, length=100)
    call = Work(name="wsgi", start=10, length=80, service="shop/api", host="a")
    call.add(
        Work(name="db", start=20, length=30, service="shop/api", host="a"),
        Work(name="rpc", start=40, length=40, service="shop/api", host="a"),
        Work(name="queue", start=20, length=30.0013, service="shop/api", host="b", error="Boom"),
        Work(name="nothing", start=20, length=0, service="shop/api", host="b"),
    )
    return spans_of(root.add(call))


def test_trace_events_have_a_process_per_service_and_a_thread_per_host_or_lane():
    trace = overlapping()

    document = chrome(trace_set([trace]), [trace])

    named = {
        what: {
            (event["pid"], event["tid"]): event["args"]["name"]
            for event in document["traceEvents"]
            if event["name"] == what
        }
        for what in ("process_name", "thread_name")
    }
    assert sorted(named["process_name"].values()) == ["osbench/worker", "shop/api"]
    processes = {pid: name for (pid, _), name in named["process_name"].items()}
    threads = sorted((processes[pid], name) for (pid, _), name in named["thread_name"].items())
    # two calls of host a overlap and do not nest
    assert threads == [
        ("osbench/worker", "w1"), ("shop/api", "a"), ("shop/api", "a (2)"), ("shop/api", "b")
    ]  # fmt: skip
    events = {event["name"]: event for event in document["traceEvents"] if event["ph"] == "X"}
    assert events["queue"]["args"]["error"] == "Boom"
    assert (events["queue"]["ts"], events["queue"]["dur"]) == (20_000, 30_001)


def test_trace_events_of_a_thread_nest_to_the_nanosecond():
    """As Perfetto reads them: it drops a slice that ends after the one around it."""
    found = [overlapping(), *traces(20, Fault(share=0.5, harm=many_queries))]

    events = json.loads(json.dumps(chrome(trace_set(found), found)))["traceEvents"]

    slices = [event for event in events if event["ph"] == "X"]
    assert min(event["ts"] for event in slices) == 0
    assert len(slices) == sum(len(trace.spans) for trace in found)
    opened: dict[tuple[int, int], list[int]] = {}
    for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
        begin = round(event["ts"] * 1000)
        end = begin + round(event["dur"] * 1000)
        ends = opened.setdefault((event["pid"], event["tid"]), [])
        while ends and ends[-1] <= begin:
            ends.pop()
        assert not ends or end <= ends[-1]
        ends.append(end)
    # a thread belongs to one trace
    owners = {(event["pid"], event["tid"], event["args"]["trace"]) for event in slices}
    assert len(owners) == len(opened)


def test_folded_stacks_have_frames_and_a_number():
    odd = Span("1" * 16, "", "a;b\nc 7", "s", "h", 10**18, 5_000)
    found = [*traces(3), Trace(trace_id="0" * 32, spans=(odd,))]

    lines = list(folded_stacks(trace_set(found), found))

    assert all(re.fullmatch(r"[^;\n]+(;[^;\n]+)* \d+", line) for line in lines)
    assert "s a,b c 7 5" in lines


def test_a_file_of_one_service_whose_callers_write_elsewhere_is_shown_by_itself(tmp_path):
    whole = list(traces(700, Fault(share=0.05, harm=many_queries)))
    found = [
        Trace(
            trace_id=one.trace_id,
            spans=tuple(span for span in one.spans if span.service == "shop/api"),
        )
        for one in whole
    ]
    assert not any(not span.parent_id for one in found for span in one.spans)
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(to_otlp(found)))

    some = of_file(path)

    first = next(some.traces())
    tree, paths = some.tree_and_paths(first)
    assert len(paths) == len(tree.roots) > 0
    assert not tree.left_out
    assert len(some.features) == 700
    assert sum(row.critical_s for row in some.ranking) > 0
    assert explain(some.features).answers[0].sentence
    assert chrome(some, [first])["traceEvents"]
    assert list(folded_stacks(some, [first]))
    assert next(iter(trace_notes(some.coverage, some.clocks, 0))) == (
        "700 traces start in a service whose spans are missing: their topmost spans are used"
        " as roots"
    )


def test_a_trace_with_its_root_keeps_what_has_lost_its_parent_left_out(tmp_path):
    (trace,) = traces(1)
    lost = tuple(span for span in trace.spans if span.name != "wsgi")
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(to_otlp([Trace(trace_id=trace.trace_id, spans=lost)])))

    some = of_file(path)

    assert some.coverage.headless == 0
    assert sum(service.orphan for service in some.coverage.services.values()) > 0
