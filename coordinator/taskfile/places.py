"""Places in a document, values found there, and plug-ins that a workload names, for messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from osbench.common.secrets.masking import mask
from osbench.common.secrets.secret_names import MASK, is_secret
from osbench.common.task import Named, Workload

#: Longest value that a message repeats, in characters.
SHOWN = 60

_PLAIN = re.compile(r"[\w.@-]+")


def inside(place: str, part: str | int) -> str:
    """The place of a key or an index inside `place`, like `subtasks[0].title`."""
    if isinstance(part, int):
        return f"{place}[{part}]"
    if not _PLAIN.fullmatch(part):
        return f"{place}[{json.dumps(part)}]"
    return f"{place}.{part}" if place else part


def shown(value: Any, key: str | int | None = None) -> str:
    """A value as JSON, cut; a summary for containers; secrets are masked."""
    if isinstance(key, str) and is_secret(key, value):
        return MASK
    if isinstance(value, dict):
        keys = ", ".join(str(name) for name in value)
        return f"an object with {_cut(keys)}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    try:
        return _cut(json.dumps(mask(value), ensure_ascii=False))
    except TypeError:
        return _cut(f"{value!r}")


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


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


def runner_place(workload: Workload, version: int) -> str:
    """Place of the runner's configuration."""
    place = inside(workload.place, "runner")
    return place if version == 1 else inside(place, workload.runner.name)
