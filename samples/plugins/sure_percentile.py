"""An SLA criterion: a percentile that is below its limit with 95 % confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.formatting import count, duration
from osbench.plugin.statistics import least_percentile, percentiles


class SurePercentile(sla.Sla):
    """The confidence interval of a percentile of successful iterations is below the limit."""

    NAME: ClassVar[str] = "sure_percentile"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "p": {
                "type": "number",
                "exclusiveMinimum": 0,
                "exclusiveMaximum": 100,
                "description": "the percentile",
            },
            "max_s": {"type": "number", "exclusiveMinimum": 0, "description": "its limit, seconds"},
        },
        "required": ["p", "max_s"],
        "examples": [{"p": 95, "max_s": 0.5}],
        "additionalProperties": False,
    }

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Compare the upper bound of the interval with the limit."""
        times = statistics.service.state("ok")
        if not times.count:
            return self.verdict(False, "no iteration has succeeded")
        (estimate,) = percentiles(times, [self.config["p"]])
        name = f"p{self.config['p']:g} of {count(times.count, 'iteration')}"
        if estimate.interval is None:
            return self.verdict(False, f"{name}: too few for a confidence interval")
        low, high = estimate.interval
        return self.verdict(
            high <= self.config["max_s"] * 1e9,
            f"{name} is between {duration(low / 1e9)} and {duration(high / 1e9)} with 95 % "
            f"confidence, allowed {duration(self.config['max_s'])}",
        )

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Above the limit even if all that is left succeeds and takes no time."""
        left = sla.remaining(statistics, plan)
        least = least_percentile(statistics.service.state("ok"), self.config["p"], left)
        return self.check(statistics) if least > self.config["max_s"] * 1e9 else None
