"""The limits of a request while its connection is opened, for drivers of every kind."""

from __future__ import annotations

from time import monotonic_ns

from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.wire.wire_errors import CannotConnect, ConnectTimedOut
from osbench.worker.http.wire.wire_request import WireRequest

#: Seconds after which the next address of a host is tried, where it has one.
NEXT_ADDRESS_S = 3.0


class ConnectClock:
    """What is left of the limits for connecting."""

    def __init__(self, limits: RequestLimits, begun_ns: int) -> None:
        given = [limit_s for limit_s in (limits.connect_s, limits.whole_s) if limit_s]
        self._limit_s = min(given) if given else 0.0
        self._begun_ns = begun_ns

    def left_s(self) -> float | None:
        """Seconds left, None without a limit. Raises ConnectTimedOut where there are none."""
        if not self._limit_s:
            return None
        left_s = self._limit_s - (monotonic_ns() - self._begun_ns) / 1e9
        if left_s <= 0:
            raise ConnectTimedOut("connecting timed out")
        return left_s

    def for_address_s(self, *, last: bool) -> float | None:
        """Seconds for one address, None for no limit: each but the last leaves some for others.

        Raises ConnectTimedOut where there are none.
        """
        left_s = self.left_s()
        if last:
            return left_s
        return min(NEXT_ADDRESS_S, left_s / 2 if left_s else NEXT_ADDRESS_S)


def refusal(request: WireRequest, error: OSError) -> CannotConnect | ConnectTimedOut:
    """What to raise where the last address of a host does not take a connection."""
    if isinstance(error, BlockingIOError | TimeoutError):
        return ConnectTimedOut(f"connecting to {request.host}:{request.port} timed out")
    return CannotConnect(f"cannot connect to {request.host}:{request.port}: {error.strerror}")
