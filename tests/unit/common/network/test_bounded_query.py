"""Queries of data are limited in time, however slowly a server responds."""

from __future__ import annotations

import socket
from dataclasses import replace
from threading import Thread

import pytest
import requests

from osbench.common.network.bounded_adapter import LINES_BYTES, BoundedResponse
from osbench.common.network.bounded_query import BoundedQueries, QueryBounds
from servers.child import PATIENCE_S
from servers.hostile_http import BODY, hostile_server

AMPLE = QueryBounds(
    connect_s=PATIENCE_S, read_s=PATIENCE_S, response_s=PATIENCE_S, response_bytes=1 << 20
)
BRIEF = replace(AMPLE, response_s=0.1)


def test_a_response_without_an_end_takes_no_longer_than_it_may() -> None:
    with hostile_server() as server, pytest.raises(requests.Timeout):
        BoundedQueries({}).get(f"{server.url}/endless-drip", BRIEF)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("plain", b"fine"), ("chunks", b"abc0123456789"), ("gzip", BODY), ("gzip-twice", BODY)],
)
def test_a_body_is_read_whole_and_decoded(name: str, expected: bytes) -> None:
    with hostile_server() as server:
        assert BoundedQueries({}).get(f"{server.url}/{name}", AMPLE) == (200, expected)


@pytest.mark.parametrize("name", ["body-cut", "chunk-cut", "gzip-broken", "reset-body"])
def test_a_body_that_cannot_be_read_is_an_error(name: str) -> None:
    with hostile_server() as server, pytest.raises(requests.ConnectionError):
        BoundedQueries({}).get(f"{server.url}/{name}", AMPLE)


def test_a_server_that_falls_silent_is_a_timeout() -> None:
    bounds = replace(AMPLE, read_s=0.1)

    with hostile_server() as server, pytest.raises(requests.Timeout):
        BoundedQueries({}).get(f"{server.url}/stall", bounds)


def test_lines_between_pieces_of_a_body_that_is_read_at_once_have_no_limit_in_all() -> None:
    ours, theirs = socket.socketpair()
    chunk = b"1;%s\r\nx\r\n" % bytes(b"e" * 8192)
    count = LINES_BYTES // len(chunk) + 10

    def send() -> None:
        with theirs:
            theirs.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(count):
                theirs.sendall(chunk)
            theirs.sendall(b"0\r\n\r\n")

    thread = Thread(target=send)
    thread.start()
    with ours:
        response = BoundedResponse(ours)
        response.begin()
        body = b"".join(iter(lambda: response.read1(100), b""))
        response.close()
    thread.join()

    assert body == b"x" * count
