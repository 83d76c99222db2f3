"""What workers are told of a workload before its load."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from osbench.common.deployment.record import Deployment
from osbench.common.plugin.plugin_names import NATIVE
from osbench.common.plugin.plugins import ScenarioPlugin
from osbench.common.plugin.runner import Runner
from osbench.common.protocol.messages import Specification
from osbench.common.task import Workload
from osbench.coordinator.data_file import DataFile
from osbench.coordinator.run.state import RunState

#: Workers ship results at most this often, seconds; with many workers less often.
SHIP_S = 0.2
SHIP_S_PER_WORKER = 0.004
#: At least this often where a run is to abort on SLA failure.
SHIP_ABORT_S = 1.0
#: In a longer ramp, seconds, it means little that workers learn of new users with a heartbeat.
LONG_RAMP_S = 60.0


def specify(
    state: RunState,
    number: int,
    workload: Workload,
    *,
    plugin: ScenarioPlugin,
    runner: Runner,
    args: dict[str, Any],
    context: dict[str, Any],
    data: DataFile | None,
    deployment: Deployment | None,
    conf: cfg.ConfigOpts,
    sample_rate: float,
) -> Specification:
    """Of workload `number`, with `args` and `context` as its contexts left them."""
    run = state.channel.run_id
    return Specification(
        run=run,
        workload=number,
        # the worker does not know whose plug-in this run prefers
        scenario=workload.scenario if plugin.source == NATIVE else plugin.address,
        args=args,
        timeout_s=runner.timeout_s,
        open=runner.OPEN,
        max_concurrency=runner.concurrency if runner.OPEN else 0,
        max_lag_s=conf.benchmark.max_lag_s,
        context={**context, "task": {"uuid": run}},
        deployment=deployment.to_dict() if deployment else {},
        source_hash=plugin.source_hash,
        sample_rate=sample_rate,
        eager_s=runner.ramp_up_s if runner.ramp_up_s <= LONG_RAMP_S else 0.0,
        columns=data.header if data is not None else [],
        rows_key=data.key if data is not None else b"",
        ship_interval_s=_ship_interval_s(len(state.fleet.members), state.abort_on_sla),
    )


def _ship_interval_s(workers: int, abort_on_sla: bool) -> float:
    interval_s = max(SHIP_S, SHIP_S_PER_WORKER * workers)
    # an SLA failure is seen in what was shipped
    return min(interval_s, SHIP_ABORT_S) if abort_on_sla else interval_s
