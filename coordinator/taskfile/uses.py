"""Contexts, criteria, hooks and triggers of a workload, each with its place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from osbench.common.task import Named, Workload
from osbench.coordinator.taskfile.places import inside


@dataclass(frozen=True, kw_only=True)
class Use:
    """A plug-in that a workload names."""

    kind: str
    named: Named
    #: Place of its configuration.
    place: str


def uses(workload: Workload, version: int) -> Iterator[Use]:
    """All plug-ins except scenario and runner, in file order; `version` is that of the format."""
    place = inside(workload.place, "context" if version == 1 else "contexts")
    for context in workload.contexts:
        yield Use(kind="context", named=context, place=inside(place, context.name))
    place = inside(workload.place, "sla")
    for criterion in workload.sla:
        yield Use(kind="sla", named=criterion, place=inside(place, criterion.name))
    for position, hook in enumerate(workload.hooks):
        place = inside(inside(workload.place, "hooks"), position)
        part = "args" if version == 1 else "action"
        yield Use(kind="hook", named=hook.action, place=inside(place, part))
        part = "args" if version == 1 else hook.trigger.name
        within = inside(inside(place, "trigger"), part)
        yield Use(kind="trigger", named=hook.trigger, place=within)


def scenario_place(workload: Workload, version: int) -> str:
    """Place of the scenario's name."""
    return workload.place if version == 1 else inside(workload.place, "scenario")


def args_place(workload: Workload, version: int) -> str:
    """Place of the scenario's arguments."""
    if version == 1:
        return inside(workload.place, "args")
    return inside(scenario_place(workload, version), workload.scenario)
