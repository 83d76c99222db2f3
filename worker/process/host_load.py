"""CPU figures of the kernel: how long this process waits for cores, and the host's load."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from osbench.common.machine.cpu_quota import CpuQuota, cpu_quota
from osbench.worker.engine.precise_sleep import IdleCores

#: Threads whose waits are read at most; of more, the first ones stand for all.
THREADS_MOST = 100


class HostSample(NamedTuple):
    """CPU load between two calls of `HostLoad.measure`, from the kernel's counters."""

    #: Threads that waited for a core, on average.
    waiting: float
    #: Cores of the host that any process used; -1 where that is not known.
    cores_used: float
    #: Share of the periods of the container's CPU quota in which it was throttled.
    throttled: float


class HostLoad:
    """Measures CPU load by counters of the kernel; outside Linux figures are 0 or -1 (unknown)."""

    def __init__(
        self, tasks: Path = Path("/proc/self/task"), quota: CpuQuota | None = None
    ) -> None:
        self._tasks = tasks
        self._quota = quota or cpu_quota()
        self._periods = (0, 0)
        self._idle = IdleCores()
        self._waited_ns: dict[str, int] = {}
        self._at_s = 0.0
        self.cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0

    @property
    def quota(self) -> float:
        """Return the CPU quota of the container in cores; 0 if there is none."""
        return self._quota.cores if self._quota else 0.0

    def measure(self, now_s: float) -> HostSample:
        """Return the load since the last call; `now_s`: the present time, seconds of any clock.

        The first call only begins the measurement: its result means nothing.
        """
        elapsed_s, self._at_s = now_s - self._at_s, now_s
        before, threads = self._waited_ns, self._threads()
        self._waited_ns = {name: self._wait_ns(name) for name in islice(threads, THREADS_MOST)}
        known = [
            waited - before[name] for name, waited in self._waited_ns.items() if name in before
        ]
        waiting = 0.0
        if known and elapsed_s > 0:
            waiting = max(0, sum(known)) / 1e9 / elapsed_s * max(1.0, len(threads) / len(known))
        idle = self._idle.measure(now_s)
        used = -1.0 if idle is None else max(0.0, self.cores - idle)
        return HostSample(waiting, used, self._throttled())

    def _throttled(self) -> float:
        if self._quota is None:
            return 0.0
        before, self._periods = self._periods, self._quota.periods()
        periods, throttled = (new - old for new, old in zip(self._periods, before, strict=True))
        return throttled / periods if periods > 0 else 0.0

    def _threads(self) -> list[str]:
        try:
            return sorted(path.name for path in self._tasks.iterdir())
        except OSError:
            return []

    def _wait_ns(self, thread: str) -> int:
        """Return the ns that a thread has been ready to run without a core since its start.

        Returns 0 if that is unknown. Source: /proc/.../schedstat, see proc_pid_schedstat(5).
        """
        try:
            return int((self._tasks / thread / "schedstat").read_text("ascii").split()[1])
        except (OSError, ValueError, IndexError):
            return 0
