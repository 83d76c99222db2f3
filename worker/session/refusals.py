"""Messages that a worker process refused, counted by reason."""

from __future__ import annotations

import logging
from collections import Counter

from osbench.common.ports import threads as threading

LOG = logging.getLogger(__name__)

#: The reasons, as heartbeats carry them.
OTHER_RUN = "other run"
OTHER_WORKER = "other worker"
OTHER_SESSION = "other session"
OTHER_SPECIFICATION = "other specification"
OLD_CHALLENGE = "old challenge"
OLD_EPOCH = "old epoch"
BAD_SIGNATURE = "bad signature"
SEEN_BEFORE = "seen before"
TOO_EARLY = "too early"
NO_RUN = "no run"
#: What to do about some of them.
_REMEDIES = {
    BAD_SIGNATURE: ". If the coordinator sent it, its key is not in [security] key_file: copy its "
    "key file to this host"
}


class Refusals:
    """Counts of refused messages by reason, for heartbeats. Thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, reason: str, what: str) -> None:
        """Count a refused message by `reason` and log it; `what`: its kind, such as "a batch".

        The first message of each reason is logged as a warning, later ones at debug level.
        """
        with self._lock:
            self._counts[reason] += 1
            first = self._counts[reason] == 1
        # whoever can write to Redis can cause any number of these
        level = logging.WARNING if first else logging.DEBUG
        LOG.log(level, "%s was refused: %s%s", what, reason, _REMEDIES.get(reason, ""))

    def counts(self) -> dict[str, int]:
        """Return the number of refused messages since the start, by reason."""
        with self._lock:
            return dict(self._counts)
