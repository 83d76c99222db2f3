"""Send times of heartbeats.

A lease, the time until which iterations may start, counts from the heartbeat that the coordinator
replies to.
"""

from __future__ import annotations

from collections import OrderedDict

from osbench.common.ports import threads as threading

#: Heartbeats whose times are kept: a minute of them at their usual distance.
KEPT = 120


class BeatLog:
    """Send times (monotonic ns) of the last heartbeats, by number. Thread-safe."""

    def __init__(self) -> None:
        self._sent: OrderedDict[int, int] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, beat: int, at_ns: int) -> None:
        """Note that heartbeat `beat` is sent at `at_ns`, monotonic ns.

        Only the last `KEPT` heartbeats stay.
        """
        with self._lock:
            self._sent[beat] = at_ns
            while len(self._sent) > KEPT:
                self._sent.popitem(last=False)

    def sent_ns(self, beat: int) -> int | None:
        """Return when heartbeat `beat` was sent, monotonic ns; None if it is unknown or too old."""
        with self._lock:
            return self._sent.get(beat)
