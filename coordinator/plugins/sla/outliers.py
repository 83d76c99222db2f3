"""SLA criterion `outliers`: how many iterations may take far longer than those before them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from osbench.plugin import sla


class Outliers(sla.Sla):
    """Successful iterations longer than mean + sigmas * standard deviation of those before.

    The rule is Rally's, one pass in the order in which results come in, and so is its
    weakness: that order is not the same in every run, least of all with several workers, and
    with it the count may differ by a few.
    """

    NAME: ClassVar[str] = "outliers"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "max": {
                "type": "integer",
                "minimum": 0,
                "description": "outliers allowed; 0 by default",
            },
            "min_iterations": {
                "type": "integer",
                "minimum": 3,
                "description": "the first iteration that can be one; 3 by default",
            },
            "sigmas": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "standard deviations above the mean; 3 by default",
            },
        },
        "examples": [{"max": 1, "min_iterations": 20, "sigmas": 3}],
        "additionalProperties": False,
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._first = int(config.get("min_iterations", 3))
        self._sigmas = float(config.get("sigmas", 3))
        self._found = 0
        #: Of the nanoseconds so far: how many, their mean, their squared distances from it.
        self._count = 0
        self._mean = 0.0
        self._squared = 0.0

    def add(self, columns: sla.Columns) -> None:
        """Judge each successful iteration, from `min_iterations` on, by all before; count outliers.

        Outliers, too, are part of the mean and deviation for later iterations.
        """
        rows = columns.outcome == sla.Outcome.OK
        times = (columns.ended - columns.started - columns.idle)[rows].astype(np.float64)
        if not len(times):
            return
        # distances from a value in the middle: sums of the times themselves would lose digits. An
        # integer, so that the mean of equal times is that time, and none of them an outlier
        middle = self._mean if self._count else float(np.rint(times.mean()))
        moved = times - middle
        # entry k: what was known before iteration k of these; the last: before the next ones
        count = self._count + np.arange(len(times) + 1)
        sums = np.concatenate(([0.0], np.cumsum(moved)))
        squares = np.concatenate(([0.0], np.cumsum(moved * moved)))
        mean = sums / np.maximum(count, 1)
        squared = np.maximum(self._squared + squares - sums * mean, 0)
        limit = middle + mean + self._sigmas * np.sqrt(squared / np.maximum(count - 1, 1))
        judged = (count[:-1] + 1 >= self._first) & (limit[:-1] > 0)
        self._found += int(np.count_nonzero(judged & (times > limit[:-1])))
        self._count = int(count[-1])
        self._mean = middle + float(mean[-1])
        self._squared = float(squared[-1])

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether there are at most `max` outliers.

        Fails if no iteration has succeeded.
        """
        if not self._count:
            return self.verdict(False, "no iteration has succeeded")
        most = int(self.config.get("max", 0))
        few = f" (judged from number {self._first} on)" if self._count < self._first else ""
        return self.verdict(
            self._found <= most,
            f"{self._found} outliers among {self._count} successful iterations{few},"
            f" allowed {most}",
        )

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Return the failed verdict once there are too many outliers; else None."""
        verdict = self.check(statistics)
        return verdict if self._count and not verdict.success else None
