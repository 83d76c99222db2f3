"""Times of the phases of an HTTP request, and the bytes sent and received."""

from __future__ import annotations

from typing import TYPE_CHECKING

from osbench.common.protocol.exchanges import (
    FALSE_BODY,
    OWN,
    OWN_TWICE,
    PER_SERVER,
    pack_exchange,
    pack_kept,
)

if TYPE_CHECKING:
    from osbench.common.plugin.atomic import UnderWay


class ExchangePhases:
    """Times of one request and its response, on the monotonic clock in ns; filled in as it goes.

    A phase that did not happen, such as connecting over a kept connection, leaves its time 0.
    """

    __slots__ = (
        "action",
        "before",
        "begun_ns",
        "connected_ns",
        "ended_ns",
        "false_body",
        "first_byte_ns",
        "looked_up_ns",
        "over",
        "received_bytes",
        "retried",
        "secured_ns",
        "sent_bytes",
        "server",
        "status",
    )

    # set when a recorder is given the request (`UnderWay`)
    action: int
    before: UnderWay | None
    over: bool

    def __init__(self, begun_ns: int) -> None:
        self.begun_ns = begun_ns
        #: The addresses of the host are known; 0 over a kept connection, as the next two.
        self.looked_up_ns = 0
        self.connected_ns = 0
        #: TLS is established; 0 without TLS, too.
        self.secured_ns = 0
        self.first_byte_ns = 0
        self.ended_ns = 0
        #: Bytes of the request and of the response with their heads, without TLS.
        self.sent_bytes = 0
        self.received_bytes = 0
        #: Number of the server among the names of actions, from 1; 0 if it is not noted.
        self.server = 0
        #: Status code of the response; 0 before it is complete.
        self.status = 0
        #: The kept connection ended without a response: the request was sent again over a new one.
        self.retried = False
        #: The body is cut short or not in the content codings of its head.
        self.false_body = False

    def packed(self, action: int) -> bytes:
        """Return the record of the request, packed for a result block.

        It has client, durations, bytes and status. `action` is the position of the requesting
        action in its iteration. A phase that took place lasts at least 1 ns.
        """
        first_ns, ended_ns = self.first_byte_ns, self.ended_ns
        status = self.status | FALSE_BODY if self.false_body else self.status
        sent, received = self.sent_bytes, self.received_bytes
        # a clock that stood still: what took place lasts 1 ns at least
        if ended_ns and not self.connected_ns:
            # over a kept connection, as most are
            wait_ns, rest_ns = first_ns - self.begun_ns or 1, ended_ns - first_ns or 1
            own = OWN - PER_SERVER * self.server
            return pack_kept(action, own, wait_ns, rest_ns, sent, received, status)
        opening = (
            self.looked_up_ns and (self.lookup_ns or 1),
            self.connected_ns and (self.connect_ns or 1),
            self.secured_ns and (self.tls_ns or 1),
        )
        wait_ns, rest_ns = first_ns and (self.wait_ns or 1), ended_ns and (self.rest_ns or 1)
        times = (*opening, wait_ns, rest_ns)
        client = (OWN_TWICE if self.retried else OWN) - PER_SERVER * self.server
        return pack_exchange(action, client, *times, sent, received, status)

    @property
    def lookup_ns(self) -> int:
        """Return the duration of the name lookup, ns; 0 without one.

        After a failed attempt over an idle connection it includes that attempt.
        """
        return self.looked_up_ns - self.begun_ns if self.looked_up_ns else 0

    @property
    def connect_ns(self) -> int:
        """Return the duration of connecting, ns, without name lookup and TLS; 0 without it."""
        return self.connected_ns - self.looked_up_ns if self.connected_ns else 0

    @property
    def tls_ns(self) -> int:
        """Return the duration of the TLS handshake, ns; 0 without one."""
        return self.secured_ns - self.connected_ns if self.secured_ns else 0

    @property
    def wait_ns(self) -> int:
        """Return the time from a connection that is ready to the first bytes of the response, ns.

        Ready: connected, with TLS if any; for a reused connection, when the request began. Sending
        is included. 0 if no bytes came.
        """
        ready_ns = self.secured_ns or self.connected_ns or self.begun_ns
        return self.first_byte_ns - ready_ns if self.first_byte_ns else 0

    @property
    def rest_ns(self) -> int:
        """Return the time from the first to the last bytes of the response, ns; 0 if incomplete."""
        return self.ended_ns - self.first_byte_ns if self.ended_ns else 0
