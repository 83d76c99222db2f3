"""Which client makes a request, and how ours finds and secures its connections."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import resource
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic_ns
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import requests

from helpers.certificates import self_signed
from helpers.driven import LOOP, SOCKETS, LoopDriven, driven
from helpers.recording_server import RecordingServer, recording_server
from helpers.resolver import resolving
from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.protocol.exchanges import EXCHANGE, OWN_TWICE
from osbench.common.protocol.exchanges import OWN as OWN_CLIENT
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.name_lookups import HOSTS, NameLookups
from osbench.worker.http.on_loop.loop_connection import LoopConnection
from osbench.worker.http.other_clients.curl_client import CurlClient
from osbench.worker.http.other_clients.requests_client import RequestsClient
from osbench.worker.http.outgoing_request import OutgoingRequest
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.socket_client import KEPT, SocketClient
from osbench.worker.http.socket_connection import SocketConnection
from osbench.worker.http.tls_contexts import TlsContexts, Trust
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.prepared_request import PreparedRequest
from osbench.worker.http.wire.wire_errors import (
    CannotConnect,
    CannotSecure,
    ConnectTimedOut,
    ReceiveTimedOut,
)
from servers.child import PATIENCE_S
from servers.hostile_http import hostile_server

OWN = ["X-Osbench-Iteration: 7"]


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with recording_server() as running:
        yield running


class Clients:
    """`HttpClients` for a caller who waits."""

    def __init__(self, of_run: Sequence[str], *, in_loop: bool) -> None:
        self._clients = HttpClients(of_run)
        self._in_loop = in_loop
        self.recorder = Recorder(Names())

    def status(self, *request: Any) -> int:
        return self.statuses(request)[0]

    def statuses(self, *requests: Sequence[Any]) -> list[int]:
        """Those of some requests one after another, over kept connections."""
        if not self._in_loop:
            return [self._clients.blocking_status(*one, self.recorder) for one in requests]

        async def made() -> list[int]:
            return [await self._clients.status(*one, self.recorder) for one in requests]

        return asyncio.run(made())


@pytest.fixture(params=[SOCKETS, LOOP])
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(driver: str) -> Iterator[SocketClient | LoopDriven]:
    with driven(driver) as made:
        yield made


@pytest.mark.parametrize("in_loop", [True, False], ids=["loop", "thread"])
def test_each_request_has_the_client_that_can_make_it_and_the_log_says_why(
    server, monkeypatch, caplog, in_loop
):
    clients = Clients(["X-Osbench-Run: r1"], in_loop=in_loop)
    with caplog.at_level(logging.INFO, "osbench.worker.http"):
        for _ in range(2):
            assert clients.status("GET", server.url + "/a", OWN, {}) == 200
        assert not caplog.messages
        for _ in range(2):
            assert clients.status("GET", server.url + "/a", OWN, {"auth": ["me", "pw"]}) == 200
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        for _ in range(2):
            assert clients.status("POST", "http://shop.invalid/a", OWN, {"data": "x"}) == 200
        assert clients.status("GET", server.url + "/direct", OWN, {}) == 200

    seen = server.taken()
    assert [one.path for one in seen[4:]] == ["http://shop.invalid/a"] * 2 + ["/direct"]
    assert {one.headers["x-osbench-iteration"] for one in seen} == {"7"}
    assert seen[4].body == b"x"
    assert caplog.messages == [
        "requests are made by requests, which costs more CPU: option auth",
        "requests are made by libcurl, which costs more CPU: a proxy of the environment, "
        + server.url,
    ]


@pytest.mark.parametrize("in_loop", [True, False], ids=["loop", "thread"])
@pytest.mark.parametrize("url", ["http:///x", "http://127.0.0.1:99999/x", "http://[::1/x"])
def test_what_is_no_address_is_told(url, in_loop):
    wrong = url.partition("//")[2].partition("/")[0] or url
    with pytest.raises(requests.exceptions.InvalidURL, match=re.escape(wrong)):
        Clients([], in_loop=in_loop).status("GET", url, OWN, {})


@pytest.mark.parametrize("location", ["http://[::1", "http://u:secret@h:99999/"])
def test_a_redirect_to_no_address_is_told_with_its_origin(server, client, location):
    url = f"{server.url}/to?code=302&url={quote(location)}"

    with pytest.raises(ValueError, match=f"^{server.url}/to redirects to an invalid URL; "):
        client.request("GET", url, OWN, {})


@pytest.mark.parametrize("in_loop", [True, False], ids=["loop", "thread"])
def test_what_a_request_spent_is_noted_with_redirects_and_failures(server, in_loop):
    clients = Clients([], in_loop=in_loop)
    paths = ("/a", "/to?code=302&url=/b", "/drop")
    with pytest.raises(ConnectionError):
        clients.statuses(*(("GET", server.url + path, OWN, {}) for path in paths))

    found = np.frombuffer(clients.recorder.exchanges, EXCHANGE)
    # the server drops the kept connection first, and then the new one
    assert (found["connect"] > 0).tolist() == [True, False, False, True]
    assert (found["rest"] > 0).tolist() == [True, True, True, False]
    assert (found["wait"][:3] > 0).all()
    assert found["client"].tolist() == [OWN_CLIENT, OWN_CLIENT, OWN_CLIENT, OWN_TWICE]
    assert set(found["action"]) == {-1}
    assert (found["tls"] == 0).all()
    assert (found["sent"] > 0).all()
    assert (found["received"][:3] > 0).all()
    assert found["status"].tolist() == [200, 302, 200, 0]


def test_requests_side_by_side_count_once_in_whatever_order_they_end():
    recorder = Recorder(Names())
    first, second, third = (ExchangePhases(begun_ns) for begun_ns in (1, 2, 3))
    recorder.ask(first)
    recorder.ask(second)
    recorder.end_exchange(first)
    recorder.ask(third)
    recorder.end_exchange(third)
    before = recorder.exchanges_so_far()
    recorder.end_exchange(second)

    assert len(np.frombuffer(before, EXCHANGE)) == 3
    assert len(np.frombuffer(recorder.exchanges_so_far(), EXCHANGE)) == 3
    assert bytes(recorder.exchanges) == recorder.exchanges_so_far()


@pytest.mark.parametrize("in_loop", [True, False], ids=["loop", "thread"])
def test_requests_of_other_clients_are_noted_before_they_fail(monkeypatch, in_loop):
    clients = Clients([], in_loop=in_loop)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(ConnectionError):
        clients.status("GET", "http://shop.invalid/a", OWN, {})

    (found,) = np.frombuffer(clients.recorder.exchanges, EXCHANGE)
    name = clients.recorder.names.names[found["client"]]
    assert name == "libcurl: a proxy of the environment, http://127.0.0.1:9"
    assert found["rest"] == found["sent"] == 0


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_through_a_proxy_redirects_are_followed_alike(server, monkeypatch, code):
    clients = Clients([], in_loop=True)
    path = f"/to?code={code}&url=http://other.invalid/a&cookie=c%3D1"
    direct = f"/to?code={code}&url={server.elsewhere}/a&cookie=c%3D1"
    clients.status("POST", server.url + direct, OWN, {"json": {"k": 1}})
    expected = [(one.method, one.body, one.headers.get("content-type")) for one in server.taken()]

    monkeypatch.setenv("http_proxy", server.url)
    clients.status("POST", "http://shop.invalid" + path, OWN, {"json": {"k": 1}})

    seen = server.taken()
    got = [(one.method, one.body, one.headers.get("content-type")) for one in seen]
    assert got == expected
    assert "x-osbench-iteration" not in seen[1].headers


SECRET_HEADERS = (
    *("Authorization", "Cookie", "DPoP", "X-Amz-Security-Token", "X-Api-Key", "X-Auth-Token"),
    *("X-CSRF-Token", "X-Service-Token", "X-Subject-Token", "X-Vault-Token", "X_Access_Token"),
    "Ocp-Apim-Subscription-Key",
)
PLAIN_HEADERS = ("Idempotency-Key", "X-Plain", "X-Token-Type")
#: What makes a request: of threads, of an event loop, and those that only some requests take.
WAYS = ("threads", "loop", "requests", "libcurl")


def ask(way: str, url: str, **options: Any) -> int | None:
    """The status of a request, whose secrets all have the value "t"."""
    headers = {**dict.fromkeys(SECRET_HEADERS, "t"), **dict.fromkeys(PLAIN_HEADERS, "p")}
    options["headers"] = headers
    match way:
        case "requests":
            # in a URL with a user the header Authorization is theirs
            return RequestsClient([]).status("GET", url.replace("://", "://u:p@", 1), [], options)
        case "libcurl":
            return CurlClient([]).status("GET", url, [], options)
    return Clients([], in_loop=way == "loop").status("GET", url, [], options)


def lower(names: Sequence[str]) -> set[str]:
    return {name.lower() for name in names}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("code", [302, 307])
def test_what_opens_one_host_is_not_told_to_another(server, way, code):
    ask(way, f"{server.url}/to?code={code}&url={server.elsewhere}/a")

    first, second = server.taken()
    assert lower(SECRET_HEADERS) <= set(first.headers)
    assert not lower(SECRET_HEADERS) & set(second.headers)
    assert lower(PLAIN_HEADERS) <= set(second.headers)


#: Method and whether the body is there after a redirect, as browsers do it (Fetch, 4.4).
REDIRECTED = {
    **{("GET", code): ("GET", True) for code in (301, 302, 307, 308)},
    **{("POST", code): ("GET", False) for code in (301, 302, 303)},
    **{("POST", code): ("POST", True) for code in (307, 308)},
    **{(verb, 303): ("GET", False) for verb in ("PUT", "PATCH", "DELETE", "GET")},
    **{
        (verb, code): (verb, True)
        for verb in ("PUT", "PATCH", "DELETE")
        for code in (301, 302, 307, 308)
    },
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("asked", "expected"), REDIRECTED.items())
def test_a_redirect_keeps_method_and_body_or_neither(server, way, asked, expected):
    verb, code = asked
    url, options = f"{server.url}/to?code={code}&url=/a", {"json": {"keep": "me"}}
    if way == "libcurl":
        CurlClient([]).status(verb, url, [], options)
    elif way == "requests":
        RequestsClient([]).status(verb, url, [], options)
    else:
        Clients([], in_loop=way == "loop").status(verb, url, [], options)

    _, second = server.taken()
    kind = second.headers.get("content-type")
    assert (second.method, second.body == b'{"keep": "me"}') == expected
    assert (kind == "application/json", kind is not None) == (expected[1], expected[1])


@pytest.mark.parametrize("way", WAYS)
def test_within_a_host_secrets_go_along(server, way):
    ask(way, f"{server.url}/to?code=302&url={server.url}/a")

    _, second = server.taken()
    # a header Cookie is dropped as requests does: answers may set others
    assert lower(SECRET_HEADERS) - {"cookie"} <= set(second.headers)


@pytest.mark.parametrize("way", WAYS)
def test_another_port_is_another_host(server, way):
    with recording_server() as other:
        ask(way, f"{server.url}/to?code=302&url={other.url}/a")
        (second,) = other.taken()

    assert not lower(SECRET_HEADERS) & set(second.headers)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_sent_over_tls_is_not_sent_without(server, way, tmp_path):
    certificate = self_signed(tmp_path)
    with recording_server(certificate) as secured:
        url = f"{secured.url}/to?code=302&url={server.url}/a"
        ask(way, url, verify=str(certificate))
        (first,) = secured.taken()

    (second,) = server.taken()
    assert lower(SECRET_HEADERS) <= set(first.headers)
    assert not lower(SECRET_HEADERS) & set(second.headers)


@pytest.mark.parametrize("way", WAYS)
def test_the_way_back_brings_nothing_that_another_host_sent_along(server, way):
    back = quote(f"{server.url}/a", safe="")
    there = quote(f"{server.elsewhere}/to?code=302&url={back}", safe="")
    ask(way, f"{server.url}/to?code=302&url={there}")

    _, second, third = server.taken()
    assert not lower(SECRET_HEADERS) & set(second.headers)
    assert not lower(SECRET_HEADERS) & set(third.headers)


@contextmanager
def no_file_left() -> Iterator[None]:
    """This process can open no file."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = []
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (sum(1 for _ in Path("/proc/self/fd").iterdir()) + 20, before[1])
    )
    try:
        with suppress(OSError):
            while True:
                opened.append(os.dup(0))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for number in opened:
            os.close(number)


