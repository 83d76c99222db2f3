"""The service under test: some servers with one queue."""

from __future__ import annotations

from world import present
from world.fibers import S


class Service:
    """Serves in the order of the requests."""

    def __init__(self) -> None:
        #: When each server is free.
        self._free: list[int] = []

    def served_in(self, service_s: float, servers: int) -> float:
        """Seconds until a request that comes now is answered."""
        now = present.scheduler().now
        self._free += [0] * (servers - len(self._free))
        first = min(range(servers), key=self._free.__getitem__)
        self._free[first] = max(now, self._free[first]) + int(service_s * S)
        return (self._free[first] - now) / S
