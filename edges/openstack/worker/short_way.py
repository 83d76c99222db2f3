"""State shared by the sessions of a process that send requests by osbench's client."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from osbench.common.network.response_bound import USUAL, ResponseBound
from osbench.worker.http.opening import Opener

#: Key of a workload's context for its process's ShortWay, if it is to be used.
SHORT_WAY = "short_way"

LOG = logging.getLogger(__name__)


class ShortWay:
    """State of all FastSessions: shared caches, and counts of requests left to `requests`."""

    def __init__(self, bound: ResponseBound = USUAL) -> None:
        #: For the responses to sessions that clients create for themselves.
        self.bound = bound
        self.opener = Opener()
        self._lock = threading.Lock()
        #: Requests that requests sent, by the reason.
        self.left: Counter[str] = Counter()

    def leave(self, why: str) -> None:
        """Count a request left to `requests` because of `why`; log it at 1, 10, 100 and so on."""
        with self._lock:
            self.left[why] += 1
            count = self.left[why]
        if str(count).strip("0") == "1":
            LOG.info(
                "requests to OpenStack services made by requests, which costs more CPU, because of "
                "%s: %d",
                why,
                count,
            )