def test_where_no_socket_can_be_had_the_connection_fails(server, client):
    with no_file_left(), pytest.raises(CannotConnect, match="Too many open files"):
        client.status("GET", server.url + "/a", [], {})

    assert client.status("GET", server.url + "/a", [], {}) == 200


@pytest.mark.parametrize("says", ["close", "Close"])
def test_after_connection_close_each_request_has_a_connection_of_its_own(server, client, says):
    ports = []
    for more in ({}, {}, {"headers": {"Connection": says}}, {"headers": {"connection": says}}, {}):
        assert client.status("GET", server.url + "/a", [], more) == 200
        (seen,) = server.taken()
        ports.append(seen.client)
        assert seen.headers.get("connection", "").lower() in ("", says.lower())

    assert ports[0] == ports[1] == ports[2]
    assert len(set(ports)) == 3


def test_the_next_address_is_tried_where_one_refuses_and_remembered(server, client, monkeypatch):
    port = server.server_port
    here, nowhere = ("127.0.0.1", port), ("::1", port, 0, 0)
    asked = resolving(monkeypatch, (socket.AF_INET6, nowhere), (socket.AF_INET, here))
    lookups = NameLookups()

    for _ in range(3):
        assert client.status("GET", f"http://shop.invalid:{port}/a", [], {}) == 200
    lookups.addresses("h", port, None)
    lookups.refused("h", port, (socket.AF_INET6, nowhere), "Connection refused")

    assert asked == ["shop.invalid", "h"]
    assert lookups.addresses("h", port, None)[0] == (socket.AF_INET, here)


