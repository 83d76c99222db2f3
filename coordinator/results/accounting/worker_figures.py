"""A worker process that took part in a workload, as reports have it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WorkerFigures:
    """Figures of one worker process in a workload; None for figures that are not known."""

    incarnation: str = ""
    host: str = ""
    pid: int | None = None
    #: The name that the operator gave it; "" for none.
    label: str = ""
    version: str = ""
    #: Version of Python, "" if it is not known, and whether its build was not optimised.
    python: str = ""
    unoptimised: bool = False
    lost: bool = False
    #: Its clock minus that of Redis, seconds, and the largest error of that.
    offset_s: float | None = None
    uncertainty_s: float | None = None
    #: Virtual users that hung at the end, and messages that it refused.
    stuck: int = 0
    refused: int = 0
    iterations: int = 0
    #: CPU time per second, 1.0 is one core.
    cpu_mean: float | None = None
    cpu_max: float | None = None
    virtual_users: int = 0
    #: Threads that waited for a core, on average.
    waiting: float | None = None
    #: Cores of its host, and cores that all programs used on average.
    cores: int | None = None
    cores_used: float | None = None
    #: CPU quota of its container, cores, and the share of its periods in which it was throttled.
    quota: float | None = None
    throttled: float | None = None
