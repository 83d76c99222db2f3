"""SLA criterion `start_lag`: how late iterations may start."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import duration
from osbench.plugin.statistics import OVER_S, Windows, least_percentile


class StartLag(sla.Sla):
    """A percentile of the time from scheduled to started, of all iterations that ran.

    With `over_s`, the limit holds in every window of that length, by the scheduled times.
    """

    NAME: ClassVar[str] = "start_lag"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "p": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 100,
                "description": "the percentile; 99 by default",
            },
            "max_s": {**DURATION, "exclusiveMinimum": 0, "description": "seconds"},
            "over_s": OVER_S,
        },
        "required": ["max_s"],
        "examples": [{"p": 99, "max_s": 0.1}],
        "additionalProperties": False,
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._windows = Windows(config["over_s"]) if "over_s" in config else None

    def add(self, columns: sla.Columns) -> None:
        """Count iterations that ran, and late ones, by window; do nothing without `over_s`."""
        if self._windows is not None:
            ran = columns.outcome <= sla.Outcome.TIMED_OUT
            lag = (columns.started - columns.due)[ran]
            self._windows.add(columns.due[ran], lag > round(self.config["max_s"] * 1e9))

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the percentile, or that in each window, is within the limit.

        Fails if no iteration has ended.
        """
        percent, most = self.config.get("p", 99), self.config["max_s"]
        if self._windows is not None:
            return self._judged(self._windows, complete=False)
        lag = statistics.start_lag
        if not lag.count:
            return self.verdict(False, "no iteration has ended")
        value = lag.percentile(percent)
        return self.verdict(
            value <= round(most * 1e9),
            f"p{percent:g} start lag {duration(value / 1e9)}, allowed {duration(most)}",
        )

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Return the failed verdict if the limit is exceeded even if all others start in time.

        Else None, without a plan unless `p` is 100. With `over_s` only complete windows count.
        """
        if self._windows is not None:
            verdict = self._judged(self._windows, complete=True)
            return None if verdict.success else verdict
        left = sla.remaining(statistics, plan)
        least = least_percentile(statistics.start_lag, self.config.get("p", 99), left)
        return self.check(statistics) if least > round(self.config["max_s"] * 1e9) else None

    def _judged(self, windows: Windows, *, complete: bool) -> sla.Verdict:
        percent, most = self.config.get("p", 99), self.config["max_s"]
        worst = windows.worst(complete=complete)
        if worst is None:
            return self.verdict(complete, "no iteration has ended")
        above, judged = windows.exceeding(100 - Fraction(str(percent)), complete=complete)
        return self.verdict(
            not above,
            f"p{percent:g} start lag in any {self.config['over_s']:g} s: above {duration(most)} in"
            f" {above} of {judged} windows, {worst.span} {worst.bad} of {worst.count} were later",
        )
