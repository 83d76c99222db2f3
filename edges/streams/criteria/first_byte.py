"""SLA criterion `first_byte`: the time until the first bytes of responses come."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from osbench.edges.streams.criteria.judged_requests import judged_requests
from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import duration

_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "p": {
            "type": "number",
            "minimum": 0,
            "maximum": 100,
            "description": "the percentile; 95 by default",
        },
        "max_s": {**DURATION, "exclusiveMinimum": 0, "description": "longest time allowed"},
        "action": {
            "type": "string",
            "description": "only requests of this atomic action, such as s3.get_object",
        },
    },
    "required": ["max_s"],
    "additionalProperties": False,
}


class FirstByte(sla.Sla):
    """Percentiles of the time from a connection that is ready to the first bytes of a response.

    Sending the request is included. Judges complete requests of successful iterations by osbench's
    HTTP clients.
    """

    NAME: ClassVar[str] = "first_byte"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "oneOf": [_LIMIT, {"type": "array", "minItems": 1, "items": _LIMIT}],
        "examples": [{"p": 95, "max_s": 0.2, "action": "s3.get_object"}],
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._times = [sla.Histogram() for _ in _limits(config)]

    @classmethod
    def judged_actions(cls, config: Any) -> Collection[str]:
        """Return the names of the actions in the limits."""
        return [limit["action"] for limit in _limits(config) if "action" in limit]

    def add(self, columns: sla.Columns) -> None:
        """Count the times of the requests of successful iterations, by limit."""
        for limit, times in zip(_limits(self.config), self._times, strict=True):
            waited = judged_requests(columns, limit.get("action", ""))["wait"]
            times.add(waited.astype(np.int64))

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether all percentiles are at most their limits.

        A limit without requests fails.
        """
        found = [
            _judge(limit, times)
            for limit, times in zip(_limits(self.config), self._times, strict=True)
        ]
        return self.verdict(all(fine for fine, _ in found), "; ".join(text for _, text in found))


def _limits(config: Any) -> Sequence[Mapping[str, Any]]:
    return [config] if isinstance(config, Mapping) else config


def _judge(limit: Mapping[str, Any], times: sla.Histogram) -> tuple[bool, str]:
    percent, action = limit.get("p", 95), limit.get("action", "")
    name = f"p{percent:g} of first bytes{f' of {action}' if action else ''}"
    if not times.count:
        return False, f"{name}: no request of a successful iteration was recorded"
    value = times.percentile(percent)
    return (
        value <= round(limit["max_s"] * 1e9),
        f"{name} {duration(value / 1e9)}, allowed {duration(limit['max_s'])}",
    )
