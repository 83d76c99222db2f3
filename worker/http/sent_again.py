"""Which requests may be sent a second time, and how many were, for drivers of every kind."""

from __future__ import annotations

import logging
import threading

LOG = logging.getLogger(__name__)

#: Methods whose requests may be sent a second time although the server may have acted on the first:
#: those that are idempotent (RFC 9110, section 9.2.2).
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"})


def not_again(verb: str) -> str:
    """Why a request whose kept connection ended without an answer fails."""
    return f"the kept connection ended without an answer, and a {verb} is not sent twice"


class SentAgain:
    """Counts requests that were sent again, because a kept connection ended without an answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self) -> None:
        """Count one; the log says so for the first one, the tenth, the hundredth and so on."""
        with self._lock:
            self.count += 1
            count = self.count
        if str(count).strip("0") == "1":
            LOG.info(
                "requests sent again, since the server had closed the kept connection: %d", count
            )
