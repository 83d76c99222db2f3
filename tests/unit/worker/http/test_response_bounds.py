"""A service does not fill the memory of a worker, nor hold its event loop, whatever it answers."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zstandard

from helpers.hostile import bounded
from helpers.packed_zeros import MIB, endless_gzip, zstd_frame
from osbench.common.network import bounded_adapter
from osbench.common.network.bounded_adapter import LINES_BYTES, bounded_session
from osbench.common.network.response_bound import ResponseBound
from osbench.common.plugin.scenario import Scenario
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.on_loop.loop_client import LoopClient
from osbench.worker.http.tls_contexts import TlsContexts, Trust
from osbench.worker.http.user.http_session import HttpSession, LoopHttpSession
from osbench.worker.http.user.request_base import Base
from osbench.worker.http.wire import cookies, raw_response
from osbench.worker.http.wire.chunks import ChunkDecoder
from osbench.worker.http.wire.content_codings import SLICE, UnkeptBody, decoding
from osbench.worker.http.wire.wire_errors import BadResponse, CannotSecure, TooLongResponse

BOUND = ResponseBound(MIB, "[worker] response_limit_mib")
SAID = r"more than the 1 MiB that \[worker\] response_limit_mib allows"

_OK = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
FINE = _OK + b"Content-Length: 4\r\n\r\nfine"

#: Arguments that another client than our own has to take.
CLIENTS: dict[str, dict[str, Any]] = {"own": {}, "requests": {"auth": ("me", "pw")}}

Write = Callable[[bytes], None]


def _coded(coding: bytes, body: bytes) -> bytes:
    return _OK + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (coding, len(body)) + body


def _for_ever(head: bytes, piece: bytes) -> Callable[[Write], None]:
    def answer(write: Write) -> None:
        write(head)
        while True:
            write(piece)

    return answer


def _at_once(answer: bytes) -> Callable[[Write], None]:
    return lambda write: write(answer)


def _large(head: bytes, tail: bytes = b"") -> Callable[[Write], None]:
    """A body of 32 MiB, a MiB at a time."""

    def answer(write: Write) -> None:
        write(head)
        for _ in range(32):
            write(bytes(MIB))
        write(tail)

    return answer


BOMB = b"".join(endless_gzip(512 * MIB))
SMALL_CHUNKS = _CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n"

ANSWERS = {
    "fine": _at_once(FINE),
    "announced": _for_ever(_OK + b"Content-Length: 10000000000\r\n\r\n", bytes(65536)),
    "until-close": _for_ever(_OK + b"\r\n", bytes(65536)),
    "chunks": _for_ever(_CHUNKED, b"ffff\r\n" + bytes(65535) + b"\r\n"),
    "gzip": _at_once(_coded(b"gzip", BOMB)),
    "twice": _at_once(_coded(b"gzip, gzip", gzip.compress(BOMB))),
    "zstd": _at_once(_coded(b"zstd", zstd_frame(512))),
    "large": _large(_OK + b"Content-Length: %d\r\n\r\n" % (32 * MIB)),
    "large-chunks": _large(_CHUNKED + b"2000000\r\n", b"\r\n0\r\n\r\n"),
    "small-chunks": _at_once(SMALL_CHUNKS),
    "continues": _for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "hints": _for_ever(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100),
    "lines": _for_ever(_OK, b"X-A: 1\r\n" * 100),
    "line": _for_ever(_OK + b"X-A: ", b"x" * 65536),
    "chunk-size": _for_ever(_CHUNKED, b"1" * 65536),
    "extension": _for_ever(_CHUNKED + b"1;", b"x" * 65536),
    "trailers": _for_ever(_CHUNKED + b"1\r\nx\r\n0\r\n", b"X-A: 1\r\n" * 100),
    "trailer": _for_ever(_CHUNKED + b"1\r\nx\r\n0\r\nX-A: ", b"x" * 65536),
}

TOO_LONG = {
    "announced": rf"the response has 10,000,000,000 bytes, {SAID}",
    "until-close": rf"the response has {SAID}",
    "chunks": rf"the response has {SAID}",
    "gzip": rf"the response of {len(BOMB):,} bytes decodes to {SAID}",
    "twice": rf"the response of [0-9,]+ bytes decodes to {SAID}",
    "zstd": rf"the response of [0-9,]+ bytes decodes to {SAID}",
}

#: Lines that do not end, nor do they. http.client takes a 103 for the response itself.
ENDLESS = ["continues", "lines", "line", "chunk-size", "extension", "trailers", "trailer"]


class Server:
    """Answers by the path of the request, over kept connections."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            while asked := connection.recv(65536):
                ANSWERS[asked.split(b" ", 2)[1].decode()[1:]](connection.sendall)

    def stop(self) -> None:
        # wakes the thread that accepts
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server
    server.stop()
    thread.join()


