"""SLA criterion `throughput`: the least number of successful iterations a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.formatting import three_digits


class Throughput(sla.Sla):
    """Successful iterations per second, from the first start to the last end."""

    NAME: ClassVar[str] = "throughput"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "min": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "successful iterations per second",
            }
        },
        "required": ["min"],
        "examples": [{"min": 100}],
        "additionalProperties": False,
    }

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Compare the rate with the limit."""
        first, last = statistics.first_start, statistics.last_end
        if first is None or last is None:
            return self.verdict(False, "no iteration has ended")
        rate = statistics.count("ok") * 1e9 / max(last - first, 1)
        least = self.config["min"]
        return self.verdict(
            rate >= least,
            f"{three_digits(rate)} successful iterations/s, at least {least:g}/s asked for",
        )
