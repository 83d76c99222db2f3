"""A session of keystoneauth1 for each thread: neither it nor what it sends by may be shared.

A thread keeps its connections, one a host. Virtual users that wait for an answer therefore hold a
connection each, none is closed after a request, and no port is left waiting for its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import requests
from keystoneauth1.session import Session, TCPKeepAliveAdapter

import osbench
from osbench.common.deployment.record import Credential

#: Hosts to which a thread keeps a connection; a further one replaces the one not used longest.
HOSTS_KEPT = 16


def plain_transport() -> requests.Session:
    """What a session sends by, with connections that are kept."""
    transport = requests.Session()
    keep_connections(transport)
    return transport


def keep_connections(transport: requests.Session) -> None:
    """Have a thread's transport keep one connection to each of a few hosts."""
    for scheme in ("http://", "https://"):
        transport.mount(scheme, TCPKeepAliveAdapter(pool_connections=HOSTS_KEPT, pool_maxsize=1))


class ThreadSessions:
    """Gives each thread its session, without credential."""

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