def test_a_resolver_that_hangs_holds_one_thread_and_no_request_beyond_its_limit(
    client, monkeypatch
):
    release = threading.Event()
    calls = []

    def hang(*_: Any, **__: Any) -> Any:
        calls.append(1)
        release.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        for _ in range(3):
            with pytest.raises(TimeoutError, match=r"^GET http://shop\.invalid/a: name lookup of"):
                client.status("GET", "http://shop.invalid/a", [], {"timeout": 0.05})
        with pytest.raises(ConnectTimedOut):
            client.status("GET", "http://shop.invalid/a", [], {"timeout": (0.05, 20)})
        assert len(calls) == 1
    finally:
        release.set()
    with pytest.raises(CannotConnect, match=r"cannot look up shop\.invalid: Temporary failure"):
        client.status("GET", "http://shop.invalid/a", [], {})


def test_a_lookup_whose_thread_cannot_start_leaves_nothing_to_wait_for(monkeypatch):
    resolving(monkeypatch, (socket.AF_INET, ("127.0.0.1", 1)))
    lookups = NameLookups()

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with pytest.raises(CannotConnect, match=r"look up shop\.invalid: can't start new thread"):
            lookups.addresses("shop.invalid", 1, None)

    assert lookups.addresses("shop.invalid", 1, PATIENCE_S) == [(socket.AF_INET, ("127.0.0.1", 1))]


