"""Steps of an HTTP exchange that wait for the network, as data.

Generators yield them, and a driver does them: it sends the outcome of each step into the generator,
or throws its error. Calls that do not wait are made directly. `blocking_driver` and
`on_loop.loop_driver` are the drivers.
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
    """The part of a connection that the exchange rules use; it carries one request at a time.

    Implemented for blocking sockets and for event loops.
    """

    @property
    def untouched(self) -> bool:
        """Return whether no byte of the response to the last request has arrived."""

    @property
    def in_body(self) -> bool:
        """Return whether the head of the last request's response has arrived, but not all of it."""

    @property
    def sent(self) -> bool:
        """Return whether some bytes of the last request may have been sent to the peer."""

    @property
    def tls(self) -> TlsChannel | None:
        """Return the TLS channel of the connection; None for plain HTTP."""

    @property
    def peer(self) -> str:
        """Return the address of the server, IP:PORT."""

    def close(self) -> None:
        """Close the connection at once, even during an exchange."""


class ConnectionPool(Protocol):
    """The idle connections of a thread or an event loop, by origin (host, port, TLS settings)."""

    def take(
        self, origin: object, now_ns: int, *, certainly: bool = False
    ) -> HttpConnection | None:
        """Remove and return a usable idle connection to `origin`; None if there is none.

        `now_ns`: monotonic ns. A connection used a moment before is believed to be open;
        `certainly` checks it, too.
        """

    def put(self, origin: object, connection: Any) -> None:
        """Keep a connection for later requests to `origin`; close it if it cannot carry another."""


class LookUp(NamedTuple):
    """Step: wait until a name lookup is done; the outcome is the list of addresses.

    `pending`: the lookup, which other requests may wait for, too. `limit_s`: seconds, None for no
    limit.
    """

    pending: Future[list[Address]]
    limit_s: float | None


class Connect(NamedTuple):
    """Step: connect to an address; the outcome is a connected socket. Raises OSError.

    `limit_s`: seconds, None for no limit.
    """

    address: Address
    limit_s: float | None
    #: No limit bounds the waits for responses.
    unlimited: bool

    def socket(self) -> socket.socket:
        """Return a new TCP socket for the address, not yet connected. Raises OSError.

        Nagle's algorithm is off. Keepalive probes are on if no limit bounds the waits.
        """
        made = socket.socket(self.address[0], socket.SOCK_STREAM)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option in _ALIVE if self.unlimited else ():
            made.setsockopt(*option)
        return made


class Read(NamedTuple):
    """Step: call a function that reads files; the outcome is its return value.

    Only the driver of event loops enforces `limit_s` (seconds).
    """

    function: Callable[[], Any]
    limit_s: float | None


class Send(NamedTuple):
    """Step: send all bytes of `data`, which belong to a TLS handshake. Raises OSError.

    The outcome is None. `limit_s`: seconds, None for no limit.
    """

    socket: socket.socket
    data: bytes
    limit_s: float | None


class Receive(NamedTuple):
    """Step: receive some bytes of a TLS handshake; the outcome is b"" at the end of the stream."""

    socket: socket.socket
    limit_s: float | None


class Wrap(NamedTuple):
    """Step: make an HttpConnection of the driver's kind from a connected socket; the outcome is it.

    `tls` is None for plain HTTP.
    """

    socket: socket.socket
    tls: TlsChannel | None


class Sending(NamedTuple):
    """The arguments of sending one request over a connection, which `Ask` carries."""

    request: WireRequest
    #: Header lines for the first host only.
    own: Sequence[str]
    limits: RequestLimits
    phases: ExchangePhases
    keep_body: bool


class Ask(NamedTuple):
    """Step: send a request over a connection; the outcome is its complete response.

    Raises BadResponse, EarlyEnd and ReceiveTimedOut; the connection has to be closed then.
    """

    connection: Any
    sending: Sending


class LookAt(NamedTuple):
    """Step: check a body against its content codings; set `false_body` of the response's phases.

    Raises TooLongResponse if a body that is kept decodes to too many bytes.
    """

    answer: RawResponse


#: Steps with a time limit raise TimeoutError, without a number, when it is over; `Read` only on an
#: event loop.
Step = LookUp | Connect | Read | Send | Receive | Wrap | Ask | LookAt

T = TypeVar("T")
Steps = Generator[Step, Any, T]
