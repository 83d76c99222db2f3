"""Rule on which requests may be sent twice, and a counter of those sent twice."""

from __future__ import annotations

import logging
import threading

LOG = logging.getLogger(__name__)

#: Methods whose requests may be sent a second time although the server may have acted on the first:
#: idempotent methods (RFC 9110, section 9.2.2; QUERY: draft-ietf-httpbis-safe-method-w-body).
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "QUERY", "TRACE"})


def not_again(verb: str) -> str:
    """Return the message for a request that is not sent again after its idle connection ended."""
    return f"the kept connection ended without a response, and a {verb} is not sent twice"


class SentAgain:
    """Counter of requests sent again because an idle connection had ended. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self) -> None:
        """Count one request; log the total at information level when it is 1, 10, 100 and so on."""
        with self._lock:
            self.count += 1
            count = self.count
        if str(count).strip("0") == "1":
            LOG.info(
                "requests sent again, since the server had closed the kept connection: %d", count
            )
