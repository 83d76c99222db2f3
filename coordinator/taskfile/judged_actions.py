"""Criteria on atomic actions that the scenario of a workload cannot have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from osbench.common.errors import PluginError, Problem
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.plugin.signature import near
from osbench.common.task import Task, Workload
from osbench.coordinator.statistics.action_paths import NESTED
from osbench.coordinator.taskfile.places import uses
from osbench.coordinator.taskfile.schema.schema_errors import validate


def faults(
    task: Task, workload: Workload, scenario: ScenarioPlugin, plugins: Plugins
) -> Iterator[Problem]:
    """Yield a problem for each atomic action that a criterion judges and the scenario cannot have.

    Nothing if the scenario's actions are unknown before the load. Criteria with invalid
    configurations are skipped: another check reports them.
    """
    known = None
    for use in uses(workload, task.version):
        if use.kind != "sla":
            continue
        try:
            criterion: Any = plugins.get("sla", use.named.name)
        except PluginError:
            continue
        if validate(use.named.config, criterion.CONFIG_SCHEMA, use.place):
            continue
        judged = criterion.judged_actions(use.named.config)
        if judged and known is None:
            known = scenario.cls.action_names(scenario.method, workload.args)
        if known is None:
            continue
        for action in judged:
            wrong = [name for name in action.split(NESTED) if name not in known]
            if wrong:
                hint = near(wrong[0], known) or f"; it has {', '.join(dict.fromkeys(known))}"
                yield Problem(use.place, f"{workload.scenario} has no action {wrong[0]!r}{hint}")
