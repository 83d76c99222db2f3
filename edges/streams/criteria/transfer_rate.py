"""SLA criterion `transfer_rate`: the least bytes per second of the load."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from osbench.edges.streams.criteria.judged_requests import judged_requests
from osbench.plugin import sla
from osbench.plugin.formatting import three_digits

_WAYS = ("received", "sent")
_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "min_mb_s": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "least MB (10^6 bytes) per second, of all workers together",
        },
        "of": {
            "enum": ["both", *_WAYS],
            "description": "bytes of responses, of requests, or both (default)",
        },
        "action": {
            "type": "string",
            "description": "only requests of this atomic action, such as s3.get_object",
        },
    },
    "required": ["min_mb_s"],
    "additionalProperties": False,
}


class TransferRate(sla.Sla):
    """MB per second from the first start to the last end of iterations, with heads, without TLS.

    Counts complete requests of successful iterations by osbench's HTTP clients.
    """

    NAME: ClassVar[str] = "transfer_rate"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "oneOf": [_LIMIT, {"type": "array", "minItems": 1, "items": _LIMIT}],
        "examples": [{"min_mb_s": 100, "of": "received", "action": "s3.get_object"}],
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._bytes = [0] * len(_limits(config))

    @classmethod
    def judged_actions(cls, config: Any) -> Collection[str]:
        """Return the names of the actions in the limits."""
        return [limit["action"] for limit in _limits(config) if "action" in limit]

    def add(self, columns: sla.Columns) -> None:
        """Sum the bytes of the requests of successful iterations, by limit."""
        for at, limit in enumerate(_limits(self.config)):
            found = judged_requests(columns, limit.get("action", ""))
            of = limit.get("of", "both")
            for way in _WAYS if of == "both" else (of,):
                self._bytes[at] += int(found[way].sum())

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the load had enough bytes per second, for each limit.

        Fails if no iteration has ended, or no byte was counted.
        """
        first, last = statistics.first_start, statistics.last_end
        if first is None or last is None or last <= first:
            return self.verdict(False, "no iteration has ended")
        lasted_s = (last - first) / 1e9
        found = [
            _judge(limit, number / lasted_s / 1e6)
            for limit, number in zip(_limits(self.config), self._bytes, strict=True)
        ]
        return self.verdict(all(fine for fine, _ in found), "; ".join(text for _, text in found))


def _limits(config: Any) -> Sequence[Mapping[str, Any]]:
    return [config] if isinstance(config, Mapping) else config


def _judge(limit: Mapping[str, Any], rate: float) -> tuple[bool, str]:
    of, action = limit.get("of", "both"), limit.get("action", "")
    words = "sent and received" if of == "both" else of
    name = f"{words}{f' by {action}' if action else ''}"
    if not rate:
        return False, f"no bytes were {name} in successful iterations"
    least = limit["min_mb_s"]
    return rate >= least, f"{three_digits(rate)} MB/s {name}, at least {least:g} MB/s required"
