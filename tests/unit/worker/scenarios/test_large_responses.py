"""A service under test does not fill the memory of a worker, however it packs what it answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from helpers.hostile import bounded
from helpers.packed_zeros import MIB, whole_gzip
from osbench.common.plugin.atomic import Recorder
from osbench.worker.engine.body import without_loop
from osbench.worker.scenarios.http_requests import HttpRequests

#: Only requests can send this.
AUTH = ["user", "password"]


class _Bombs(BaseHTTPRequestHandler):
    """Answers with what unpacks to 64 MiB; `/N` redirects N times first."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        left = int(self.path[1:])
        self.send_response(302 if left else 200)
        self.send_header("Location", f"/{left - 1}")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(whole_gzip(64))))
        self.end_headers()
        self.wfile.write(whole_gzip(64))

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Bombs) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("redirects", [0, 2])
@pytest.mark.parametrize("more", [{}, {"auth": AUTH}], ids=["ours", "requests"])
@pytest.mark.parametrize("in_loop", [True, False], ids=["loop", "thread"])
def test_packed_answers_are_not_unpacked(url, redirects, more, in_loop, monkeypatch):
    # of a scenario that no engine made
    monkeypatch.setattr(Recorder, "IN_LOOP", in_loop)
    context: dict[str, Any] = {"run": "r1", "timeout_s": 0.0}
    HttpRequests.warm_up(context)

    with bounded(8 * MIB):
        for _ in range(2):
            scenario = HttpRequests({**context, "iteration": 7})
            work = scenario.check_request(f"{url}/{redirects}", "GET", 200, **more)
            asyncio.run(work) if in_loop else without_loop(lambda work=work: work)()
