"""What becomes of the spans of a request: kept, or counted."""

from __future__ import annotations

import gzip
import json
import os

import pytest

from helpers.otlp_requests import as_json, request_of
from osbench.common.values.trace_mark import TraceMark
from osbench.edges.traces.receiving import intake_of_spans
from osbench.edges.traces.receiving.intake_of_spans import Rejection, SpanIntake
from osbench.edges.traces.sources.span_spool import SpooledTraces

MARK = TraceMark("run-1")
OWN = [MARK.put(bytes([number]) * 16) for number in range(3)]


@pytest.fixture
def intake(tmp_path):
    return SpanIntake("run-1", tmp_path / "received", 1 << 20, everything=False)


def counts(intake, **changes):
    """Only what differs from 0."""
    return {name: value for name, value in intake.counts.to_dict().items() if value}


@pytest.mark.parametrize("form", ["protobuf", "json"])
@pytest.mark.parametrize("packed", [True, False])
def test_spans_of_the_run_are_kept_without_values_and_strangers_counted(
    intake, tmp_path, form, packed
):
    request = request_of([*OWN, os.urandom(16)], each=2)
    body = as_json(request) if form == "json" else request.SerializeToString()

    said = intake.take(
        gzip.compress(body) if packed else body, as_json=form == "json", gzipped=packed
    )
    intake.stop_storing()

    assert said == Rejection()
    assert counts(intake) == {"accepted": 6, "strangers": 2}
    traces = {trace.trace_id: trace for trace in SpooledTraces(tmp_path / "received")}
    assert traces.keys() == {trace.hex() for trace in OWN}
    one = traces[OWN[0].hex()].spans[0]
    assert (one.name, one.service, one.host, one.kind) == ("GET /items", "shop", "h1", "server")
    assert (one.detail, one.parent_id) == ("GET /items/{id}", "01" * 8)
    assert one.duration_ns == 5_000_000
    assert b"s3cret" not in (tmp_path / "received").read_bytes()
    assert "s3cret" not in repr(traces)


def test_arguments_are_kept_if_they_are_wanted(tmp_path):
    intake = SpanIntake("run-1", tmp_path / "received", 1 << 20, everything=True)

    intake.take(request_of(OWN[:1]).SerializeToString(), as_json=False, gzipped=False)
    intake.stop_storing()

    (trace,) = SpooledTraces(tmp_path / "received")
    assert trace.spans[0].attributes["url.path"] == "/items/17?a=s3cret"


def test_malformed_spans_are_rejected_and_the_others_kept(intake):
    request = request_of([OWN[0]] * 6)
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[0].span_id = b"short"
    spans[1].span_id = bytes(8)
    spans[2].start_time_unix_nano = 0
    spans[3].end_time_unix_nano = 2**64 - 1
    spans[4].parent_span_id = b"x"

    said = intake.take(request.SerializeToString(), as_json=False, gzipped=False)

    assert said.spans == 5
    assert counts(intake) == {"accepted": 1, "malformed": 5}
    in_json = json.loads(as_json(request_of(OWN)))
    first, second, third = in_json["resourceSpans"][0]["scopeSpans"][0]["spans"]
    first["spanId"] = "not hexadecimal!"
    second["traceId"] = "0" * 40
    third["parentSpanId"] = "ab" * 1000
    said = intake.take(json.dumps(in_json).encode(), as_json=True, gzipped=False)
    assert said.spans == 3
    assert counts(intake) == {"accepted": 1, "malformed": 8}


@pytest.mark.parametrize(
    ("body", "json_", "gzipped"),
    [
        (b"\xff\xff\xff", False, False),
        (b"{", True, False),
        (b"[1]", True, False),
        (b"[" * 100_000, True, False),
        (b"not gzip", False, True),
        (gzip.compress(b"x" * 100, mtime=0)[:-4], False, True),
    ],
)
def test_a_request_that_cannot_be_read_is_refused(intake, body, json_, gzipped):
    with pytest.raises(ValueError, match=r"\w"):
        intake.take(body, as_json=json_, gzipped=gzipped)

    assert counts(intake) == {"malformed_requests": 1}


def test_what_grows_without_bound_when_it_is_unpacked_is_refused(intake, monkeypatch):
    monkeypatch.setattr(intake_of_spans, "LARGEST", 1000)

    with pytest.raises(ValueError, match="larger than"):
        intake.take(gzip.compress(bytes(100_000)), as_json=False, gzipped=True)


def test_a_full_spool_rejects_and_counts(tmp_path):
    intake = SpanIntake("run-1", tmp_path / "received", 1, everything=False)
    body = request_of(OWN).SerializeToString()
    intake.take(body, as_json=False, gzipped=False)
    intake.flush()

    said = intake.take(body, as_json=False, gzipped=False)

    assert said.spans == 3
    assert "otlp_limit_mib" in said.reason
    assert counts(intake) == {"accepted": 3, "refused": 3}


def test_a_disk_that_fails_rejects_and_counts_what_was_waiting(intake, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    body = request_of(OWN).SerializeToString()
    intake.take(body, as_json=False, gzipped=False)
    monkeypatch.setattr("os.write", fail)

    intake.flush()
    said = intake.take(body, as_json=False, gzipped=False)

    assert "No space left" in said.reason
    assert intake.failure == "No space left on device"
    assert counts(intake) == {"refused": 6}


def test_spans_after_the_end_are_late(intake):
    intake.stop_storing()

    said = intake.take(request_of(OWN).SerializeToString(), as_json=False, gzipped=False)

    assert said.spans == 3
    assert "has ended" in said.reason
    assert counts(intake) == {"late": 3}


def test_a_run_that_is_resumed_goes_on_counting(intake, tmp_path):
    intake.take(request_of(OWN).SerializeToString(), as_json=False, gzipped=False)
    intake.flush()

    again = SpanIntake("run-1", tmp_path / "received", 1 << 20, everything=False)
    again.take(request_of(OWN).SerializeToString(), as_json=False, gzipped=False)
    again.stop_storing()

    assert counts(again) == {"accepted": 6}
    assert sum(len(trace.spans) for trace in SpooledTraces(tmp_path / "received")) == 6
