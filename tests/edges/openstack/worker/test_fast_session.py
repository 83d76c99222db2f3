"""Our session and that of requests make the same of what servers do."""

from __future__ import annotations

import contextlib
import itertools
import logging
import pickle
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from keystoneauth1 import exceptions
from keystoneauth1 import session as keystoneauth_session
from keystoneauth1.session import Session, TCPKeepAliveAdapter
from requests import exceptions as failures
from urllib3 import HTTPResponse

from helpers.certificates import self_signed
from helpers.preparing import specified
from helpers.recording_server import RecordingServer, recording_server
from osbench.common.config.config import load
from osbench.common.config.options import FAST, REQUESTS
from osbench.common.deployment.record import Deployment
from osbench.common.network.response_bound import ResponseBound
from osbench.common.plugin.plugins import Plugins
from osbench.edges.openstack.common.thread_sessions import keep_connections
from osbench.edges.openstack.worker.fast_session import ClientSessions, FastSession
from osbench.edges.openstack.worker.short_way import SHORT_WAY, ShortWay
from osbench.worker.session.preparation import Preparation
from servers.child import PATIENCE_S
from servers.hostile_http import ANSWERS, FINE, HostileServer, hostile_server

#: What our session makes of answers that requests takes otherwise, as in test_http_client.py.
DIFFERENT = {
    "length-and-chunked": "ConnectionError",
    "length-no-number": "ConnectionError",
    "folded": "ConnectionError",
    "bare-line-feeds": "ConnectionError",
    "half-a-head": "ConnectionError",
    "hints": (200, "OK", b"fine"),
}

#: Seconds that no answer here comes near to.
AMPLE = 20

SAME = sorted({*ANSWERS, "reset", "reset-body", "down/0"} - DIFFERENT.keys())


@pytest.fixture(scope="module")
def hostile() -> Iterator[HostileServer]:
    with hostile_server() as running:
        yield running


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with recording_server() as running:
        yield running


@pytest.fixture
def session() -> Iterator[FastSession]:
    with FastSession(ShortWay()) as ours:
        yield ours


def outcome(session: requests.Session, method: str, url: str, **options: Any) -> Any:
    """All that a response says; of a failure its class."""
    try:
        response = session.request(method, url, **{"timeout": AMPLE, **options})
    except (requests.RequestException, OSError, ValueError) as error:
        return type(error).__name__
    assert isinstance(response, requests.Response)
    return described(response)


def described(response: requests.Response) -> dict[str, Any]:
    request = response.request
    return {
        "status": (response.status_code, response.reason, response.ok, response.is_redirect),
        "headers": undated(response.headers),
        "text": (response.text, response.encoding, response.apparent_encoding),
        "pieces": b"".join(response.iter_content(3)),
        "cookies": response.cookies.get_dict(),
        "url": (response.url, response.links, response.next and response.next.url),
        "history": [(one.status_code, one.url, one.content) for one in response.history],
        "raw": (response.raw.version, response.raw.status, undated(response.raw.headers)),
        "request": (request.method, request.url, request.body, dict(request.headers)),
    }


def undated(headers: Any) -> list[tuple[str, str]]:
    """Headers without the second in which they were sent."""
    return [(name, value) for name, value in headers.items() if name != "Date"]


def both(session: FastSession, method: str, url: str, **options: Any) -> Any:
    """The outcome that our session and that of requests have in common; by the short way."""
    assert session.short_way is not None
    left = session.short_way.left.total()
    with requests.Session() as theirs:
        expected = outcome(theirs, method, url, **options)
    assert outcome(session, method, url, **options) == expected
    assert session.short_way.left.total() == left
    return expected


@pytest.mark.parametrize(
    ("name", "method"), [("drip", "GET"), *itertools.product(SAME, ("GET", "HEAD", "POST"))]
)
def test_responses_and_failures_are_those_of_requests(hostile, session, name, method):
    both(session, method, f"{hostile.url}/{name}")

    # nothing of it is left for the next request
    assert session.get(f"{hostile.url}/plain").text == "fine"


