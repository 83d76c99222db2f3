"""SLA criterion `stream`: times of the events of responses that stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.edges.streams.criteria.request_times import (
    EVENTS,
    FIRST_BYTE,
    KEYS,
    RequestTimes,
)

_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **KEYS,
        "of": {
            "enum": [FIRST_BYTE, *EVENTS],
            "description": "time to the first byte or the first event, or from each event to the"
            " next",
        },
        "action": {
            "type": "string",
            "minLength": 1,
            "description": "only streams of this atomic action, 'outer > inner' if nested",
        },
    },
    "required": ["of", "max_s"],
    "additionalProperties": False,
}


class StreamTimes(RequestTimes):
    """Percentiles of the time to the first byte or event of streams, or between their events.

    Streams are responses to requests with `stream: {events: ...}`. Times begin when the connection
    is ready; sending the request is included.
    """

    NAME: ClassVar[str] = "stream"
    # a stream that fails has events, too
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "oneOf": [_LIMIT, {"type": "array", "minItems": 1, "items": _LIMIT}],
        "examples": [{"of": "first_event", "p": 95, "max_s": 0.5, "action": "chat"}],
    }
