"""How many requests were sent again, for drivers of every kind."""

from __future__ import annotations

import logging
import threading

LOG = logging.getLogger(__name__)


class SentAgain:
    """Counts requests that were sent again, because the peer had closed the kept connection."""

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
