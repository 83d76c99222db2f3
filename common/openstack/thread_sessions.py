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
from osbench.common.network.bounded_adapter import BoundedAdapter
from osbench.common.network.response_bound import USUAL, ResponseBound
from osbench.common.openstack.home_session import HomeSession

#: Hosts to which a thread keeps a connection; the least recently used one is replaced.
HOSTS_KEPT = 16


def plain_transport() -> requests.Session:
    """Return a new transport of requests with persistent connections and bounded responses."""
    transport = HomeSession()
    keep_connections(transport)
    return transport


class KeepAliveAdapter(BoundedAdapter, TCPKeepAliveAdapter):
    """The adapter of keystoneauth1 with TCP keep-alive, and with a limit on response bodies."""


def keep_connections(transport: requests.Session, bound: ResponseBound = USUAL) -> None:
    """Make a transport keep one connection to each of up to `HOSTS_KEPT` hosts.

    `bound` limits responses.
    """
    for scheme in ("http://", "https://"):
        adapter = KeepAliveAdapter(bound, pool_connections=HOSTS_KEPT, pool_maxsize=1)
        transport.mount(scheme, adapter)


class ThreadSessions:
    """Gives each thread its own session, without a credential."""

    def __init__(
        self,
        credential: Credential,
        timeout_s: float,
        transport: Callable[[], requests.Session] = plain_transport,
    ) -> None:
        """Keep the settings of new sessions; `transport` creates the transport of each.

        `credential` sets how TLS is checked; `timeout_s` is the longest wait for data.
        """
        self._credential = credential
        self._timeout_s = timeout_s
        self._transport = transport
        self._discovered: dict[str, Any] = {}
        self._local = threading.local()

    def __call__(self) -> Session:
        """Return this thread's session, made at its first call; other threads must not use it."""
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
