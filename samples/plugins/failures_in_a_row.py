"""An SLA criterion: how many iterations may fail one after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from osbench.plugin import sla


class FailuresInARow(sla.Sla):
    """The longest series of iterations that failed, in the order in which results come in."""

    NAME: ClassVar[str] = "failures_in_a_row"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "max": {"type": "integer", "minimum": 0, "description": "the longest series allowed"}
        },
        "required": ["max"],
        "examples": [{"max": 3}],
        "additionalProperties": False,
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._seen = self._now = self._longest = 0

    def add(self, columns: sla.Columns) -> None:
        """Follow the series through the next results."""
        for failed in np.isin(columns.outcome, [sla.Outcome.FAILED, sla.Outcome.TIMED_OUT]):
            self._seen += 1
            self._now = self._now + 1 if failed else 0
            self._longest = max(self._longest, self._now)

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Compare the longest series with the limit."""
        if not self._seen:
            return self.verdict(False, "no iteration has ended")
        most = self.config["max"]
        detail = f"{self._longest} failed in a row, allowed {most}"
        return self.verdict(self._longest <= most, detail)

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """A series that was too long stays too long."""
        return self.check(statistics) if self._longest > self.config["max"] else None
