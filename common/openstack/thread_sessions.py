"""A session of keystoneauth1 per thread: neither it nor its transport may be shared.

A thread keeps one connection per host. So each virtual user has its own connection, none is
closed after a request, and no port is left in TIME_WAIT.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import requests
from keystoneauth1.session import Session, TCPKeepAliveAdapter

import osbench
from osbench.common.deployment.record import Credential

#: Hosts to which a thread keeps a connection; the least recently used one is replaced.
HOSTS_KEPT = 16
#: Largest response of a service that is read as a whole, bytes, and what is read at once.
ANSWER_BYTES = 64 << 20
CHUNK_BYTES = 1 << 16


def plain_transport() -> requests.Session:
    """A transport for a session, with persistent connections."""
    transport = requests.Session()
    keep_connections(transport)
    return transport


class BoundedAdapter(TCPKeepAliveAdapter):
    """Keeps one connection to each of up to `HOSTS_KEPT` hosts, and bounds responses."""

    #: Largest response that is read as a whole, bytes, unpacked.
    answer_bytes = ANSWER_BYTES

    def __init__(self) -> None:
        super().__init__(pool_connections=HOSTS_KEPT, pool_maxsize=1)

    def send(  # type: ignore[override] # all else as in requests
        self, request: requests.PreparedRequest, stream: bool = False, **options: Any
    ) -> requests.Response:
        """Send a request, as in requests.

        Raises requests.RequestException where the response is too large.
        """
        response: requests.Response = super().send(request, stream=stream, **options)
        if not stream:
            read_bounded(response, self.answer_bytes)
        return response


def keep_connections(transport: requests.Session) -> None:
    """Make a thread's transport keep connections, and read responses within `ANSWER_BYTES`."""
    for scheme in ("http://", "https://"):
        transport.mount(scheme, BoundedAdapter())


def read_bounded(response: requests.Response, most_bytes: int) -> None:
    """Read a response: what a service sends is not to fill the memory.

    Raises requests.RequestException where it is larger than `most_bytes`, unpacked.
    """
    parts, size = [], 0
    for part in response.iter_content(CHUNK_BYTES):
        parts.append(part)
        size += len(part)
        if size > most_bytes:
            response.close()
            raise requests.RequestException(too_large(most_bytes), response=response)
    response._content = b"".join(parts)


def too_large(most_bytes: int) -> str:
    """What is said of a response with more bytes than that."""
    return f"a response of more than {most_bytes:,} bytes"


class ThreadSessions:
    """Returns a session per thread, without credential."""

    def __init__(
        self,
        credential: Credential,
        timeout_s: float,
        transport: Callable[[], requests.Session] = plain_transport,
    ) -> None:
        """`credential` says how TLS is checked; `timeout_s` bounds each wait for data."""
        self._credential = credential
        self._timeout_s = timeout_s
        self._transport = transport
        self._discovered: dict[str, Any] = {}
        self._local = threading.local()

    def __call__(self) -> Session:
        """This thread's session; for use by this thread alone."""
        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = Session(
                session=self._transport(),
                verify=self._credential.verify,
                cert=self._credential.cert,
                timeout=self._timeout_s,
                app_name="osbench",
                app_version=osbench.__version__,
                discovery_cache=self._discovered,
            )
        return session
