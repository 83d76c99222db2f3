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
    """Return the path of a key or an index in the path `place`, such as `subtasks[0].title`.

    A key with characters other than letters, digits and `_.@-` is written as `["..."]`.
    """
    if isinstance(part, int):
        return f"{place}[{part}]"
    if not _PLAIN.fullmatch(part):
        return f"{place}[{json.dumps(part)}]"
    return f"{place}.{part}" if place else part


def shown_value(value: Any, key: str | int | None = None) -> str:
    """Return a value as shown in messages: JSON, cut after `SHOWN` characters, secrets masked.

    Of an object only the keys are shown, of a list only the length. `key`: the value's key; if it
    names a secret, the whole value is masked.
    """
    if isinstance(key, str) and is_secret(key, value):
        return MASK
    if isinstance(value, dict):
        keys = ", ".join(str(name) for name in value)
        return f"an object with {_short_text(keys)}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    try:
        return _short_text(json.dumps(mask(value), ensure_ascii=False))
    except TypeError:
        return _short_text(f"{value!r}")


def _short_text(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


@dataclass(frozen=True, kw_only=True)
class Use:
    """A use of a plug-in by a workload: kind, name, configuration, and the place of the latter."""

    kind: str
    named: Named
    #: Place of its configuration.
    place: str


def uses(workload: Workload, version: int) -> Iterator[Use]:
    """Yield each use of a plug-in by a workload, except scenario and runner.

    Contexts first, then SLA criteria, then for each hook its action and its trigger. `version`: 1
    or 2, of the task format, in which places differ.
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
    """Return the path of the scenario's name in a task file of format `version`, 1 or 2."""
    return workload.place if version == 1 else inside(workload.place, "scenario")


def args_place(workload: Workload, version: int) -> str:
    """Return the path of the scenario's arguments in a task file of format `version`, 1 or 2."""
    if version == 1:
        return inside(workload.place, "args")
    return inside(scenario_place(workload, version), workload.scenario)


def runner_place(workload: Workload, version: int) -> str:
    """Return the path of the runner's configuration in a task file of format `version`, 1 or 2."""
    place = inside(workload.place, "runner")
    return place if version == 1 else inside(place, workload.runner.name)
