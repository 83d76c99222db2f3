"""Connections that end after a number of requests or a time, so that others reach other servers."""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

LOG = logging.getLogger(__name__)

#: Part of a limit at which a connection may end at the earliest: connections that began together
#: must not end together.
EARLIEST = 0.75


@dataclass(frozen=True, kw_only=True)
class EndRule:
    """Most requests of a connection, and its greatest age in seconds; 0: no limit."""

    max_requests: int = 0
    max_age_s: float = 0.0

    @classmethod
    def of(cls, wish: Mapping[str, Any]) -> EndRule:
        """Return the rule of `connections`, a key of the task's `http`; {} has no limit."""
        return cls(
            max_requests=int(wish.get("max_requests", 0)), max_age_s=float(wish.get("max_age", 0))
        )

    def drawn_requests(self) -> int:
        """Return the number of requests of a new connection, from 75 % of the limit up to it."""
        most = self.max_requests
        least = max(1, -int(-most * EARLIEST // 1))
        return random.randint(least, most) if most else 0  # noqa: S311 - load, not secrets

    def drawn_age_s(self) -> float:
        """Return the age of a new connection in seconds, from 75 % of the limit up to it."""
        return self.max_age_s * random.uniform(EARLIEST, 1)  # noqa: S311 - load, not secrets


class EndedConnections:
    """Counter of connections that ended by a rule, by its name. Thread-safe."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, name: str) -> None:
        """Count one; log the total of all at information level when it is 1, 10, 100 and so on."""
        with self._lock:
            self.counts[name] += 1
            total = self.counts.total()
            parts = ", ".join(f"{count} by {name}" for name, count in sorted(self.counts.items()))
        if str(total).strip("0") == "1":
            LOG.info("connections ended by the task's rule: %s", parts)


class EndingConnection:
    """A connection of osbench's client, of threads or of an event loop, that ends by a rule.

    It is not put back for another request after its number of requests, or at its age, and not
    taken at its age if it was idle. A request that is under way is never cut. All else is as of the
    connection within.
    """

    __slots__ = ("_connection", "_due_ns", "_ended", "_left", "answer", "plain_status")

    def __init__(self, connection: Any, rule: EndRule, ended: EndedConnections) -> None:
        """Take a connection that was just opened; its number of requests and age are drawn."""
        self._connection = connection
        self._ended = ended
        # of a `LoopConnection`, for each request: `__getattr__` takes longer
        self.answer = getattr(connection, "answer", None)
        self.plain_status = getattr(connection, "plain_status", None)
        #: Requests that may still begin; 0 after the last, below 0 without a limit.
        self._left = rule.drawn_requests() or -1
        #: Monotonic ns; 0 without a limit.
        self._due_ns = monotonic_ns() + int(rule.drawn_age_s() * 1e9) if rule.max_age_s else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def begin(self, *args: Any, **options: Any) -> Any:
        """Send a request, as of a `LoopConnection`."""
        self._left -= 1
        return self._connection.begin(*args, **options)

    def exchange(self, *args: Any, **options: Any) -> Any:
        """Send a request and return its response, as of a `SocketConnection`."""
        self._left -= 1
        return self._connection.exchange(*args, **options)

    @property
    def reusable(self) -> bool:
        """Return whether another request may follow; valid after a complete response."""
        if not self._connection.reusable:
            return False
        if self._left == 0:
            self._ended.add("max_requests")
            return False
        return not self._is_due(monotonic_ns())

    def spoilt(self, now_ns: int, *, certainly: bool = False) -> bool:
        """Return whether an idle connection is unusable, also by its age; `now_ns`: monotonic."""
        if self._connection.spoilt(now_ns, certainly=certainly):
            return True
        return self._is_due(now_ns)

    def _is_due(self, now_ns: int) -> bool:
        if not self._due_ns or now_ns < self._due_ns:
            return False
        self._ended.add("max_age")
        return True
