"""CPU of the process that receives OTLP, for spans of a run and of strangers:
`python -m bench.harness.otlp`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from helpers.otlp_requests import request_of
from osbench.common.config import config
from osbench.common.values.trace_mark import TraceMark
from osbench.edges.traces.receiving.otlp_receiver import OtlpReceiver

#: Spans of a request, as the batch processors of SDKs send them, and of a trace.
TOGETHER, EACH = 512, 4
#: Different requests, sent again and again.
REQUESTS = 50
#: What instrumentations of web frameworks note of a request.
ATTRIBUTES: dict[str, Any] = {
    "http.request.method": "GET",
    "url.scheme": "http",
    "url.path": "/items/17",
    "http.route": "/items/{number}",
    "server.address": "127.0.0.1",
    "server.port": 8080,
    "client.address": "127.0.0.1",
    "user_agent.original": "osbench",
    "network.protocol.version": "1.1",
    "http.response.status_code": 200,
}


def main() -> None:
    """Print seconds of CPU and of the clock, spans, and bytes that were kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--spans", type=int, required=True)
    parser.add_argument("--strangers", action="store_true")
    given = parser.parse_args()
    mark = TraceMark("bench")
    number = -(-given.spans // TOGETHER)
    bodies = [_body(mark, strangers=given.strangers) for _ in range(min(REQUESTS, number))]
    with tempfile.TemporaryDirectory() as folder:
        receiver = OtlpReceiver("127.0.0.1:0", config.load([]))
        receiver.start("bench", Path(folder))
        (process,) = psutil.Process().children()
        _post(receiver.url, bodies[:1] * 4)
        before, begin = process.cpu_times(), time.monotonic()
        _post(receiver.url, [bodies[at % len(bodies)] for at in range(number)])
        receiver.stop_storing()
        after, wall_s = process.cpu_times(), time.monotonic() - begin
        kept = (Path(folder) / "traces" / "received").stat().st_size
        counts = receiver.stop().counts
    kind = "strangers" if given.strangers else "accepted"
    spans = number * TOGETHER
    assert counts[kind] == spans + 4 * TOGETHER, counts
    cpu_s = after.user + after.system - before.user - before.system
    print(json.dumps({"cpu_s": cpu_s, "wall_s": wall_s, "spans": spans, "bytes": kept}))


def _body(mark: TraceMark, *, strangers: bool) -> bytes:
    ids = [os.urandom(16) for _ in range(TOGETHER // EACH)]
    traces = ids if strangers else [mark.put(one) for one in ids]
    packed: bytes = request_of(traces, each=EACH, **ATTRIBUTES).SerializeToString()
    return packed


def _post(url: str, bodies: list[bytes]) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    for body in bodies:
        connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
    connection.close()


if __name__ == "__main__":
    main()
