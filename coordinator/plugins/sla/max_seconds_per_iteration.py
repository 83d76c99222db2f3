"""SLA criterion `max_seconds_per_iteration`: no iteration takes longer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import duration


class MaxSecondsPerIteration(sla.Sla):
    """The longest service time of all iterations that ran, failed ones too, as in Rally."""

    NAME: ClassVar[str] = "max_seconds_per_iteration"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        **DURATION,
        "exclusiveMinimum": 0,
        "description": "seconds",
        "examples": [2.5],
    }

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the longest iteration is within the limit.

        Fails if no iteration has ended.
        """
        times = [statistics.service.state(name) for name in ("ok", "failed", "timed_out")]
        if not any(found.count for found in times):
            return self.verdict(False, "no iteration has ended")
        longest = max(found.max for found in times)
        return self.verdict(
            longest <= round(self.config * 1e9),
            f"longest iteration {duration(longest / 1e9)}, allowed {duration(self.config)}",
        )

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Return the failed verdict once an iteration has taken too long; else None."""
        verdict = self.check(statistics)
        return verdict if statistics.start_lag.count and not verdict.success else None
