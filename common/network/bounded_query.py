"""GET requests for data, limited in bytes and time."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from osbench.common.errors import UsageError
from osbench.common.network.bounded_adapter import bounded_session, read_bounded
from osbench.common.network.exchange_deadline import exchange_within
from osbench.common.network.response_bound import ResponseBound


@dataclass(frozen=True, kw_only=True)
class QueryBounds:
    """Limits of one GET request: seconds to connect, per read and in total; bytes of the body."""

    connect_s: float
    read_s: float
    response_s: float
    response_bytes: int


class BoundedQueries:
    """Sends GET requests with the same headers; `get` may be called from several threads.

    Each thread keeps its own session.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._sessions = threading.local()

    def get(self, url: str, bounds: QueryBounds) -> tuple[int, bytes]:
        """Send a GET request and return status code and body; redirects are not followed.

        Raises requests.RequestException (ResponseTooLargeError for a body beyond the bound, a
        Timeout if it takes too long in total), OSError, ValueError.
        """
        session = getattr(self._sessions, "session", None)
        if session is None:
            session = self._sessions.session = bounded_session(total_s=None)
            session.headers.update(self._headers)
        with (
            exchange_within(bounds.response_s),
            session.get(
                url,
                timeout=(bounds.connect_s, bounds.read_s),
                stream=True,
                # a page to log in is not a result, and headers are not for other hosts
                allow_redirects=False,
            ) as response,
        ):
            read_bounded(response, ResponseBound(bounds.response_bytes))
            return response.status_code, response.content


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
