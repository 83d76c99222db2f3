"""SLA criterion `failure_rate`: bounds of the percentage of iterations that failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.common.sla import Sla, Statistics, Verdict

_PERCENT = {"type": "number", "minimum": 0, "maximum": 100}


class FailureRate(Sla):
    """Failed and timed out iterations, in percent of those that ran.

    Dropped and lost iterations did not run, or are not known to have: they do not count.
    """

    NAME: ClassVar[str] = "failure_rate"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "min": {**_PERCENT, "description": "least allowed percentage; 0 by default"},
            "max": {**_PERCENT, "description": "highest allowed percentage; 100 by default"},
        },
        "minProperties": 1,
        "additionalProperties": False,
    }

    def check(self, statistics: Statistics) -> Verdict:
        """Compare the percentage with the bounds."""
        low, high = float(self.config.get("min", 0)), float(self.config.get("max", 100))
        failed = statistics.count("failed") + statistics.count("timed_out")
        ran = statistics.count("ok") + failed
        if not ran:
            return Verdict(criterion=self.NAME, success=False, detail="no iteration has ended")
        percent = 100 * failed / ran
        return Verdict(
            criterion=self.NAME,
            success=low <= percent <= high,
            detail=(
                f"{failed} of {ran} iterations failed: {percent:.4g} %,"
                f" allowed {low:g} % to {high:g} %"
            ),
        )
