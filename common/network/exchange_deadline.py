"""A total of time for exchanges with servers: connecting, sending, and each byte of the response.

Timeouts of sockets are for single waits: a server that sends a byte now and then keeps within each
of them for ever.
"""

from __future__ import annotations

import contextlib
import io
import socket
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

#: A transfer may take a second longer for each so many bytes: slower servers are given up.
LEAST_BYTES_S = 64 << 10


@dataclass(kw_only=True)
class Deadline:
    """The end of an exchange; transferred bytes may move it.

    `add` is called by the thread of the exchange only.
    """

    #: Seconds that the exchange may take in total, for messages.
    total_s: float
    #: Monotonic seconds.
    at: float
    #: Bytes that move the end by a second; None if none do.
    least_bytes_s: int | None = None

    @property
    def is_over(self) -> bool:
        """Return whether no time is left."""
        return time.monotonic() >= self.at

    def left_s(self) -> float:
        """Return the seconds that are left; raise TimeoutError if there are none."""
        left_s = self.at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"not over within {self.total_s:g} s")
        return left_s

    def add(self, number: int) -> None:
        """Move the end for `number` transferred bytes, if transfers move it."""
        if self.least_bytes_s is not None:
            self.at += number / self.least_bytes_s

    def limit(self, sock: Any) -> None:
        """Shorten the timeout of a socket to the time that is left. Raises TimeoutError."""
        left_s = self.left_s()
        timeout_s = sock.gettimeout()
        if timeout_s is None or timeout_s > left_s:
            sock.settimeout(left_s)


_DEADLINE: ContextVar[Deadline | None] = ContextVar("osbench_exchange_deadline", default=None)


def present_deadline() -> Deadline | None:
    """Return the deadline of the exchange in progress in this thread; None if it has none."""
    return _DEADLINE.get()


@contextlib.contextmanager
def exchange_within(total_s: float | None, *, transfer: bool = False) -> Iterator[None]:
    """Give all HTTP exchanges in the `with` block a common total, seconds; None changes nothing.

    At its end an exchange fails with TimeoutError, or as its client reports that. An outer total
    that ends earlier stays. `transfer`: each LEAST_BYTES_S bytes of a body add a second. A response
    that is read after the block keeps its deadline. Only for connections of `bounded_adapter`.
    """
    outer = _DEADLINE.get()
    if total_s is None:
        yield
        return
    least = LEAST_BYTES_S if transfer else None
    found = Deadline(total_s=total_s, at=time.monotonic() + total_s, least_bytes_s=least)
    if outer is not None and outer.at < found.at:
        found = outer
    token = _DEADLINE.set(found)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


class DeadlineReader(io.RawIOBase):
    """Reads a socket through `raw`; each read ends at the deadline with TimeoutError."""

    def __init__(self, raw: Any, sock: socket.socket, deadline: Deadline) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        """Read bytes that have come into a buffer; return their number, 0 at the end."""
        self._deadline.limit(self._sock)
        number: int | None = self._raw.readinto(buffer)
        self._deadline.add(number or 0)
        return number

    def close(self) -> None:
        """Close the reader below, too."""
        self._raw.close()
        super().close()
