"""SLA criterion `max_avg_duration`: the mean duration of successful iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import duration


class MaxAvgDuration(sla.Sla):
    """The mean service time of successful iterations."""

    NAME: ClassVar[str] = "max_avg_duration"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        **DURATION,
        "exclusiveMinimum": 0,
        "description": "seconds",
        "examples": [2.5],
    }

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the mean is within the limit.

        Fails if no iteration has succeeded.
        """
        times = statistics.service.state("ok")
        if not times.count:
            return self.verdict(False, "no iteration has succeeded")
        return self.verdict(
            times.mean <= self.config * 1e9,
            f"average of {times.count} successful iterations {duration(times.mean / 1e9)},"
            f" allowed {duration(self.config)}",
        )

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Return the failed verdict if the mean is too high even if the other iterations take 0 s.

        Else None; also if their number is unknown, or no iteration has succeeded.
        """
        times, left = statistics.service.state("ok"), sla.remaining(statistics, plan)
        if not times.count or left is None:
            return None
        least = times.sum / (times.count + left)
        return self.check(statistics) if least > self.config * 1e9 else None
