"""Base of the criteria on times within requests: percentiles of first bytes, and of events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from osbench.edges.streams.criteria.judged_requests import judged_requests
from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import duration

FIRST_BYTE = "first_byte"

#: Names of the actions of events, within the action of their request (docs/streams.md).
EVENTS: Mapping[str, str] = {"first_event": "first event", "between_events": "between events"}

#: Schemas of the keys of a limit.
KEYS: Mapping[str, Any] = {
    "p": {
        "type": "number",
        "minimum": 0,
        "maximum": 100,
        "description": "the percentile; 95 by default",
    },
    "max_s": {**DURATION, "exclusiveMinimum": 0, "description": "longest time allowed"},
    "action": {
        "type": "string",
        "description": "only requests of this atomic action, such as s3.get_object",
    },
}


class RequestTimes(sla.Sla):
    """Percentiles of times within requests; subclasses name the times.

    First bytes are of complete requests of successful iterations by osbench's HTTP clients. Events
    are of all iterations, as in the report.
    """

    #: Times of a limit without the key `of`.
    OF: ClassVar[str] = FIRST_BYTE

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._times = [sla.Histogram() for _ in limits_of(config)]

    @classmethod
    def judged_actions(cls, config: Any) -> Collection[str]:
        """Return the names of the actions in the limits."""
        return [
            " > ".join(filter(None, (limit["action"], EVENTS.get(limit.get("of", cls.OF)))))
            for limit in limits_of(config)
            if "action" in limit
        ]

    def add(self, columns: sla.Columns) -> None:
        """Count the first bytes of successful iterations, by limit."""
        for limit, times in zip(limits_of(self.config), self._times, strict=True):
            if limit.get("of", self.OF) == FIRST_BYTE:
                waited = judged_requests(columns, limit.get("action", ""))["wait"]
                times.add(waited.astype(np.int64))

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether all percentiles are at most their limits.

        A limit without times to judge fails.
        """
        found = [
            self._judge(limit, times, statistics)
            for limit, times in zip(limits_of(self.config), self._times, strict=True)
        ]
        return self.verdict(all(fine for fine, _ in found), "; ".join(text for _, text in found))

    def _judge(
        self, limit: Mapping[str, Any], counted: sla.Histogram, statistics: sla.Statistics
    ) -> tuple[bool, str]:
        percent, action = limit.get("p", 95), limit.get("action", "")
        of = limit.get("of", self.OF)
        event = EVENTS.get(of, "")
        if event:
            times = _event_times(statistics, event, action)
        else:
            times = _byte_times(counted, statistics)
        about = event or "first bytes"
        name = f"p{percent:g} of {about}{f' of {action}' if action else ''}"
        if not times.count:
            missing = "event" if event else "request of a successful iteration"
            return False, f"{name}: no {missing} was recorded"
        value = times.percentile(percent)
        return (
            value <= round(limit["max_s"] * 1e9),
            f"{name} {duration(value / 1e9)}, allowed {duration(limit['max_s'])}",
        )


def _byte_times(counted: sla.Histogram, statistics: sla.Statistics) -> sla.Histogram:
    """Return times as `statistics` has them: without the generator's delays if it leaves those out.

    Rows without the delays have the times of their requests as they were measured.
    """
    delay = getattr(statistics, "delay", None)
    found: sla.Histogram = counted if delay is None else delay.without(counted)
    return found


def limits_of(config: Any) -> Sequence[Mapping[str, Any]]:
    """Return the limits of a configuration, which is one limit or a list of them."""
    return [config] if isinstance(config, Mapping) else config


def _event_times(statistics: sla.Statistics, event: str, action: str) -> sla.Histogram:
    """Return the times of an event within one action, or within all with ""."""
    found = sla.Histogram()
    for path, times in statistics.actions.items():
        outer, _, inner = path.rpartition(" > ")
        if outer and inner == event and action in ("", outer):
            found.merge(times.state("ok"))
    return found
