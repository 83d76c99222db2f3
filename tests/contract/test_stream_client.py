"""Streams are read alike by threads and on loops, from a server that does as it likes."""

from __future__ import annotations

import functools
import gzip
import logging
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial

import numpy as np
import pytest

from helpers.certificates import self_signed
from helpers.driven import DRIVERS
from helpers.streaming import (
    CHUNKED,
    LAST,
    Streaming,
    chunk,
    exchanges,
    head,
    recorded,
    scripted,
    sse,
    streaming,
)
from osbench.common.plugin.scenario import Scenario
from osbench.common.protocol.exchanges import EXCHANGE
from osbench.common.protocol.iteration_outputs import outputs
from osbench.edges.streams.event_splitters import BadEvent
from osbench.edges.streams.event_times import BETWEEN_EVENTS, BYTE_RATE, FIRST_EVENT
from osbench.edges.streams.stream_client import WrongStream
from osbench.worker.http.wire.wire_errors import BadResponse, EarlyEnd, ReceiveTimedOut
from servers.child import PATIENCE_S

WORDS = sse(["one", "two", "three"])
SSE = {"events": "sse"}


@pytest.fixture(scope="module", params=DRIVERS)
def client(request: pytest.FixtureRequest) -> Iterator[Streaming]:
    with streaming(request.param) as made:
        yield made


def send(connection: socket.socket, *pieces: bytes, then: object = None) -> object:
    for piece in pieces:
        connection.sendall(piece)
    return then


def events_of(scenario: Scenario) -> list[str]:
    return [one.name for one in recorded(scenario)[1:]]


THREE = [FIRST_EVENT, BETWEEN_EVENTS, BETWEEN_EVENTS]


def test_events_are_actions_within_the_request(client):
    iteration = Scenario({})
    pieces = (CHUNKED, *map(chunk, WORDS), LAST)
    with scripted(partial(send_all, pieces)) as server:
        response = client.read(server.url, SSE, iteration)

        assert response.status == 200
        assert events_of(iteration) == THREE
        lines = recorded(iteration)
        assert {one.outer for one in lines[1:]} == {"chat"}
        # each begins when the one before ended, and all are within the request
        assert [one.begun_ns for one in lines[2:]] == [one.ended_ns for one in lines[1:-1]]
        assert lines[0].begun_ns <= lines[1].begun_ns <= lines[-1].ended_ns <= lines[0].ended_ns
        (exchange,) = exchanges(iteration)
        assert exchange["received"] == len(b"".join(pieces))
        assert exchange["status"] == 200
        # a complete stream leaves its connection to the next
        client.read(server.url, SSE)
        assert server.connections == 1


def send_all(pieces: tuple[bytes, ...], connection: socket.socket) -> None:
    send(connection, *pieces)


@pytest.mark.parametrize(
    ("events", "body", "count"),
    [
        ("lines", b"a\r\n\nb\nc", 3),
        ("json", b'{"a": 1}\n[2]\n\n3\n', 3),
        ("sse", b"\xef\xbb\xbfdata: a\r\rdata: \xe2\x82\xac\r\n\r\n: beat\n\nid: 3\n\ndata\n\n", 3),
    ],
)
def test_all_formats_in_a_body_with_a_length(client, events, body, count):
    for _ in range(2):
        iteration = Scenario({})
        with scripted(partial(send_all, (head(f"Content-Length: {len(body)}") + body,))) as server:
            # the second response of a connection may come in one piece with a head that is known
            client.read(server.url, {"events": events})
            client.read(server.url, {"events": events}, iteration)

        assert len(events_of(iteration)) == count


def test_chunks_are_events_however_they_are_received(client):
    iteration = Scenario({})
    body = CHUNKED + chunk(b"a") + chunk(b"b" * 5000) + chunk(b"c")
    with scripted(partial(send_all, (body[:-1], body[-1:], LAST))) as server:
        client.read(server.url, {"events": "chunks"}, iteration)

    assert events_of(iteration) == THREE


def test_chunks_need_a_body_in_chunks(client):
    with (
        scripted(partial(send_all, (head("Content-Length: 1") + b"x",))) as server,
        pytest.raises(BadEvent, match="not sent in chunks"),
    ):
        client.read(server.url, {"events": "chunks"})


