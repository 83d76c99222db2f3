"""The result of `plan` for a task, as one JSON object."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from osbench.common.task import Task
from osbench.coordinator.formatting import count, distinct, spaced, three_digits
from osbench.edges.history.sizing.sizing_file import SIZING_FORMAT
from osbench.edges.history.sizing.worker_sizing import HostLimits, TaskNeeds, WorkloadNeeds

#: Fewer iterations say little of the cost and of the 95th percentile.
FEW = 50
#: With some more users the service took this much longer: it was at its limit already.
SLOWER = 1.5
#: Fraction of failed iterations from which it is reported.
FAILED_TOLD = 0.01


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """The result of the command `plan`: needs of the task and its workloads, and assumed limits."""

    task: Task
    digest: str
    #: Run of the calibration; "" if there was none.
    run_id: str
    limits: HostLimits
    workloads: Sequence[WorkloadNeeds]
    needs: TaskNeeds


def to_document(sizing: Sizing) -> dict[str, Any]:
    """Return the result of `plan` as the JSON object that is printed (`--json`) and saved.

    Its notes are messages on figures that are unreliable, or above the limits of a host.
    """
    needs = sizing.needs
    return {
        "format": SIZING_FORMAT,
        "task": sizing.task.title,
        "digest": sizing.digest,
        "calibration": sizing.run_id or None,
        "assumed": dataclasses.asdict(sizing.limits),
        "needs": dataclasses.asdict(needs),
        "workloads": [_workload(one, sizing) for one in sizing.workloads],
        "notes": list(_notes(sizing)),
    }


def _workload(one: WorkloadNeeds, sizing: Sizing) -> dict[str, Any]:
    return {
        "name": one.name,
        "scenario": one.scenario,
        "runner": one.runner,
        "open": one.is_open,
        "processes": one.processes,
        "limited_by": one.limited_by,
        "rate": one.rate,
        "users": max((level.users for level in one.levels), default=0.0),
        "users_peak": one.users_peak,
        "cost": dataclasses.asdict(one.cost),
        "levels": [
            {**dataclasses.asdict(level), "processes": level.processes} for level in one.levels
        ],
        "shares": one.shares(one.processes),
    }


def _notes(sizing: Sizing) -> Iterator[str]:
    names = distinct([one.name for one in sizing.workloads])
    for name, one in zip(names, sizing.workloads, strict=True):
        for note in _workload_notes(one):
            yield f"{name}: {note}"
    needs, limits = sizing.needs, sizing.limits
    if needs.process_files > limits.open_files:
        yield (
            f"a worker process needs {count(needs.process_files)} file descriptors and may open "
            f"{count(limits.open_files)} on this host: raise the limit (ulimit -Hn, LimitNOFILE=)"
        )
    if needs.host_ports is not None and needs.host_ports > limits.ports:
        yield (
            f"{count(needs.host_ports)} local ports of a host would be in use towards one address,"
            f" of {count(limits.ports)} that there are: reuse connections, widen "
            "net.ipv4.ip_local_port_range, or take more hosts"
        )


def _workload_notes(one: WorkloadNeeds) -> Iterator[str]:
    cost = one.cost
    if not one.rate:
        yield "its runner does not state its load: one worker process is assumed"
    if not cost.calibrated:
        return
    if cost.failed > FAILED_TOLD * cost.iterations:
        yield (
            f"{cost.failed} of {cost.iterations} iterations of the calibration did not end well:"
            " their cost is in the mean"
        )
    if cost.cpu_at_most:
        yield (
            "the CPU time of its iterations was too little to be measured: the plan takes the most "
            f"that it can be, {spaced(cost.cpu_s)}; a longer --calibrate-s says more"
        )
    elif not cost.cpu_s:
        yield (
            "the CPU time of its iterations could not be measured, as this host was overloaded: "
            "the plan is for its users alone; a longer --calibrate-s says more"
        )
    if cost.iterations < FEW:
        yield (
            f"only {count(cost.iterations, 'iteration')} of the calibration ended: too few to rely "
            "on its figures; use a longer --calibrate-s"
        )
    slower = cost.service_with_users_s
    if slower is not None and slower > SLOWER * cost.service_s:
        yield (
            f"the service took {three_digits(slower / cost.service_s)} times as long under some "
            "more users: at the planned load it may be slower still, and users more"
        )
