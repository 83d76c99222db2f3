"""The CPU quota of a container (Linux cgroups, versions 1 and 2), and the cores of a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_GROUPS = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class CpuQuota:
    """The CPU quota of a control group (cgroup) that contains this process, and its statistics."""

    #: Cores.
    cores: float
    #: The kernel's account of the group.
    stat: Path

    def periods(self) -> tuple[int, int]:
        """Return how many quota periods the group ran in, and in how many it was throttled.

        Since the group was created; 0 if unreadable.
        """
        return _number(self.stat, "nr_periods"), _number(self.stat, "nr_throttled")


def cpu_quota(groups: Path = _GROUPS, root: Path = _ROOT) -> CpuQuota | None:
    """Return the lowest CPU quota of the groups around this process; None without one."""
    return min(_quotas(groups, root), key=lambda one: one.cores, default=None)


def usable_cores() -> int:
    """Return the number of cores this process may use, by CPU affinity and CPU quota, at least 1.

    A quota is rounded down.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = cpu_quota()
    return cores if quota is None else max(1, min(cores, int(quota.cores)))


def _quotas(groups: Path, root: Path) -> Iterator[CpuQuota]:
    for folder in _folders(groups, root):
        cores = _cores(folder)
        if cores:
            yield CpuQuota(cores, folder / "cpu.stat")


def _folders(groups: Path, root: Path) -> Iterator[Path]:
    """Yield the folder of each CPU control group of this process, then its parents up to the root.

    Folders may not exist: a container without a cgroup namespace has its host path in the list, and
    its group at the root.
    """
    try:
        lines = groups.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        # systems link this name to that of the controllers together, whatever their order
        top = root / "cpu" if controllers else root
        inner = top / path.lstrip("/")
        for folder in (inner, *inner.parents):
            yield folder
            if folder == top:
                break


def _cores(folder: Path) -> float:
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    if not quota:
        quota, period = (_text(folder / f"cpu.cfs_{part}_us") for part in ("quota", "period"))
    try:
        return max(0.0, int(quota) / int(period))
    except (ValueError, ZeroDivisionError):
        return 0.0


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def _number(path: Path, name: str) -> int:
    for line in _text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdecimal():
            return int(value)
    return 0