@pytest.mark.parametrize("name", DIFFERENT)
def test_answers_that_can_be_read_in_two_ways_are_refused(hostile, session, name):
    found = outcome(session, "GET", f"{hostile.url}/{name}")

    if isinstance(found, dict):
        found = (*found["status"][:2], found["text"][0].encode())
    assert found == DIFFERENT[name]
    with requests.Session() as theirs:
        assert outcome(theirs, "GET", f"{hostile.url}/{name}") != found


@contextlib.contextmanager
def listening(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that talks with one client after another; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with contextlib.suppress(OSError), connection:
                    talk(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE_S)


def secured(
    certificate: Path, asks: Path | None = None, answer: bytes = b"HTTP/1.1 204 None\r\n\r\n"
) -> Callable[[socket.socket], None]:
    """Answers a request over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(asks)

    def talk(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(65536)
            tls.sendall(answer)

    return talk


def reset(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(connection: socket.socket) -> None:
    connection.settimeout(AMPLE)
    while connection.recv(65536):
        pass


def test_nobody_listens(session):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"

        assert both(session, "GET", url) == "ConnectionError"


def test_a_host_that_nobody_knows(session):
    assert both(session, "GET", "http://nowhere.invalid/") == "ConnectionError"


def test_a_reset_before_the_answer(session):
    with listening(reset) as port:
        assert both(session, "GET", f"http://127.0.0.1:{port}/") == "ConnectionError"


def test_a_reset_within_the_body(hostile, session):
    assert both(session, "GET", f"{hostile.url}/reset-body") == "ChunkedEncodingError"


def test_a_body_that_ends_too_early(hostile, session):
    assert both(session, "GET", f"{hostile.url}/body-cut") == "ChunkedEncodingError"


def test_a_bad_chunk(hostile, session):
    assert both(session, "GET", f"{hostile.url}/chunk-without-size") == "ChunkedEncodingError"


def test_a_body_that_is_not_coded_as_it_says(hostile, session):
    assert both(session, "GET", f"{hostile.url}/gzip-broken") == "ContentDecodingError"


@pytest.mark.parametrize("timeout", [0.3, (0.3, AMPLE)])
def test_connecting_takes_too_long(session, timeout):
    # the kernel answers nobody while the queue of this one is full
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):
            caller = waiting.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/"

        assert both(session, "GET", url, timeout=timeout) == "ConnectTimeout"


@pytest.mark.parametrize("timeout", [0.3, (AMPLE, 0.3)])
def test_the_answer_takes_too_long(hostile, session, timeout):
    assert both(session, "GET", f"{hostile.url}/silent", timeout=timeout) == "ReadTimeout"


def test_the_body_takes_too_long(hostile, session):
    url = f"{hostile.url}/stall"

    # by the rules of requests: only the head of an answer can be too late
    assert both(session, "GET", url, timeout=2) == "ConnectionError"


def test_the_tls_handshake_takes_too_long(session):
    with listening(silent) as port:
        url = f"https://127.0.0.1:{port}/"

        assert both(session, "GET", url, timeout=0.5) == "ReadTimeout"


def test_a_timeout_bounds_each_wait_and_not_the_request(hostile, session):
    # 40 bytes, 2 ms between them
    assert both(session, "GET", f"{hostile.url}/drip", timeout=2)["status"][0] == 200


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_tls_that_cannot_be_trusted(session, tmp_path, monkeypatch):
    good, expired = self_signed(tmp_path), self_signed(tmp_path, expired=True)
    looked_up = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _, *more, **rest: looked_up("127.0.0.1", *more, **rest)
    )
    with listening(secured(good)) as port:
        url = f"https://127.0.0.1:{port}/"
        for place, bundle in (
            (url, True),
            (f"https://another.invalid:{port}/", str(good)),
        ):
            assert both(session, "GET", place, verify=bundle) == "SSLError"
        assert both(session, "GET", url, verify=str(good))["status"][0] == 204
        assert both(session, "GET", url, verify=False)["status"][0] == 204
    with listening(secured(expired)) as port:
        url = f"https://127.0.0.1:{port}/"
        assert both(session, "GET", url, verify=str(expired)) == "SSLError"


def test_tls_that_wants_a_certificate(session, tmp_path):
    ours = self_signed(tmp_path)
    with listening(secured(ours, asks=ours)) as port:
        url = f"https://127.0.0.1:{port}/"

        assert both(session, "GET", url, verify=str(ours)) == "SSLError"
        assert both(session, "GET", url, verify=str(ours), cert=str(ours))["status"][0] == 204


@pytest.mark.parametrize(
    ("talk", "expected"),
    [
        (lambda connection: connection.recv(65536), "SSLError"),
        (reset, "ConnectionError"),
        (lambda connection: connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n"), "SSLError"),
    ],
    ids=["ended", "reset", "not TLS"],
)
def test_the_tls_handshake_fails(session, talk, expected):
    with listening(talk) as port:
        assert both(session, "GET", f"https://127.0.0.1:{port}/") == expected


def test_redirects(hostile, server, session):
    for count, found in ((1, 200), (30, 200), (31, "TooManyRedirects")):
        url = f"{hostile.url}/down/{count}"
        theirs, ours = outcome(requests.Session(), "GET", url), outcome(session, "GET", url)
        assert ours == theirs
        assert (ours["status"][0] if isinstance(ours, dict) else ours) == found
    for code in (301, 302, 303, 307, 308):
        url = f"{server.url}/to?code={code}&url={server.url}/end"
        options = {"data": b"x", "headers": {"Content-Type": "text/x"}}
        for follow in (True, False):
            theirs = outcome(requests.Session(), "POST", url, allow_redirects=follow, **options)
            seen = server.taken()
            ours = outcome(session, "POST", url, allow_redirects=follow, **options)
            assert ours == theirs
            assert received(server.taken()) == received(seen)


def received(seen: Any) -> list[Any]:
    return [(one.method, one.path, list(one.headers.items()), one.body) for one in seen]


#: Arguments for a request that takes the short way.
ARGUMENTS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/a?b=c", {}),
    ("get", "/A/../b/./c?q=%7e%41 d", {}),
    ("GET", "?only=query", {}),
    ("GET", "/ä/ö#part", {"headers": {"accept": "application/json", "X-Empty": ""}}),
    ("HEAD", "/", {"allow_redirects": False}),
    ("POST", "/", {"data": "späte Äpfel", "headers": {"Content-Type": "text/plain"}}),
    ("POST", "/", {"data": b"\0\1", "headers": {"Host": "elsewhere:81"}}),
    ("POST", "/", {"data": b"x" * 200_000}),
    ("PUT", "/", {"data": ""}),
    ("DELETE", "/", {"headers": {"X-Auth-Token": "t", "Accept": None}}),
    ("PATCH", "/", {"data": "[]", "timeout": (AMPLE, None), "params": {}, "cookies": None}),
    ("OPTIONS", "/status/404", {"proxies": {}, "hooks": {}, "stream": False, "json": None}),
]


@pytest.mark.parametrize(("method", "path", "options"), ARGUMENTS)
def test_what_is_sent_is_what_requests_sends(server, session, method, path, options):
    both(session, method, server.url + path, **options)

    theirs, ours = received(server.taken())
    assert ours == theirs


def test_cookies_come_back(server, session):
    first = f"{server.url}/to?code=200&url=/&cookie=a=1;%20Path=/"
    sessions = (session, requests.Session())
    for one in sessions:
        assert one.get(first).cookies.get_dict() == {"a": "1"}
        one.get(server.url + "/with")
        one.get(server.url + "/own", headers={"Cookie": "b=2"})
        one.cookies.clear()
        one.get(server.url + "/without")

    sent = [(one.path, one.headers.get("cookie")) for one in server.taken()]
    assert sent[:4] == sent[4:]
    assert [cookie for _, cookie in sent[:4]] == [None, "a=1", "b=2", None]
    assert not session.short_way.left


def test_a_response_is_one_of_requests(server, session):
    response = session.get(server.url + "/status/404")

    again = pickle.loads(pickle.dumps(response))
    assert (again.status_code, again.content) == (404, response.content)
    assert (again.cookies.get_dict(), again.request.url) == ({}, response.url)
    assert response.elapsed.total_seconds() > 0
    with response, pytest.raises(requests.HTTPError, match="404 Client Error: Not Found"):
        response.raise_for_status()
    assert response.connection is session.get_adapter(server.url)
    assert repr(response) == "<Response [404]>"
    response.headers["X-More"] = "1"
    assert "x-more" not in session.get(server.url + "/status/404").headers


def test_a_session_can_be_pickled_and_closed(server, session):
    session.get(server.url)
    session.close()
    session.get(server.url)
    again = pickle.loads(pickle.dumps(session))
    assert again.get(server.url).ok

    first, second, _ = server.taken()
    assert first.client != second.client


class Elsewhere(requests.adapters.BaseAdapter):
    """Sends nothing."""

    def send(self, request: Any, *_: Any, **__: Any) -> requests.Response:
        response = requests.Response()
        response.status_code, response.url, response._content = 299, request.url, b""
        response.request, response.raw = request, HTTPResponse(status=299)
        return response

    def close(self) -> None: ...


#: How a request leaves the short way, and what is said of it.
LEFT: dict[str, tuple[Callable[[FastSession], Any], dict[str, Any]]] = {
    "option auth": (lambda _: None, {"auth": ("me", "pw")}),
    "option json": (lambda _: None, {"json": {}}),
    "option stream": (lambda _: None, {"stream": True}),
    "option params": (lambda _: None, {"params": {"a": "b"}}),
    "option hooks": (lambda _: None, {"hooks": {"response": lambda *_, **__: None}}),
    "option cookies": (lambda _: None, {"cookies": {"a": "b"}}),
    "option files": (lambda _: None, {"files": {"a": b"b"}}),
    "settings of the session": (lambda one: setattr(one, "auth", ("me", "pw")), {}),
    "its own adapter": (lambda one: one.mount("http://", Elsewhere()), {}),
    "its data": (lambda _: None, {"data": {"a": "b"}}),
    "its timeout": (lambda _: None, {"timeout": 0}),
    "its headers": (lambda _: None, {"headers": {"TE": "trailers"}}),
    "its verify or cert": (lambda _: None, {"cert": "/nowhere.pem"}),
}


@pytest.mark.parametrize("why", LEFT)
def test_what_is_not_ordinary_goes_by_requests_and_is_told(server, caplog, why):
    change, options = LEFT[why]
    caplog.set_level(logging.INFO, "osbench.edges.openstack.worker")
    ours, theirs = FastSession(ShortWay()), requests.Session()
    for one in (ours, theirs):
        change(one)

    for _ in range(3):
        got, expected = (
            outcome(one, "POST", server.url + "/a", **options) for one in (ours, theirs)
        )
        if why != "option files":  # whose boundary is another one each time
            assert got == expected

    assert ours.short_way.left == {why: 3}
    assert [message.rpartition("because of ")[2] for message in caplog.messages] == [f"{why}: 1"]


@pytest.mark.parametrize("name", ["proxy", "netrc"])
def test_the_environment_is_that_of_requests(server, session, monkeypatch, tmp_path, name):
    secrets = tmp_path / "netrc"
    secrets.write_text("machine 127.0.0.1 login me password pw\n")
    if name == "netrc":
        monkeypatch.setenv("NETRC", str(secrets))
    else:
        monkeypatch.setenv("http_proxy", server.url)
    url = server.url if name == "netrc" else "http://shop.invalid"

    assert session.get(url + "/a").ok

    (seen,) = server.taken()
    assert seen.path == ("/a" if name == "netrc" else "http://shop.invalid/a")
    assert ("authorization" in seen.headers) == (name == "netrc")
    assert session.short_way.left.total() == 1


def test_a_request_is_never_sent_twice(hostile, session):
    url = f"{hostile.url}/leave"
    session.post(url)
    before = hostile.connections

    # the server closes when it has the request; it may have done what was asked for
    with pytest.raises(failures.ConnectionError):
        session.post(url)
    assert hostile.connections == before


def test_a_connection_that_was_closed_meanwhile_is_replaced(session):
    ended = threading.Event()

    def once(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(FINE)
        connection.shutdown(socket.SHUT_WR)
        ended.set()

    with listening(once) as port:
        for _ in range(3):
            assert session.post(f"http://127.0.0.1:{port}/").text == "fine"
            assert ended.wait(AMPLE)
            ended.clear()


def test_connections_are_kept_by_each_thread(server, session):
    def ask() -> None:
        for _ in range(2):
            session.get(server.url)

    ask()
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(AMPLE)

    clients = [one.client for one in server.taken()]
    assert clients[0] == clients[1] != clients[2] == clients[3]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("coded", [True, False])
def test_a_response_that_is_too_large_is_refused(hostile, fast, coded):
    session = FastSession(ShortWay() if fast else None)
    keep_connections(session, ResponseBound(1000 if coded else 10, "the setting"))

    # 1,280 bytes that come as 60, or 13 as they are
    with pytest.raises(
        requests.RequestException, match=r"more than the 1,?00?0? bytes that the setting allows"
    ):
        session.get(f"{hostile.url}/{'gzip' if coded else 'chunks'}")


def test_keystoneauth_raises_the_same(hostile, session, tmp_path):
    certificate = self_signed(tmp_path)
    with listening(secured(certificate)) as port:
        for url, timeout, expected in (
            (f"{hostile.url}/nothing", AMPLE, exceptions.ConnectFailure),
            (f"{hostile.url}/silent", 0.3, exceptions.ConnectTimeout),
            (f"{hostile.url}/chunk-cut", AMPLE, exceptions.UnknownConnectionError),
            (f"https://127.0.0.1:{port}/", AMPLE, exceptions.SSLError),
        ):
            for one in (session, requests.Session()):
                with pytest.raises(exceptions.ClientException) as caught:
                    Session(session=one, timeout=timeout).get(url)
                assert type(caught.value) is expected
    assert not session.short_way.left


def test_sessions_that_clients_create_take_the_short_way(hostile):
    way = ShortWay()
    sessions = ClientSessions(way)
    sessions.install()
    try:
        for options in ({}, {"timeout": AMPLE}):
            made = Session(**options)
            assert made.get(f"{hostile.url}/plain").text == "fine"
            assert isinstance(made.session, FastSession)
        given = requests.Session()
        assert Session(session=given).session is given
        assert not way.left
        assert Session(tls_min_version="1.2").get(f"{hostile.url}/plain").text == "fine"
        assert way.left == {"its own adapter": 1}
    finally:
        sessions.remove()
    assert type(Session().session) is requests.Session


@pytest.mark.parametrize("transport", [FAST, REQUESTS])
def test_the_option_of_the_worker_chooses(monkeypatch, transport):
    # puts back what the worker replaces
    made = keystoneauth_session._construct_session
    monkeypatch.setattr(keystoneauth_session, "_construct_session", made)
    conf = load(())
    conf.set_override("openstack_transport", transport, "worker")
    preparation = Preparation(conf, Plugins())
    user = {"username": "u", "password": "p", "project_name": "p"}
    cloud = {"openstack": {"auth_url": "http://127.0.0.1:1/v3", "admin": user}}
    fast = transport == FAST

    for deployment in ({}, Deployment.from_spec("cloud", cloud).to_dict()):
        context = preparation._context(specified(0, "x", deployment=deployment))
        expected = fast and bool(deployment)
        assert (SHORT_WAY in context) == expected
        assert (type(Session().session) is FastSession) == expected


def test_the_adapters_of_keystoneauth_take_the_short_way(hostile, session):
    session.mount("http://", TCPKeepAliveAdapter())
    assert Session(session=session).get(f"{hostile.url}/plain").text == "fine"
    assert not session.short_way.left

    session.mount("http://", TCPKeepAliveAdapter(max_retries=3))
    assert Session(session=session).get(f"{hostile.url}/plain").text == "fine"
    assert session.short_way.left == {"its own adapter": 1}
