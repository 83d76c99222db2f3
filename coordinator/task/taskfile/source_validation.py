"""Checks a task against the deployment, and plug-ins of other frameworks against its cloud."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.common.deployment.record import Deployment
from osbench.common.errors import Problem
from osbench.common.plugin.cloud_platform import cloud_of
from osbench.common.plugin.plugin_names import NATIVE, parse_name
from osbench.common.plugin.plugin_source import SourceUse
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.task.taskfile.places import args_place, scenario_place, uses


def check(task: Task, plugins: Plugins, deployment: Deployment | None) -> list[Problem]:
    """Return the problems of running a task on a deployment; the task has been checked without it.

    Also asks the frameworks of foreign plug-ins (sources, such as Rally): they may send requests to
    the cloud and, if the record has no users, create a temporary user there.
    """
    cloud, found = cloud_of(deployment), list[Problem]()
    if cloud is not None and deployment is not None:
        found = cloud.login_problems(task, plugins, deployment)
    return found + [
        problem
        for source, asked_of in _by_source(task, plugins).items()
        for problem in plugins.source(source).cloud_problems(asked_of, deployment)
    ]


def unasked_checks(task: Task, plugins: Plugins) -> list[str]:
    """Return names of checks by other frameworks that would send requests to the cloud in `check`.

    No request is made. The task must have been checked.
    """
    return [
        name
        for source, uses in _by_source(task, plugins).items()
        for name in plugins.source(source).unasked(uses)
    ]


def _by_source(task: Task, plugins: Plugins) -> dict[str, list[SourceUse]]:
    found: dict[str, list[SourceUse]] = {}
    for source, use in _uses(task, plugins):
        found.setdefault(source, []).append(use)
    return found


def _uses(task: Task, plugins: Plugins) -> Iterator[tuple[str, SourceUse]]:
    """Yield (framework, use) for each use of another framework's plug-in, except of runners."""
    for workload in task.workloads:
        scenario = plugins.scenario(workload.scenario)
        if scenario.source != NATIVE:
            use = SourceUse(
                kind="scenario",
                name=parse_name(workload.scenario).in_rally,
                config=None,
                place=args_place(workload, task.version),
                workload=workload,
            )
            yield scenario.source, use
        place = scenario_place(workload, task.version)
        named = [("context", name, config, place) for name, config in scenario.context.items()]
        for one in uses(workload, task.version):
            named.append((one.kind, one.named.name, one.named.config, one.place))
        for kind, name, config, where in named:
            found = plugins.find(kind, name, beside=scenario if kind == "context" else None)
            if found.source != NATIVE:
                use = SourceUse(kind=kind, name=found.address, config=config, place=where)
                yield found.source, use
