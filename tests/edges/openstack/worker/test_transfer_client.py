"""Large bodies, sent and received: memory, bytes, and transfers that are cut off."""

from __future__ import annotations

import re
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.fake_s3 import FakeS3, fake_s3
from helpers.s3_workload import exchanges_of
from osbench.common.plugin.atomic import Names, Recorder
from osbench.edges.openstack.common.aws_signature import EMPTY, UNSIGNED, SigningKey, signed_headers
from osbench.edges.openstack.common.object_body import GeneratedBody, ObjectBody
from osbench.edges.openstack.worker import transfer_client
from osbench.edges.openstack.worker.transfer_client import (
    TransferAnswer,
    TransferClient,
    TransferConnection,
    TransferRequest,
    refused_proxy,
)

KEY = SigningKey(access_key="A", secret_key="s")
#: Bytes of a body, and most bytes that client and server may hold at any time meanwhile.
LARGE, HELD = 256 << 20, 4 << 20


@pytest.fixture
def server() -> Iterator[FakeS3]:
    with fake_s3() as found:
        found.buckets["b"] = {}
        yield found


class Sender:
    """A client with the record of an iteration."""

    def __init__(self, url: str, wait_s: float = 60.0) -> None:
        self.client, self.url = TransferClient(wait_s), url
        self.recorder = Recorder(Names())

    def send(
        self, method: str, path: str, body: ObjectBody | None = None, *, keep: bool = False
    ) -> TransferAnswer:
        url = self.url + path
        digest = EMPTY if body is None else UNSIGNED
        headers = signed_headers(KEY, method, url, {}, digest=digest)
        request = TransferRequest(method, url, headers, body)
        return self.client.exchange(request, self.recorder, keep_body=keep)


