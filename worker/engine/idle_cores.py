"""How many cores were idle lately, of those that this process may run on."""

from __future__ import annotations

import os
from pathlib import Path

#: Fields of a core's line in /proc/stat, proc_stat(5): time with nothing to run, and with nothing
#: but waits for disks.
_IDLE = slice(4, 6)


class IdleCores:
    """Reads the kernel's account of each core; there is none where /proc is not Linux' own."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self._stat = stat
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._last: tuple[int, float] | None = None

    def measure(self, now_s: float) -> float | None:
        """Cores idle on average since the last call; None at the first, and where none can tell.

        `now_s` is the instant of the call, seconds of any clock.
        """
        ticks = self._ticks()
        last, self._last = self._last, None if ticks is None else (ticks, now_s)
        if ticks is None or last is None or now_s <= last[1]:
            return None
        return (ticks - last[0]) * self._tick_s / (now_s - last[1])

    def _ticks(self) -> int | None:
        """Clock ticks that our cores have been idle since boot."""
        ours = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        try:
            lines = self._stat.read_text("ascii").splitlines()
            found = [line.split() for line in lines if line.startswith("cpu")]
            sums = [sum(map(int, fields[_IDLE])) for fields in found if fields[0] in ours]
        except (OSError, ValueError):
            return None
        return sum(sums) if sums else None
