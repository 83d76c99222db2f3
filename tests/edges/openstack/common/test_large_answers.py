"""A cloud does not fill the memory of a process, however it packs its answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests

from helpers.hostile import bounded
from helpers.packed_zeros import MIB, whole_gzip
from osbench.common.network.response_bound import ResponseBound
from osbench.edges.openstack.common.thread_sessions import keep_connections


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


def transport_with(most_bytes: int) -> requests.Session:
    transport = requests.Session()
    keep_connections(transport, ResponseBound(most_bytes))
    return transport


def test_an_answer_of_a_cloud_is_read_to_a_bound(url):
    size = len(whole_gzip(64))
    refused = f"the response of {size:,} bytes decodes to more than the 4 MiB that are read"
    with (
        transport_with(4 * MIB) as transport,
        bounded(32 * MIB),
        pytest.raises(requests.RequestException, match=refused),
    ):
        transport.get(f"{url}/0")


def test_an_answer_of_a_cloud_within_the_bound_is_there(url):
    with transport_with(64 * MIB) as transport:
        assert transport.get(f"{url}/0").content == bytes(64 * MIB)
        with transport.get(f"{url}/0", stream=True) as streamed:
            assert next(streamed.iter_content(10)) == bytes(10)