def peak_of(work: Callable[[], object]) -> int:
    """Most bytes that Python had allocated more than before, while `work` ran."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_memory_stays_flat_in_an_upload_and_a_download(server: FakeS3) -> None:
    sender = Sender(server.url)
    # the random bytes that bodies repeat, and the connection
    sender.send("PUT", "/b/small", GeneratedBody(10))

    up = peak_of(lambda: sender.send("PUT", "/b/large", GeneratedBody(LARGE)))
    down = peak_of(lambda: sender.send("GET", "/b/large"))

    assert server.buckets["b"]["large"] == LARGE
    assert max(up, down) < HELD
    _, sent, received = exchanges_of(sender.recorder)
    assert 0 < sent["sent"] - LARGE < 1000
    assert 0 < received["received"] - LARGE < 1000


def test_bytes_of_a_body_are_counted_exactly_and_connections_kept(server: FakeS3) -> None:
    sender = Sender(server.url)
    for size in (0, 1, 65_535, 65_536, 65_537, 1_000_000):
        sender.send("PUT", f"/b/{size}", GeneratedBody(size, 5))

        answer = sender.send("GET", f"/b/{size}")

        assert (answer.status, answer.body, answer.body_bytes) == (200, b"", size)
        assert server.buckets["b"][str(size)] == size
        assert answer.lasted_s > 0
    found = exchanges_of(sender.recorder)
    assert (found["connect"] > 0).sum() == 1
    assert (found["wait"] > 0).all()
    assert (found["rest"] > 0).all()
    assert found["status"].tolist() == [200] * 12


def test_the_body_of_an_error_is_kept_although_downloads_are_not(server: FakeS3) -> None:
    answer = Sender(server.url).send("GET", "/b/none")

    assert answer.status == 404
    assert b"<Code>NoSuchKey</Code>" in answer.body
    assert answer.headers["x-amz-request-id"] == "R1"


def test_a_list_is_kept_if_it_is_asked_for(server: FakeS3) -> None:
    answer = Sender(server.url).send("GET", "/b?list-type=2&max-keys=10", keep=True)

    assert answer.body.startswith(b"<ListBucketResult")
    assert answer.body_bytes == len(answer.body)


def test_a_download_that_is_cut_off_counts_its_bytes_up_to_there(server: FakeS3) -> None:
    server.buckets["b"]["x"] = 10_000_000
    server.cut = 3_000_000
    sender = Sender(server.url)

    with pytest.raises(ConnectionError, match=r"GET http.*/b/x: .* received") as raised:
        sender.send("GET", "/b/x")

    (found,) = exchanges_of(sender.recorder)
    assert 0 < found["received"] - 3_000_000 < 1000
    assert f"{found['received']:,} bytes received" in str(raised.value)
    assert (found["status"], found["rest"]) == (0, 0)
    assert found["wait"] > 0


def test_an_upload_that_is_cut_off_counts_the_bytes_that_were_taken(server: FakeS3) -> None:
    server.cut = 100_000
    sender = Sender(server.url)

    with pytest.raises(ConnectionError, match=r"PUT .*/b/x: .* bytes sent"):
        sender.send("PUT", "/b/x", GeneratedBody(1 << 30))

    (found,) = exchanges_of(sender.recorder)
    # what buffers of the kernel took counts, too
    assert 100_000 <= found["sent"] < 100 << 20
    assert server.buckets["b"] == {}


@pytest.mark.parametrize("taken", [1, 4_095, 70_000, 200_001])
def test_bytes_that_the_kernel_took_of_a_piece_are_counted(
    server: FakeS3, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    sender = Sender(server.url)
    left = [taken]

    class Short(TransferConnection):
        """The kernel takes so many bytes, a thousand at once, and then the peer is gone."""

        def __init__(self, sock: socket.socket, tls: Any) -> None:
            super().__init__(sock, tls)
            self._socket = SimpleNamespace(
                send=self._take, recv=lambda _: b"", close=sock.close, fileno=sock.fileno
            )

        def _bound(self, *_: Any) -> None:
            pass

        @staticmethod
        def _take(data: memoryview) -> int:
            if not left[0]:
                raise BrokenPipeError
            some = min(1000, left[0], len(data))
            left[0] -= some
            return some

    monkeypatch.setattr(transfer_client, "TransferConnection", Short)

    with pytest.raises(ConnectionError):
        sender.send("PUT", "/b/x", GeneratedBody(1 << 20))

    assert exchanges_of(sender.recorder)["sent"].tolist() == [taken]


@contextmanager
def raw_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that answers one connection by `answer`; yields its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(60)


def test_an_early_refusal_is_the_response_and_the_rest_is_not_counted() -> None:
    def refuse(connection: socket.socket) -> None:
        connection.recv(1000)
        document = b"<Error><Code>EntityTooLarge</Code></Error>"
        connection.sendall(
            b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
            % (len(document), document)
        )
        connection.shutdown(socket.SHUT_WR)
        # what is unread would reset the connection
        while connection.recv(1 << 20):
            pass

    with raw_server(refuse) as url:
        sender = Sender(url)

        answer = sender.send("PUT", "/b/x", GeneratedBody(10 << 20))

    assert answer.status == 400
    assert b"EntityTooLarge" in answer.body
    assert exchanges_of(sender.recorder)["sent"][0] >= 10 << 20


def test_a_download_in_chunks_counts_the_bytes_of_its_body() -> None:
    def chunked(connection: socket.socket) -> None:
        connection.recv(4096)
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
        connection.sendall(head + chunk * 20 + b"0\r\n\r\n")

    with raw_server(chunked) as url:
        answer = Sender(url).send("GET", "/b/x")

    assert answer.body_bytes == 20 << 16


def test_an_endless_error_is_cut() -> None:
    def endless(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 500 Oops\r\nContent-Length: 99999999999\r\n\r\n")
        connection.recv(1)

    with raw_server(endless) as url:
        sender = Sender(url)
        with pytest.raises(ConnectionError, match="16 MiB"):
            sender.send("GET", "/b/x")


def test_bytes_of_a_transfer_are_known_while_it_goes_on() -> None:
    seen: list[tuple[int, int]] = []
    here = threading.Event()
    there = threading.Event()

    def half(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n0123456789")
        here.set()
        there.wait(60)
        connection.sendall(b"0123456789")

    with raw_server(half) as url:
        sender = Sender(url)
        thread = threading.Thread(target=lambda: sender.send("GET", "/b/x"))
        thread.start()
        here.wait(60)
        while not seen or not seen[-1][1]:
            # as the engine does for an iteration that has timed out
            (found,) = exchanges_of(sender.recorder)
            seen.append((int(found["sent"]), int(found["received"])))
        there.set()
        thread.join(60)

    assert seen[-1][1] == len("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n0123456789")
    assert exchanges_of(sender.recorder)["received"][0] == seen[-1][1] + 10


def test_an_upload_that_is_cut_off_is_not_sent_again_over_a_new_connection(server: FakeS3) -> None:
    sender = Sender(server.url)
    sender.send("PUT", "/b/first", GeneratedBody(10))
    server.cut = 100_000

    with pytest.raises(ConnectionError, match="not sent twice"):
        sender.send("PUT", "/b/x", GeneratedBody(1 << 30))

    assert [path for _, path, _ in server.seen] == ["/b/first", "/b/x"]


def test_a_kept_connection_that_has_ended_is_replaced(server: FakeS3) -> None:
    sender = Sender(server.url)
    sender.send("PUT", "/b/x", GeneratedBody(100_000))
    for connection in list(sender.client._by_thread.pool._kept.values()):
        connection._socket.shutdown(socket.SHUT_RDWR)

    answer = sender.send("PUT", "/b/y", GeneratedBody(200_000))

    assert answer.status == 200
    assert server.buckets["b"] == {"x": 100_000, "y": 200_000}


def test_a_proxy_of_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://user:pass@proxy.example:3128")
    monkeypatch.setenv("no_proxy", "direct.example")

    found = refused_proxy("http://s3.example:9000")

    assert re.search(r"behind the proxy http://proxy.example:3128 .* no_proxy", found)
    assert "pass" not in found
    assert refused_proxy("http://direct.example") == ""
