"""Cuts a task down to a short, low load of each workload, which measures its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from osbench.common.plugin.runner import Runner
from osbench.common.task import Named, Task, Workload
from osbench.edges.history.sizing.iteration_cost import CalibrationPhases
from osbench.edges.history.sizing.load_levels import load_levels

#: Tag of the runs that are calibrations.
TAG = "calibration"
#: Virtual users at most, and iterations per second at most of all of them.
MOST_USERS = 4
MOST_RATE = 400.0
#: Arrivals per second of an open load until the service time is known; a task that asks for less
#: is calibrated with this rate, so that some iterations end.
LEAST_RATE = 10.0
#: Seconds without any iteration at the beginning, and the part of the rest at low load.
IDLE_S = 1.5
ALONE_PART = 0.3


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The load that a calibration puts on one workload: phases, greatest rate, open or closed."""

    phases: CalibrationPhases
    #: Iterations per second at most.
    rate: float
    #: Iterations start at a rate: pacing them is a part of what they cost.
    is_open: bool

    def risen_rate(self, held_s: float) -> float:
        """Return the arrivals per second that all users can serve if an iteration takes `held_s` s.

        Limited to the range from `LEAST_RATE` to `rate`.
        """
        return max(LEAST_RATE, min(self.rate, self.phases.users / max(held_s, 1e-6)))


def calibration_of(workload: Workload, runner: Runner, lasts_s: float) -> Calibration:
    """Return the calibration's load of a workload, with at most the workload's users and rate.

    It lasts `IDLE_S` without iterations and then `lasts_s` seconds. Users are at most `MOST_USERS`.
    The rate is at most `MOST_RATE`; of open loads at least `LEAST_RATE`, even if the workload has
    less.
    """
    users = max(1, min(MOST_USERS, runner.concurrency or MOST_USERS))
    rate = MOST_RATE
    if runner.OPEN:
        peak = max((one.peak for one in load_levels(runner)), default=0.0)
        rate = max(LEAST_RATE, min(rate, peak))
    elif workload.users.get("max_rate"):
        rate = min(rate, float(workload.users["max_rate"]))
    alone_s = IDLE_S + lasts_s * ALONE_PART
    phases = CalibrationPhases(idle_s=IDLE_S, alone_s=alone_s, end_s=IDLE_S + lasts_s, users=users)
    return Calibration(phases=phases, rate=rate, is_open=runner.OPEN)


def calibration_task(task: Task, calibrations: Sequence[Calibration]) -> Task:
    """Return a copy of the task with the loads of `calibrations`: one for each workload, in order.

    Workloads run one after another, even if their subtask runs them in parallel. The title says
    that it is a calibration. Tags, SLA criteria, hooks, drills, warm-up and `abort` are left out:
    they fit only the full load.
    """
    left = list(calibrations)
    subtasks = tuple(
        replace(
            subtask,
            workloads=tuple(_workload(one, left.pop(0)) for one in subtask.workloads),
            run_in_parallel=False,
        )
        for subtask in task.subtasks
    )
    return replace(task, title=f"Calibration of {task.title}", tags=(), subtasks=subtasks)


def _workload(workload: Workload, calibration: Calibration) -> Workload:
    users = {key: value for key, value in workload.users.items() if key != "start_rate"}
    if not calibration.is_open:
        users["max_rate"] = calibration.rate
    return replace(
        workload,
        runner=_open(workload, calibration)
        if calibration.is_open
        else _closed_runner(workload, calibration),
        users=users,
        sla=(),
        hooks=(),
        phases={},
        abort={},
        warmup_s=0.0,
    )


def _closed_runner(workload: Workload, calibration: Calibration) -> Named:
    phases = calibration.phases
    alone_s, crowd_s = phases.alone_s - phases.idle_s, phases.end_s - phases.alone_s
    levels = [(0, phases.idle_s), (1, alone_s), (phases.users, crowd_s)]
    return _runner("user_stages", "users", levels, workload, ("timeout",))


def _open(workload: Workload, calibration: Calibration) -> Named:
    """Return an open runner (`stages`) that starts `LEAST_RATE` arrivals per second after `IDLE_S`.

    The rate is raised during the run: see `CalibrationProgress`. Timeout, arrivals and seed are
    copied from the workload's runner.
    """
    phases = calibration.phases
    levels = [(0, phases.idle_s), (LEAST_RATE, phases.end_s - phases.idle_s)]
    found = _runner("stages", "target", levels, workload, ("timeout", "arrivals", "seed"))
    found.config["max_concurrency"] = phases.users
    return found


def _runner(
    name: str,
    key: str,
    levels: Sequence[tuple[float, float]],
    workload: Workload,
    kept: Sequence[str],
) -> Named:
    stages: list[dict[str, Any]] = []
    for level, lasts_s in levels:
        stages += [{key: level, "duration": 0}, {key: level, "duration": lasts_s}]
    asked = workload.runner.config
    config = {one: asked[one] for one in kept if isinstance(asked, dict) and asked.get(one)}
    return Named(name=name, config={**config, "stages": stages})
