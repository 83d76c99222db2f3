"""Requests of users to change the load: checks them, journals the changes, and replies."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from osbench.common.errors import UsageError
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.steering.steered_runner import MOST_ARRIVALS, level_at
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.plugins.runners.possible_rates import FASTEST, SLOWEST
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.storage.control_requests import ControlRequests

LOG = logging.getLogger(__name__)

#: Keys of a request for another load, in addition to `workload`; each request has exactly one.
RATE, USERS, PAUSE, RESUME = "rate", "users", "pause", "resume_load"


class Steering:
    """Changes the load of the workloads of a run at the request of users.

    Each change is journalled before it is applied.
    """

    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._requests = ControlRequests(services.directory)

    def look(self, running: Sequence[WorkloadRun]) -> None:
        """Take the requests in the run directory, apply them, and write a reply to each.

        Called at each poll. `running`: the workloads under load. Applied requests are logged; a
        refused one gets its error as reply. Raises StorageError.
        """
        for request, asked in self._requests.take():
            try:
                said = self._follow(request, asked, running)
            except UsageError as error:
                self._requests.answer(request, error=str(error))
            else:
                LOG.info("%s", said)
                self._requests.answer(request, said=said)

    def _follow(
        self, request: str, asked: Mapping[str, Any], running: Sequence[WorkloadRun]
    ) -> str:
        run = _steered_run(asked.get("workload"), running)
        changes = self._services.accounts.changes[run.plan.number]
        if not any(one.request == request for one in changes):
            change = _change(request, asked, run, changes)
            self._services.port.decide([change.to_record(run.plan.number)])
        return f"{run.name}: {change_words(run, changes[-1])}"


def change_words(run: WorkloadRun, change: LoadChange) -> str:
    """Return a change of a workload in words: "200 arrivals/s from 34.2 s on".

    Instead of a load also "paused" or "as planned"; the time is in seconds after t0.
    """
    what = "as planned"
    if change.level is not None:
        unit = "arrivals/s" if run.is_open else "virtual users"
        what = f"{change.level:g} {unit}" if change.level else "paused"
    return f"{what} from {change.at_s:.1f} s on"


def _steered_run(name: Any, running: Sequence[WorkloadRun]) -> WorkloadRun:
    """Return the workload under load with this name or number; if `name` is None, the only one.

    Raises UsageError if none or several fit.
    """
    fitting = [run for run in running if run.under_load]
    if not fitting:
        raise UsageError("no workload is under load now: try again while one is")
    known = ", ".join(f"{run.plan.number} ({run.name})" for run in fitting)
    if name is not None:
        fitting = [run for run in fitting if name in (run.name, str(run.plan.number))]
        if not fitting:
            raise UsageError(f"workload {name} is not under load now; choose from {known}")
    if len(fitting) > 1:
        raise UsageError(f"several workloads are under load; give --workload, one of {known}")
    return fitting[0]


def _change(
    request: str, asked: Mapping[str, Any], run: WorkloadRun, changes: Sequence[LoadChange]
) -> LoadChange:
    level = _level(asked, run)
    if level is None and (not changes or changes[-1].level is None):
        raise UsageError(f"the load of {run.name} is as planned; change it before --resume-load")
    if run.is_open:
        return _open_change(request, level, run)
    at_s = max(0.0, run.elapsed())
    points = [(at_s, level)] if level is not None else _planned_from(run, at_s, 0.0)
    return LoadChange(request=request, at_s=at_s, level=level, asked=tuple(points))


def _level(asked: Mapping[str, Any], run: WorkloadRun) -> float | None:
    """Return the level that the request `asked` names: arrivals per second, or virtual users.

    0 pauses the load; None returns to the plan. Raises UsageError if the workload does not allow
    changes, or the level is missing or out of range.
    """
    name = run.name
    if run.runner.is_scripted:
        raise UsageError(
            f"the load of {name} cannot be changed, as its runner starts the iterations itself; "
            "end it with `osbench-coord abort`"
        )
    if run.runner.is_search:
        raise UsageError(
            f"the load of {name} cannot be changed, as its search decides on it; end it with "
            "`osbench-coord abort`"
        )
    if asked.get(RESUME):
        return None
    if asked.get(PAUSE):
        return 0.0
    rate, users = _number(asked.get(RATE)), _number(asked.get(USERS))
    if run.is_open:
        if rate is None:
            raise UsageError(f"{name} starts iterations at a rate; give --rate")
        if rate and not SLOWEST <= rate <= FASTEST:
            raise UsageError(
                f"--rate must be 0 or between {SLOWEST:g} and {FASTEST:g}, got {rate:g}"
            )
        lasts_s = run.runner.lasts_s
        if lasts_s is not None and rate * (lasts_s - run.elapsed()) > MOST_ARRIVALS:
            raise UsageError(
                f"--rate {rate:g} makes more than {MOST_ARRIVALS:.0e} arrivals; give less"
            )
        return rate
    if users is None:
        raise UsageError(f"{name} has virtual users instead of a rate; give --users")
    carried = sum(worker.capacity for worker in run.workers.active)
    if users > carried:
        raise UsageError(
            f"--users {users:g} is more than the workers of {run.name} carry; give at most "
            f"{carried}"
        )
    return float(int(users))


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and math.isfinite(value) and value >= 0
    return float(value) if known else None


def _open_change(request: str, level: float | None, run: WorkloadRun) -> LoadChange:
    runner = run.runner
    if runner.lasts_s is None and runner.planned is None:
        raise UsageError(
            f"the load of {run.name} cannot be changed, as its runner does not say when it ends; "
            "end it with `osbench-coord abort`"
        )
    at_s, number = run.dispatcher.cut(run.elapsed())
    if level is not None:
        return LoadChange(
            request=request, at_s=at_s, level=level, number=number, asked=((at_s, level),)
        )
    skipped, late_s = runner.back_to_plan(at_s, number)
    return LoadChange(
        request=request,
        at_s=at_s,
        level=None,
        number=number,
        skipped=skipped,
        late_s=late_s,
        asked=tuple(_planned_from(run, at_s, late_s)),
    )


def _planned_from(run: WorkloadRun, at_s: float, late_s: float) -> list[tuple[float, float]]:
    """Return the planned load from `at_s` on (seconds after t0), shifted by `late_s` seconds.

    Pairs of seconds after t0 and level, as of `Runner.asked`; empty if the runner has none.
    """
    points = [(from_s + late_s, level) for from_s, level in run.plan.runner.asked()]
    if not points:
        return []
    return [(at_s, level_at(points, at_s)), *(point for point in points if point[0] > at_s)]
