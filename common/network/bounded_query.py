"""GET requests for data, limited in bytes and time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import requests
import urllib3.exceptions

from osbench.common.errors import UsageError
from osbench.common.network.bounded_adapter import CHUNK_BYTES, announced_bytes, bounded_session


@dataclass(frozen=True, kw_only=True)
class QueryBounds:
    """Limits of one GET request: seconds to connect, per read and in total; bytes of the body.

    The total is exceeded by one read at most.
    """

    connect_s: float
    read_s: float
    response_s: float
    response_bytes: int


class ResponseTooLargeError(Exception):
    """Raised if the body of a response exceeds `QueryBounds.response_bytes`."""


class BoundedQueries:
    """Sends GET requests with the same headers; `get` may be called from several threads.

    Each thread keeps its own session.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._sessions = threading.local()

    def get(self, url: str, bounds: QueryBounds) -> tuple[int, bytes]:
        """Send a GET request and return status code and body; redirects are not followed.

        Raises ResponseTooLargeError, requests.RequestException (a Timeout if it takes too long in
        total), OSError, ValueError.
        """
        session = getattr(self._sessions, "session", None)
        if session is None:
            session = self._sessions.session = bounded_session()
            session.headers.update(self._headers)
        deadline = time.monotonic() + bounds.response_s
        with session.get(
            url,
            timeout=(bounds.connect_s, bounds.read_s),
            stream=True,
            # a page to log in is not a result, and headers are not for other hosts
            allow_redirects=False,
        ) as response:
            if announced_bytes(response) > bounds.response_bytes:
                raise ResponseTooLargeError
            body = bytearray()
            for part in _parts(response):
                body += part
                if len(body) > bounds.response_bytes:
                    raise ResponseTooLargeError
                if time.monotonic() > deadline:
                    raise requests.Timeout
            return response.status_code, bytes(body)


def _parts(response: requests.Response) -> Iterator[bytes]:
    """Yield the body as it arrives, decoded; raises requests.RequestException.

    Older releases of urllib3 read whole chunks: a slow server can exceed the limit in total there.
    """
    read1 = getattr(response.raw, "read1", None)
    if read1 is None:
        yield from response.iter_content(CHUNK_BYTES)
        return
    try:
        while part := read1(CHUNK_BYTES, decode_content=True):
            yield part
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.Timeout(error) from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.ConnectionError(error) from error


def parse_header_list(headers: str, option: str) -> dict[str, str]:
    """Parse a list of headers as in OpenTelemetry's settings, "name=value,name=value", into a dict.

    Values are percent-decoded. Raises UsageError if it is malformed, naming the setting `option`.
    """
    found = {}
    for pair in filter(None, headers.split(",")):
        name, equals, value = (part.strip() for part in pair.partition("="))
        value = unquote(value)
        if not equals or not name or not name.isascii() or not (name + value).isprintable():
            raise UsageError(f"{option} must be name=value,name=value in printable ASCII")
        found[name] = value
    return found
