"""Places of keys and plug-ins in a task document, and values found there, for messages."""

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
    """Return the place of a key or an index inside `place`, such as `subtasks[0].title`.

    Keys with other characters than letters, digits and `_.@-` are in brackets and quotes.
    """
    if isinstance(part, int):
        return f"{place}[{part}]"
    if not _PLAIN.fullmatch(part):
        return f"{place}[{json.dumps(part)}]"
    return f"{place}.{part}" if place else part


def shown(value: Any, key: str | int | None = None) -> str:
    """Return a value for a message: JSON, cut after `SHOWN` characters, with secrets masked.

    Objects and lists are summarized by their keys or length. `key`: key of the value; if it names a
    secret, the value is masked.
    """
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
    """A plug-in that a workload names: its kind, name, configuration and place in the file."""

    kind: str
    named: Named
    #: Place of its configuration.
    place: str


def uses(workload: Workload, version: int) -> Iterator[Use]:
    """Yield all plug-ins that a workload names, except scenario and runner.

    Contexts come first, then SLA criteria, then for each hook its action and its trigger.
    `version`: of the task format, which determines the places.
    """
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
    """Return the place of the scenario's name in the document; `version`: of the task format."""
    return workload.place if version == 1 else inside(workload.place, "scenario")


def args_place(workload: Workload, version: int) -> str:
    """Return the place of the scenario's arguments in the document.

    `version`: of the task format.
    """
    if version == 1:
        return inside(workload.place, "args")
    return inside(scenario_place(workload, version), workload.scenario)


def runner_place(workload: Workload, version: int) -> str:
    """Return the place of the runner's configuration; `version`: of the task format."""
    place = inside(workload.place, "runner")
    return place if version == 1 else inside(place, workload.runner.name)
