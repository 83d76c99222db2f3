"""Sends requests to servers that accept results; retries while a server is busy or unreachable."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import requests

from osbench.plugin.durations import DURATION
from osbench.plugin.errors import ExportError
from osbench.plugin.formatting import mask_text, mask_url, plain
from osbench.plugin.sessions import bounded_session

#: Seconds until a connection or a reply is given up.
TIMEOUT_S = 30.0
#: How often something is sent at most, and the seconds before the second time; they double.
TRIES = 7
PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
#: Schema of the option `pause_s`.
PAUSE: Mapping[str, Any] = {
    **DURATION,
    "minimum": 0,
    "default": PAUSE_S,
    "description": "seconds before something is sent again; they double each time",
}

#: Status codes of a server, or a proxy before it, that may take the same request later.
BUSY = frozenset({429, 502, 503, 504})


class Poster:
    """An HTTP client that posts to one server and retries.

    Credentials are read from the URL, else from ~/.netrc. `pause_s`: seconds before the second
    attempt.
    """

    def __init__(self, headers: Mapping[str, str], pause_s: float = PAUSE_S) -> None:
        self._session = bounded_session()
        self._session.headers.update(headers)
        self._pause_s = pause_s

    def post(self, url: str, body: bytes) -> requests.Response:
        """POST `body` until the server accepts it; return the response.

        After network errors and the statuses in `BUSY` it is sent again, in all `TRIES` times.
        Redirects are not followed. Raises ExportError for other statuses, an invalid URL, and after
        the last attempt.
        """
        problem = ""
        for _ in self.pauses():
            try:
                # a redirected request would lose its body
                response = self._session.post(
                    url, data=body, timeout=TIMEOUT_S, allow_redirects=False
                )
            except requests.RequestException as error:
                problem = f"{type(error).__name__}: {error}"
                if isinstance(error, ValueError):  # the URL is wrong, and remains so
                    break
                continue
            problem = f"HTTP {response.status_code} {plain(mask_text(response.text), 300)}".strip()
            if response.ok and response.status_code < 300:
                return response
            if response.status_code not in BUSY:
                break
        raise ExportError(
            f"{mask_url(url)}: {plain(mask_text(problem), 500)}; check address and credentials, "
            "then export again"
        )

    def pauses(self) -> Iterator[None]:
        """Yield `TRIES` times, once for each attempt; sleep before each but the first.

        The sleep doubles each time, up to `LONGEST_PAUSE_S`.
        """
        pause_s = self._pause_s
        for attempt in range(TRIES):
            if attempt:
                time.sleep(min(pause_s, LONGEST_PAUSE_S))
                pause_s *= 2
            yield
