"""A session of keystoneauth1 per thread: neither it nor its transport may be shared.

A thread keeps one connection per host. So each virtual user has its own connection, none is closed
after a request, and no port is left in TIME_WAIT.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import requests
from keystoneauth1.session import Session, TCPKeepAliveAdapter

import osbench
from osbench.common.deployment.credential import Credential
from osbench.common.network.bounded_adapter import EXCHANGE_S, BoundedAdapter
from osbench.common.network.response_bound import USUAL, ResponseBound
from osbench.edges.openstack.common.home_session import HomeSession

#: Hosts to which a thread keeps a connection; the least recently used one is replaced.
HOSTS_KEPT = 16


def plain_transport() -> requests.Session:
    """Return a new session of requests as transport for keystoneauth1.

    Connections persist, exchanges are limited in bytes and time, secret headers stay at their
    origin.
    """
    transport = HomeSession()
    keep_connections(transport, total_s=EXCHANGE_S)
    return transport


class KeepAliveAdapter(BoundedAdapter, TCPKeepAliveAdapter):
    """Adapter of requests with TCP keep-alive and limited response bodies."""


def keep_connections(
    transport: requests.Session, bound: ResponseBound = USUAL, total_s: float | None = None
) -> None:
    """Make a transport keep at most one connection to each of up to `HOSTS_KEPT` hosts.

    Replaces its adapters. `bound`: the size limit of responses. `total_s`: seconds for a request
    and its response, and one more for each 64 KiB of them; None for any time.
    """
    for scheme in ("http://", "https://"):
        adapter = KeepAliveAdapter(
            bound, total_s=total_s, pool_connections=HOSTS_KEPT, pool_maxsize=1
        )
        transport.mount(scheme, adapter)


class ThreadSessions:
    """Returns a session of keystoneauth1, without credential, for each thread that calls it."""

    def __init__(
        self,
        credential: Credential,
        timeout_s: float,
        transport: Callable[[], requests.Session] = plain_transport,
    ) -> None:
        """Store the settings of sessions; none is created yet.

        `credential`: TLS files and checks. `timeout_s`: longest wait for data. `transport`: creates
        the requests session under each session.
        """
        self._credential = credential
        self._timeout_s = timeout_s
        self._transport = transport
        self._discovered: dict[str, Any] = {}
        self._local = threading.local()

    def __call__(self) -> Session:
        """Return the calling thread's session, created at its first call.

        No other thread may use it.
        """
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