@pytest.mark.parametrize("wish", [{"read_for": 0.2}, {"events": "sse", "read_for": "200ms"}])
def test_a_stream_is_left_well_and_its_bytes_are_those_that_came(client, wish):
    iteration = Scenario({})
    # in one piece: its rest never comes
    pieces = (b"".join((CHUNKED, *map(chunk, WORDS), b"5\r\nda")),)
    with scripted(partial(send_all, pieces)) as server:
        response = client.read(server.url, wish, iteration)

        (exchange,) = exchanges(iteration)
        assert response.status == 200
        assert exchange["received"] == len(b"".join(pieces))
        assert exchange["rest"] > 0
        assert events_of(iteration) == (THREE if "events" in wish else [])
        # the connection is not used again
        client.read(server.url, wish)
        assert server.connections == 2


def test_a_stream_without_a_pause_is_left_too(client):
    def endless(connection: socket.socket) -> None:
        connection.sendall(CHUNKED + chunk(WORDS[0]))
        while True:
            connection.sendall(chunk(WORDS[0] * 100))

    iteration = Scenario({})
    with scripted(endless) as server:
        client.read(server.url, {"events": "sse", "read_for": 0.2}, iteration)

    assert FIRST_EVENT in events_of(iteration)


@pytest.mark.parametrize("wish", [{"until": "two"}, {"max_events": 2}])
def test_the_last_wanted_event_ends_a_stream(client, wish):
    iteration = Scenario({})
    with scripted(partial(send_all, (CHUNKED, *map(chunk, WORDS[:2])))) as server:
        client.read(server.url, {**SSE, **wish}, iteration)
        client.read(server.url, {**SSE, **wish})

        assert server.connections == 2
    assert events_of(iteration) == THREE[:2]


def test_a_connection_whose_stream_ended_with_the_wanted_event_is_kept(client):
    with scripted(partial(send_all, (CHUNKED + chunk(WORDS[0]) + LAST,))) as server:
        client.read(server.url, {**SSE, "until": "one"})
        client.read(server.url, {**SSE, "until": "one"})

        assert server.connections == 1


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_stream_that_is_cut_fails_with_its_events_and_bytes(client, how):
    read = threading.Event()

    def cut(connection: socket.socket) -> bool:
        send(connection, CHUNKED, *map(chunk, WORDS))
        if how == "reset":
            # what was sent is lost otherwise
            read.wait(PATIENCE_S)
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        return False

    iteration = Scenario({})
    with scripted(cut) as server, pytest.raises(EarlyEnd) as raised:
        watch = threading.Thread(target=set_when, args=(iteration, read))
        watch.start()
        client.read(server.url, SSE, iteration)
    watch.join(PATIENCE_S)

    body = sum(map(len, WORDS))
    assert f"3 events and {body} bytes of the body came, the last event" in str(raised.value)
    (exchange,) = exchanges(iteration)
    assert exchange["received"] == len(CHUNKED) + sum(len(chunk(word)) for word in WORDS)
    assert events_of(iteration) == THREE


def set_when(iteration: Scenario, read: threading.Event) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / 0.01)):
        if len(recorded(iteration)) > 3:
            break
        pause.wait(0.01)
    read.set()


def test_a_stream_that_stalls_is_a_timeout_with_its_events(client):
    iteration = Scenario({})
    with (
        scripted(partial(send_all, (CHUNKED, *map(chunk, WORDS)))) as server,
        pytest.raises(ReceiveTimedOut, match=r"timed out.*; 3 events and .* s before"),
    ):
        client.read(server.url, SSE, iteration, timeout=1)

    assert events_of(iteration) == THREE


def test_a_service_that_never_answers_is_no_stream_that_ended_well(client):
    with (
        scripted(lambda _: None) as server,
        pytest.raises(ReceiveTimedOut, match=r"timed out$"),
    ):
        client.read(server.url, {"events": "sse", "read_for": 0.1}, timeout=0.5)


