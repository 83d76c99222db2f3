"""SLA criterion `failure_rate`: bounds of the percentage of iterations that failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import sla

_PERCENT = {"type": "number", "minimum": 0, "maximum": 100}


class FailureRate(sla.Sla):
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
        "examples": [{"max": 5}],
        "additionalProperties": False,
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Refuse bounds that no percentage can keep."""
        low, high = config.get("min", 0), config.get("max", 100)
        return [] if low <= high else [f"min must not be above max, got min {low} and max {high}"]

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Compare the percentage with the bounds."""
        low, high = float(self.config.get("min", 0)), float(self.config.get("max", 100))
        failed = _failed(statistics)
        ran = statistics.count("ok") + failed
        if not ran:
            return self.verdict(False, "no iteration has ended")
        percent = 100 * failed / ran
        return self.verdict(
            low <= percent <= high,
            f"{failed} of {ran} iterations failed: {percent:.4g} %,"
            f" allowed {low:g} % to {high:g} %",
        )

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Above `max` even if all that is left succeeds. `min` asks for failures: never."""
        failed = _failed(statistics)
        if not failed:
            return None
        # without end any share of failures can still become small, though never none at all
        least = 100 * failed / plan if plan else 0.0
        high = float(self.config.get("max", 100))
        return self.check(statistics) if least > high or high == 0 else None


def _failed(statistics: sla.Statistics) -> int:
    return statistics.count("failed") + statistics.count("timed_out")
