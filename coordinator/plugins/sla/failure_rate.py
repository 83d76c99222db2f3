"""SLA criterion `failure_rate`: bounds of the percentage of iterations that failed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.statistics import OVER_S, Windows

_PERCENT = {"type": "number", "minimum": 0, "maximum": 100}


class FailureRate(sla.Sla):
    """Failed and timed out iterations, in percent of the iterations that ran.

    Dropped and lost iterations did not run, or are not known to have: they do not count. With
    `over_s`, `max` holds in every window of that length, by the times at which iterations end.
    """

    NAME: ClassVar[str] = "failure_rate"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "min": {**_PERCENT, "description": "least allowed percentage; 0 by default"},
            "max": {**_PERCENT, "description": "highest allowed percentage; 100 by default"},
            "over_s": OVER_S,
        },
        "minProperties": 1,
        "examples": [{"max": 5}],
        "additionalProperties": False,
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._windows = Windows(config["over_s"]) if "over_s" in config else None

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message if `min` is above `max`, or `over_s` lacks `max` or has `min`."""
        if "over_s" in config and ("max" not in config or "min" in config):
            return ["over_s goes with max, and without min"]
        low, high = config.get("min", 0), config.get("max", 100)
        return [] if low <= high else [f"min must not be above max, got min {low} and max {high}"]

    def add(self, columns: sla.Columns) -> None:
        """Count iterations that ran, and failed ones, by time window, if there is `over_s`."""
        if self._windows is not None:
            ran = columns.outcome <= sla.Outcome.TIMED_OUT
            self._windows.add(columns.ended[ran], columns.outcome[ran] != sla.Outcome.OK)

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the percentage, or that in each window, is within the bounds.

        Fails if no iteration has ended.
        """
        if self._windows is not None:
            return self._judged(self._windows, complete=False)
        low, high = float(self.config.get("min", 0)), float(self.config.get("max", 100))
        failed = _failed_count(statistics)
        ran = statistics.count("ok") + failed
        if not ran:
            return self.verdict(False, "no iteration has ended")
        percent = 100 * failed / ran
        allowed = f"{low:g} % to {high:g} %" if low else f"at most {high:g} %"
        return self.verdict(
            low <= percent <= high,
            f"{failed} of {ran} iterations failed: {percent:.4g} %, allowed {allowed}",
        )

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Return the failed verdict if `max` is exceeded even if the remaining iterations succeed.

        Else None. Without a known plan that is certain only for `max` 0. `min` is never judged
        early. With `over_s` only complete windows count.
        """
        if self._windows is not None:
            verdict = self._judged(self._windows, complete=True)
            return None if verdict.success else verdict
        failed = _failed_count(statistics)
        if not failed:
            return None
        # without end any share of failures can still become small, though never none at all
        least = 100 * failed / plan if plan else 0.0
        high = float(self.config.get("max", 100))
        return self.check(statistics) if least > high or high == 0 else None

    def _judged(self, windows: Windows, *, complete: bool) -> sla.Verdict:
        most, over_s = self.config["max"], self.config["over_s"]
        worst = windows.worst(complete=complete)
        if worst is None:
            return self.verdict(complete, "no iteration has ended")
        return self.verdict(
            not windows.exceeding(Fraction(str(most)), complete=complete)[0],
            f"{worst.bad} of {worst.count} iterations failed {worst.span}:"
            f" {worst.percent:.4g} %, allowed {most:g} % in any {over_s:g} s",
        )


def _failed_count(statistics: sla.Statistics) -> int:
    return statistics.count("failed") + statistics.count("timed_out")