def test_addresses_are_kept_for_a_while_and_not_without_end(monkeypatch):
    asked = resolving(monkeypatch, (socket.AF_INET, ("127.0.0.1", 1)))
    lookups = NameLookups()
    for number in range(HOSTS + 1):
        lookups.addresses(f"h{number}", 1, None)
        lookups.addresses(f"h{number}", 1, None)
    assert len(asked) == HOSTS + 1

    lookups.addresses("h0", 1, None)
    assert asked[-1] == "h0"

    brief = NameLookups(kept_s=0.0)
    brief.addresses("h1", 1, None)
    brief.addresses("h1", 1, None)
    assert asked[-2:] == ["h1", "h1"]


@pytest.mark.parametrize("kind", [CurlClient, RequestsClient])
def test_too_many_redirects_are_the_same_error_of_the_other_clients(server, kind):
    with pytest.raises(ConnectionError, match=r"^GET \S+/loop: more than 30 redirects"):
        kind([]).status("GET", server.url + "/loop", [], {})


def test_the_timeout_of_libcurl_bounds_all_redirects():
    with hostile_server() as server, pytest.raises(TimeoutError, match="Operation timed out"):
        # 30 redirects would take 3 s
        CurlClient([]).status("GET", f"{server.url}/slowly-down/", [], {"timeout": 0.5})


