"""SLA criterion `performance_degradation`: the slowest iteration against the fastest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.formatting import duration, three_digits


class PerformanceDegradation(sla.Sla):
    """Excess of the slowest successful iteration's duration over the fastest's, in percent."""

    NAME: ClassVar[str] = "performance_degradation"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "max_degradation": {
                "type": "number",
                "minimum": 0,
                "description": "percent; 100 allows twice as long",
            }
        },
        "required": ["max_degradation"],
        "examples": [{"max_degradation": 50}],
        "additionalProperties": False,
    }

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the slowest is at most `max_degradation` % over the fastest.

        Fails if no iteration has succeeded, or the shortest took 0 s.
        """
        times = statistics.service.state("ok")
        if not times.count:
            return self.verdict(False, "no iteration has succeeded")
        if not times.min:
            return self.verdict(False, "the fastest iteration took no time to compare with")
        percent, most = (times.max / times.min - 1) * 100, self.config["max_degradation"]
        return self.verdict(
            percent <= most,
            f"from {duration(times.min / 1e9)} to {duration(times.max / 1e9)}:"
            f" {three_digits(percent)} % slower, allowed {most:g} %",
        )

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Return the failed verdict once the limit is exceeded, as it then stays so; else None."""
        verdict = self.check(statistics)
        failed = statistics.service.state("ok").count and not verdict.success
        return verdict if failed else None
