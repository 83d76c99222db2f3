"""Precise sleep until a time: wakes shortly before it and polls the clock until it has come.

A sleeping thread wakes 50 to 100 us late, because the kernel has to bring an idle core back and to
switch to the thread. A thread that is awake already does not wait for either. Being awake costs
CPU, so it is done only while a core is idle, and within a budget (docs/adr/0020-start-lag.md).
"""

from __future__ import annotations

import os
from pathlib import Path

from osbench.common.ports import clock as time
from osbench.common.ports.clock import monotonic_ns

#: How long before the due time the thread wakes: later than most wakes come.
AHEAD_NS = 150_000
#: Idle cores are measured this often, and this many must be idle on average.
MEASURE_NS = 250_000_000
LEAST_IDLE = 0.5
#: The budget of this much time at most is saved up.
SAVED_NS = 1_000_000_000
#: Fields of a core's line in /proc/stat, proc_stat(5): time with nothing to run, and with nothing
#: but waits for disks.
_IDLE = slice(4, 6)


class IdleCores:
    """Measures how many of the cores that this process may use are idle, from /proc/stat."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self._stat = stat
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._last: tuple[int, float] | None = None

    def measure(self, now_s: float) -> float | None:
        """Return the average number of idle cores since the last call; None if unknown.

        None also at the first call. Of the cores that this process may use; the use by other
        processes counts, too. `now_s` is the time of the call, seconds of any clock.
        """
        ticks = self._ticks()
        last, self._last = self._last, None if ticks is None else (ticks, now_s)
        if ticks is None or last is None or now_s <= last[1]:
            return None
        return (ticks - last[0]) * self._tick_s / (now_s - last[1])

    def _ticks(self) -> int | None:
        """Return the clock ticks since boot for which this process's cores were idle, in sum.

        None if /proc/stat cannot be read or lists none of them.
        """
        ours = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        try:
            lines = self._stat.read_text("ascii").splitlines()
            found = [line.split() for line in lines if line.startswith("cpu")]
            sums = [sum(map(int, fields[_IDLE])) for fields in found if fields[0] in ours]
        except (OSError, ValueError):
            return None
        return sum(sums) if sums else None


class PreciseSleep:
    """Exact sleep of a thread until a time, by staying awake before it; for one thread at a time.

    `budget` is the fraction of a core, 0 to 1, that it may use to stay awake; with 0 it never does.
    `cores` measures idle cores; by default the cores that this process may use.
    """

    def __init__(self, budget: float, cores: IdleCores | None = None) -> None:
        self._budget = budget
        self._cores = cores or IdleCores()
        #: A core was idle when that was last measured.
        self._free = False
        self._measured_ns = 0
        #: Nanoseconds that the thread may stay awake, as of a time.
        self._left_ns = 0.0
        self._counted_ns = monotonic_ns()
        #: Nanoseconds that it has been awake so far.
        self.awake_ns = 0

    def until(self, due_ns: int) -> None:
        """Sleep until `due_ns`, monotonic; return at once if it has passed.

        For the last `AHEAD_NS` polls the clock instead, if a core is idle and the budget suffices;
        that time is taken from the budget.
        """
        now = monotonic_ns()
        ahead_ns = self.ahead_ns(now)
        if due_ns - now > ahead_ns:
            time.sleep((due_ns - now - ahead_ns) / 1e9)
        if ahead_ns:
            self._stay_awake(due_ns)

    def ahead_ns(self, now: int) -> int:
        """Return how many ns before its due time the thread must be awake: `AHEAD_NS`, or 0.

        0 if no core was idle when last measured, or the budget is spent. `now`: monotonic ns.
        """
        return AHEAD_NS if self._free and self._may(now) else 0

    def pay(self, awake_ns: int) -> None:
        """Take the time that a thread was awake from the budget; add it to `self.awake_ns`."""
        self._left_ns -= awake_ns
        self.awake_ns += awake_ns

    def look(self, now: int) -> None:
        """Measure whether a core is idle, at most every `MEASURE_NS`; `ahead_ns` uses the result.

        `now`: monotonic ns. To be called often, by a thread that has nothing urgent. No effect
        without a budget.
        """
        if self._budget and now - self._measured_ns >= MEASURE_NS:
            self._measured_ns = now
            idle = self._cores.measure(now / 1e9)
            self._free = idle is not None and idle >= LEAST_IDLE

    def _may(self, now: int) -> bool:
        """Add the budget accrued since the last call; return whether it covers `AHEAD_NS`.

        `now`: monotonic ns. Accrues at most the budget of `SAVED_NS`.
        """
        saved_ns = self._left_ns + (now - self._counted_ns) * self._budget
        self._left_ns = min(saved_ns, SAVED_NS * self._budget)
        self._counted_ns = now
        return self._left_ns >= AHEAD_NS

    def _stay_awake(self, due_ns: int) -> None:
        begun = now = monotonic_ns()
        while now < due_ns:
            # lets other threads of this process run in between
            time.sleep(0)
            now = monotonic_ns()
        self.pay(now - begun)
