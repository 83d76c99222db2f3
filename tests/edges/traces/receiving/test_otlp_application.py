"""How the receiver answers, by the specification of OTLP/HTTP."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from helpers.otlp_requests import as_json, request_of
from osbench.common.values.trace_mark import TraceMark
from osbench.edges.traces.receiving import otlp_application
from osbench.edges.traces.receiving.intake_of_spans import SpanIntake
from osbench.edges.traces.receiving.otlp_application import JSON, PROTOBUF, OtlpApplication
from servers.child import PATIENCE_S

OWN = [TraceMark("run-1").put(bytes([number]) * 16) for number in range(3)]
BODY = request_of(OWN).SerializeToString()


@pytest.fixture
def intake(tmp_path):
    return SpanIntake("run-1", tmp_path / "received", 1 << 20, everything=False)


def scope_of(path="/v1/traces", method="POST", kind=PROTOBUF, **headers):
    named = {"content-type": kind, **{name.replace("_", "-"): v for name, v in headers.items()}}
    fields = [(name.encode(), value.encode()) for name, value in named.items()]
    return {"type": "http", "path": path, "method": method, "headers": fields}


async def answer(application, parts, **request):
    """Status, headers and body of the answer to a request whose body comes in parts."""
    sent = []
    messages = [{"type": "http.request", "body": one, "more_body": True} for one in parts]
    waiting = iter([*messages, {"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        return next(waiting)

    async def send(message):
        sent.append(message)

    await application(scope_of(**request), receive, send)
    head, body = sent
    headers = {name.decode().lower(): value.decode() for name, value in head["headers"]}
    assert int(headers["content-length"]) == len(body["body"])
    return head["status"], headers, body["body"]


def ask(intake, parts=(BODY,), token="", **request):
    return asyncio.run(answer(OtlpApplication(intake, token), parts, **request))


def test_success_in_protobuf_and_json(intake):
    status, headers, body = ask(intake, (BODY[:10], BODY[10:]))
    assert (status, headers["content-type"]) == (200, PROTOBUF)
    assert ExportTraceServiceResponse.FromString(body) == ExportTraceServiceResponse()
    in_json = as_json(request_of(OWN))
    status, headers, body = ask(intake, (in_json,), kind=f"{JSON}; charset=utf-8")
    assert (status, headers["content-type"], body) == (200, JSON, b"{}")
    status, _, _ = ask(intake, (gzip.compress(BODY),), content_encoding="gzip")
    assert status == 200
    assert intake.counts.accepted == 9


def test_an_empty_request_is_a_success(intake):
    assert ask(intake, ())[0] == 200


def test_rejected_spans_are_a_partial_success(intake):
    intake.stop_storing()

    status, _, body = ask(intake)
    said = ExportTraceServiceResponse.FromString(body).partial_success
    assert (status, said.rejected_spans) == (200, 3)
    assert "has ended" in said.error_message
    status, _, body = ask(intake, (as_json(request_of(OWN)),), kind=JSON)
    partial = json.loads(body)["partialSuccess"]
    assert partial["rejectedSpans"] == "3"


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (400, {"parts": (b"\xff\xff",)}),
        (400, {"parts": (b"no gzip",), "content_encoding": "gzip"}),
        (401, {"token": "s3cret"}),
        (401, {"token": "s3cret", "authorization": "Bearer s3cre"}),
        (404, {"path": "/"}),
        (405, {"method": "GET"}),
        (415, {"kind": "text/plain"}),
        (415, {"content_encoding": "zstd"}),
    ],
)
def test_requests_that_are_refused_say_why(intake, status, request_):
    found, headers, body = ask(intake, **request_)

    assert found == status
    assert headers["content-type"] == PROTOBUF
    # google.rpc.Status, of which the message is field 2
    assert body[:2] == bytes([0x12, len(body) - 2])
    assert body[2:].decode()
    assert b"s3cret" not in body
    assert intake.counts.accepted == 0


def test_the_right_token_opens(intake):
    assert ask(intake, token="s3cret", authorization="Bearer s3cret")[0] == 200
    assert ask(intake, token="s3cret")[0] == 401
    assert (intake.counts.accepted, intake.counts.unauthorized_requests) == (3, 1)


def test_a_body_that_is_too_large_is_refused(intake, monkeypatch):
    monkeypatch.setattr(otlp_application, "BODY", 50)

    assert ask(intake, (b"x" * 40, b"x" * 40))[0] == 413


@pytest.mark.parametrize("path", ["/v1/metrics", "/v1/logs"])
def test_other_signals_are_answered_and_counted(intake, path):
    assert ask(intake, (b"anything",), path=path)[::2] == (200, b"")
    assert ask(intake, (b"{}",), path=path, kind=JSON)[::2] == (200, b"{}")
    assert intake.counts.other_signals == 2


def test_while_too_much_is_waiting_others_are_told_to_come_again(intake, monkeypatch):
    monkeypatch.setattr(otlp_application, "WAITING", len(BODY) + 10)
    go_on, begun = threading.Event(), threading.Event()
    take = intake.take

    def slow(*given, **named):
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return take(*given, **named)

    monkeypatch.setattr(intake, "take", slow)
    application = OtlpApplication(intake, "")

    async def both():
        first = asyncio.create_task(answer(application, (BODY,)))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        deferred = await answer(application, (BODY,))
        go_on.set()
        return await first, deferred, await answer(application, (BODY,))

    first, deferred, again = asyncio.run(both())

    assert (first[0], deferred[0], again[0]) == (200, 429, 200)
    assert deferred[1]["retry-after"] == "1"
    assert intake.counts.deferred_requests == 1
    assert intake.counts.accepted == 6


def test_a_client_that_goes_away_or_stops_frees_its_room(intake, monkeypatch):
    monkeypatch.setattr(otlp_application, "BODY_S", 0.01)
    application = OtlpApplication(intake, "")
    sent = []

    async def gone():
        return {"type": "http.disconnect"}

    async def silent():
        if sent:
            await asyncio.Event().wait()
        sent.append(None)
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    async def send(message):
        if message["type"] == "http.response.start":
            sent.append(message["status"])

    async def ask_both():
        await application(scope_of(), silent, send)
        await application(scope_of(), gone, send)

    asyncio.run(ask_both())

    assert sent == [None, 408, 400]
    assert application._waiting == 0
