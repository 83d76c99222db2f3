"""The specification of a workload: everything that workers know of it before its load."""

from __future__ import annotations

import math
from typing import Any

from osbench.common.plugin.plugin_names import NATIVE
from osbench.common.plugin.scripted_runner import ScriptedRunner
from osbench.common.protocol.messages import Specification
from osbench.coordinator.load.run.plan import RunPlan, WorkloadPlan

#: Workers ship results at most this often, seconds; with many workers less often.
SHIP_S = 0.2
SHIP_S_PER_WORKER = 0.004
#: Longest interval if a run is to abort on SLA failure.
SHIP_ABORT_S = 1.0
#: In a longer ramp, seconds, it means little that workers learn of new users with a heartbeat.
LONG_RAMP_S = 60.0


def specify(
    plan: RunPlan, one: WorkloadPlan, args: dict[str, Any], context: dict[str, Any], workers: int
) -> Specification:
    """Return the specification of a workload: all that workers get to know before its load.

    `args` and `context` are as its contexts left them. `workers`, the number of worker processes of
    the run, decides the users of each and how often they send results.
    """
    runner, scenario, data = one.runner, one.scenario, one.data
    return Specification(
        run=plan.run_id,
        workload=one.number,
        # the worker does not know whose plug-in this run prefers
        scenario=one.workload.scenario if scenario.source == NATIVE else scenario.address,
        args=args,
        timeout_s=runner.timeout_s,
        open=runner.OPEN,
        max_concurrency=runner.concurrency if runner.OPEN else 0,
        users_each=0 if runner.OPEN else math.ceil(runner.concurrency / max(1, workers)),
        max_lag_s=plan.conf.benchmark.max_lag_s,
        context={**context, "task": {"uuid": plan.run_id}},
        deployment=plan.deployment.to_dict() if plan.deployment else {},
        source_hash=scenario.source_hash,
        sample_rate=one.sampling.rate,
        eager_s=rise_s if (rise_s := ramp_s(one)) <= LONG_RAMP_S else 0.0,
        users=_users(one),
        think=dict(one.workload.think),
        http=dict(one.workload.http),
        columns=data.header if data is not None else [],
        rows_key=data.key if data is not None else b"",
        shown=plan.options.shown,
        script=_script(plan, one),
        otlp=plan.by_otlp,
        ship_interval_s=_ship_interval_s(workers, plan.options.abort_on_sla),
    )


def ramp_s(one: WorkloadPlan) -> float:
    """Return the seconds in which a closed load adds its virtual users; 0 if all start at once.

    By `start_rate` of the workload if it has one, else by the runner's ramp.
    """
    rate = one.workload.users.get("start_rate")
    return one.runner.concurrency / rate if rate else one.runner.ramp_up_s


def _users(one: WorkloadPlan) -> dict[str, Any]:
    if one.user_data is None:
        return {}
    wish = one.workload.users["data"]
    return {
        "rows": list(one.user_data.rows()),
        "order": wish.get("order", "sequential"),
        "unique": wish.get("unique", False),
    }


def _script(plan: RunPlan, one: WorkloadPlan) -> dict[str, Any]:
    if not isinstance(one.runner, ScriptedRunner):
        return {}
    wish = one.workload.runner
    return {
        "runner": plan.plugins.find("runner", wish.name).address,
        "config": dict(wish.config),
        "source_hash": one.runner.SOURCE_HASH,
    }


def _ship_interval_s(workers: int, abort_on_sla: bool) -> float:
    interval_s = max(SHIP_S, SHIP_S_PER_WORKER * workers)
    # an SLA failure is detected only in shipped results
    return min(interval_s, SHIP_ABORT_S) if abort_on_sla else interval_s
