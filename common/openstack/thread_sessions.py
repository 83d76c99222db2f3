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


def keep_connections(transport: requests.Session) -> None:
    """Make a thread's transport keep one connection to each of up to `HOSTS_KEPT` hosts.

    It reads responses within `ANSWER_BYTES`.
    """
    for scheme in ("http://", "https://"):
        transport.mount(scheme, TCPKeepAliveAdapter(pool_connections=HOSTS_KEPT, pool_maxsize=1))
    transport.hooks["response"].append(_read)


def _read(response: requests.Response, *, stream: bool = False, **_: object) -> None:
    """Read a response that is not streamed: what a service sends is not to fill the memory.

    Raises requests.RequestException where it is larger than `ANSWER_BYTES`, unpacked.
    """
    if stream:
        return
    parts, size = [], 0
    for part in response.iter_content(CHUNK_BYTES):
        parts.append(part)
        size += len(part)
        if size > ANSWER_BYTES:
            response.close()
            text = f"a response of more than {ANSWER_BYTES:,} bytes"
            raise requests.RequestException(text, response=response)
    response._content = b"".join(parts)


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
