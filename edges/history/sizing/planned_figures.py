"""Compares the result of `plan` for a workload with its run: processes, users, times and CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from osbench.common.task import Task
from osbench.coordinator.formatting import spaced, three_digits
from osbench.coordinator.report.model.plan_figures import PlanComparison, PlannedFigure
from osbench.coordinator.report.report_section import ReportSection
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.edges.history.sizing.sizing_file import load_sizing, task_digest

#: Less CPU time than this share of a core, over all workers, says nothing of an iteration's cost.
LEAST_CPU = 0.02
#: A worker process that takes this much of its core was at its limit.
FULL_CPU = 0.9
#: Share of failed iterations that explains other figures.
FAILED_SHARE = 0.05
#: Fewer users than this at once vary too much to be reported.
FEW_USERS = 5
#: A shorter load gives no figures, seconds.
SHORTEST_S = 1.0


def plan_section(task: Task, data_dir: str) -> ReportSection:
    """Return a function that compares a workload's outcome with the saved result of `plan`.

    The result is read from the data directory now. The function takes the workload's number and
    outcome; it returns None if there is no valid result.
    """
    return partial(compared_with_plan, load_sizing(data_dir, task_digest(task)))


def compared_with_plan(
    document: Mapping[str, Any] | None, number: int, outcome: WorkloadOutcome
) -> PlanComparison | None:
    """Return planned and measured figures of a workload, and messages on differences.

    `document`: the saved JSON object of `plan`, or None. `number`: the workload's index in it. None
    without a document, if the workload has not begun, or if the document has no valid entry for it.
    """
    if document is None or not outcome.begun:
        return None
    try:
        planned: Mapping[str, Any] = document["workloads"][number]
        return _comparison(planned, outcome)
    except (LookupError, TypeError, ValueError):
        # a report must not fail because a document was changed by hand
        return None


def _comparison(planned: Mapping[str, Any], outcome: WorkloadOutcome) -> PlanComparison:
    workers = [worker for worker in outcome.workers if worker.cpu_mean is not None]
    used = sum(worker.cpu_mean or 0.0 for worker in workers)
    idle = float(planned["cost"]["idle_cpu"]) * len(workers)
    figures = _figures(planned, outcome, used, idle, len(workers))
    cpu_max = max((worker.cpu_max or 0.0 for worker in workers), default=0.0)
    return PlanComparison(
        workers=PlannedFigure(planned=float(planned["processes"]), measured=len(workers)),
        cost_s=figures.cost_s,
        service_s=figures.service_s,
        users=figures.users,
        cpu=figures.cpu,
        differences=tuple(_differences(figures, outcome, used - idle, cpu_max)),
    )


def _figures(
    planned: Mapping[str, Any], outcome: WorkloadOutcome, used: float, idle: float, workers: int
) -> _Figures:
    """Return pairs of planned and measured figures; `measured` is None if it is unknown.

    `used`: cores that all `workers` used on average; `idle`: the part of it without load. Loads
    shorter than `SHORTEST_S` give no CPU figures.
    """
    cost, lasted_s = planned["cost"], outcome.offered.duration_s
    statistics = outcome.statistics
    ran = statistics.ran + outcome.warmup.left_out
    enough = workers > 0 and ran > 0 and lasted_s >= SHORTEST_S
    service = statistics.service.ok
    running = statistics.profile.series(120).running
    count = max(1, workers)
    planned_cpu = float(cost["idle_cpu"]) + _mean_rate(planned) * float(cost["cpu_s"]) / count
    return _Figures(
        cost_s=PlannedFigure(
            planned=float(cost["cpu_s"]),
            measured=max(0.0, used - idle) * lasted_s / ran if enough else None,
        ),
        # plans of older releases do not say
        cpu_at_most=bool(cost.get("cpu_at_most")),
        service_s=PlannedFigure(
            planned=float(cost["service_s"]),
            measured=service.mean / 1e9 if service.count else None,
        ),
        users=PlannedFigure(planned=float(planned["users"]), measured=max(running, default=None)),
        cpu=PlannedFigure(planned=planned_cpu, measured=used / count if enough else None),
    )


def _mean_rate(planned: Mapping[str, Any]) -> float:
    """Return the planned iterations per second, averaged over the duration of all levels.

    The peak rate if a level has no known end; 0 without levels.
    """
    rate = lasts_s = 0.0
    for level in planned["levels"]:
        if level["to_s"] is None:
            return float(planned["rate"])
        length_s = level["to_s"] - level["from_s"]
        middle = (level["begin"] + level["end"]) / 2 if planned["open"] else level["rate"]
        rate, lasts_s = rate + middle * length_s, lasts_s + length_s
    return rate / lasts_s if lasts_s else 0.0


@dataclass(frozen=True, kw_only=True)
class _Figures:
    cost_s: PlannedFigure
    cpu_at_most: bool
    service_s: PlannedFigure
    users: PlannedFigure
    cpu: PlannedFigure


def _differences(
    figures: _Figures, outcome: WorkloadOutcome, iterations_cpu: float, cpu_max: float
) -> Iterator[str]:
    failed = outcome.accounting.failed + outcome.accounting.timed_out
    share = failed / max(1, outcome.accounting.planned)
    bad = f"{share:.0%} of the iterations did not end well" if share > FAILED_SHARE else ""
    full = cpu_max >= FULL_CPU
    cost, service, users = figures.cost_s, figures.service_s, figures.users
    # less than a bound is as planned
    bounded = figures.cpu_at_most and (cost.ratio or 0.0) < 1
    if cost.differs and not bounded and iterations_cpu >= LEAST_CPU:
        why = _why_cost(cost, bad)
        yield _sentence("an iteration cost", cost, f"{spaced(cost.measured)} of CPU", why)
    if service.differs:
        why = _why_service(service, bad, full)
        yield _sentence("an iteration took", service, spaced(service.measured), why)
    if users.differs and max(users.planned, users.measured or 0.0) >= FEW_USERS:
        measured = f"{three_digits(users.measured or 0.0)} users at once"
        yield _sentence("there were", users, measured, _why_users(users, service))
    if full and figures.cpu.planned < FULL_CPU:
        yield (
            f"a worker process took {cpu_max:.0%} of a core at its peak, {figures.cpu.planned:.0%} "
            "were planned on average: it shared its core, or there were too few"
        )


def _why_cost(cost: PlannedFigure, bad: str) -> str:
    if bad:
        return f"{bad}, which costs otherwise"
    if (cost.ratio or 0.0) < 1:
        return "at a high rate a worker does some work once for many iterations"
    return "responses or arguments were larger, more was traced, or the hosts are slower"


def _why_service(service: PlannedFigure, bad: str, full: bool) -> str:
    if bad:
        return bad
    if (service.ratio or 0.0) < 1:
        return "the first requests of the calibration found cold caches"
    if full:
        return "worker processes were at their limit: add some"
    return "the service was slower under this load than at the low one of the calibration"


def _why_users(users: PlannedFigure, service: PlannedFigure) -> str:
    more, slower = (users.ratio or 0.0) > 1, (service.ratio or 0.0) > 1
    if service.differs and more == slower:
        return "they follow the service time"
    return "the load differed from the planned one"


def _sentence(what: str, figure: PlannedFigure, measured: str, why: str) -> str:
    ratio = figure.ratio or 0.0
    times = f"{three_digits(ratio)} times the plan" if ratio > 1 else f"{ratio:.0%} of the plan"
    return f"{what} {measured}, {times}: likely because {why}"
