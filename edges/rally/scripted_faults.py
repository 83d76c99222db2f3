"""Checks a workload whose runner starts iterations by its own code (a scripted runner)."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.common.errors import Problem
from osbench.common.plugin.scenario import Scenario
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.task import Workload
from osbench.coordinator.task.taskfile.places import inside

_BY_ITSELF = "starts iterations itself, in threads of one worker process"


def faults(workload: Workload, plugin: ScenarioPlugin) -> Iterator[Problem]:
    """Yield a problem for each setting of a workload that a scripted runner does not support.

    These are coroutine scenarios that cannot run in threads, `on_start`, `on_stop`, `users` and
    `think`: the runner's own code starts iterations. To be called only for such a runner.
    """
    runner, place = workload.runner.name, workload.place
    other = "use a runner of osbench"
    if plugin.is_coroutine and plugin.cls.THREADS_UP_TO < 1:
        yield Problem(
            inside(place, "scenario"),
            f"{plugin.name} is `async def`, and the runner {runner} {_BY_ITSELF}: {other}",
        )
    for name in ("on_start", "on_stop"):
        if getattr(plugin.cls, name) is not getattr(Scenario, name):
            yield Problem(
                inside(place, "scenario"),
                f"{plugin.name} has {name} for virtual users, and the runner {runner} {_BY_ITSELF}"
                f": {other}",
            )
    found = {"users": workload.users, "think": workload.think, "workers": workload.zones}
    for key, value in found.items():
        if value:
            yield Problem(
                inside(place, key), f"has no effect: the runner {runner} {_BY_ITSELF}; {other}"
            )