@pytest.mark.parametrize("kind", [CurlClient, RequestsClient])
def test_a_thread_keeps_the_connections_of_the_other_clients(server, kind):
    client = kind([])
    for _ in range(3):
        assert client.status("GET", server.url + "/a", [], {}) == 200

    assert len({one.client for one in server.taken()}) == 1


def test_a_thread_keeps_few_connections(monkeypatch):
    client = SocketClient([])
    with recording_server() as server:
        resolving(monkeypatch, (socket.AF_INET, ("127.0.0.1", server.server_port)))
        for turn in range(2):
            for number in range(KEPT + 1):
                url = f"http://h{number}.invalid:{server.server_port}/{turn}"
                assert client.request("GET", url, [], {}).status == 200  # type: ignore[union-attr] # it makes it
        clients = [one.client for one in server.taken()]

    # the one that was used longest ago had to go each time
    assert len(set(clients)) == 2 * (KEPT + 1)


@contextmanager
def tls_server(certificate: Path, *, asks: Path | None = None) -> Iterator[Any]:
    """A server with one answer a connection; notes what it learnt of the client's TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2", "http/1.1"])
    notes: list[dict[str, Any]] = []
    names: list[str | None] = []
    context.sni_callback = lambda _, name, __: names.append(name)
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(asks)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(plain, server_side=True) as tls:
                    tls.recv(65536)
                    notes.append(
                        {
                            "alpn": tls.selected_alpn_protocol(),
                            "resumed": tls.session_reused,
                            "certificate": tls.getpeercert() is not None,
                        }
                    )
                    tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n")
                    tls.sendall(b"x" * 200_000)
            except OSError:
                plain.close()

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    try:
        yield f"https://localhost:{listener.getsockname()[1]}", notes, names
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        serving.join(PATIENCE_S)


def test_tls_names_its_host_and_protocol_and_takes_up_its_session(client, tmp_path):
    certificate = self_signed(tmp_path)
    with tls_server(certificate) as (url, notes, names):
        for _ in range(3):
            answer = client.request("GET", url, [], {"verify": str(certificate), "timeout": 20})
            assert answer is not None
            assert len(answer.content()) == 200_000
            assert answer.phases.tls_ns > 0

    assert [one["alpn"] for one in notes] == ["http/1.1"] * 3
    assert [one["resumed"] for one in notes] == [False, True, True]
    assert set(names) == {"localhost"}


def test_tls_shows_the_certificate_of_the_task(client, tmp_path):
    certificate = self_signed(tmp_path)
    with tls_server(certificate, asks=certificate) as (url, notes, _):
        for shown in (str(certificate), [str(certificate), str(certificate)]):
            options = {"verify": str(certificate), "cert": shown}
            assert client.status("GET", url, [], options) == 200
        with pytest.raises(ConnectionError, match=r"(?i)certificate|reset|ended"):
            client.status("GET", url, [], {"verify": str(certificate)})

    assert [one["certificate"] for one in notes] == [True, True]


def test_the_files_of_tls_are_read_beside_the_loop(server, monkeypatch):
    threads = []
    read = TlsContexts.context

    def context(self: TlsContexts, trust: Trust) -> ssl.SSLContext:
        threads.append(threading.get_ident())
        return read(self, trust)

    monkeypatch.setattr(TlsContexts, "context", context)
    with driven(LOOP) as client:
        for _ in range(2):
            with pytest.raises(CannotSecure):
                client.status("GET", server.url.replace("http:", "https:"), [], {})
        ident = asyncio.run_coroutine_threadsafe(_own_thread(), client.loop).result(10)

    assert len(threads) == 1
    assert threads[0] != ident


async def _own_thread() -> int:
    return threading.get_ident()


def test_tls_that_cannot_be_trusted_is_refused(client, tmp_path, monkeypatch):
    certificate, expired = self_signed(tmp_path), self_signed(tmp_path, expired=True)
    with tls_server(certificate) as (url, notes, _):
        resolving(monkeypatch, (socket.AF_INET, ("127.0.0.1", int(url.rpartition(":")[2]))))
        elsewhere = url.replace("localhost", "shop.invalid")
        for place, bundle, said in (
            (url, True, "self-signed certificate.*; name the file .*--ca FILE.*--insecure"),
            (elsewhere, str(certificate), "Hostname mismatch.*; use a name"),
            (url, str(tmp_path / "none.pem"), "none.pem: No such file"),
        ):
            with pytest.raises(CannotSecure, match=said):
                client.status("GET", place, [], {"verify": bundle})
        assert not notes
    monkeypatch.undo()
    with (
        tls_server(expired) as (url, *_),
        pytest.raises(CannotSecure, match="has expired; renew"),
    ):
        client.status("GET", url, [], {"verify": str(expired)})
    with recording_server() as plain, pytest.raises(CannotSecure, match="TLS"):
        client.status("GET", plain.url.replace("http:", "https:"), [], {})


@pytest.mark.parametrize("way", ["requests", "libcurl"])
def test_other_clients_say_what_to_do_about_a_certificate(tmp_path, way):
    with recording_server(self_signed(tmp_path)) as secured:
        with pytest.raises(ConnectionError, match=r"self-signed certificate.*--ca FILE.*--insec"):
            ask(way, f"{secured.url}/a")
        assert not secured.taken()


class _Cut(socketserver.StreamRequestHandler):
    """Ends a response in its head or body."""

    def handle(self) -> None:
        path = self.rfile.readline().split()[1]
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        with suppress(ConnectionError):
            self.wfile.write(CUT[path[1:].decode()])


CUT = {
    "head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + 600 * b"x",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc",
    "nothing": b"",
}


@pytest.fixture
def cutting() -> Iterator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Cut) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(PATIENCE_S)


@pytest.mark.parametrize("in_loop", [True, False], ids=["loop", "thread"])
@pytest.mark.parametrize("name", CUT)
def test_the_bytes_of_a_response_that_is_cut_are_counted(cutting, in_loop, name):
    clients = Clients([], in_loop=in_loop)

    with pytest.raises(ConnectionError):
        clients.status("GET", f"{cutting}/{name}", [], {})

    (found,) = np.frombuffer(clients.recorder.exchanges, EXCHANGE)
    assert (found["received"], found["status"]) == (len(CUT[name]), 0)


@pytest.mark.parametrize("in_loop", [True, False], ids=["loop", "thread"])
def test_the_bytes_of_a_response_that_stops_are_counted(in_loop):
    here, there = socket.socketpair()
    request = PreparedRequest(OutgoingRequest("GET", "http://a.test/", (), (), {}))
    phases = ExchangePhases(monotonic_ns())
    limits = RequestLimits(wait_s=0.05)
    with here, there:
        # it is there before the limit begins
        there.sendall(CUT["body"])
        with pytest.raises(ReceiveTimedOut):
            if in_loop:
                asyncio.run(_asked_on_loop(here, request, limits, phases))
            else:
                connection = SocketConnection(here, None)
                connection.exchange(request, [], limits, phases, keep_body=False)

    assert phases.received_bytes == len(CUT["body"])


async def _asked_on_loop(
    sock: socket.socket, request: Any, limits: RequestLimits, phases: ExchangePhases
) -> None:
    loop = asyncio.get_running_loop()
    sock.setblocking(False)
    made = LoopConnection(loop, sock, None)
    transport, _ = await loop.create_connection(lambda: made, sock=sock)
    try:
        await made.begin(request, [], limits, phases, keep_body=False)
        made.answer(request, phases)
    finally:
        transport.abort()


@pytest.mark.parametrize(
    ("environment", "args", "made"),
    [
        ("", {"url": "http://a.example/"}, False),
        ("http://p.example:3128", {"url": "http://a.example/"}, True),
        ("", {"url": "http://a.example/", "proxies": {"http": "http://p.example"}}, True),
    ],
)
def test_other_clients_are_there_before_the_load_if_a_proxy_is_known(
    monkeypatch: pytest.MonkeyPatch, environment: str, args: dict[str, Any], made: bool
) -> None:
    for name in [one for one in os.environ if one.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    if environment:
        monkeypatch.setenv("http_proxy", environment)

    clients = HttpClients.of_workload("r", {"args": args})

    assert (clients._made_others is not None) == made
