"""JSON schemas of the two versions of Rally's task format, with osbench's own keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STRING: Mapping[str, Any] = {"type": "string"}
_OBJECT: Mapping[str, Any] = {"type": "object"}
_TAGS: Mapping[str, Any] = {"type": "array", "items": {"type": "string", "maxLength": 255}}

#: One plug-in by name, with its configuration under the name.
_ONE: Mapping[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": _OBJECT,
}

#: Keys of a workload that Rally does not have.
_OWN: Mapping[str, Any] = {
    "idempotent": {"type": "boolean"},
    "args_from": {"type": "string", "minLength": 1},
    "warmup": {"type": "number", "minimum": 0},
    "enable_profiler": {"type": "boolean"},
}


def _closed(required: list[str], **properties: Any) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_HOOK = _closed(
    ["action", "trigger"],
    action={"type": "object", "minProperties": 1, "maxProperties": 1},
    trigger=_ONE,
    description=_STRING,
)

_WORKLOAD: Mapping[str, Any] = {
    "scenario": _ONE,
    "description": _STRING,
    "runner": _ONE,
    "sla": _OBJECT,
    "hooks": {"type": "array", "items": _HOOK},
    "contexts": _OBJECT,
    **_OWN,
}

_TITLED: Mapping[str, Any] = {
    "title": {"type": "string", "maxLength": 128},
    "group": _STRING,
    "description": _STRING,
    "tags": _TAGS,
}

#: Version 2, but for what its subtasks hold.
TASK = _closed(
    ["title", "version", "subtasks"],
    title={"type": "string", "maxLength": 255},
    version={"const": 2},
    description=_STRING,
    tags=_TAGS,
    subtasks={"type": "array", "minItems": 1, "items": _OBJECT},
)

#: A subtask that is one workload itself.
SIMPLE_SUBTASK = _closed(["title", "scenario"], **{**_TITLED, **_WORKLOAD})

#: A subtask with a list of workloads.
SUBTASK = _closed(
    ["title", "workloads"],
    **_TITLED,
    run_in_parallel={"type": "boolean"},
    workloads={
        "type": "array",
        "minItems": 1,
        "items": _closed(["scenario"], **_WORKLOAD),
    },
)

#: Version 1: scenario names, each with a list of workloads. `version` is taken out before.
TASK_V1: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": {
        "type": "array",
        "minItems": 1,
        "items": _closed(
            [],
            args=_OBJECT,
            description=_STRING,
            runner={"type": "object", "properties": {"type": _STRING}},
            context=_OBJECT,
            sla=_OBJECT,
            hooks={
                "type": "array",
                "items": _closed(
                    ["name", "args", "trigger"],
                    name=_STRING,
                    description=_STRING,
                    args={},
                    trigger=_closed(["name", "args"], name=_STRING, args={}),
                ),
            },
            **_OWN,
        ),
    },
}
