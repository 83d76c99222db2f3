"""Limits HTTP responses to clients of requests: bytes of a body, and lines around it.

http.client and urllib3 limit neither interim responses nor trailers, and requests no body.
"""

from __future__ import annotations

import http.client
import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import ProxyManager, connection, connectionpool

from osbench.common.network.response_bound import USUAL, ResponseBound

#: What is read at once, bytes.
CHUNK_BYTES = 1 << 16

#: Longest line of a response, bytes, with its end: as in http.client.
LINE_BYTES = 65537

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
            raise http.client.HTTPException("the response has lines without an end")
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
    """A response of http.client that limits lines of head, interim responses and trailers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = _BoundedLines(self.fp.detach())


# messages of urllib3 have the names of these classes


class HTTPConnection(connection.HTTPConnection):
    """An HTTP connection that limits the lines of responses, as BoundedResponse does."""

    response_class = BoundedResponse


class HTTPSConnection(connection.HTTPSConnection):
    """An HTTPS connection that limits the lines of responses, as BoundedResponse does."""

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
    """An adapter of requests that limits the body of each response, unless it is streamed."""

    def __init__(self, bound: ResponseBound = USUAL, **options: Any) -> None:
        self.bound = bound
        super().__init__(**options)

    def send(  # type: ignore[override] # all else as in requests
        self, request: requests.PreparedRequest, stream: bool = False, **options: Any
    ) -> requests.Response:
        """Send a request; read the body of the response within `bound`, unless `stream` is true.

        Raises requests.RequestException as requests does, and if the body exceeds the limit.
        """
        response: requests.Response = super().send(request, stream=stream, **options)
        if not stream:
            read_bounded(response, self.bound)
        return response


def read_bounded(response: requests.Response, bound: ResponseBound) -> None:
    """Read the body of a response, opened with `stream`, into the response object.

    If its announced or decoded size exceeds `bound.most_bytes`, closes the response and raises
    requests.RequestException.
    """
    parts, size = [], 0
    announced = announced_bytes(response)
    if announced > bound.most_bytes:
        raise _refused(response, bound.message(announced))
    for part in response.iter_content(CHUNK_BYTES):
        parts.append(part)
        size += len(part)
        if size > bound.most_bytes:
            coded = "content-encoding" in response.headers
            raise _refused(response, bound.message(announced, decoded=coded))
    response._content = b"".join(parts)


def _refused(response: requests.Response, message: str) -> requests.RequestException:
    response.close()
    return requests.RequestException(message, response=response)


def announced_bytes(response: requests.Response) -> int:
    """Return the Content-Length of a response in bytes.

    0 if it is missing or malformed, and for a response to HEAD.
    """
    given = response.headers.get("content-length", "")
    method = response.request.method if response.request is not None else ""
    if method == "HEAD" or len(given) > _DIGITS or not (given.isascii() and given.isdecimal()):
        return 0
    return int(given)


def bounded_session() -> requests.Session:
    """Return a new session of requests that limits response bodies to 64 MiB, unless streamed."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, BoundedAdapter())
    return session
