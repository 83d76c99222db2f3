"""libcurl and `requests`, as for proxies, with the rules of a task on connections.

Each thread has its own connections and keeps one source address. libcurl knows ages in whole
seconds only.
"""

from __future__ import annotations

import math
import socket
import threading
from collections.abc import Mapping, Sequence
from time import monotonic_ns
from typing import Any
from urllib.parse import urlsplit

import pycurl
from urllib3 import ProxyManager
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from osbench.common.network.response_bound import ResponseBound
from osbench.edges.flows.ending_connection import EndedConnections, EndRule
from osbench.edges.flows.source_addresses import IP_BIND_ADDRESS_NO_PORT, SourceAddresses
from osbench.worker.http.other_clients.curl_client import CurlClient
from osbench.worker.http.other_clients.requests_client import RequestsClient
from osbench.worker.http.other_clients.turned_adapter import TurnedAdapter

#: CURLOPT_MAXLIFETIME_CONN of libcurl 7.80, seconds; pycurl may have no name for it.
_MAX_LIFETIME = 314

#: Targets whose numbers of requests are kept.
_TARGETS = 64

#: Rule on ends, source addresses (None: the system chooses), and the counter of ends.
Parts = tuple[EndRule, SourceAddresses | None, EndedConnections]


class RuledCurlClient(CurlClient):
    """libcurl whose connections keep the rules of a task."""

    def __init__(self, of_run: Sequence[str], parts: Parts) -> None:
        super().__init__(of_run)
        self._local = _RuledHandle(parts)  # type: ignore[assignment] # with the same attribute


class _RuledHandle(threading.local):
    def __init__(self, parts: Parts) -> None:
        self.curl = _RuledCurl(parts)


class _RuledCurl:
    """A curl handle that sets the options of the rules after each `reset`."""

    def __init__(self, parts: Parts) -> None:
        self._rule, sources, self._ended = parts
        self._source = sources.next_of_any() if sources is not None else ""
        self._curl = pycurl.Curl()
        #: Address and proxy of the next request.
        self._target: dict[int, str] = {}
        #: Requests that may still begin over the connection to a proxy, or through it to a host.
        self._left: dict[tuple[str, str], int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._curl, name)

    def reset(self) -> None:
        curl, rule = self._curl, self._rule
        curl.reset()
        if self._source:
            curl.setopt(pycurl.INTERFACE, f"host!{self._source}")
        if rule.max_age_s:
            curl.setopt(_MAX_LIFETIME, max(1, math.floor(rule.drawn_age_s())))

    def setopt(self, option: int, value: Any) -> None:
        if option in (pycurl.URL, pycurl.PROXY):
            self._target[option] = value
        self._curl.setopt(option, value)

    def perform(self) -> None:
        curl, rule, target = self._curl, self._rule, self._connection_key()
        # without a number yet: this request opens a connection, perhaps one for a single request
        is_last = bool(rule.max_requests) and self._left.get(target, rule.max_requests) == 1
        if is_last:
            curl.setopt(pycurl.FORBID_REUSE, 1)
            self._ended.add("max_requests")
        curl.perform()
        if curl.getinfo(pycurl.NUM_CONNECTS):
            self._left[target] = rule.drawn_requests()
        self._left[target] = self._left.get(target, 0) - 1
        if is_last:
            del self._left[target]
        elif len(self._left) > _TARGETS:
            # libcurl keeps fewer connections
            del self._left[next(iter(self._left))]

    def _connection_key(self) -> tuple[str, str]:
        """Return proxy and origin; "" for the origin of a request that the proxy itself makes."""
        url = urlsplit(self._target.get(pycurl.URL, ""))
        return self._target.get(pycurl.PROXY, ""), url.netloc if url.scheme == "https" else ""


class RuledRequestsClient(RequestsClient):
    """The library `requests` with connections that keep the rules of a task."""

    def __init__(self, of_run: Sequence[str], bound: ResponseBound, parts: Parts) -> None:
        super().__init__(of_run, bound)
        self._parts = parts

    def _new_session(self) -> Any:
        session = super()._new_session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _RuledAdapter(self._parts))
        return session


class _RuledAdapter(TurnedAdapter):
    def __init__(self, parts: Parts) -> None:
        self._rule, sources, self._ended = parts
        self._source = sources.next_of_any() if sources is not None else ""
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, **self._bound())
        self._rule_pools(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> ProxyManager:
        known = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options, **self._bound())
        if not known:
            self._rule_pools(manager)
        return manager

    def _bound(self) -> Mapping[str, Any]:
        """Return the options of pools whose connections come from the source address."""
        if not self._source:
            return {}
        no_port = (socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        return {
            "source_address": (self._source, 0),
            "socket_options": [*HTTPConnection.default_socket_options, no_port],
        }

    def _rule_pools(self, manager: Any) -> None:
        own = {"RULE": self._rule, "ENDED": self._ended}
        manager.pool_classes_by_scheme = {
            scheme: type(kind.__name__, (_EndingPool, kind), own)
            for scheme, kind in manager.pool_classes_by_scheme.items()
        }


class _EndingPool(HTTPConnectionPool):
    """A pool that closes connections by a rule; a closed one opens again with its next request."""

    RULE: EndRule
    ENDED: EndedConnections

    def _get_conn(self, timeout: float | None = None) -> Any:
        connection: Any = super()._get_conn(timeout)
        if connection.sock is not None and 0 < connection.osbench_due_ns <= monotonic_ns():
            self.ENDED.add("max_age")
            connection.close()
        if connection.sock is None:
            # it connects with this request
            age_ns = int(self.RULE.drawn_age_s() * 1e9)
            connection.osbench_left = self.RULE.drawn_requests()
            connection.osbench_due_ns = monotonic_ns() + age_ns if age_ns else 0
        return connection

    def _put_conn(self, conn: Any) -> None:
        if conn is not None and conn.sock is not None:
            conn.osbench_left -= 1
            if conn.osbench_left == 0:
                self.ENDED.add("max_requests")
                conn.close()
        super()._put_conn(conn)
