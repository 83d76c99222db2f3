"""JSON schemas of the two versions of Rally's task format, with osbench's additional keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.config.durations import DURATION
from osbench.common.task import ABORT_OVER_S
from osbench.coordinator.results.statistics.windows import SHORTEST_S
from osbench.coordinator.task.taskfile.users import user_schemas

_STRING: Mapping[str, Any] = {"type": "string"}
_OBJECT: Mapping[str, Any] = {"type": "object"}
_TAGS: Mapping[str, Any] = {
    "type": "array",
    "items": {"type": "string", "maxLength": 255},
    "description": "words for finding runs",
}
_TEXT: Mapping[str, Any] = {**_STRING, "description": "for readers"}
_ARGS: Mapping[str, Any] = {**_OBJECT, "description": "the scenario's arguments"}
_SLA: Mapping[str, Any] = {
    **_OBJECT,
    "description": "limits of the run: criteria by name; failure_rate: {max: 0} by default",
    "examples": [{"failure_rate": {"max": 1}, "percentile": {"p": 95, "max_s": "500ms"}}],
}
_CONTEXTS: Mapping[str, Any] = {
    **_OBJECT,
    "description": "resources of iterations, by name",
    "examples": [{"users": {"tenants": 2, "users_per_tenant": 3}}],
}

#: One plug-in by name, with its configuration under the name.
_ONE: Mapping[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": _OBJECT,
}
#: A runner's settings, and one.
_RUNNER = {
    **_OBJECT,
    "hint": "its settings have names, as in stages: {stages: [{duration: 1m, target: 50}]}",
}
_RUNNER_EXAMPLE = {"constant_for_duration": {"concurrency": 50, "duration": "30s"}}

ABORT: Mapping[str, Any] = {
    "type": "object",
    "description": "ends the load before its time where too much fails or is too slow",
    "minProperties": 1,
    "examples": [{"failure_rate": 50}],
    "properties": {
        "failure_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 100,
            "description": "abort where this percentage of a window's iterations failed, or more",
        },
        "percentile": {
            "type": "object",
            "description": "abort where a percentile of a window's successful iterations is higher",
            "properties": {
                "p": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": 100,
                    "description": "the percentile",
                },
                "max_s": {
                    **DURATION,
                    "exclusiveMinimum": 0,
                    "description": "its limit, seconds",
                },
                "of": {
                    "enum": ["service", "response"],
                    "description": "from start to end (the default), or from the scheduled time",
                },
            },
            "required": ["p", "max_s"],
            "additionalProperties": False,
        },
        "over_s": {
            **DURATION,
            "minimum": SHORTEST_S,
            "description": f"seconds that a window is long; {ABORT_OVER_S:g} by default",
        },
        "after_s": {
            **DURATION,
            "minimum": 0,
            "description": "seconds from the start of the load that do not count; 0 by default",
        },
    },
    "additionalProperties": False,
}

PHASES: Mapping[str, Any] = {
    "type": "object",
    "description": "a drill: which hook begins a fault, and which one ends it",
    "examples": [{"fault": "stop shop 2", "after": "start shop 2"}],
    "properties": {
        "fault": {
            "type": "string",
            "minLength": 1,
            "description": "the hook that begins the fault: its description, or its action's name",
        },
        "after": {
            "type": "string",
            "minLength": 1,
            "description": "the hook that ends the fault; by default the fault lasts until the"
            " load has recovered",
        },
    },
    "required": ["fault"],
    "additionalProperties": False,
}

#: Keys of a workload that Rally does not have.
_OWN: Mapping[str, Any] = {
    "name": {
        "type": "string",
        "pattern": r"\S",
        "maxLength": 128,
        "description": "its name in every output; the scenario's by default",
    },
    "idempotent": {
        "type": "boolean",
        "description": "an iteration whose worker died may be run again; false by default",
    },
    "args_from": {
        "type": "string",
        "minLength": 1,
        "description": "CSV file, relative to the task; row N has the arguments of iteration N",
    },
    "warmup": {
        **DURATION,
        "minimum": 0,
        "description": "seconds from the start of the load that are left out of the statistics",
    },
    "users": user_schemas.USERS,
    "workers": user_schemas.WORKERS,
    "think": user_schemas.THINK,
    "http": user_schemas.HTTP,
    "abort": ABORT,
    "phases": PHASES,
    "mix": {
        "type": "object",
        "additionalProperties": {"type": "number", "exclusiveMinimum": 0},
        "examples": [{"Shop.browse": 9, "Shop.order": 1}],
        "description": "weights of several scenarios by name: each iteration makes one of them",
    },
    "enable_profiler": {
        "type": "boolean",
        "description": "trace the iterations; as deployment and configuration say by default",
    },
}


def _closed_schema(required: list[str], **properties: Any) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


HOOK = _closed_schema(
    ["action", "trigger"],
    action={
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "description": "one hook by name, with its configuration",
    },
    trigger={**_ONE, "description": "when: one trigger by name, with its configuration"},
    description=_TEXT,
)

_WORKLOAD: Mapping[str, Any] = {
    "scenario": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": _OBJECT,
        "description": "one scenario by name, with its arguments; several with `mix`",
        "examples": [{"Dummy.dummy": {"sleep": 0.1}}],
    },
    "description": _TEXT,
    "runner": {
        **_ONE,
        "description": "one runner by name, with its configuration; one iteration by default",
        "additionalProperties": _RUNNER,
        "examples": [_RUNNER_EXAMPLE],
    },
    "sla": _SLA,
    "hooks": {"type": "array", "items": HOOK, "description": "actions during the load"},
    "contexts": _CONTEXTS,
    **_OWN,
}

_TITLED: Mapping[str, Any] = {
    "title": {"type": "string", "maxLength": 128, "description": "its name in reports"},
    "group": _TEXT,
    "description": _TEXT,
    "tags": _TAGS,
}

#: Version 2, without the content of its subtasks.
TASK = _closed_schema(
    ["title", "version", "subtasks"],
    title={"type": "string", "maxLength": 255, "description": "its name in reports"},
    version={"const": 2},
    description=_TEXT,
    tags=_TAGS,
    subtasks={
        "type": "array",
        "minItems": 1,
        "items": _OBJECT,
        "description": "run one after another",
    },
)

#: A subtask that is one workload itself.
SIMPLE_SUBTASK = _closed_schema(["title", "scenario"], **{**_TITLED, **_WORKLOAD})

#: A subtask with a list of workloads.
SUBTASK = _closed_schema(
    ["title", "workloads"],
    **_TITLED,
    run_in_parallel={
        "type": "boolean",
        "description": "its workloads run at once, each with its share of the workers;"
        " false by default",
    },
    workloads={
        "type": "array",
        "minItems": 1,
        "items": _closed_schema(["scenario"], **_WORKLOAD),
        "description": "run one after another, or at once",
    },
)

#: Version 1: scenario names, each with a list of workloads. `version` is removed before.
TASK_V1: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": {
        "type": "array",
        "minItems": 1,
        "items": _closed_schema(
            [],
            args=_ARGS,
            description=_TEXT,
            runner={
                "type": "object",
                "properties": {"type": _STRING},
                "description": "a runner's name as `type`, next to its configuration",
            },
            context=_CONTEXTS,
            sla=_SLA,
            hooks={
                "type": "array",
                "description": "actions during the load",
                "items": _closed_schema(
                    ["name", "args", "trigger"],
                    name=_STRING,
                    description=_STRING,
                    args={},
                    trigger=_closed_schema(["name", "args"], name=_STRING, args={}),
                ),
            },
            **_OWN,
        ),
    },
}
