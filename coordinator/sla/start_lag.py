"""SLA criterion `start_lag`: how late iterations may start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.formatting import duration
from osbench.plugin.statistics import least_percentile


class StartLag(sla.Sla):
    """A percentile of the time from due to started, of all iterations that ran."""

    NAME: ClassVar[str] = "start_lag"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "p": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 100,
                "description": "the percentile; 99 by default",
            },
            "max_s": {"type": "number", "exclusiveMinimum": 0, "description": "seconds"},
        },
        "required": ["max_s"],
        "examples": [{"p": 99, "max_s": 0.1}],
        "additionalProperties": False,
    }

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Compare the percentile with the limit."""
        percent, most = self.config.get("p", 99), self.config["max_s"]
        lag = statistics.start_lag
        if not lag.count:
            return self.verdict(False, "no iteration has ended")
        value = lag.percentile(percent)
        return self.verdict(
            value <= round(most * 1e9),
            f"p{percent:g} start lag {duration(value / 1e9)}, allowed {duration(most)}",
        )

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Above the limit even if all that is left starts in time."""
        left = sla.remaining(statistics, plan)
        least = least_percentile(statistics.start_lag, self.config.get("p", 99), left)
        return self.check(statistics) if least > round(self.config["max_s"] * 1e9) else None