@pytest.mark.parametrize(
    ("body", "wish", "said"),
    [
        (b"", {}, "the stream ended without an event; its content type is text/html"),
        (b"data: a\n\n", {"until": "z"}, "without the text that until names"),
    ],
)
def test_a_stream_that_ends_otherwise_than_wanted_fails(client, body, wish, said):
    fields = ("Content-Type: text/html", f"Content-Length: {len(body)}")
    with (
        scripted(partial(send_all, (head(*fields) + body,))) as server,
        pytest.raises(WrongStream, match=said),
    ):
        client.read(server.url, {**SSE, **wish})


def test_each_event_of_a_coded_stream_counts_when_it_is_flushed(client):
    coder = zlib.compressobj(wbits=31)
    pieces = [coder.compress(word) + coder.flush(zlib.Z_SYNC_FLUSH) for word in WORDS]
    fields = ("Content-Encoding: gzip", "Transfer-Encoding: chunked")
    read = [threading.Event() for _ in WORDS]

    def flushed(connection: socket.socket) -> None:
        connection.sendall(head(*fields))
        for piece, seen in zip(pieces, read, strict=True):
            connection.sendall(chunk(piece))
            # the next one only comes once this one was seen
            assert seen.wait(PATIENCE_S)
        connection.sendall(chunk(coder.flush()) + LAST)

    iteration = Scenario({})

    def watch() -> None:
        pause = threading.Event()
        for number, seen in enumerate(read, 2):
            for _ in range(int(PATIENCE_S / 0.01)):
                if len(recorded(iteration)) >= number:
                    break
                pause.wait(0.01)
            seen.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    with scripted(flushed) as server:
        client.read(server.url, SSE, iteration)
    watcher.join(PATIENCE_S)

    assert events_of(iteration) == THREE


def test_a_coded_stream_that_is_cut_fails(client):
    body = gzip.compress(b"".join(WORDS))[:-4]
    fields = ("Content-Encoding: gzip", f"Content-Length: {len(body)}")
    with (
        scripted(partial(send_all, (head(*fields) + body,))) as server,
        pytest.raises(BadResponse, match="coded body ends"),
    ):
        client.read(server.url, SSE)


@functools.cache
def large_comments() -> bytes:
    """100 MiB of comments, compressed."""
    return gzip.compress(b":\n" * (50 << 20), 9)


@pytest.mark.parametrize(("wish", "limit"), [({"read_for": PATIENCE_S}, 64), (SSE, 16)])
def test_a_coded_stream_that_keeps_the_loop_is_refused(client, wish, limit):
    fields = ("Content-Encoding: gzip", f"Content-Length: {len(large_comments())}")
    with (
        scripted(partial(send_all, (head(*fields) + large_comments(),))) as server,
        pytest.raises(BadEvent, match=f"of the stream decode to more than {limit} MiB"),
    ):
        client.read(server.url, wish)


