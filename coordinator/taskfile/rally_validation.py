"""Runs Rally's validators that need a deployment or its cloud, or lists those not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, Problem
from osbench.common.plugin.plugin_names import RALLY, asked
from osbench.common.plugin.plugins import Plugins
from osbench.common.rally import validators
from osbench.common.rally.context_object import trial_users
from osbench.common.rally.validators import PLATFORM, SEMANTIC
from osbench.common.task import Task, Workload
from osbench.coordinator.taskfile.uses import args_place, scenario_place, uses

#: Advice for a missing deployment record.
_GIVE = "no deployment is in use: give --deployment, or see osbench-coord deployment create"


@dataclass(frozen=True, kw_only=True)
class _Target:
    """A plug-in of Rally with its configuration."""

    kind: str
    #: The name that Rally knows.
    name: str
    config: Any
    #: Its place in the file.
    place: str
    #: Set for a scenario, which is validated with its workload instead of a configuration.
    workload: Workload | None = None


def check(task: Task, plugins: Plugins, deployment: Deployment | None) -> list[Problem]:
    """What the deployment lacks for a task that was checked without it.

    For validators that query the cloud a temporary user is created there, unless the record has
    users.
    """
    targets = list(_targets(task, plugins))
    if not targets:
        return []
    try:
        known = trial_users.platforms(deployment)
        problems = _asked(_needing(targets, PLATFORM), PLATFORM, known)
        if problems and deployment is None:
            return [Problem(one.place, f"{one.message}; {_GIVE}") for one in problems]
        looking = _needing(targets, SEMANTIC)
        if problems or not looking or deployment is None or not known["platforms"]:
            return problems
        with trial_users.users(deployment) as validation_context:
            return _asked(looking, SEMANTIC, validation_context)
    except ContextError as error:
        return [Problem("", str(error))]


def unasked(task: Task, plugins: Plugins) -> list[str]:
    """Validators of a checked task that `check` would run: platforms first, then the others."""
    found = {
        (within != PLATFORM, f"platform {name}" if within == PLATFORM else name)
        for target in _targets(task, plugins)
        for within, name in validators.needing(target.kind, target.name)
    }
    return [name for _, name in sorted(found)]


def _targets(task: Task, plugins: Plugins) -> Iterator[_Target]:
    for workload in task.workloads:
        scenario = plugins.scenario(workload.scenario)
        if scenario.source == RALLY:
            yield _Target(
                kind="scenario",
                name=asked(workload.scenario).in_rally,
                config=None,
                place=args_place(workload, task.version),
                workload=workload,
            )
        place = scenario_place(workload, task.version)
        named = [("context", name, config, place) for name, config in scenario.context.items()]
        for use in uses(workload, task.version):
            named.append((use.kind, use.named.name, use.named.config, use.place))
        for kind, name, config, where in named:
            found = plugins.find(kind, name, beside=scenario if kind == "context" else None)
            if found.source == RALLY:
                yield _Target(kind=kind, name=found.address, config=config, place=where)


def _needing(targets: Sequence[_Target], kind: str) -> list[_Target]:
    return [
        target
        for target in targets
        if any(within == kind for within, _ in validators.needing(target.kind, target.name))
    ]


def _asked(targets: Sequence[_Target], within: str, validation_context: Any) -> list[Problem]:
    return [
        Problem(target.place, message)
        for target in targets
        for message in validators.problems(
            target.kind,
            target.name,
            target.config,
            within=within,
            workload=target.workload,
            validation_context=validation_context,
        )
    ]
