"""JSON schemas of the keys `users`, `think` and `http` of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.config.durations import DURATION

_SECONDS: Mapping[str, Any] = {**DURATION, "minimum": 0}

USERS: Mapping[str, Any] = {
    "type": "object",
    "description": "how virtual users start, and the data of each",
    "hint": "how many there are is `concurrency` of the runner",
    "properties": {
        "start_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "closed runners: virtual users that start per second; all at once by"
            " default",
        },
        "max_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "closed runners: most iterations that start per second, over all"
            " workers; no limit by default",
        },
        "data": {
            "type": "object",
            "description": "each virtual user gets a row of a file, as self.user.data",
            "examples": [{"file": "users.csv"}],
            "properties": {
                "file": {
                    "type": "string",
                    "minLength": 1,
                    "description": "CSV file, relative to the task",
                },
                "order": {
                    "enum": ["sequential", "cycle", "random"],
                    "description": "user N gets row N (sequential, the default); begins again after"
                    " the last (cycle); any row (random)",
                },
                "unique": {
                    "type": "boolean",
                    "description": "no two users that run have the same row; false by default",
                },
            },
            "required": ["file"],
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}

THINK: Mapping[str, Any] = {
    "type": "object",
    "description": "closed runners: seconds that a virtual user waits between two iterations",
    "examples": [{"min": "1s", "max": "3s"}],
    "properties": {
        "min": {**_SECONDS, "description": "least think time"},
        "max": {**_SECONDS, "description": "greatest think time; min by default"},
        "distribution": {
            "enum": ["uniform", "normal", "exponential"],
            "description": "of think times between the two; uniform by default",
        },
    },
    "required": ["min"],
    "additionalProperties": False,
}

_ZONE_SHARE: Mapping[str, Any] = {
    "properties": {
        "zone": {
            "type": "string",
            "pattern": r"^[^/\x00-\x1f\x7f]+$(?!\n)",
            "description": "label of workers, up to its first slash",
        },
        "share": {
            "type": ["string", "number"],
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$",
            "exclusiveMinimum": 0,
            "maximum": 100,
            "description": "their part of the load, such as 30 %",
        },
    },
    "required": ["zone", "share"],
    "additionalProperties": False,
}

WORKERS: Mapping[str, Any] = {
    "type": ["object", "array"],
    **_ZONE_SHARE,
    "items": {"type": "object", **_ZONE_SHARE},
    "minItems": 1,
    "description": "shares of the load by zone of the workers; other workers make the rest",
    "examples": [[{"zone": "eu", "share": "30 %"}, {"zone": "us", "share": "70 %"}]],
}

HTTP: Mapping[str, Any] = {
    "type": "object",
    "description": "address and content of the requests of self.http",
    "examples": [{"base": "http://127.0.0.1:8080"}],
    "properties": {
        "base": {
            "type": "string",
            "pattern": "^https?://[^/]",
            "description": "URL that comes before the paths of requests",
        },
        "service": {
            "type": "string",
            "minLength": 1,
            "description": "instead of base: a service of the deployment's catalogue; requests"
            " carry the token of a user",
        },
        "headers": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "headers of all requests",
        },
        "by": {
            "type": "string",
            "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
            "description": "report requests by the header of responses with this name, such as"
            " x-backend; address: by the address of the server",
        },
        "timeout": {
            **DURATION,
            "exclusiveMinimum": 0,
            "description": "seconds that a request may take, at most the timeout of its iteration",
        },
        "verify": {
            "anyOf": [{"type": "boolean"}, {"type": "string"}],
            "description": "TLS: verify the server (true, the default), or a file with the CAs",
        },
        "cert": {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
            ],
            "description": "TLS: file of the client's certificate, or [certificate, key]",
        },
        "connections": {
            "type": "object",
            "description": "when connections end, so that new ones reach other servers; each at"
            " its own random point between 75 % of a limit and the limit",
            "examples": [{"max_requests": 100}, {"max_age": "30s"}],
            "properties": {
                "max_requests": {"type": "integer", "minimum": 1, "description": "most requests"},
                "max_age": {**DURATION, "exclusiveMinimum": 0, "description": "greatest age"},
            },
            "minProperties": 1,
            "additionalProperties": False,
        },
        "source": {
            "type": ["string", "array"],
            "items": {"type": "string"},
            "minItems": 1,
            "description": "addresses of the workers' hosts, or networks such as 10.0.0.0/28, from"
            " which connections go in turn; each host uses the addresses that it has",
            "examples": [["10.0.0.5", "10.0.0.6"]],
        },
    },
    "not": {"required": ["base", "service"]},
    "additionalProperties": False,
}
