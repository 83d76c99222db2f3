"""The command `plan`: how many workers a task needs."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from osbench.common.errors import UsageError
from osbench.common.plugin.scenario import MOST_COROUTINES
from osbench.coordinator.cli.adhoc import Adhoc, adhoc_options
from osbench.coordinator.cli.base import (
    CommandSettings,
    DurationType,
    FiniteRange,
    console,
    echo,
    with_settings,
)
from osbench.coordinator.cli.one_run import Wanted, checked_plan
from osbench.coordinator.cli.task_options import TaskOptions, task_options
from osbench.coordinator.run.plan import RunOptions, RunPlan, WorkloadPlan
from osbench.coordinator.sizing.iteration_cost import IterationCost
from osbench.coordinator.sizing.load_levels import load_levels
from osbench.coordinator.sizing.sizing_document import Sizing, to_document
from osbench.coordinator.sizing.worker_sizing import (
    HostLimits,
    UserPace,
    WorkloadNeeds,
    task_needs,
    workload_needs,
)
from osbench.coordinator.storage.run_retention import check_writable
from osbench.coordinator.storage.sizing_file import save_sizing, task_digest

#: Linux' default, where the file cannot be read.
_PORTS = (32768, 60999)

EPILOG = """
\b
Examples:
  osbench-coord plan task.yaml
  osbench-coord plan task.yaml --deployment mycloud --cores 8 --calibrate-s 20
  osbench-coord plan --scenario Dummy.dummy --arg sleep=0.1 --rps 2000 --duration 60
  osbench-coord plan task.yaml --no-calibration --cost 0.2ms --service-time 30ms

\b
Exit codes:
  0 planned   1 the calibration gave no figures: iterations failed, or none ended
  2 bad usage, task, configuration or deployment   130 interrupted
"""


@click.command(epilog=EPILOG)
@click.argument("task", metavar="[TASK]", required=False)
@click.option("--deployment", metavar="NAME", help="Deployment record; default: the one in use.")
@click.option(
    "--cores",
    type=click.IntRange(1),
    metavar="N",
    help="Cores of each host of workers; default: those of this one.",
)
@click.option(
    "--utilisation",
    type=FiniteRange(0.1, 1.0),
    default=0.6,
    show_default=True,
    metavar="SHARE",
    help="Share of its core that a worker process is to take at most.",
)
@click.option(
    "--calibrate-s",
    type=DurationType(1.0),
    default=5.0,
    show_default=True,
    metavar="DURATION",
    help="How long the calibration puts load on the service, for each workload.",
)
@click.option(
    "--no-calibration",
    is_flag=True,
    help="Send nothing: work with --cost and --service-time.",
)
@click.option(
    "--cost",
    type=DurationType(),
    metavar="DURATION",
    help="CPU time of an iteration in the worker, such as 0.2ms.",
)
@click.option(
    "--service-time",
    type=DurationType(),
    metavar="DURATION",
    help="Service time of an iteration.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the plan.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
@adhoc_options
@task_options
@with_settings
def plan(  # noqa: PLR0913 - one per option of the command
    settings: CommandSettings,
    task: str | None,
    deployment: str | None,
    cores: int | None,
    utilisation: float,
    calibrate_s: float,
    no_calibration: bool,
    cost: float | None,
    service_time: float | None,
    quiet: bool,
    as_json: bool,
    adhoc: Adhoc,
    options: TaskOptions,
) -> None:
    """Say how many workers a task needs, from a calibration.

    The calibration puts real load on the service, from this host and with a worker process of its
    own: at most 4 virtual users, and at most 400 iterations a second, for some seconds. Its run is
    kept with the tag "calibration". A later run of the same task compares what was planned with
    what happened.
    """
    if (task is None) == (not adhoc.given):
        raise UsageError("give a task file, or --scenario NAME")
    if task is not None and adhoc.without_effect:
        raise UsageError(
            f"{' and '.join(adhoc.without_effect)} cannot be combined with a task file, which says"
            " this itself"
        )
    given = (cost is not None, service_time is not None)
    if no_calibration and not all(given):
        raise UsageError("--no-calibration needs --cost and --service-time")
    if any(given) and not no_calibration:
        raise UsageError("--cost and --service-time are for --no-calibration")
    check_writable(settings.conf.data_dir)
    wanted = Wanted(
        source=task,
        adhoc=adhoc,
        options=options,
        deployment=deployment,
        web=None,
        run_options=RunOptions(),
    )
    checked, run_plan = checked_plan(settings, wanted)
    limits = HostLimits(
        cores=cores or len(os.sched_getaffinity(0)),
        utilisation=utilisation,
        virtual_users=int(settings.conf.worker.virtual_users),
        coroutines=MOST_COROUTINES,
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        ports=_ports(),
    )
    run_id = ""
    if cost is not None and service_time is not None:
        costs = _given(run_plan, cost, service_time)
    else:
        # what a run imports is not needed for figures that are given
        from osbench.coordinator.cli.commands.planning.calibration_run import (  # noqa: PLC0415
            calibrate,
        )

        calibrated = calibrate(run_plan, calibrate_s, quiet=quiet)
        run_id, costs = calibrated.run_id, calibrated.costs
    groups = _needs(run_plan, costs, limits)
    sizing = Sizing(
        task=checked,
        digest=task_digest(checked),
        run_id=run_id,
        limits=limits,
        workloads=[one for group in groups for one in group],
        needs=task_needs(groups, limits),
    )
    document = to_document(sizing)
    save_sizing(settings.conf.data_dir, sizing.digest, document)
    if as_json:
        echo(json.dumps(document))
        sys.exit(0)
    from osbench.coordinator.sizing.sizing_text import render_sizing  # noqa: PLC0415 - as above

    render_sizing(document, console())


def _given(run_plan: RunPlan, cost: float, service_time: float) -> tuple[IterationCost, ...]:
    one = IterationCost(
        cpu_s=cost,
        service_s=service_time,
        service_p95_s=service_time,
        held_s=service_time,
        calibrated=False,
    )
    return tuple(one for _ in run_plan.workloads)


def _needs(
    run_plan: RunPlan, costs: Sequence[IterationCost], limits: HostLimits
) -> list[list[WorkloadNeeds]]:
    return [
        [_needs_of(one, costs[one.number], limits) for one in group] for group in run_plan.groups
    ]


def _needs_of(one: WorkloadPlan, cost: IterationCost, limits: HostLimits) -> WorkloadNeeds:
    workload = one.workload
    pace = None if one.runner.OPEN else _pace(one)
    levels = load_levels(one.runner)
    runner = workload.runner.name
    return workload_needs(
        one.name,
        workload.scenario,
        runner,
        levels,
        cost,
        limits,
        pace,
        coroutines=one.scenario.is_coroutine,
    )


def _pace(one: WorkloadPlan) -> UserPace:
    think = one.workload.think
    least = float(think.get("min", 0.0))
    # the mean of uniform and normal think times; exponential ones are near it
    return UserPace(
        think_s=(least + float(think.get("max", least))) / 2,
        max_rate=float(one.workload.users.get("max_rate", 0.0)),
    )


def _ports() -> int:
    """Local ports that this host gives out to connections."""
    first, last = _PORTS
    with contextlib.suppress(OSError, ValueError):
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
        first, last = map(int, text.split())
    return last - first + 1
