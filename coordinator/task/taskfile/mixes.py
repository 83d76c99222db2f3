"""Workloads that mix several scenarios: each iteration runs one, chosen by weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from osbench.common.errors import Problem
from osbench.common.plugin.loading.mixed_scenario import SEPARATOR
from osbench.common.plugin.signature import near
from osbench.coordinator.task.taskfile.places import inside


def scenario_of(workload: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return scenario name and arguments of a workload of version 2, which has been checked.

    For a mix the scenarios' names are joined by `SEPARATOR`, and the arguments are `{name: {weight,
    args}}`.
    """
    scenarios, weights = workload["scenario"], workload.get("mix")
    if weights is None:
        ((name, args),) = scenarios.items()
        return name, args
    return SEPARATOR.join(scenarios), {
        name: {"weight": weights[name], "args": args} for name, args in scenarios.items()
    }


def faults(subtasks: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """Return the problems of `mix` and `scenario` in all workloads of these subtasks (version 2).

    These are several scenarios without `mix`, `mix` with one scenario, missing or surplus weights,
    and `args_from` with a mix. The subtasks must fit their schema.
    """
    found: list[Problem] = []
    for number, subtask in enumerate(subtasks):
        place = inside("subtasks", number)
        if "workloads" not in subtask:
            found += _faults(subtask, place)
            continue
        within = inside(place, "workloads")
        for position, workload in enumerate(subtask["workloads"]):
            found += _faults(workload, inside(within, position))
    return found


def _faults(workload: Mapping[str, Any], place: str) -> Iterator[Problem]:
    names, weights = workload["scenario"], workload.get("mix")
    if weights is None:
        if len(names) > 1:
            example = ", ".join(f"{name}: 1" for name in names)
            yield Problem(
                inside(place, "scenario"),
                f"names {len(names)} scenarios: name one, or add their weights as "
                f"mix: {{{example}}}",
            )
        return
    where = inside(place, "mix")
    if len(names) == 1:
        yield Problem(where, "is for several scenarios, but `scenario` names one")
    for name in names:
        if name not in weights:
            yield Problem(where, f"has no weight for {name}")
    for name in weights:
        if name not in names:
            yield Problem(inside(where, name), f"is not in `scenario`{near(name, names)}")
    if "args_from" in workload:
        yield Problem(
            inside(place, "args_from"),
            "gives arguments to one scenario: with a mix use users: {data: ...}",
        )
