"""SLA criterion `throughput`: the least number of successful iterations per second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.formatting import three_digits
from osbench.plugin.statistics import OVER_S, Window, Windows


class Throughput(sla.Sla):
    """Successful iterations per second of the load's window.

    A closed load's window lasts from its first start to its last end. An open load's window is as
    long as its arrivals are planned for, and begins with the first end. A single iteration has no
    rate: the criterion fails.

    With `over_s`, `min` holds in every window of that length from the start of the load to the last
    start of an iteration.
    """

    NAME: ClassVar[str] = "throughput"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "min": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "successful iterations per second",
            },
            "over_s": OVER_S,
        },
        "required": ["min"],
        "examples": [{"min": 100}],
        "additionalProperties": False,
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._windows = Windows(config["over_s"]) if "over_s" in config else None
        #: When the last iteration started, nanoseconds after t0.
        self._last_start = 0

    def add(self, columns: sla.Columns) -> None:
        """Count iterations that ran, and failed ones, by window; do nothing without `over_s`."""
        ran = columns.outcome <= sla.Outcome.TIMED_OUT
        if self._windows is not None and ran.any():
            self._windows.add(columns.ended[ran], columns.outcome[ran] != sla.Outcome.OK)
            self._last_start = max(self._last_start, int(columns.started[ran].max()))

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the rate, with `over_s` the lowest of all windows, is enough.

        Fails if no iteration has ended, or the load has no rate, as with one iteration. A load that
        is shorter than a window of `over_s` is judged as a whole.
        """
        first, last = statistics.first_start, statistics.last_end
        if first is None or last is None:
            return self.verdict(False, "no iteration has ended")
        if self._windows is not None:
            worst = self._windows.least(first, self._last_start)
            if worst is not None:
                return self._judged(worst)
        rate, least = statistics.ok_per_s, self.config["min"]
        if rate is None:
            return self.verdict(False, "a single iteration has no rate")
        return self.verdict(
            rate >= least,
            f"{three_digits(rate)} successful iterations/s, at least {least:g}/s required",
        )

    def _judged(self, worst: Window) -> sla.Verdict:
        rate, least = worst.well / (worst.to_s - worst.from_s), self.config["min"]
        return self.verdict(
            rate >= least,
            f"{three_digits(rate)} successful iterations/s {worst.span},"
            f" at least {least:g}/s required in any {self.config['over_s']:g} s",
        )
