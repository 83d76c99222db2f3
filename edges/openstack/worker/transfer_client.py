"""HTTP client for large bodies: sends them in pieces, discards downloads, counts all bytes.

It is osbench's client of threads with other connections: memory does not grow with a body, and the
record of a request has its bytes as they go, so that it is right when a transfer is cut off.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from time import monotonic_ns
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from osbench.common.network.causes import with_remedy
from osbench.common.network.environment_proxy import proxy_of, shown_proxy
from osbench.common.network.response_bound import UNBOUNDED, ResponseBound
from osbench.common.plugin.atomic import Recorder
from osbench.edges.openstack.common.object_body import ObjectBody
from osbench.worker.http.addresses import shown_url
from osbench.worker.http.blocking_driver import drive
from osbench.worker.http.exchange_rules import ExchangeRules
from osbench.worker.http.exchange_steps import Wrap
from osbench.worker.http.opening import Opener
from osbench.worker.http.own_connections import with_connections
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.socket_client import ThreadConnections
from osbench.worker.http.socket_connection import SocketConnection
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.response_head import ResponseHead
from osbench.worker.http.wire.response_parser import ResponseParser
from osbench.worker.http.wire.tls_channel import TlsChannel
from osbench.worker.http.wire.wire_errors import BadResponse

#: Most bytes of a body that is kept: a list, or the body of an error.
KEPT = ResponseBound(16 << 20)
#: Connections that a thread keeps.
_HOSTS = 16
#: Bytes that are sent at once.
_PIECE = 64 * 1024
_ERRORS = 400
_PORTS = {"http": 80, "https": 443}


class TransferAnswer(NamedTuple):
    """The response to a transfer."""

    status: int
    reason: str
    #: By name in lower case; of several values the last.
    headers: Mapping[str, str]
    #: Empty if it was discarded.
    body: bytes
    #: Bytes of the body, kept or not.
    body_bytes: int
    #: Seconds from a connection that was ready to the end of the response.
    lasted_s: float


class TransferRequest:
    """A `WireRequest` whose body may be an `ObjectBody`, which is sent in pieces."""

    last = False

    def __init__(
        self,
        verb: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | ObjectBody | None = None,
        trust: object = None,
    ) -> None:
        """`url` is encoded. `trust`: TLS settings. `headers` have no length and no Host."""
        parts = urlsplit(url)
        self.verb, self.url = verb, url
        self.host = parts.hostname or ""
        self.secure = parts.scheme == "https"
        self.port = parts.port or _PORTS[parts.scheme]
        self.trust = trust
        self.origin = (self.host, self.port, trust if self.secure else None, self.secure)
        self.bodiless = verb == "HEAD"
        # a large body that was cut off is a failure, also over a connection that was kept
        self.repeatable = body is None and verb in ("GET", "HEAD", "DELETE")
        host = f"[{self.host}]" if ":" in self.host else self.host
        named = host if self.port == _PORTS[parts.scheme] else f"{host}:{self.port}"
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [f"{verb} {target} HTTP/1.1", f"Host: {named}", *map(": ".join, headers.items())]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        together = body is not None and len(body) <= _PIECE
        self._head = head + body[:] if body is not None and together else head
        #: Sliced as bytes are; a body of a few kB goes with the head.
        self.rest: Any = b"" if body is None or together else body

    def data(self, own: Sequence[str]) -> bytes:
        """Return the bytes of the head, and of a body up to 64 KiB; `own` is ignored."""
        return self._head


class _CountedBody:
    """A body of which only the size is kept."""

    def __init__(self) -> None:
        self.size = 0

    def append(self, piece: bytes) -> None:
        self.size += len(piece)


class _TransferParser(ResponseParser):
    """A parser that keeps bodies of errors, and discards others if `discards` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.discards = False
        self.phases: ExchangePhases | None = None

    def expect(self, *, bodiless: bool, keep_body: bool, bound: ResponseBound = UNBOUNDED) -> None:
        """Prepare for a response, whose body is kept until its status is known."""
        super().expect(bodiless=bodiless, keep_body=True, bound=bound)
        self.discards = not keep_body

    def take(self, data: bytes) -> bool:
        """Take bytes as `ResponseParser` does, and note their number in the phases."""
        whole = super().take(data)
        if self.phases is not None:
            self.phases.received_bytes = self.received
        return whole

    def _begin(self, head: ResponseHead) -> None:
        if self.discards and head.status < _ERRORS:
            counted: Any = _CountedBody()
            self._body = counted
        super()._begin(head)

    @property
    def body_bytes(self) -> int:
        """Return the bytes of the body so far."""
        body: Any = self._body
        return body.size if isinstance(body, _CountedBody) else sum(map(len, body or ()))


