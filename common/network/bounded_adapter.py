"""Bounds of HTTP responses: bytes that are kept, and lines before and after them.

http.client and urllib3 bound neither interim responses nor trailers, and requests bounds no body.
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
    """Reads lines up to a length, and only so many without other bytes between them."""

    _lined = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line. Raises http.client.HTTPException beyond the bounds."""
        bounded = size is not None and 0 <= size < LINE_BYTES
        line = super().readline(size if bounded else LINE_BYTES)
        self._lined += len(line)
        endless = not bounded and len(line) == LINE_BYTES and not line.endswith(b"\n")
        if endless or self._lined > LINES_BYTES:
            raise http.client.HTTPException("the response has lines without an end")
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes, as BufferedReader does."""
        self._lined = 0
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes into a buffer, as BufferedReader does."""
        self._lined = 0
        return super().readinto(buffer)


class BoundedResponse(http.client.HTTPResponse):
    """A response of http.client whose lines are bounded."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = _BoundedLines(self.fp.detach())


# messages of urllib3 have the names of these classes


class HTTPConnection(connection.HTTPConnection):
    """A connection whose responses have bounded lines."""

    response_class = BoundedResponse


class HTTPSConnection(connection.HTTPSConnection):
    """The same with TLS."""

    response_class = BoundedResponse


class HTTPConnectionPool(connectionpool.HTTPConnectionPool):
    """A pool of such connections."""

    ConnectionCls = HTTPConnection


class HTTPSConnectionPool(connectionpool.HTTPSConnectionPool):
    """The same with TLS."""

    ConnectionCls = HTTPSConnection


_POOLS = MappingProxyType({"http": HTTPConnectionPool, "https": HTTPSConnectionPool})


class BoundedLinesAdapter(HTTPAdapter):
    """An adapter of requests whose responses have bounded lines; bodies are the caller's."""

    #: Pools of connections that go there directly, by scheme.
    pools: Mapping[str, type[connectionpool.HTTPConnectionPool]] = _POOLS

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools of connections."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = dict(self.pools)

    def proxy_manager_for(self, proxy: str, **options: Any) -> ProxyManager:
        """Return the pools of connections through a proxy."""
        manager: ProxyManager = super().proxy_manager_for(proxy, **options)
        if type(manager) is ProxyManager:
            manager.pool_classes_by_scheme = dict(_POOLS)
        return manager


class BoundedAdapter(BoundedLinesAdapter):
    """Reads responses within a bound, unless they are streamed."""

    def __init__(self, bound: ResponseBound = USUAL, **options: Any) -> None:
        self.bound = bound
        super().__init__(**options)

    def send(  # type: ignore[override] # all else as in requests
        self, request: requests.PreparedRequest, stream: bool = False, **options: Any
    ) -> requests.Response:
        """Send a request, as in requests.

        Raises requests.RequestException if the response is too large.
        """
        response: requests.Response = super().send(request, stream=stream, **options)
        if not stream:
            read_bounded(response, self.bound)
        return response


def read_bounded(response: requests.Response, bound: ResponseBound) -> None:
    """Read a response within a bound, so that a service cannot fill the memory.

    Raises requests.RequestException for a response that is too large, as it is sent or decoded.
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
    """Return the length of the body by its head; 0 if that is not known."""
    given = response.headers.get("content-length", "")
    method = response.request.method if response.request is not None else ""
    if method == "HEAD" or len(given) > _DIGITS or not (given.isascii() and given.isdecimal()):
        return 0
    return int(given)


def bounded_session() -> requests.Session:
    """Return a session of requests whose responses are bounded."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, BoundedAdapter())
    return session
