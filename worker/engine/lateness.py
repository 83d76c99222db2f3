"""Lateness and stalls of a thread: the error that its process adds to each time it measures."""

from __future__ import annotations

from collections import Counter, deque

from osbench.common.ports import clock as time

#: Latenesses kept until they are shipped; the oldest are discarded first.
KEPT = 20_000
#: Beats that one late beat stands for at most.
MISSED_MOST = 2_000
#: A thread that could not run for longer than this was stalled, nanoseconds.
STALL_NS = 1_000_000_000

#: Causes of a stall: other threads kept the interpreter's lock; the process did not run at all.
LOCK, STOPPED = "lock", "stopped"


class Lateness:
    """Latenesses, nanoseconds, of a thread that should wake every `beat_ns`.

    At most `KEPT`: beyond that the oldest are dropped.
    """

    def __init__(self, beat_ns: int) -> None:
        self._beat_ns = beat_ns
        self.lags: deque[int] = deque(maxlen=KEPT)

    def note(self, lag: int) -> None:
        """Add the lateness of a beat, nanoseconds, and the latenesses of beats that it missed.

        Of missed beats it is `lag` less one `beat_ns`, less two, and so on. Of very many beats only
        about `MISSED_MOST`, evenly spaced, are added.
        """
        self.lags.append(lag)
        beat = self._beat_ns
        if lag > beat:
            self.lags.extend(range(lag - beat, 0, -max(beat, lag // MISSED_MOST)))

    def take(self) -> list[int]:
        """Remove and return all latenesses, nanoseconds, oldest first.

        Two threads must not call it at once.
        """
        lags = self.lags
        return [lags.popleft() for _ in range(len(lags))]


class Stalls:
    """Times for which a thread of this process could not run, summed by cause: `LOCK` or `STOPPED`.

    `LOCK`: the process used CPU meanwhile, so another thread held the interpreter's lock, such as C
    code that never releases it. `STOPPED`: the process itself did not run.
    """

    def __init__(self) -> None:
        self._cpu_ns = time.process_time_ns()
        self._found: Counter[str] = Counter()

    def note(self, late_ns: int) -> None:
        """Add a beat's lateness, nanoseconds, to its cause if it is more than `STALL_NS`.

        The cause is `LOCK` if the process used CPU for more than half of `late_ns`, else `STOPPED`.
        To be called at each beat, because CPU time is measured since the last call.
        """
        used, self._cpu_ns = self._cpu_ns, time.process_time_ns()
        if late_ns > STALL_NS:
            used_ns = self._cpu_ns - used
            self._found[LOCK if used_ns > late_ns // 2 else STOPPED] += late_ns

    def take(self) -> list[list[str | int]]:
        """Remove and return the stalls since the last call: [cause, sum in nanoseconds] each."""
        found, self._found = self._found, Counter()
        return [[cause, lasted] for cause, lasted in found.items()]
