"""What a run directory says of a run from its beginning on: run.json."""

from __future__ import annotations

from typing import Any

from osbench import __version__
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.plugins import Plugins
from osbench.common.secrets.masking import mask
from osbench.common.task import Task, Workload
from osbench.coordinator.storage import digests


def describe(
    run_id: str,
    started_at: float,
    task: Task,
    tags: list[str],
    plugins: Plugins,
    deployment: Deployment | None,
) -> dict[str, Any]:
    """What is asked of a run, without a secret."""
    return {
        "run_id": run_id,
        "osbench": __version__,
        "digests": digests.FORMAT,
        "started_at": started_at,
        "task": task.title,
        "description": task.description,
        "source": task.source,
        "tags": tags,
        "deployment": deployment.name if deployment else None,
        "workloads": [_workload(workload, plugins) for workload in task.workloads],
    }


def _workload(workload: Workload, plugins: Plugins) -> dict[str, Any]:
    return {
        "name": workload.name,
        "scenario": workload.scenario,
        "scenario_source": plugins.scenario(workload.scenario).source,
        "args": mask(workload.args),
        "runner": {workload.runner.name: mask(workload.runner.config)},
        "sla": {named.name: mask(named.config) for named in workload.sla},
        "idempotent": workload.idempotent,
        "warmup": workload.warmup_s,
        "abort": dict(workload.abort),
        "args_from": workload.args_from,
    }
