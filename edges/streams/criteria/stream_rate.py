"""SLA criterion `stream_rate`: the least events or bytes per second of single streams."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from osbench.edges.streams.event_times import BYTE_RATE, EVENT_RATE
from osbench.plugin import sla
from osbench.plugin.formatting import three_digits
from osbench.plugin.statistics import outputs

#: Title of the chart and unit, by the key of the least rate.
_KINDS: Mapping[str, tuple[str, str]] = {
    "min_events_s": (EVENT_RATE, "events/s"),
    "min_kb_s": (BYTE_RATE, "kB/s"),
}
#: Lowest rate that counts: an event, or kB, in ten days.
_LEAST_RATE = 1e-6
_LEAST: Mapping[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}
_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "min_events_s": {**_LEAST, "description": "least events per second"},
        "min_kb_s": {**_LEAST, "description": "least kB (1,000 bytes) per second"},
        "p": {
            "type": "number",
            "minimum": 0,
            "maximum": 100,
            "description": "the percentile of streams; 5 by default: 95 % have at least this rate",
        },
        "action": {
            "type": "string",
            "minLength": 1,
            "description": "only streams of requests with this name, such as chat",
        },
    },
    "additionalProperties": False,
}


class StreamRate(sla.Sla):
    """A low percentile of the events, or bytes, per second in a stream.

    Events per second count from the first event to the last, bytes from the request to the last
    byte, as in the charts. Streams that failed have no rate, and streams of one event have no rate
    of events.
    """

    NAME: ClassVar[str] = "stream_rate"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "oneOf": [_LIMIT, {"type": "array", "minItems": 1, "items": _LIMIT}],
        "examples": [{"min_events_s": 20, "p": 5, "action": "chat"}],
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        #: Nanoseconds per event, or per kB, of streams by limit: delays make these longer.
        self._paces = [sla.Histogram() for _ in _limits(config)]

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message for each limit that has no least rate, or two."""
        wanted = " or ".join(_KINDS)
        return [
            f"needs either {wanted}, got {' and '.join(found) or 'none of them'}"
            for found in ([key for key in _KINDS if key in limit] for limit in _limits(config))
            if len(found) != 1
        ]

    @classmethod
    def judged_actions(cls, config: Any) -> Collection[str]:
        """Return the names of the actions in the limits."""
        return [limit["action"] for limit in _limits(config) if "action" in limit]

    def add(self, columns: sla.Columns) -> None:
        """Count the rates in the charts of iterations, by limit."""
        found = list(_rates(columns))
        for limit, paces in zip(_limits(self.config), self._paces, strict=True):
            (title, _), action = _kind(limit), limit.get("action")
            some = [
                rate for chart, name, rate in found if chart == title and action in (None, name)
            ]
            paces.add((1e9 / np.array(some, float)).astype(np.int64))

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the percentiles of all limits are high enough.

        A limit without streams to judge fails.
        """
        delay = getattr(statistics, "delay", None)
        found = [
            _judge(limit, paces if delay is None else delay.without(paces))
            for limit, paces in zip(_limits(self.config), self._paces, strict=True)
        ]
        return self.verdict(all(fine for fine, _ in found), "; ".join(text for _, text in found))


def _limits(config: Any) -> Sequence[Mapping[str, Any]]:
    return [config] if isinstance(config, Mapping) else config


def _kind(limit: Mapping[str, Any]) -> tuple[str, str]:
    return next(kind for key, kind in _KINDS.items() if key in limit)


def _rates(columns: sla.Columns) -> Iterator[tuple[str, str, float]]:
    """Yield title of the chart, name of the request and rate of each stream."""
    titles = [title for title, _ in _KINDS.values()]
    for _, packed in columns.outputs:
        for chart in outputs(packed)["additive"]:
            if chart["title"] not in titles or not isinstance(chart["data"], list):
                continue
            for pair in chart["data"]:
                # a scenario may make charts with the same title, of other values
                match pair:
                    case [str(name), float(rate)] if _LEAST_RATE <= rate < math.inf:
                        yield chart["title"], name, rate


def _judge(limit: Mapping[str, Any], paces: sla.Histogram) -> tuple[bool, str]:
    percent, action = limit.get("p", 5), limit.get("action", "")
    (_, unit), least = _kind(limit), next(limit[key] for key in _KINDS if key in limit)
    name = f"p{percent:g} of {unit} in a stream{f' of {action}' if action else ''}"
    if not paces.count:
        return False, f"{name}: no stream with a rate was recorded"
    rate = 1e9 / max(1, paces.percentile(100 - percent))
    return rate >= least, f"{name} {three_digits(rate)}, at least {least:g} required"