def test_a_line_that_is_not_json_and_an_endless_line_fail(client):
    def endless(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        while True:
            connection.sendall(chunk(b"x" * 65536))

    with (
        scripted(partial(send_all, (CHUNKED, chunk(b'{"a": 1}\n{"a"\n')))) as server,
        pytest.raises(BadEvent, match=r"not JSON; 1 event and"),
    ):
        client.read(server.url, {"events": "json"})
    for events in ("sse", "lines", "json"):
        with (
            scripted(endless) as server,
            pytest.raises(BadEvent, match="longer than 1 MiB"),
        ):
            client.read(server.url, {"events": events})


def test_a_body_of_an_error_is_kept_for_its_message(client):
    with scripted(
        partial(send_all, (head("Content-Length: 4", status="429 Slow") + b"slow",))
    ) as server:
        response = client.read(server.url, {"events": "sse", "read_for": 5})

    assert (response.status, response.content()) == (429, b"slow")


def test_a_redirect_leads_to_the_stream(client):
    answers = [
        head("Location: /there", "Content-Length: 2", status="302 Found") + b"no",
        CHUNKED + chunk(WORDS[0]) + LAST,
    ]
    iteration = Scenario({})
    with scripted(lambda connection: connection.sendall(answers.pop(0))) as server:
        response = client.read(server.url, SSE, iteration)

    assert response.url.endswith("/there")
    assert [one["status"] for one in exchanges(iteration)] == [302, 200]
    assert events_of(iteration) == [FIRST_EVENT]


@pytest.mark.parametrize("wish", [{"events": "bytes"}, {"read_for": PATIENCE_S}])
def test_bytes_of_a_long_download_are_counted_and_rated(client, wish):
    iteration = Scenario({})
    begin, rest = head("Content-Length: 3000000"), b"x" * 3_000_000
    with scripted(partial(send_all, (begin, rest))) as server:
        client.read(server.url, wish, iteration)
        client.read(server.url, wish)

        # it is complete, so that its connection is kept
        assert server.connections == 1
    assert exchanges(iteration)["received"].tolist() == [len(begin) + len(rest)]
    assert len(recorded(iteration)) == 1
    (chart,) = outputs(iteration._outputs or ())["additive"]
    ((name, rate),) = chart["data"]
    assert (chart["title"], name) == (BYTE_RATE, "chat")
    assert rate > 0


def test_rates_of_streams_are_charts_of_the_iteration(client):
    iteration = Scenario({})
    with scripted(partial(send_all, (CHUNKED + chunk(WORDS[0]) + LAST,))) as server:
        client.read(server.url, SSE, iteration)
        client.read(server.url, SSE, iteration)

    charts = outputs(iteration._outputs or ())
    (chart,) = [one for one in charts["additive"] if one["title"] == BYTE_RATE]
    assert [name for name, _ in chart["data"]] == ["chat"]
    assert not charts["malformed"]


def test_a_stream_over_tls_and_its_end(client, tmp_path):
    certificate = str(self_signed(tmp_path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    # the first is complete and leaves its connection to the second, which is left early
    answers = [CHUNKED + b"".join(map(chunk, WORDS)) + LAST, CHUNKED + chunk(WORDS[0])]
    first, second = Scenario({}), Scenario({})

    def answer(connection: socket.socket) -> None:
        for byte in range(0, len(answers[0]), 7):
            connection.sendall(answers[0][byte : byte + 7])
        answers.pop(0)

    with scripted(answer, context) as server:
        client.read(server.url, SSE, first, verify=certificate)
        client.read(server.url, {**SSE, "max_events": 1}, second, verify=certificate)

        assert server.connections == 1
    assert events_of(first) == THREE
    assert events_of(second) == [FIRST_EVENT]


@pytest.mark.parametrize("kind", DRIVERS[1:])
def test_a_cancelled_stream_keeps_its_events_and_bytes(kind, caplog):
    caplog.set_level(logging.INFO)
    iteration = Scenario({})
    sent = CHUNKED + b"".join(map(chunk, WORDS))
    with streaming(kind) as client, scripted(partial(send_all, (sent,))) as server:
        reading = client.begin(server.url, SSE, iteration)
        for _ in range(int(PATIENCE_S / 0.01)):
            if len(recorded(iteration)) > 3:
                break
            threading.Event().wait(0.01)
        # as the watchdog takes them, in another thread
        before = np.frombuffer(iteration._recorder.exchanges_so_far(), EXCHANGE)
        reading.cancel()
        with pytest.raises(CancelledError):
            reading.result(PATIENCE_S)
        # the next one has another connection
        client.read(server.url, {**SSE, "max_events": 3})

        assert server.connections == 2
    assert before["received"].tolist() == [len(sent)]
    assert events_of(iteration) == THREE
    # the failure of the iteration does not know them
    body = len(sent) - len(CHUNKED)
    said = f"chat: stream 1 that ended with its iteration; 3 events and {body - 15} bytes of the"
    assert said in caplog.text


@pytest.mark.parametrize("kind", DRIVERS)
def test_an_observer_sees_the_beginning_of_a_stream(kind):
    seen = []
    with (
        streaming(kind, lambda _, __, outcome, ___: seen.append(outcome)) as client,
        scripted(partial(send_all, (CHUNKED + chunk(WORDS[0]) + LAST,))) as server,
    ):
        client.read(server.url, SSE)

    assert [one.body() for one in seen] == [WORDS[0]]