class TransferConnection(SocketConnection):
    """A connection that counts the bytes of a request as the kernel takes them."""

    def __init__(self, sock: Any, tls: TlsChannel | None) -> None:
        super().__init__(sock, tls)
        self._parser: _TransferParser = _TransferParser()

    @property
    def body_bytes(self) -> int:
        """Return the bytes of the last response's body."""
        return self._parser.body_bytes

    def exchange(self, *args: Any, **options: Any) -> RawResponse:
        """Send a request and return its response, as `SocketConnection.exchange` does."""
        self._parser.phases = args[3]
        return super().exchange(*args, **options)

    def _send(self, data: bytes, rest: Any, limits: RequestLimits, phases: ExchangePhases) -> bool:
        phases.sent_bytes = 0
        self.sent = False
        try:
            self._put(data, limits, phases)
            for at in range(0, len(rest), _PIECE):
                self._put(rest[at : at + _PIECE], limits, phases)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _put(self, plain: bytes, limits: RequestLimits, phases: ExchangePhases) -> None:
        """Send bytes; with TLS a part of them counts by the share of its record that is sent."""
        wire = memoryview(plain if self._tls is None else self._tls.wrap(plain))
        before, whole = phases.sent_bytes, len(wire)
        while wire:
            self._bound(limits, phases.begun_ns)
            wire = wire[self._socket.send(wire) :]
            self.sent = True
            phases.sent_bytes = before + len(plain) * (whole - len(wire)) // whole


class _Pool(ThreadConnections):
    """Idle connections of a thread; it remembers the connection that was last put back."""

    body_bytes = 0

    def put(self, origin: object, connection: SocketConnection) -> None:
        assert isinstance(connection, TransferConnection)
        self.body_bytes = connection.body_bytes
        super().put(origin, connection)


class _PoolByThread(threading.local):
    def __init__(self) -> None:
        self.pool = _Pool(_HOSTS)


class TransferClient:
    """Makes requests with large bodies, for all threads of a process; redirects are not followed.

    Shared by the virtual users of a workload. Idle connections are kept by thread.
    """

    def __init__(self, wait_s: float, opener: Opener | None = None) -> None:
        """`wait_s`: longest time to connect, and wait for bytes to be taken or to come, seconds."""
        self._rules = ExchangeRules(opener or Opener())
        self._limits = RequestLimits(connect_s=wait_s, wait_s=wait_s, bound=KEPT)
        self._by_thread = _PoolByThread()

    def exchange(
        self, request: TransferRequest, recorder: Recorder, *, keep_body: bool = False
    ) -> TransferAnswer:
        """Make a request and return its response; `recorder` gets its times and bytes.

        Bodies of statuses from 400 on are kept, others only with `keep_body`. Raises
        TimeoutError and ConnectionError, whose message has the bytes so far of a transfer that was
        cut off.
        """
        phases = ExchangePhases(monotonic_ns())
        recorder.ask(phases)
        pool = self._by_thread.pool
        try:
            steps = self._rules.exchange(
                pool, request, (), self._limits, phases, keep_body=keep_body
            )
            response = drive(with_connections(steps, make=_transfer_connection))
        except (ConnectionError, TimeoutError) as error:
            raise type(error)(_failure(request, phases, error)) from error
        finally:
            recorder.end_exchange(phases)
        kept = keep_body or response.status >= _ERRORS
        return TransferAnswer(
            response.status,
            response.reason.strip(),
            dict(response.fields),
            response.body() if kept else b"",
            pool.body_bytes,
            (phases.wait_ns + phases.rest_ns) / 1e9,
        )


def refused_proxy(url: str) -> str:
    """Return why no transfer can go to `url`, a proxy of the environment; "" without one."""
    proxy = proxy_of(url)
    if not proxy:
        return ""
    return (
        f"{shown_url(url)} is behind the proxy {shown_proxy(proxy)} of the environment, which"
        " transfers cannot use; name the host in no_proxy"
    )


def _failure(request: TransferRequest, phases: ExchangePhases, error: Exception) -> str:
    remedy = error.remedy if isinstance(error, BadResponse) else ""
    text = f"{request.verb} {shown_url(request.url)}: {with_remedy(str(error))}{remedy}"
    if phases.sent_bytes or phases.received_bytes:
        text += f"; {phases.sent_bytes:,} bytes sent, {phases.received_bytes:,} bytes received"
    return text


def _transfer_connection(step: Wrap) -> TransferConnection:
    return TransferConnection(step.socket, step.tls)
