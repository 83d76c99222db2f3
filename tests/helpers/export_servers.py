"""Servers that take exports: a search engine's bulk interface, and an OTLP collector."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from helpers.json_server import LoopbackServer, QuietHandler, serving


class SearchServer(LoopbackServer):
    """Keeps documents by index and id, as OpenSearch does for `index` actions of `_bulk`."""

    def __init__(self, fate: Callable[[str, int], int]) -> None:
        """`fate` gives the status of a document, from its id and how often it was sent before.

        The id "" stands for the request as a whole: another status than 200 refuses all of it.
        """
        super().__init__(_SearchHandler)
        self.fate = fate
        self.documents: dict[str, dict[str, Any]] = {}
        self.attempts: Counter[str] = Counter()
        self.requests = 0

    def found(self, index: str) -> list[dict[str, Any]]:
        """The documents of an index."""
        return list(self.documents.get(index, {}).values())


class _SearchHandler(QuietHandler):
    server: SearchServer

    def do_POST(self) -> None:
        """Take a bulk request."""
        body = self.sent_body()
        assert self.path == "/_bulk", self.path
        assert self.sent_headers()["content-type"] == "application/x-ndjson"
        assert body.endswith(b"\n")
        server = self.server
        before = server.requests
        server.requests += 1
        status = server.fate("", before)
        if status != 200:
            self.answer(status, {"error": "es_rejected_execution_exception"})
            return
        lines = [json.loads(line) for line in body.splitlines()]
        items = []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            index, key = action["index"]["_index"], action["index"]["_id"]
            status = server.fate(key, server.attempts[key])
            server.attempts[key] += 1
            item: dict[str, Any] = {"_index": index, "_id": key, "status": status}
            if status < 300:
                kept = server.documents.setdefault(index, {})
                assert key not in kept, f"{key} is taken twice"
                kept[key] = document
            else:
                item["error"] = {"type": "mapper_parsing_exception", "reason": "no\x1b[31m way"}
            items.append({"index": item})
        errors = any("error" in item["index"] for item in items)
        self.answer(200, {"took": 1, "errors": errors, "items": items})


class Collector(LoopbackServer):
    """Keeps the requests of OTLP over HTTP, in JSON, by signal."""

    def __init__(self) -> None:
        super().__init__(_CollectorHandler)
        self.metrics: list[bytes] = []
        self.traces: list[bytes] = []
        #: Statuses to answer with before any request is taken.
        self.refusals: list[int] = []
        #: What is answered then.
        self.answered: dict[str, Any] = {"partialSuccess": {}}
        self.headers: list[dict[str, str]] = []


class _CollectorHandler(QuietHandler):
    server: Collector

    def do_POST(self) -> None:
        """Take a request."""
        body = self.sent_body()
        server = self.server
        server.headers.append(self.sent_headers())
        if server.refusals:
            self.answer(server.refusals.pop(0), {"message": "later"})
            return
        assert self.sent_headers()["content-type"] == "application/json"
        {"/v1/metrics": server.metrics, "/v1/traces": server.traces}[self.path].append(body)
        self.answer(200, server.answered)


def search_server(
    fate: Callable[[str, int], int] = lambda _key, _before: 200,
) -> AbstractContextManager[SearchServer]:
    """Serve from a thread for as long as the block runs."""
    return serving(SearchServer(fate))


def collector() -> AbstractContextManager[Collector]:
    """Serve from a thread for as long as the block runs."""
    return serving(Collector())
