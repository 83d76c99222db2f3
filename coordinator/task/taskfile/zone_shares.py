"""The key `workers` of a workload: shares of its load by zone of the workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from osbench.common.errors import Problem
from osbench.common.task import WHOLE, Task, Workload
from osbench.coordinator.task.taskfile.places import inside


def shares_of(found: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the shares by zone, of `WHOLE`, of the value of `workers`, which fits its schema.

    Shares of equal zones are summed.
    """
    shares: dict[str, int] = {}
    for one in [found] if isinstance(found, Mapping) else found:
        # hundreds of digits are infinity, which is not an integer
        percent = min(1000.0, float(str(one["share"]).strip().removesuffix("%")))
        shares[one["zone"]] = shares.get(one["zone"], 0) + round(percent * WHOLE / 100)
    return shares


def faults(task: Task, workload: Workload) -> Iterator[Problem]:
    """Yield a problem for shares of zones that cannot be kept."""
    place, shares = inside(workload.place, "workers"), workload.zones
    if not shares:
        return
    if min(shares.values()) < 1:
        yield Problem(place, "has a zone with a share of 0: leave the zone out")
    if sum(shares.values()) > WHOLE:
        yield Problem(place, f"has shares of {sum(shares.values()) * 100 / WHOLE:g} %: give 100 %")
    most = workload.runner.config.get("max_concurrency", WHOLE)
    if most < len(shares) + (sum(shares.values()) < WHOLE):
        yield Problem(place, f"has more zones than max_concurrency allows iterations ({most})")
    if any(workload in one.workloads and one.run_in_parallel for one in task.subtasks):
        yield Problem(place, "cannot be used with run_in_parallel: make a subtask of each")
