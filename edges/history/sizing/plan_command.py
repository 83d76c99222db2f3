"""The command `plan`: how many workers a task needs."""

from __future__ import annotations

import contextlib
import json
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from osbench.common.machine.cpu_quota import usable_cores
from osbench.common.plugin.scenario import MOST_COROUTINES
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    DurationType,
    FiniteRange,
    console,
    echo,
    with_settings,
)
from osbench.coordinator.front.cli.one_run import Wanted, checked_plan
from osbench.coordinator.front.cli.options.adhoc import ADHOC_RULES, Adhoc
from osbench.coordinator.front.cli.options.option_rules import Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import OptionSet, flag, option, option_set
from osbench.coordinator.front.cli.options.shared_options import (
    deployment_name,
    json_flag,
    quiet_flag,
)
from osbench.coordinator.front.cli.options.task_options import TaskOptions
from osbench.coordinator.load.run.plan import RunPlan, WorkloadPlan
from osbench.coordinator.results.storage.run_retention import check_writable
from osbench.edges.history.sizing.iteration_cost import IterationCost, requests_at_once
from osbench.edges.history.sizing.load_levels import load_levels
from osbench.edges.history.sizing.sizing_document import Sizing, to_document
from osbench.edges.history.sizing.sizing_file import save_sizing, task_digest
from osbench.edges.history.sizing.worker_sizing import (
    HostLimits,
    UserPace,
    WorkloadNeeds,
    task_needs,
    workload_needs,
)

#: Linux' default, if the file cannot be read.
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


@dataclass(frozen=True, kw_only=True)
class PlanOptions(OptionSet):
    """Options of the command `plan`: assumed hosts, and figures that replace a calibration."""

    SECTION = "Plan"

    deployment: str | None = deployment_name()
    cores: int | None = option(
        "--cores",
        type=click.IntRange(1),
        metavar="N",
        help="Cores of each host of workers; default: the cores of this host.",
    )
    utilisation: float = option(
        "--utilisation",
        type=FiniteRange(0.1, 1.0),
        default=0.6,
        show_default=True,
        metavar="SHARE",
        help="Share of its core that a worker process is to take at most.",
    )
    calibrate_s: float = option(
        "--calibrate-s",
        type=DurationType(1.0),
        default=5.0,
        show_default=True,
        metavar="DURATION",
        help="How long the calibration puts load on the service, for each workload.",
    )
    no_calibration: bool = flag(
        "--no-calibration", help="Send no requests: work with --cost and --service-time."
    )
    #: Seconds.
    cost: float | None = option(
        "--cost",
        type=DurationType(),
        metavar="DURATION",
        help="CPU time of an iteration in the worker, such as 0.2ms.",
    )
    #: Seconds.
    service_time: float | None = option(
        "--service-time",
        type=DurationType(),
        metavar="DURATION",
        help="Service time of an iteration.",
    )
    quiet: bool = quiet_flag("the plan")
    as_json: bool = json_flag()

    def limits(self, virtual_users: int) -> HostLimits:
        """Return the assumed limits of a host: as the options say, else this host's.

        Without `--cores` these are the usable cores of this host. `virtual_users`: threads per
        worker process.
        """
        return HostLimits(
            cores=self.cores or usable_cores(),
            utilisation=self.utilisation,
            virtual_users=virtual_users,
            coroutines=MOST_COROUTINES,
            open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
            ports=_ports(),
        )


_NO_CALIBRATION = "sends no requests and works with --cost and --service-time"
_A_FIGURE = "replaces a figure of the calibration"

RULES = (
    Rule(option="--no-calibration", why=_NO_CALIBRATION, needs=("--cost",)),
    Rule(option="--no-calibration", why=_NO_CALIBRATION, needs=("--service-time",)),
    Rule(option="--no-calibration", why=_NO_CALIBRATION, excludes=("--calibrate-s",)),
    Rule(option="--cost", why=_A_FIGURE, needs=("--no-calibration",)),
    Rule(option="--service-time", why=_A_FIGURE, needs=("--no-calibration",)),
)


@click.command(cls=RuledCommand, rules=(*ADHOC_RULES, *RULES), epilog=EPILOG)
@click.argument("task", metavar="[TASK]", required=False)
@option_set(PlanOptions, "asked")
@option_set(TaskOptions, "task_options")
@option_set(Adhoc, "adhoc")
@with_settings
def plan(
    settings: CommandSettings,
    task: str | None,
    asked: PlanOptions,
    task_options: TaskOptions,
    adhoc: Adhoc,
) -> None:
    """Say how many workers a task needs, from a calibration.

    The calibration puts real load on the service, from this host and with a separate worker
    process: at most 4 virtual users, and at most 400 iterations per second, for some seconds. Its
    run is kept with the tag "calibration". A later run of the same task compares the plan with its
    results.
    """
    check_writable(settings.conf.data_dir)
    wanted = Wanted(source=task, options=task_options, deployment=asked.deployment, adhoc=adhoc)
    checked, run_plan = checked_plan(settings, wanted)
    limits = asked.limits(int(settings.conf.worker.virtual_users))
    run_id, costs = _costs(run_plan, asked)
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
    if asked.as_json:
        echo(json.dumps(document))
        sys.exit(0)
    from osbench.edges.history.sizing.sizing_text import render_sizing  # noqa: PLC0415 - as below

    render_sizing(document, console())


def _costs(run_plan: RunPlan, asked: PlanOptions) -> tuple[str, tuple[IterationCost, ...]]:
    """Return the id of the calibration run and the cost of an iteration of each workload, in order.

    With `--cost` and `--service-time` nothing runs, and the id is "". Else runs the calibration and
    raises as `calibrate` does.
    """
    if asked.cost is not None and asked.service_time is not None:
        return "", _given_costs(run_plan, asked.cost, asked.service_time)
    # what a run imports is not needed for figures that are given
    from osbench.edges.history.sizing.calibration_run import (  # noqa: PLC0415
        calibrate,
    )

    calibrated = calibrate(run_plan, asked.calibrate_s, quiet=asked.quiet)
    return calibrated.run_id, calibrated.costs


def _given_costs(run_plan: RunPlan, cost: float, service_time: float) -> tuple[IterationCost, ...]:
    return tuple(
        IterationCost(
            cpu_s=cost,
            service_s=service_time,
            service_p95_s=service_time,
            held_s=service_time,
            files_user=float(requests_at_once(one.workload.args)),
            calibrated=False,
        )
        for one in run_plan.workloads
    )


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
    """Return how many local ports this host has for outgoing connections, from /proc.

    The default of Linux, `_PORTS`, if the file cannot be read.
    """
    first, last = _PORTS
    with contextlib.suppress(OSError, ValueError):
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
        first, last = map(int, text.split())
    return last - first + 1
