"""Rule of a workload's `abort` key: ends the load if failures or slow iterations exceed limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import Columns
from osbench.common.task import ABORT_OVER_S
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.formatting import duration, three_digits
from osbench.coordinator.results.statistics.windows import Windows

#: Its name among the verdicts of a workload.
ABORT = "abort"


class AbortRule:
    """Judges a load by windows of time: rate of failures, and a percentile of successes' times.

    Counts iterations that ran, at their end, warm-up included. Ends nothing itself: `watch` reports
    whether the load must end.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """`config`: the checked value of the key `abort`."""
        over_s, after_s = float(config.get("over_s", ABORT_OVER_S)), float(config.get("after_s", 0))
        self._rate = config.get("failure_rate")
        self._percentile = config.get("percentile")
        self._failures = Windows(over_s, after_s)
        self._slow = Windows(over_s, after_s)
        self._seconds = f"{over_s:g} s"
        #: Reason to end the load, once a window meets the condition; "" until then.
        self.reason = ""

    def add(self, columns: Columns) -> None:
        """Count the result rows of a block in the windows; each iteration must be added once."""
        ran = columns.outcome <= Outcome.TIMED_OUT
        ended = columns.ended
        if self._rate is not None:
            self._failures.add(ended[ran], (columns.outcome != Outcome.OK)[ran])
        if self._percentile is not None:
            begun = columns.started + columns.idle
            if self._percentile.get("of") == "response":
                begun = columns.due
            well = columns.outcome == Outcome.OK
            limit = round(self._percentile["max_s"] * 1e9)
            self._slow.add(ended[well], (ended - begun)[well] > limit)

    def watch(self) -> bool:
        """Return whether any window that has surely ended met a condition, now or before.

        Sets `reason` the first time.
        """
        if not self.reason:
            self.reason = "; ".join(text for met, text in self._judged(complete=True) if met)
        return bool(self.reason)

    def verdict(self) -> Verdict:
        """Return the rule's verdict: failed if a window that has surely ended met a condition.

        Its text describes the conditions that were met first, else the worst windows. Success
        depends on the added rows alone, so a resumed coordinator finds the same.
        """
        self.watch()
        early = ", but the load ended before this window"
        said = [text + early * met for met, text in self._judged(complete=False)]
        detail = self.reason or "; ".join(said) or "nothing was counted"
        return Verdict(criterion=ABORT, success=not self.reason, detail=detail)

    def _judged(self, *, complete: bool) -> Iterator[tuple[bool, str]]:
        """Yield for each condition whether a window met it, and a message on its worst window.

        A condition without any window is left out. `complete`: only windows that have surely ended.
        """
        rate, percentile = self._rate, self._percentile
        if rate is not None:
            worst = self._failures.worst(complete=complete)
            if worst is not None:
                yield (
                    worst.count > 0 and worst.percent >= rate,
                    f"{worst.bad} of {worst.count} iterations failed {worst.span}:"
                    f" {three_digits(worst.percent)} %, abort at {rate:g} % over {self._seconds}",
                )
        if percentile is not None:
            worst = self._slow.worst(complete=complete)
            if worst is not None:
                above, _ = self._slow.exceeding(
                    100 - Fraction(str(percentile["p"])), complete=complete
                )
                yield (
                    above > 0,
                    f"{worst.bad} of {worst.count} took longer than"
                    f" {duration(percentile['max_s'])} {worst.span}, abort where"
                    f" p{percentile['p']:g} does over {self._seconds}",
                )
