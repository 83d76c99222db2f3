"""Criteria on atomic actions that the scenario of a workload cannot have."""

from __future__ import annotations

from typing import Any

from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.plugin.signature import near
from osbench.common.plugin.sla import Sla
from osbench.common.task import Workload
from osbench.coordinator.results.statistics.action_paths import NESTED


def unknown_actions(
    workload: Workload, scenario: ScenarioPlugin, criterion: type[Sla], config: Any
) -> list[str]:
    """Return a message for each action that a criterion judges and the scenario cannot have.

    `config`: of the criterion; it fits its schema. Empty if the scenario's actions are unknown
    before the load. Exceptions of the two plug-ins are not caught.
    """
    judged = criterion.judged_actions(config)
    known = scenario.cls.action_names(scenario.method, workload.args) if judged else None
    if known is None:
        return []
    found = []
    for action in judged:
        # a name may have the sign between nested names in it
        names = [action] if action in known else action.split(NESTED)
        wrong = next((name for name in names if name not in known), None)
        if wrong is not None:
            hint = near(wrong, known) or f"; it has {', '.join(dict.fromkeys(known))}"
            found.append(f"{workload.scenario} has no action {wrong!r}{hint}")
    return found
