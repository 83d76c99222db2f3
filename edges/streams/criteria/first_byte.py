"""SLA criterion `first_byte`: the time until the first bytes of responses come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.edges.streams.criteria.request_times import KEYS, RequestTimes

_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": KEYS,
    "required": ["max_s"],
    "additionalProperties": False,
}


class FirstByte(RequestTimes):
    """Percentiles of the time from a connection that is ready to the first bytes of a response.

    Sending the request is included. Judges complete requests of successful iterations by osbench's
    HTTP clients.
    """

    NAME: ClassVar[str] = "first_byte"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "oneOf": [_LIMIT, {"type": "array", "minItems": 1, "items": _LIMIT}],
        "examples": [{"p": 95, "max_s": 0.2, "action": "s3.get_object"}],
    }