class User:
    """A virtual user who makes requests in an iteration."""

    def __init__(self, *, in_loop: bool) -> None:
        scenario = Scenario({"iteration": 1, "timeout_s": 0.0})
        self.recorder = scenario._recorder
        clients = HttpClients([], BOUND)
        self._in_loop = in_loop
        session: Any = (LoopHttpSession if in_loop else HttpSession)(clients, Base())
        self._session = session.serve(scenario)
        self.cookies = self._session.cookies

    def get(self, *urls: str, **wishes: Any) -> list[Any]:
        if not self._in_loop:
            return [self._session.get(url, **wishes) for url in urls]

        async def got() -> list[Any]:
            return [await self._session.get(url, **wishes) for url in urls]

        return asyncio.run(got())


@pytest.fixture(params=[False, True], ids=["thread", "loop"])
def user(request: pytest.FixtureRequest) -> User:
    return User(in_loop=request.param)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", TOO_LONG)
def test_an_answer_that_is_too_long_fails_the_request(server, user, client, name):
    url = f"{server.url}/{name}"

    with bounded(24 * MIB), pytest.raises(TooLongResponse, match=f"GET {url}: {TOO_LONG[name]}"):
        user.get(url, **CLIENTS[client])

    assert user.get(f"{server.url}/fine", **CLIENTS[client])[0].body == b"fine"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ["large", "large-chunks", "gzip", "zstd"])
def test_a_body_that_is_not_kept_may_be_longer(server, user, client, name):
    with bounded(24 * MIB):
        found = user.get(
            f"{server.url}/{name}", f"{server.url}/fine", stream=True, **CLIENTS[client]
        )

    assert [one.status for one in found] == [200, 200]
    # requests of a loop are made in several threads, and each has a connection
    assert server.connections == 1 or client == "requests"


@pytest.fixture
def few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound what comes without an end sooner: a line takes long where its memory is traced."""
    monkeypatch.setattr(bounded_adapter, "LINES_BYTES", LINES_BYTES // 8)


@pytest.mark.usefixtures("few_lines")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ENDLESS)
def test_lines_without_an_end_fail_the_request(server, user, client, name):
    with bounded(24 * MIB), pytest.raises(ConnectionError, match=f"GET {server.url}/{name}: "):
        user.get(f"{server.url}/{name}", **CLIENTS[client])


def test_endless_hints_fail_the_request(server, user):
    with bounded(24 * MIB), pytest.raises(BadResponse, match="more than 32 interim responses"):
        user.get(f"{server.url}/hints")


@pytest.mark.usefixtures("few_lines")
@pytest.mark.parametrize("name", ENDLESS)
def test_lines_without_an_end_fail_requests_of_the_coordinator(server, name):
    with (
        bounded_session() as session,
        bounded(24 * MIB),
        pytest.raises(OSError, match=r"line|chunk|header|interim"),
    ):
        session.get(f"{server.url}/{name}")


def test_as_many_lines_as_our_own_client_takes_are_taken(server, monkeypatch):
    lines = b"HTTP/1.1 100 Continue\r\nX-A: " + b"x" * 60_000 + b"\r\n\r\n"
    assert len(lines) * 30 < LINES_BYTES
    monkeypatch.setitem(ANSWERS, "fine", _at_once(lines * 30 + FINE))

    with bounded_session() as session:
        assert session.get(f"{server.url}/fine").text == "fine"


def test_small_chunks_cost_what_is_in_them(server, user):
    user.get(f"{server.url}/fine")

    with bounded(3 * MIB):
        (found,) = user.get(f"{server.url}/small-chunks")

    assert found.body == b"x" * 50_000


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The work in the thread of the loop: steps of reading a response, and turns of other tasks."""
    done: list[str] = []

    def noted(*args: Any) -> Any:
        slices = decoding(*args)
        while True:
            done.append("step")
            try:
                yield next(slices)
            except StopIteration as ended:
                return ended.value

    def counted(original: Any) -> Any:
        def called(*args: Any) -> Any:
            done.append("step")
            return original(*args)

        return called

    monkeypatch.setattr(raw_response, "decoding", noted)
    monkeypatch.setattr(ChunkDecoder, "take", counted(ChunkDecoder.take))
    monkeypatch.setattr(UnkeptBody, "look", counted(UnkeptBody.look))
    return done


