"""JSON schema of the arguments of the scenario `HttpFlow.run`, and of one step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.config.durations import DURATION

_CODE: Mapping[str, Any] = {"type": "integer", "minimum": 100, "maximum": 599}
_THINK: Mapping[str, Any] = {
    "anyOf": [
        {**DURATION, "minimum": 0},
        {
            "type": "object",
            "properties": {"min": {**DURATION, "minimum": 0}, "max": {**DURATION, "minimum": 0}},
            "required": ["min"],
            "additionalProperties": False,
        },
    ],
    "description": "think time after the step: seconds, or {min, max}",
    "examples": [{"min": "1s", "max": "3s"}],
}

_RELOGIN: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "on": {
            "anyOf": [
                {**_CODE, "minimum": 400},
                {"type": "array", "minItems": 1, "items": {**_CODE, "minimum": 400}},
            ],
            "description": "status code, or several",
        }
    },
    "required": ["on"],
    "additionalProperties": False,
    "description": "makes the steps of on_start, then the step once more",
    "examples": [{"on": 401}],
}
_STREAM: Mapping[str, Any] = {
    "anyOf": [
        {"type": "boolean"},
        {
            "type": "object",
            "properties": {
                "events": {"enum": ["sse", "lines", "json", "chunks", "bytes"]},
                "read_for": {**DURATION, "exclusiveMinimum": 0},
                "until": {"type": "string", "minLength": 1},
                "max_events": {"type": "integer", "minimum": 1},
            },
            "minProperties": 1,
            "additionalProperties": False,
        },
    ],
    "description": "do not keep the body; {events} times its events, {read_for, until, max_events}"
    " end it well before its end",
    "examples": [{"events": "sse", "read_for": "10s"}],
}
STEP: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "minLength": 1,
            "description": "of the atomic action; method and path by default",
        },
        "method": {
            "enum": ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "QUERY"],
            "description": "GET by default",
        },
        "path": {"type": "string", "description": "below base, or an absolute URL"},
        "query": {"type": "object", "description": "parameters of the URL"},
        "json": {"description": "body, sent as JSON"},
        "form": {"type": "object", "description": "body, sent as a form"},
        "multipart": {
            "type": "object",
            "minProperties": 1,
            "description": "body of parts: texts; files {filename, type, content, base64, size}",
        },
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "expect": {
            "anyOf": [_CODE, {"type": "array", "minItems": 1, "items": _CODE}],
            "description": "status code, or several; less than 400 by default",
        },
        "check": {
            "type": "object",
            "description": "values by JSONPath, text, or header NAME; the iteration fails by them",
        },
        "verify": {"type": "object", "description": "the same, but only counted"},
        "save": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "{NAME: JSONPath, header NAME, cookie NAME, input NAME [of form FORM],"
            " or regex PATTERN}: {saved.NAME} of later steps",
        },
        "relogin": _RELOGIN,
        "think": _THINK,
        "when": {"type": "string", "description": "the step is made if this is not empty or 0"},
        "repeat": {
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}],
            "description": "how often; 1 by default",
        },
        "stream": _STREAM,
        "timeout": {**DURATION, "exclusiveMinimum": 0, "description": "seconds"},
    },
    "required": ["path"],
    "additionalProperties": False,
}

_STEPS: Mapping[str, Any] = {"type": "array", "items": STEP}

ARGUMENTS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "base": {"type": "string", "pattern": "^https?://[^/]"},
        "headers": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "of all steps; those whose values are not saved yet are left out",
        },
        "relogin": {**_RELOGIN, "description": "for all steps except on_start"},
        "on_start": {**_STEPS, "description": "once a virtual user, before its iterations"},
        "on_stop": {**_STEPS, "description": "once a virtual user, after its iterations"},
        "steps": {**_STEPS, "description": "of every iteration"},
        "mix": {
            "type": "array",
            "minItems": 1,
            "description": "an iteration makes the steps of one of these, by their weights",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "weight": {"type": "number", "exclusiveMinimum": 0, "description": "1"},
                    "steps": {**_STEPS, "minItems": 1},
                },
                "required": ["name", "steps"],
                "additionalProperties": False,
            },
        },
        "branch": {
            "type": "string",
            "description": "the branch of mix to make, by its name, and none that is drawn; the"
            " runner replay gives it",
        },
    },
    "anyOf": [{"required": ["steps"]}, {"required": ["mix"]}],
    "additionalProperties": False,
}
