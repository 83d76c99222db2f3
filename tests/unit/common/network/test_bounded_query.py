"""Queries of data are limited in time, however slowly a server responds."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import replace
from threading import Event, Thread

import pytest
import requests

from osbench.common.network.bounded_adapter import (
    LINES_BYTES,
    BoundedResponse,
    bounded_session,
)
from osbench.common.network.bounded_query import BoundedQueries, QueryBounds
from osbench.common.network.exchange_deadline import Deadline, exchange_within, present_deadline
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
    with hostile_server() as server, pytest.raises(requests.RequestException) as caught:
        BoundedQueries({}).get(f"{server.url}/{name}", AMPLE)

    assert not isinstance(caught.value, requests.Timeout)


def _drip(connection: socket.socket, head: bytes, begun: Event) -> None:
    """Send a head, then a byte now and then until the client has gone."""
    with connection, contextlib.suppress(OSError):
        connection.recv(1 << 16)
        connection.sendall(head)
        while True:
            connection.sendall(b"x")
            begun.wait(0.01)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-A: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
def test_the_total_holds_wherever_a_server_drips(head: bytes) -> None:
    never = Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=lambda: _drip(server.accept()[0], head, never), daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        with pytest.raises(requests.RequestException) as caught:
            BoundedQueries({}).get(url, BRIEF)

    # not only of the waits for a byte, which are ample
    assert isinstance(caught.value, requests.Timeout)


def test_the_total_holds_for_a_server_that_does_not_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, bounded_session(0.1) as client:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        with pytest.raises(requests.RequestException):
            # more than buffers of sockets take
            client.put(url, data=b"x" * (64 << 20), timeout=PATIENCE_S)


def test_transfers_may_take_longer_the_more_they_move() -> None:
    deadline = Deadline(total_s=1.0, at=100.0, least_bytes_s=1000)
    strict = Deadline(total_s=1.0, at=100.0)

    for one in (deadline, strict):
        one.add(5000)

    assert (deadline.at, strict.at) == (105.0, 100.0)


def test_an_outer_total_that_ends_earlier_stays() -> None:
    with exchange_within(1.0):
        outer = present_deadline()
        with exchange_within(100.0):
            assert present_deadline() is outer
        with exchange_within(0.5):
            inner = present_deadline()
    assert outer is not None
    assert inner is not None
    assert inner.at < outer.at
    assert present_deadline() is None


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
