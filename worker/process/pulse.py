"""Thread that records that a worker process lives and makes progress, for health checks."""

from __future__ import annotations

from collections.abc import Callable

from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.worker.process.life_record import LifeRecord

#: Between two entries, seconds.
PULSE_S = 2.0


class Pulse:
    """Thread that writes the life record of a worker process every `PULSE_S` seconds.

    So a directory that does not respond delays nothing else. The record says "starting" until
    `follow`.
    """

    def __init__(self, record: LifeRecord) -> None:
        self._record = record
        self._look: Callable[[], tuple[str, float]] = lambda: ("starting", time.monotonic())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="pulse", daemon=True)
        self._thread.start()

    def follow(self, look: Callable[[], tuple[str, float]]) -> None:
        """Use `look` from now on: it returns the state and the time of last progress.

        The time is monotonic, in seconds. `look` is called by the thread.
        """
        self._look = look

    def close(self) -> None:
        """End the thread, waiting at most `PULSE_S` seconds, and remove the record."""
        self._ended.set()
        self._thread.join(PULSE_S)
        self._record.close()

    def _loop(self) -> None:
        while not self._ended.wait(PULSE_S):
            self._record.tell(*self._look())
