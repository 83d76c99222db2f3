"""Seconds since the start of each load, by the monotonic clock of this host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from osbench.common.machine.redis_clock import RedisClock
from osbench.common.ports import clock as time
from osbench.coordinator.results.accounting.accounts import Accounts

#: Between the last preparation and the start: workers read control records every 50 ms.
LEAD_S = 0.3
#: In local mode they read them every 5 ms, and most of the time is the start of virtual users.
LOCAL_LEAD_S = 0.02
START_USER_S = 0.0005
#: An id of the last start of this host, from which its monotonic clock counts (Linux).
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return an id of the last boot of this host; "" if the system has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def lead_s(users: float) -> float:
    """Return the seconds from the last preparation to the start with shared workers: `LEAD_S`.

    `users`, the number of virtual users of a worker, makes no difference.
    """
    return LEAD_S


def local_lead_s(users: float) -> float:
    """Return the seconds from the last preparation to the start in local mode, at most `LEAD_S`.

    `users` is the number of virtual users of a worker, each of which takes some time to start.
    """
    return min(LEAD_S, LOCAL_LEAD_S + START_USER_S * users)


class LoadClock:
    """The start times (t0) of the workloads of a run, kept by the monotonic clock of this host.

    So they do not move if the clock of Redis is set.
    """

    def __init__(self, clock: RedisClock, accounts: Accounts) -> None:
        self._clock = clock
        self._accounts = accounts
        self._t0_ns: dict[int, int] = {}

    def begin(self, workload: int, t0_at: float) -> None:
        """Note the start of a load, which may be ahead: `t0_at`, Redis time, s since 1970."""
        self._t0_ns[workload] = self._clock.to_monotonic_ns(t0_at)

    def note(self, workload: int) -> dict[str, Any]:
        """Return the fields `t0_ns` and `boot` of the journal's record of a workload's start.

        By them another coordinator on this host finds the noted start. `t0_ns`: monotonic ns;
        `boot`: the boot of the host from which this clock counts. Raises KeyError if no start is
        noted.
        """
        return {"t0_ns": self._t0_ns[workload], "boot": boot_id()}

    def restore(self, workload: int, t0_at: float) -> None:
        """Note the start of a load that an earlier coordinator began at `t0_at`, Redis time.

        If this host has not been booted since, the start is as journalled. Else it is `t0_at` by
        the present clock of Redis, which may have been set meanwhile, but never in the future.
        """
        boot, t0_ns = self._accounts.anchors.get(workload, ("", 0))
        if not boot or boot != boot_id():
            t0_ns = min(self._clock.to_monotonic_ns(t0_at), time.monotonic_ns())
        self._t0_ns[workload] = t0_ns

    def begun(self, workload: int) -> bool:
        """Return whether the start of a workload's load is noted; it may still be ahead."""
        return workload in self._t0_ns

    def elapsed_s(self, workload: int) -> float:
        """Return the seconds since t0, negative before; `-LEAD_S` if no start is noted."""
        t0_ns = self._t0_ns.get(workload)
        return -LEAD_S if t0_ns is None else self._clock.since_s(t0_ns)

    def t0_at(self, workload: int) -> float:
        """Return the noted start of a load by the present clock of Redis, seconds since 1970.

        Raises KeyError if none is noted.
        """
        return self._clock.at_s(self._t0_ns[workload])