@pytest.mark.parametrize(
    ("name", "keep", "least"),
    [("gzip", True, 16), ("gzip", False, 3), ("small-chunks", True, 100_000 // 4096)],
)
def test_others_have_their_turn_while_an_answer_is_read(server, turns, name, keep, least):
    async def others() -> None:
        while True:
            turns.append("turn")
            await asyncio.sleep(0)

    async def asked() -> None:
        client = LoopClient((), ResponseBound(64 * MIB))
        beside = asyncio.create_task(others())
        with contextlib.suppress(TooLongResponse):
            await client.request("GET", f"{server.url}/{name}", (), {}, keep_body=keep)
        beside.cancel()

    asyncio.run(asked())

    assert turns.count("step") >= least
    # at its end a body is looked at once more, and there is nothing left
    assert "step step step" not in " ".join(turns)


@pytest.mark.parametrize(
    ("codings", "coded", "least"),
    [
        ("gzip", b"".join(endless_gzip(128 * MIB)), 64 * MIB // SLICE - 1),
        ("gzip", gzip.compress(b"") * 40_000, 100),
        ("zstd", zstandard.compress(b"") * 40_000, 100),
        ("gzip, gzip", gzip.compress(gzip.compress(b"") * 40_000), 100),
    ],
    ids=["bomb", "members", "frames", "within"],
)
def test_a_slice_is_a_bounded_piece_of_work(codings, coded, least):
    slices = decoding(coded, codings, ResponseBound(64 * MIB))

    steps = 0
    with contextlib.suppress(TooLongResponse):
        for _ in slices:
            steps += 1

    assert steps >= least


@pytest.mark.parametrize("charset", ["punycode", "IDNA", "x" * 2000 + ";" * 60_000])
def test_a_charset_does_not_make_reading_slow(server, user, monkeypatch, charset):
    head = f"Content-Type: text/plain; charset={charset}\r\n".encode()
    body = b"a-b" * 300_000
    answer = _OK + head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    monkeypatch.setitem(ANSWERS, "fine", _at_once(answer))
    (found,) = user.get(f"{server.url}/fine")

    with bounded(24 * MIB, seconds=10):
        assert found.text == body.decode()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("limit", ["COOKIES", "COOKIE_CHARS"])
def test_the_newest_cookies_are_kept(server, user, monkeypatch, client, limit):
    sent = iter(range(10**6))

    def answer(write: Write) -> None:
        lines = [b"Set-Cookie: c%03d=%b\r\n" % (next(sent), b"x" * 96) for _ in range(10)]
        write(_OK + b"".join(lines) + b"Content-Length: 0\r\n\r\n")

    monkeypatch.setitem(ANSWERS, "fine", answer)
    monkeypatch.setattr(cookies, limit, 20 if limit == "COOKIES" else 20 * 100)

    user.get(*[f"{server.url}/fine"] * 40, **CLIENTS[client])

    names = [one.name for one in user.cookies]
    assert 20 <= len(names) <= 40
    assert names == [f"c{number:03d}" for number in range(400 - len(names), 400)]


@pytest.mark.parametrize(
    "trust", [Trust("/dev/zero", None), Trust(None, "/dev/zero"), Trust(None, ("/dev/zero", "x"))]
)
def test_files_of_tls_have_an_end(trust):
    with pytest.raises(CannotSecure, match="/dev/zero: no regular file"):
        TlsContexts().context(trust)
