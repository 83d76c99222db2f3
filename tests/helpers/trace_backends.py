"""A Tempo and a Jaeger: spans come in by OTLP's JSON and are answered by trace id as theirs are."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from helpers.json_server import LoopbackServer, QuietHandler, serving

_ID = re.compile(r"/api/(v2/|v3/|)traces/([0-9a-f]{1,32})(\?.*)?\Z")
#: Names of enums, which protobuf's JSON has instead of numbers.
_KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_STATUS = ("UNSET", "OK", "ERROR")

Spans = list[tuple[Mapping[str, Any], Mapping[str, Any]]]


class StoredTraces(LoopbackServer):
    """What the two have in common: `POST /v1/traces` stores, and a query answers one trace."""

    #: Answered instead, with this text, if it is not 0.
    status = 0
    text = ""
    #: Header that queries must have.
    needed: tuple[str, str] | None = None
    zipped = True

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.traces: dict[str, Spans] = defaultdict(list)
        self.queries: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.paths: Counter[str] = Counter()
        #: Selects the spans that are there at the nth query of a trace.
        self.keep: Callable[[str, Spans, int], Spans] = lambda _id, spans, _number: spans
        self.lock = threading.Lock()

    def store(self, request: Mapping[str, Any]) -> None:
        """Store the spans of an export request, whose ids are hexadecimal."""
        with self.lock:
            for group in request["resourceSpans"]:
                for scope in group["scopeSpans"]:
                    for span in scope["spans"]:
                        self.traces[span["traceId"]].append((group["resource"], span))

    def groups(self, trace_id: str) -> list[dict[str, Any]]:
        """The groups of spans that are there of a trace, now."""
        with self.lock:
            self.queries[trace_id] += 1
            spans = list(self.traces.get(trace_id, ()))
            number = self.queries[trace_id]
        kept = copy.deepcopy(self.keep(trace_id, spans, number))
        return [
            {"resource": resource, "scopeSpans": [{"scope": {}, "spans": [span]}]}
            for resource, span in kept
        ]

    def answer_to(self, version: str, trace_id: str) -> tuple[int, Any]:
        """Status and document, or text, of a query."""
        raise NotImplementedError


class FakeTempo(StoredTraces):
    """Tempo: ids in base64, names of enums; version 2 of the API unless it is an older one.

    As modules/frontend/combiner/trace_by_id_v2.go and trace_by_id.go of grafana/tempo have it, in
    protobuf's own JSON.
    """

    older = False
    #: Ids of traces that are above its limit, of which a part is answered.
    partial: frozenset[str] = frozenset()
    kind = "tempo"

    def answer_to(self, version: str, trace_id: str) -> tuple[int, Any]:
        if version == "v3/" or (self.older and version):
            return 404, "404 page not found\n"
        groups = self.groups(trace_id)
        for group in groups:
            for span in group["scopeSpans"][0]["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    span[name] = base64.b64encode(bytes.fromhex(span.get(name, ""))).decode()
                span["kind"] = f"SPAN_KIND_{_KINDS[span.get('kind', 0)]}"
                status = span.get("status") or {}
                if "code" in status:
                    span["status"] = {"code": f"STATUS_CODE_{_STATUS[status['code']]}"}
        if not version:
            return (200, {"batches": groups}) if groups else (404, "")
        if trace_id in self.partial:
            told = "Trace exceeds maximum size of 5000000 bytes, a partial trace is returned"
            return 200, {
                "trace": {"resourceSpans": groups[:1]},
                "metrics": {},
                "status": "PARTIAL",
                "message": told,
            }
        # a trace that is not there is an empty one in some releases, and 404 in others
        return 200, {"trace": {"resourceSpans": groups} if groups else {}, "metrics": {}}


class FakeJaeger(StoredTraces):
    """Jaeger: ids in hexadecimal, in one document or several.

    As cmd/jaeger/internal/extension/jaegerquery/internal/apiv3/http_gateway.go of
    jaegertracing/jaeger, and its snapshots.
    """

    streamed = False
    kind = "jaeger"

    def answer_to(self, version: str, trace_id: str) -> tuple[int, Any]:
        if version != "v3/":
            return 404, "404 page not found\n"
        groups = self.groups(trace_id)
        if not groups:
            return 404, {"error": {"httpCode": 404, "message": "No traces found"}}
        if self.streamed:
            chunks = (json.dumps({"result": {"resourceSpans": [group]}}) for group in groups)
            return 200, "\n".join(chunks)
        return 200, {"result": {"resourceSpans": groups}}


class _Handler(QuietHandler):
    server: StoredTraces

    def do_POST(self) -> None:
        self.server.store(json.loads(self.sent_body()))
        self.answer(200, {})

    def do_GET(self) -> None:
        server = self.server
        headers = self.sent_headers()
        with server.lock:
            server.headers.append(headers)
        found = _ID.match(self.path)
        if found is None:
            self._send(404, "404 page not found\n")
            return
        with server.lock:
            server.paths[self.path.replace(found[2], "ID")] += 1
        if server.needed and headers.get(server.needed[0].lower()) != server.needed[1]:
            self._send(401, "no org id")
        elif server.status:
            self._send(server.status, server.text)
        else:
            self._send(*server.answer_to(found[1], found[2]))

    def _send(self, status: int, answer: Any) -> None:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        body = text.encode()
        self.send_response(status)
        if self.server.zipped and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


__all__ = ["FakeJaeger", "FakeTempo", "StoredTraces", "serving"]
