"""Limits HTTP exchanges of clients of requests: bytes of a body, lines around it, time in total.

http.client and urllib3 limit neither interim responses nor trailers, and requests no body. None of
them limits the time of an exchange.
"""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import requests
from requests.adapters import HTTPAdapter
from urllib3 import ProxyManager, connection, connectionpool
from urllib3.exceptions import ReadTimeoutError

from osbench.common.network.exchange_deadline import (
    DeadlineReader,
    exchange_within,
    present_deadline,
)
from osbench.common.network.response_bound import USUAL, ResponseBound

#: What is read at once, bytes.
CHUNK_BYTES = 1 << 16

#: Longest line of a response, bytes, with its end: as in http.client.
LINE_BYTES = 65537

#: Seconds that an exchange may take unless its client says otherwise.
EXCHANGE_S = 120.0

#: Most digits of a length that is looked at.
_DIGITS = 18

#: Lines one after another, bytes: heads, interim responses and trailers.
LINES_BYTES = 2 << 20


class _BoundedLines(io.BufferedReader):
    """A reader that limits the bytes of a line, and of successive lines in sum.

    Reading bytes otherwise than by lines starts the sum again at 0.
    """

    _lined = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line, with its end.

        Raises http.client.HTTPException beyond LINE_BYTES or, for successive lines, LINES_BYTES.
        """
        bounded = size is not None and 0 <= size < LINE_BYTES
        line = super().readline(size if bounded else LINE_BYTES)
        self._lined += len(line)
        endless = not bounded and len(line) == LINE_BYTES and not line.endswith(b"\n")
        if endless or self._lined > LINES_BYTES:
            raise http.client.HTTPException("the response has endless lines; look at the server")
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes as BufferedReader does; start the sum of line bytes again at 0."""
        self._lined = 0
        return super().read(size)

    def read1(self, size: int = -1, /) -> bytes:
        """Read bytes as BufferedReader does, and begin to count lines again."""
        self._lined = 0
        return super().read1(size)

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer as BufferedReader does; start the sum of line bytes again at 0."""
        self._lined = 0
        return super().readinto(buffer)


class BoundedResponse(http.client.HTTPResponse):
    """A response of http.client that limits lines of head, interim responses and trailers.

    It also keeps the deadline of `exchange_within` in which it was made.
    """

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        raw, deadline = self.fp.detach(), present_deadline()
        self.fp = _BoundedLines(raw if deadline is None else DeadlineReader(raw, sock, deadline))


class _DeadlineConnection:
    """Mixin of connections: connecting and sending end at the deadline of `exchange_within`."""

    timeout: Any
    sock: Any

    def connect(self) -> None:
        """Connect, and log in to TLS, before the deadline. Raises TimeoutError."""
        deadline = present_deadline()
        if deadline is not None:
            left_s = deadline.left_s()
            given = self.timeout if isinstance(self.timeout, int | float) else left_s
            self.timeout = min(given, left_s)
        super().connect()  # type: ignore[misc] # of the other base class

    def send(self, data: Any) -> None:
        """Send bytes before the deadline. Raises TimeoutError."""
        deadline = present_deadline()
        if deadline is not None and self.sock is not None:
            deadline.limit(self.sock)
        super().send(data)  # type: ignore[misc] # of the other base class
        if deadline is not None:
            deadline.add(len(data) if isinstance(data, bytes | bytearray) else 0)


# messages of urllib3 have the names of these classes


class HTTPConnection(_DeadlineConnection, connection.HTTPConnection):
    """An HTTP connection with the limits of BoundedResponse, and a deadline."""

    response_class = BoundedResponse


class HTTPSConnection(_DeadlineConnection, connection.HTTPSConnection):
    """An HTTPS connection with the limits of BoundedResponse, and a deadline."""

    response_class = BoundedResponse


class HTTPConnectionPool(connectionpool.HTTPConnectionPool):
    """A pool of HTTP connections that limit the lines of responses."""

    ConnectionCls = HTTPConnection


class HTTPSConnectionPool(connectionpool.HTTPSConnectionPool):
    """A pool of HTTPS connections that limit the lines of responses."""

    ConnectionCls = HTTPSConnection


_POOLS = MappingProxyType({"http": HTTPConnectionPool, "https": HTTPSConnectionPool})


class BoundedLinesAdapter(HTTPAdapter):
    """An adapter of requests with limits on the lines of a response, but not on its body."""

    #: Pools of connections that go there directly, by scheme.
    pools: Mapping[str, type[connectionpool.HTTPConnectionPool]] = _POOLS

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Create the manager of direct connections, with `pools`; requests calls it."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = dict(self.pools)

    def proxy_manager_for(self, proxy: str, **options: Any) -> ProxyManager:
        """Return the manager of connections through the URL `proxy`; requests calls it.

        Its connections limit lines, except through a SOCKS proxy.
        """
        manager: ProxyManager = super().proxy_manager_for(proxy, **options)
        if type(manager) is ProxyManager:
            manager.pool_classes_by_scheme = dict(_POOLS)
        return manager


class BoundedAdapter(BoundedLinesAdapter):
    """An adapter of requests that limits each exchange in time and, unless streamed, in bytes."""

    def __init__(
        self,
        bound: ResponseBound = USUAL,
        *,
        total_s: float | None = None,
        **options: Any,
    ) -> None:
        """Set the limits: `bound` of a body; `total_s` for request and response, None for any.

        Each LEAST_BYTES_S bytes of a body add a second. `options` are of requests' HTTPAdapter.
        """
        self.bound = bound
        self.total_s = total_s
        super().__init__(**options)

    def send(  # type: ignore[override] # all else as in requests
        self, request: requests.PreparedRequest, stream: bool = False, **options: Any
    ) -> requests.Response:
        """Send a request; read the body of the response within `bound`, unless `stream` is true.

        Raises requests.RequestException as requests does, and if the body exceeds its limit;
        requests.Timeout if the time is over.
        """
        with exchange_within(self.total_s, transfer=True):
            try:
                response: requests.Response = super().send(request, stream=stream, **options)
            except requests.ConnectionError as error:
                deadline = present_deadline()
                if deadline is not None and deadline.is_over:
                    raise requests.Timeout(error, request=request) from error
                raise
            if not stream:
                read_bounded(response, self.bound)
        return response


class ResponseTooLargeError(requests.RequestException):
    """Raised if the body of a response exceeds its bound."""


def read_bounded(response: requests.Response, bound: ResponseBound) -> None:
    """Read the body of a response, opened with `stream`, into the response object.

    If its announced or decoded size exceeds `bound.most_bytes`, closes the response and raises
    ResponseTooLargeError. Raises requests.Timeout if no more of it comes in time.
    """
    parts, size = [], 0
    announced = announced_bytes(response)
    if announced > bound.most_bytes:
        _refuse(response, bound.message(announced))
    try:
        for part in response.iter_content(CHUNK_BYTES):
            parts.append(part)
            size += len(part)
            if size > bound.most_bytes:
                coded = "content-encoding" in response.headers
                _refuse(response, bound.message(announced, decoded=coded))
    except requests.ConnectionError as error:
        if error.args and isinstance(error.args[0], ReadTimeoutError):
            raise requests.Timeout(error.args[0], request=response.request) from error
        raise
    response._content = b"".join(parts)


def _refuse(response: requests.Response, message: str) -> NoReturn:
    response.close()
    raise ResponseTooLargeError(message, response=response)


def announced_bytes(response: requests.Response) -> int:
    """Return the Content-Length of a response in bytes.

    0 if it is missing or malformed, and for a response to HEAD.
    """
    given = response.headers.get("content-length", "")
    method = response.request.method if response.request is not None else ""
    if method == "HEAD" or len(given) > _DIGITS or not (given.isascii() and given.isdecimal()):
        return 0
    return int(given)


class _BoundedSession(requests.Session):
    """A session whose configured Authorization header stays, whatever ~/.netrc has for the host."""

    def prepare_request(self, request: requests.Request) -> requests.PreparedRequest:
        """Return the request with the settings of the session; requests calls it."""
        given = {name.lower() for name in (*self.headers, *(request.headers or ()))}
        if request.auth is None and "authorization" in given:
            request.auth = _keep_headers
        return super().prepare_request(request)


def _keep_headers(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def bounded_session(total_s: float | None = EXCHANGE_S) -> requests.Session:
    """Return a new session of requests that limits each exchange: 64 MiB unless streamed, 120 s.

    A redirect is another exchange. `total_s`: another number of seconds, None for any time.
    """
    session = _BoundedSession()
    for scheme in ("http://", "https://"):
        session.mount(scheme, BoundedAdapter(total_s=total_s))
    return session
