"""JSON schema of flows with groups of steps, and checks of groups before the load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.worker.scenarios.flow.flow_schema import ARGUMENTS, STEP

#: Lists of steps among the arguments of a flow.
LISTS = ("on_start", "steps", "on_stop")
#: Keys that a group shares with other steps.
_SHARED = ("name", "when", "repeat", "think")
_OF_MEMBERS = "belongs to the steps of parallel: a group makes no request itself"

_MEMBER: Mapping[str, Any] = {
    **STEP,
    "properties": {key: value for key, value in STEP["properties"].items() if key != "think"},
    "elsewhere": {
        "think": "members of a group do not wait: think belongs to the group",
        "parallel": "a group has no groups: put these steps among its members",
        "at_once": "belongs to the group",
    },
}
GROUP: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **{key: STEP["properties"][key] for key in _SHARED},
        "parallel": {
            "type": "array",
            "minItems": 1,
            "items": _MEMBER,
            "description": "steps that are made at once",
        },
        "at_once": {
            "type": "integer",
            "minimum": 1,
            "description": "most of them at the same time; all by default",
        },
    },
    "required": ["name", "parallel"],
    "additionalProperties": False,
    "elsewhere": {key: _OF_MEMBERS for key in STEP["properties"] if key not in _SHARED},
}
#: A step, or a group. A mistyped `parallel` gets the near name.
_STEP: Mapping[str, Any] = {
    "if": {"type": "object", "required": ["parallel"]},
    "then": GROUP,
    "else": {
        **STEP,
        "properties": {**STEP["properties"], "parallel": {}},
        "elsewhere": {"at_once": "is a key of a step with parallel"},
    },
}


def _with_groups(schema: Any) -> Any:
    """Return a copy of a JSON schema in which each list of steps also takes groups."""
    if schema is STEP:
        return _STEP
    if isinstance(schema, Mapping):
        return {key: _with_groups(value) for key, value in schema.items()}
    return schema


#: The arguments of `HttpFlow.run` with groups.
GROUPED_ARGUMENTS: Mapping[str, Any] = _with_groups(ARGUMENTS)


def without_groups(args: Mapping[str, Any], *, saved_late: bool = False) -> dict[str, Any]:
    """Return a copy of the arguments of a flow with the members of groups as steps in order.

    Before its members is a step with the group's own keys, which has no path. With `saved_late` the
    members save nothing, and a step after them saves the values of all: for the rule that members
    do not see each other's values. Values of wrong types stay as they are.
    """
    found = dict(args)
    for key in LISTS:
        if key in found:
            found[key] = _flat(found[key], saved_late)
    mix = found.get("mix")
    if isinstance(mix, list):
        found["mix"] = [
            {**branch, "steps": _flat(branch["steps"], saved_late)}
            if isinstance(branch, Mapping) and "steps" in branch
            else branch
            for branch in mix
        ]
    return found


def _flat(steps: Any, saved_late: bool) -> Any:
    if not isinstance(steps, list | tuple):
        return steps
    found: list[Any] = []
    for step in steps:
        if not is_group(step):
            found.append(step)
            continue
        members = [member for member in step["parallel"] if isinstance(member, Mapping)]
        found.append({key: value for key, value in step.items() if key in _SHARED})
        if not saved_late:
            found += members
            continue
        saves = [member["save"] for member in members if isinstance(member.get("save"), Mapping)]
        found += [{k: v for k, v in member.items() if k != "save"} for member in members]
        found.append({"save": {name: part for save in saves for name, part in save.items()}})
    return found


def is_group(step: Any) -> bool:
    """Return whether a step of a task has a list `parallel`."""
    return isinstance(step, Mapping) and isinstance(step.get("parallel"), list | tuple)


def groups_in(args: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the groups of a flow: of its lists, then of the branches of mix."""
    mix = args.get("mix")
    branches = mix if isinstance(mix, list | tuple) else ()
    lists = [args.get(key) for key in LISTS]
    lists += [branch.get("steps") for branch in branches if isinstance(branch, Mapping)]
    for steps in lists:
        yield from (
            (one for one in steps or () if is_group(one)) if isinstance(steps, list | tuple) else ()
        )


def group_mistakes(args: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each group in which several members save a value under one name."""
    for group in groups_in(args):
        saves = [one.get("save") for one in group["parallel"] if isinstance(one, Mapping)]
        names = Counter(str(name) for save in saves if isinstance(save, Mapping) for name in save)
        for name, times in names.items():
            if times > 1:
                yield (
                    f"{times} steps of {group.get('name')!r} save {name!r} at once: give each its"
                    " own name"
                )
