"""A plug-in of pytest that puts our session under the tests of keystoneauth1 or of requests.

`SESSION_UNDER_TEST` is `keystoneauth1` or `requests`; without it nothing changes. What the tests of
keystoneauth1 mock goes over a real connection, too: our session sends its bytes to a server here,
which asks the mock and sends what it says.
"""

from __future__ import annotations

import itertools
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import requests
import requests.sessions
from keystoneauth1 import session as keystoneauth_session
from requests.adapters import HTTPAdapter
from requests.models import PreparedRequest

from osbench.edges.openstack.worker import fast_session
from osbench.edges.openstack.worker.fast_session import FastSession
from osbench.edges.openstack.worker.session_site import SessionSite
from osbench.edges.openstack.worker.short_way import ShortWay
from osbench.worker.http.tls_contexts import Trust

SEND = requests.Session.send
WAY = ShortWay()
#: Requests by the short way, and those of them that were answered by a mock.
COUNTS = {"short": 0, "mocked": 0, "mocked failures": 0}


class Asking(BaseHTTPRequestHandler):
    """Asks the mock of the session that a request comes from."""

    protocol_version = "HTTP/1.1"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        key = self.path.split("/")[1]
        session, described, options, errors = MockedSession.waiting[key]
        size = self.headers.get("Content-Length")
        body = self.rfile.read(int(size)) if size and size != "0" else None
        # what has arrived is what the mock is to see
        fields = [(name, v) for name, v in self.headers.items() if name.lower() != "host"]
        fields += [(n, v) for n, v in described.headers.items() if n.lower() == "host"]
        request = PreparedRequest()
        request.prepare(method=self.command, url=described.url, data=body)
        request.headers.clear()
        request.headers.update(fields)
        if isinstance(described.body, str) and body is not None:
            request.body = body.decode()
        try:
            found = requests.Session.send(session, request, allow_redirects=False, **options)
        except Exception as error:  # noqa: BLE001 - whatever the mock is to raise
            errors.append(error)
            self.close_connection = True
            return
        self._send(found)

    def _send(self, found: requests.Response) -> None:
        content = found.content or b""
        self.send_response_only(found.status_code, found.reason or "")
        for name, value in found.raw.headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "content-encoding"):
                self.send_header(name, value)
        for cookie in found.cookies:
            self.send_header("Set-Cookie", f"{cookie.name}={cookie.value}; Path={cookie.path}")
        bodiless = self.command == "HEAD" or found.status_code in (204, 304)
        if not bodiless:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not bodiless:
            self.wfile.write(content)


class SessionUnderTest(FastSession):
    """Our session by default."""

    def __init__(self) -> None:
        super().__init__(WAY)

    def _sent_shortly(self, *arguments: Any) -> requests.Response:
        COUNTS["short"] += 1
        return super()._sent_shortly(*arguments)


class MockedSession(SessionUnderTest):
    """Sends what is mocked to the server above."""

    waiting: ClassVar[dict[str, Any]] = {}
    numbers = itertools.count()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Asking)

    def request(self, method: str, url: str, *more: Any, **options: Any) -> requests.Response:
        # a replaced `send` takes the long way otherwise
        fast_session._SENDS = (type(self).send, HTTPAdapter.send)
        return super().request(method, url, *more, **options)

    def _site(self, sent: Any, verify: Any, cert: Any) -> Any:
        if requests.Session.send is SEND:
            return super()._site(sent, verify, cert)
        place = f"http://127.0.0.1:{self.server.server_port}"
        return SessionSite(place, Trust(None), HTTPAdapter())

    def _sent_shortly(self, request: Any, sent: Any, site: Any, options: Any) -> requests.Response:
        if requests.Session.send is SEND:
            return super()._sent_shortly(request, sent, site, options)
        key, errors = str(next(self.numbers)), []
        given = {name: options.get(name) for name in ("timeout", "verify", "cert")}
        given = {n: v for n, v in given.items() if v is not None or n == "timeout"}
        self.waiting[key] = (self, request, {**given, "stream": False, "proxies": {}}, errors)
        COUNTS["mocked"] += 1
        try:
            sent = sent._replace(target=f"/{key}{sent.target}")
            # the mock may wait for longer, or raise at once
            return super()._sent_shortly(request, sent, site, {**options, "timeout": 60})
        except requests.RequestException:
            if not errors:
                raise
            COUNTS["mocked failures"] += 1
            raise errors[0] from None
        finally:
            del self.waiting[key]


class Instead:
    """A module with another class `Session`."""

    def __init__(self, module: Any, session: type[requests.Session]) -> None:
        self._module = module
        self.Session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def pytest_configure() -> None:
    """Put our session in the place of that of requests."""
    under = os.environ.get("SESSION_UNDER_TEST")
    if under == "keystoneauth1":
        MockedSession.server.daemon_threads = True
        threading.Thread(target=MockedSession.server.serve_forever, daemon=True).start()
        keystoneauth_session.requests = Instead(requests, MockedSession)
    elif under == "requests":
        requests.Session = requests.sessions.Session = SessionUnderTest
        requests.session = requests.sessions.session = SessionUnderTest


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many requests went which way."""
    terminalreporter.write_line(f"requests: {COUNTS}, by requests: {dict(WAY.left)}")
