"""SLA criterion `requests_per_iteration`: bounds on the number of HTTP requests per iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from osbench.plugin import sla
from osbench.plugin.formatting import count


class RequestsPerIteration(sla.Sla):
    """Requests of each successful iteration by osbench's HTTP clients, as reports count them.

    No trace is needed. A load without a recorded request meets only `max: 0`.
    """

    NAME: ClassVar[str] = "requests_per_iteration"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "min": {"type": "integer", "minimum": 0, "description": "fewest"},
            "max": {"type": "integer", "minimum": 0, "description": "most"},
        },
        "minProperties": 1,
        "additionalProperties": False,
        "examples": [{"max": 3}],
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        #: Successful iterations, and how many of them have too many and too few requests.
        self._iterations = self._above = self._below = 0
        #: Requests, and the number of the iteration.
        self._most = self._fewest = (0, 0)

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message if `min` is above `max`; else []."""
        if config.get("min", 0) > config.get("max", config.get("min", 0)):
            return [f"min {config['min']} is above max {config['max']}"]
        return []

    def add(self, columns: sla.Columns) -> None:
        """Count successful iterations, also by too many or too few requests; note the extremes."""
        ok = columns.outcome == sla.Outcome.OK
        if not ok.any():
            return
        requests = np.bincount(columns.exchanged, minlength=len(ok))[ok]
        numbers = columns.iteration[ok]
        most, fewest = int(requests.argmax()), int(requests.argmin())
        if not self._iterations or requests[most] > self._most[0]:
            self._most = int(requests[most]), int(numbers[most])
        if not self._iterations or requests[fewest] < self._fewest[0]:
            self._fewest = int(requests[fewest]), int(numbers[fewest])
        self._iterations += len(requests)
        self._above += int((requests > self.config.get("max", np.inf)).sum())
        self._below += int((requests < self.config.get("min", 0)).sum())

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether all successful iterations are within the bounds.

        Fails if none has succeeded, or no request was recorded although `max` is not 0.
        """
        (most, at_most), (fewest, at_fewest) = self._most, self._fewest
        if not self._iterations:
            return self.verdict(False, "no iteration has succeeded")
        if not most and self.config.get("max") != 0:
            return self.verdict(
                False, "no request was recorded: osbench records only its own HTTP clients"
            )
        said = []
        if self._above:
            said.append(
                f"more than {self.config['max']} in {self._above} of {self._iterations} successful"
                f" iterations, {most} in iteration {at_most}"
            )
        if self._below:
            said.append(
                f"fewer than {self.config['min']} in {self._below} of {self._iterations} successful"
                f" iterations, {fewest} in iteration {at_fewest}"
            )
        if said:
            return self.verdict(False, "; ".join(said))
        found = f"{fewest} to {most} requests" if fewest < most else count(most, "request")
        words = {"min": "at least", "max": "at most"}
        bounds = [f"{word} {self.config[key]}" for key, word in words.items() if key in self.config]
        return self.verdict(True, f"{found} per iteration, {' and '.join(bounds)}")

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Return the failed verdict once an iteration is out of the bounds; else None."""
        return self.check(statistics) if self._above or self._below else None
