"""Steps of an exchange that wait for the network: generators yield them and drivers do them.

A driver sends the outcome of each step into the generator, or throws its error. Calls that do not
wait are made directly. `blocking_driver` and `on_loop.loop_driver` are the drivers.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, TypeVar

from osbench.worker.http.name_lookups import Address
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.tls_channel import TlsChannel
from osbench.worker.http.wire.wire_request import WireRequest

#: Bytes of a TLS handshake that are received at once.
PIECE = 64 * 1024

#: If a request has no limit, the kernel looks after 60 s of silence whether the peer is there,
#: and gives up 60 s later, as in keystoneauth1.
_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)


class HttpConnection(Protocol):
    """A connection that carries one request after another."""

    @property
    def untouched(self) -> bool:
        """Return whether not a byte of the response has arrived."""

    @property
    def in_body(self) -> bool:
        """Return whether the head of the response has arrived."""

    @property
    def sent(self) -> bool:
        """Return whether some bytes of the last request may have gone out."""

    @property
    def tls(self) -> TlsChannel | None:
        """Return the TLS of a connection of a secure origin."""

    def close(self) -> None:
        """Close the connection, whatever it is doing."""


class ConnectionPool(Protocol):
    """Idle connections, by origin."""

    def take(
        self, origin: object, now_ns: int, *, certainly: bool = False
    ) -> HttpConnection | None:
        """Take out a connection that can carry a request; `certainly` checks it in any case."""

    def put(self, origin: object, connection: Any) -> None:
        """Keep a connection after a response, if it can carry another request."""


class LookUp(NamedTuple):
    """Wait for the addresses of a host, which others may wait for too."""

    pending: Future[list[Address]]
    limit_s: float | None


class Connect(NamedTuple):
    """Connect to an address; the outcome is a socket."""

    address: Address
    limit_s: float | None
    #: No limit bounds the waits for responses.
    unlimited: bool

    def socket(self) -> socket.socket:
        """Return a new socket for it. Raises OSError."""
        made = socket.socket(self.address[0], socket.SOCK_STREAM)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option in _ALIVE if self.unlimited else ():
            made.setsockopt(*option)
        return made


class Read(NamedTuple):
    """Call a function that reads files; the outcome is its return value."""

    function: Callable[[], Any]
    limit_s: float | None


class Send(NamedTuple):
    """Send all of some bytes of a TLS handshake."""

    socket: socket.socket
    data: bytes
    limit_s: float | None


class Receive(NamedTuple):
    """Receive bytes of a TLS handshake; b"" at the end of the stream."""

    socket: socket.socket
    limit_s: float | None


class Wrap(NamedTuple):
    """Make a connection of a socket."""

    socket: socket.socket
    tls: TlsChannel | None


class Sending(NamedTuple):
    """A request with its header lines, limits and phases, to be sent."""

    request: WireRequest
    #: Header lines for the first host only.
    own: Sequence[str]
    limits: RequestLimits
    phases: ExchangePhases
    keep_body: bool


class Ask(NamedTuple):
    """Send a request over a connection and receive its response.

    Raises BadResponse, EarlyEnd and ReceiveTimedOut; the connection has to be closed then.
    """

    connection: Any
    sending: Sending


class LookAt(NamedTuple):
    """Look at the body of a response. Raises TooLongResponse."""

    answer: RawResponse


#: Steps with a time limit raise TimeoutError, without a number, when it is over.
Step = LookUp | Connect | Read | Send | Receive | Wrap | Ask | LookAt

T = TypeVar("T")
Steps = Generator[Step, Any, T]
