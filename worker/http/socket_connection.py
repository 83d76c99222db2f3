"""An HTTP connection over a blocking socket, whose time limits the kernel enforces."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Sequence
from time import monotonic_ns

from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.server_names import peer_of
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.response_parser import ResponseParser
from osbench.worker.http.wire.tls_channel import TlsChannel
from osbench.worker.http.wire.wire_errors import EarlyEnd, ReceiveTimedOut
from osbench.worker.http.wire.wire_request import WireRequest

#: Bytes that are received at once. More would be allocated for each response.
_PIECE = 64 * 1024

#: A connection that rests for longer is looked at before it is used, ns.
_RESTED_NS = 1_000_000


class SocketConnection:
    """An HTTP connection over a blocking socket, used by one thread at a time."""

    __slots__ = ("_limited_s", "_parser", "_rested_ns", "_socket", "_tls", "_used", "sent")

    def __init__(self, sock: socket.socket, tls: TlsChannel | None) -> None:
        self._socket = sock
        self._tls = tls
        self._parser = ResponseParser()
        # what connecting has left
        self._limited_s = -1.0
        self._rested_ns = 0
        self._used = 0
        #: Some bytes of the last request went out.
        self.sent = False

    def __del__(self) -> None:
        # a thread that ends leaves its connections
        self._socket.close()

    def close(self) -> None:
        """Close the connection at once."""
        self._socket.close()

    @property
    def untouched(self) -> bool:
        """Return whether no byte of the response to the last request has arrived."""
        return self._parser.untouched

    @property
    def in_body(self) -> bool:
        """Return whether the head of the last request's response has arrived, but not all of it."""
        return self._parser.in_body

    @property
    def peer(self) -> str:
        """Return the address of the server, IP:PORT."""
        return peer_of(self._socket)

    @property
    def reusable(self) -> bool:
        """Return whether another request may follow; valid after a complete response."""
        return self._parser.reusable

    @property
    def tls(self) -> TlsChannel | None:
        """Return the TLS channel of the connection; None for plain HTTP."""
        return self._tls

    def spoilt(self, now_ns: int, *, certainly: bool = False) -> bool:
        """Return whether an idle connection is unusable: closed by the peer, or with unasked bytes.

        The socket is polled after the first response, after 1 ms of rest until `now_ns`
        (monotonic), or with `certainly`; else False is returned, because a system call more for
        each request would cost a tenth of it.
        """
        if self._used > 1 and not certainly and now_ns - self._rested_ns < _RESTED_NS:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def exchange(
        self,
        request: WireRequest,
        own: Sequence[str],
        limits: RequestLimits,
        phases: ExchangePhases,
        *,
        keep_body: bool,
    ) -> RawResponse:
        """Send a request and return its complete response; note times and bytes in `phases`.

        `own`: header lines to add. `limits` count from `phases.begun_ns`. Without `keep_body` the
        body is read and discarded. Raises BadResponse, EarlyEnd and ReceiveTimedOut; the caller
        closes the connection then.
        """
        parser = self._parser
        parser.expect(bodiless=request.bodiless, keep_body=keep_body, bound=limits.bound)
        if phases.connected_ns or limits.wait_s:
            self._bound(limits, phases.begun_ns)
        elif self._limited_s != limits.whole_s:
            # a kept connection has the limit of the request before, mostly
            self._limit(limits.whole_s)
        self._used += 1
        data = request.data(own)
        phases.sent_bytes = len(data) + len(request.rest)
        try:
            whole = self._send(data, request.rest, limits, phases)
            self._receive(limits, phases)
        except BlockingIOError:
            raise ReceiveTimedOut("timed out") from None
        except OSError as error:
            if isinstance(error, ConnectionError | TimeoutError) and error.errno is None:
                raise
            raise EarlyEnd(error.strerror or "the connection failed") from error
        finally:
            # also the bytes of a response that is cut
            phases.received_bytes = parser.received
        phases.ended_ns = self._rested_ns = monotonic_ns()
        if not whole:
            parser.reusable = False
        return parser.answer(request, phases)

    def _send(
        self, data: bytes, rest: bytes, limits: RequestLimits, phases: ExchangePhases
    ) -> bool:
        """Send head and body; return False if the peer closed the connection before all was sent.

        A response may have come nevertheless. `rest`: a large body, sent after `data`. Raises
        ReceiveTimedOut, EarlyEnd and OSError.
        """
        sock, tls = self._socket, self._tls
        try:
            wire = data if tls is None else tls.wrap(data)
            self.sent = False
            sent = sock.send(wire)
            self.sent = True
            if sent == len(wire) and not rest:
                return True
            self._send_all(memoryview(wire)[sent:], limits, phases)
            for at in range(0, len(rest), _PIECE):
                piece = rest[at : at + _PIECE]
                wire = piece if tls is None else tls.wrap(piece)
                self._send_all(memoryview(wire), limits, phases)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _send_all(self, left: memoryview, limits: RequestLimits, phases: ExchangePhases) -> None:
        while left:
            self._bound(limits, phases.begun_ns)
            left = left[self._socket.send(left) :]

    def _receive(self, limits: RequestLimits, phases: ExchangePhases) -> None:
        """Receive and parse bytes until the response is complete; note the time of the first byte.

        Raises BadResponse, EarlyEnd, ReceiveTimedOut and OSError.
        """
        sock, tls, parser = self._socket, self._tls, self._parser
        while True:
            received = sock.recv(_PIECE)
            if tls is not None and received:
                received = tls.unwrap(received)
                words = tls.last_words()
                if words:
                    sock.sendall(words)
                if not received and not tls.ended:
                    self._bound(limits, phases.begun_ns)
                    continue
            if not received:
                parser.end()
                return
            if not phases.first_byte_ns:
                phases.first_byte_ns = monotonic_ns()
            if parser.take(received):
                return
            if tls is not None and tls.ended:
                parser.end()
                return
            self._bound(limits, phases.begun_ns)

    def _bound(self, limits: RequestLimits, begun_ns: int) -> None:
        """Set the time limit of the next wait on the socket: of one wait, or of the whole request.

        The shorter one counts. `begun_ns`: beginning of the request, monotonic ns. Raises
        ReceiveTimedOut if no time is left.
        """
        wait_s = limits.wait_s
        if limits.whole_s:
            left_s = limits.whole_s - (monotonic_ns() - begun_ns) / 1e9
            if left_s <= 0:
                raise ReceiveTimedOut("timed out")
            wait_s = min(wait_s, left_s) if wait_s else left_s
        limited_s = self._limited_s
        # a system call less for most pieces of a response
        if not (wait_s <= limited_s <= wait_s * 1.1):
            self._limit(wait_s)

    def _limit(self, wait_s: float) -> None:
        bound_waits(self._socket, wait_s)
        self._limited_s = wait_s


def bound_waits(sock: socket.socket, wait_s: float) -> None:
    """Bound each later send and receive of a blocking socket to `wait_s` seconds; 0: no limit.

    The kernel enforces it; calls raise BlockingIOError at the limit. Python's own timeout would
    cost a poll for each call.
    """
    limit = struct.pack("@ll", int(wait_s), max(1, int(wait_s % 1 * 1e6)) if wait_s else 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
