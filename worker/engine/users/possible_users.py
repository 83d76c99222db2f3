"""Limits on the virtual users of a worker process, by memory and limits of host and container."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from osbench.common.errors import FleetError
from osbench.common.plugin.scenario import MOST_COROUTINES

#: Most threads: with many more the process falls silent, since they keep the interpreter's lock
#: from the thread that sends its heartbeats.
MOST_THREADS = 5_000
#: Memory of one, bytes: its stack or frames, and what an iteration needs.
THREAD_BYTES = 64 * 1024
COROUTINE_BYTES = 16 * 1024

#: Limits of the container, if the process is in one (cgroup v2).
_CGROUP = Path("/sys/fs/cgroup")
_KERNEL = Path("/proc/sys/kernel")

#: Reads the number in a file; None if it has none.
Read = Callable[[Path], int | None]


@dataclass(frozen=True, kw_only=True)
class UserLimits:
    """The most virtual users that a worker process can have, as threads and as coroutines."""

    #: As threads: `[worker] virtual_users`.
    threads: int
    #: As coroutines: what memory allows.
    coroutines: int

    def of(self, *, coroutines: bool) -> int:
        """Return the limit for a scenario whose users are coroutines, or else threads."""
        return self.coroutines if coroutines else self.threads


def user_limits(threads: int, processes: int) -> UserLimits:
    """Return the limits of each of `processes` worker processes on this host.

    `threads` is the configured limit and not checked here. Coroutines: the lowest of `limits`, at
    least 1.
    """
    found = limits(processes, coroutines=True)
    return UserLimits(threads=threads, coroutines=max(1, min(possible for possible, _ in found)))


def refuse_too_many(users: int, processes: int, *, coroutines: bool) -> None:
    """Raise FleetError if `users` are more than each of `processes` worker processes can have.

    `coroutines`: they are coroutines, else threads. The message has the possible number and the
    limit. Reads free memory and limits of this host.
    """
    found = limits(processes, coroutines=coroutines)
    possible, why = min(found, key=lambda limit: limit[0])
    if users <= possible:
        return
    kind = "coroutines" if coroutines else "threads"
    others = "" if coroutines else "; of a scenario that is `async def` more are possible"
    raise FleetError(
        f"{users:,} virtual users are requested of each worker process, as {kind}: possible are "
        f"{possible:,} ({why}); ask for fewer, or start more worker processes or hosts{others}"
    )


def limits(processes: int, *, coroutines: bool, read: Read | None = None) -> list[tuple[int, str]]:
    """Return each limit of this host: (virtual users of each of `processes`, name of the limit).

    `coroutines`: users are coroutines, else threads. Limits of host and user on threads count in
    full: existing threads are subtracted only from the limit of a container. `read` returns the
    number in a file, for tests.
    """
    read = read or _number
    each = COROUTINE_BYTES if coroutines else THREAD_BYTES
    found = [
        (free // processes // each, f"memory: {free / 2**20:,.0f} MiB for {processes} of them")
        for free in _memory(read)
    ]
    if coroutines:
        return [*found, (MOST_COROUTINES, "coroutines of an event loop")]
    found += [(free // processes, f"threads: {why}") for free, why in _threads(read)]
    return [*found, (MOST_THREADS, "threads of a process")]


def _memory(read: Read) -> Iterator[int]:
    yield psutil.virtual_memory().available
    most, used = read(_CGROUP / "memory.max"), read(_CGROUP / "memory.current")
    if most is not None:
        yield max(0, most - (used or 0))


def _threads(read: Read) -> Iterator[tuple[int, str]]:
    own, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if own != resource.RLIM_INFINITY:
        yield own, f"the limit of processes of the user is {own:,}"
    for name in ("pid_max", "threads-max"):
        found = read(_KERNEL / name)
        if found is not None:
            yield found, f"kernel.{name} is {found:,}"
    most, used = read(_CGROUP / "pids.max"), read(_CGROUP / "pids.current")
    if most is not None:
        yield max(0, most - (used or 0)), f"the container's limit of processes is {most:,}"


def _number(path: Path) -> int | None:
    """Return the number in a file; None if it cannot be read or has none: "max" means no limit."""
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
