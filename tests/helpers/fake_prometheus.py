"""A Prometheus that answers queries of its HTTP API with series that tests plant."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from helpers.json_server import LoopbackServer, QuietHandler

#: The value of a series at an instant of the server's clock; None if there is none.
Values = Callable[[float], float | None]


class FakePrometheus(LoopbackServer):
    """Answers as web/api/v1/api.go of prometheus/prometheus does."""

    #: Answered instead, with this text, if it is not 0.
    status = 0
    text = ""
    #: Header that queries must have.
    needed: tuple[str, str] | None = None
    #: Its clock minus that of this host, seconds; and how far apart scrapes are.
    ahead_s = 0.0
    scrape_s = 1.0

    def __init__(self) -> None:
        super().__init__(_Handler)
        #: Labels and values of series by a part of their query.
        self.series: dict[str, list[tuple[Mapping[str, str], Values]]] = {}
        #: Errors by a part of the query, and their status.
        self.errors: dict[str, str] = {}
        self.error_status = 400
        self.asked: list[dict[str, str]] = []
        self.lock = threading.Lock()

    def plant(self, query: str, values: Values, **labels: str) -> None:
        """Have a series for the queries that contain this text."""
        self.series.setdefault(query, []).append((labels, values))

    def now_s(self) -> float:
        return time.time() + self.ahead_s

    def instant(self, query: str) -> tuple[str, Any]:
        """Type and result of an instant query."""
        now_s = self.now_s()
        if query == "time()":
            return "scalar", [now_s, str(now_s)]
        if query == "up[5m]":
            values = [[now_s - at * self.scrape_s, "1"] for at in range(20, 0, -1)]
            return "matrix", [{"metric": {"instance": "db1:9100"}, "values": values}]
        found = [
            {"metric": labels, "value": [now_s, str(value)]}
            for labels, values in self.found(query)
            if (value := values(now_s)) is not None
        ]
        return "vector", found

    def over(self, query: str, start: float, end: float, step: float) -> tuple[str, Any]:
        """Type and result of a range query."""
        assert (end - start) / step < 11_000, "Prometheus refuses that"
        result = []
        for labels, values in self.found(query):
            at, points = start, []
            while at <= end + 1e-6:
                value = values(at)
                if value is not None:
                    points.append([round(at, 3), str(value)])
                at += step
            if points:
                result.append({"metric": dict(labels), "values": points})
        return "matrix", result

    def found(self, query: str) -> list[tuple[Mapping[str, str], Values]]:
        return [one for part, some in self.series.items() if part in query for one in some]


class _Handler(QuietHandler):
    server: FakePrometheus

    def do_GET(self) -> None:
        server = self.server
        split = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(split.query).items()}
        with server.lock:
            server.asked.append({"path": split.path, **given, **self.sent_headers()})
        if server.status:
            body = server.text.encode()
            self.send_response(server.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        if server.needed and self.sent_headers().get(server.needed[0]) != server.needed[1]:
            self.answer(401, {"status": "error", "errorType": "unauthorized", "error": "no token"})
            return
        for part, why in server.errors.items():
            if part in given.get("query", ""):
                error = {"status": "error", "errorType": "bad_data", "error": why}
                self.answer(server.error_status, error)
                return
        if split.path == "/api/v1/query":
            kind, result = server.instant(given["query"])
        elif split.path == "/api/v1/query_range":
            times = (float(given[name]) for name in ("start", "end", "step"))
            kind, result = server.over(given["query"], *times)
        else:
            self.answer(404, {"status": "error", "error": "not found"})
            return
        data = {"resultType": kind, "result": result}
        self.answer(200, {"status": "success", "data": data})
