"""Detects that the wall clock of this host was set, by comparison with the monotonic clock."""

from __future__ import annotations

from collections.abc import Callable

from osbench.common.ports import clock as time

#: A wall clock that has moved by more against the monotonic one since the last look was set,
#: seconds, and this much more for each second between the looks: clocks are slewed to be right.
SET_S = 0.1
SLEWED_S = 0.001
#: The two clocks are read within this time, or not compared, nanoseconds.
_TOGETHER_NS = 20_000_000
_ATTEMPTS = 3


class ClockSteps:
    """Sums of the steps by which this host's wall clock was set, back and forward, in seconds.

    Only for one thread; `look` finds the steps.
    """

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        #: Sums of the steps back and forward, seconds. A host that slept has a step forward.
        self.back_s = self.forward_s = 0.0
        #: The wall clock minus the monotonic one at the last look, and when that was.
        self._last: tuple[int, int] | None = None
        self.look()

    def look(self) -> None:
        """Compare the clocks; add a step since the last call to `back_s` or `forward_s`, seconds.

        To be called about every second. A change up to 0.1 s, and 1 ms more per second since the
        last call, is not a step. If the two clocks cannot be read within 20 ms, the call does
        nothing.
        """
        found = self._read()
        if found is None:
            return
        if self._last is not None:
            step_s = (found[0] - self._last[0]) / 1e9
            between_s = (found[1] - self._last[1]) / 1e9
            if abs(step_s) > SET_S + SLEWED_S * between_s:
                self.back_s += max(0.0, -step_s)
                self.forward_s += max(0.0, step_s)
        self._last = found

    def _read(self) -> tuple[int, int] | None:
        for _ in range(_ATTEMPTS):
            before = self._monotonic_ns()
            wall = self._wall_ns()
            after = self._monotonic_ns()
            if after - before <= _TOGETHER_NS:
                return wall - after, after
        return None
