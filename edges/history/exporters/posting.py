"""Sends requests to servers that accept results; retries while a server is busy or unreachable.

A server has a total of time for all requests of an export; after it the export is given up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import requests

from osbench.plugin.durations import DURATION
from osbench.plugin.errors import ExportError
from osbench.plugin.formatting import mask_text, mask_url, plain
from osbench.plugin.sessions import bounded_session

#: Seconds until a connection or a complete response is given up.
TIMEOUT_S = 30.0
#: Seconds for all requests of a `Poster`, attempts and pauses included; and the bytes of request
#: bodies for each of which it has a second more.
TOTAL_S = 120.0
LEAST_BYTES_S = 64 << 10
#: How often something is sent at most, and the seconds before the second time; they double.
TRIES = 7
PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
#: Bytes of a refusal that a message may repeat.
_TOLD_BYTES = 2000
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
        self._session = bounded_session(TIMEOUT_S)
        self._session.headers.update(headers)
        self._pause_s = pause_s
        #: Monotonic seconds; None before the first request.
        self._until: float | None = None

    def post(self, url: str, body: bytes) -> requests.Response:
        """POST `body` until the server accepts it; return the response.

        After network errors and the statuses in `BUSY` it is sent again, in all `TRIES` times.
        Redirects are not followed. Raises ExportError for other statuses, an invalid URL, after the
        last attempt, and if the total of time is over.
        """
        problem = ""
        now_s = time.monotonic()
        until = now_s + TOTAL_S if self._until is None else self._until
        self._until = until + len(body) / LEAST_BYTES_S
        if now_s > self._until:
            raise ExportError(
                f"{mask_url(url)} is too slow for this amount of data; export again when it "
                "is less busy"
            )
        for _ in self.pauses():
            try:
                # a redirected request would lose its body
                response = self._session.post(
                    url, data=body, timeout=TIMEOUT_S, allow_redirects=False
                )
            except requests.Timeout:
                problem = f"no complete response within {TIMEOUT_S:g} s"
                continue
            except requests.RequestException as error:
                problem = f"{type(error).__name__}: {error}"
                if isinstance(error, ValueError):  # the URL is wrong, and remains so
                    break
                continue
            if response.ok and response.status_code < 300:
                return response
            # all of it may be long, and its encoding would be guessed
            said = response.content[:_TOLD_BYTES].decode(errors="replace")
            problem = f"HTTP {response.status_code} {plain(mask_text(said), 300)}".strip()
            if response.status_code not in BUSY:
                break
        raise ExportError(
            f"{mask_url(url)}: {plain(mask_text(problem), 500)}; check address and credentials, "
            "then export again"
        )

    def pauses(self) -> Iterator[None]:
        """Yield `TRIES` times, once for each attempt; sleep before each but the first.

        The sleep doubles each time, up to `LONGEST_PAUSE_S`. Ends earlier if the total of time is
        over.
        """
        pause_s = min(self._pause_s, LONGEST_PAUSE_S)
        for attempt in range(TRIES):
            if attempt:
                if self._until is not None and time.monotonic() + pause_s > self._until:
                    return
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            yield
