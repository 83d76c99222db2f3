"""SLA criterion `percentile`: limits of any percentile of durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import duration
from osbench.plugin.statistics import OVER_S, Windows, least_percentile, unknown

_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "p": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 100,
            "description": "the percentile; 100 is the longest duration",
        },
        "max_s": {**DURATION, "exclusiveMinimum": 0, "description": "its limit, seconds"},
        "of": {
            "enum": ["service", "response"],
            "description": "from start to end (the default), or from the scheduled time",
        },
        "action": {
            "type": "string",
            "minLength": 1,
            "description": "an atomic action, nested ones as 'outer > inner'; else the iteration",
        },
        "over_s": OVER_S,
    },
    "required": ["p", "max_s"],
    "examples": [{"p": 99, "max_s": 0.5, "of": "response"}],
    "additionalProperties": False,
}


class Percentile(sla.Sla):
    """Percentiles of successful iterations, or of successful calls of an atomic action.

    Values are as in the report: to 0.1 %, rounded up, never above the longest. With `over_s`, at
    most 100 - `p` % of the iterations that end in any window of that length may take longer.
    """

    NAME: ClassVar[str] = "percentile"
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "anyOf": [_LIMIT, {"type": "array", "items": _LIMIT, "minItems": 1}]
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        #: By limit; None if the whole load is judged.
        self._windows = [
            Windows(limit["over_s"]) if "over_s" in limit else None for limit in _limits(config)
        ]

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message for each limit with `action` that has `of: response` or `over_s`.

        Actions have no scheduled time.
        """
        actions = [limit for limit in _limits(config) if "action" in limit]
        return [
            f"an action has no response time: leave out of, or action {limit['action']!r}"
            for limit in actions
            if limit.get("of") == "response"
        ] + [
            f"over_s is for iterations: leave it out, or action {limit['action']!r}"
            for limit in actions
            if "over_s" in limit
        ]

    @classmethod
    def judged_actions(cls, config: Any) -> list[str]:
        """Return the names of the actions in the limits."""
        return [limit["action"] for limit in _limits(config) if "action" in limit]

    def add(self, columns: sla.Columns) -> None:
        """Count successful iterations by window, and slow ones, for limits with `over_s` only."""
        for limit, windows in zip(_limits(self.config), self._windows, strict=True):
            if windows is not None:
                ok = columns.outcome == sla.Outcome.OK
                response = limit.get("of") == "response"
                begun = columns.due if response else columns.started + columns.idle
                windows.add(
                    columns.ended[ok], (columns.ended - begun)[ok] > round(limit["max_s"] * 1e9)
                )

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether all percentiles, with `over_s` of each window, are in limits.

        Fails if no iteration, or no call of an action with a limit, has succeeded.
        """
        said = [
            _windows_verdict(limit, windows) if windows else _load_verdict(limit, statistics)
            for limit, windows in zip(_limits(self.config), self._windows, strict=True)
        ]
        return self.verdict(all(ok for ok, _ in said), "; ".join(text for _, text in said))

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Return the failed verdict if a limit is exceeded even if the other iterations take 0 s.

        Else None; without a plan, and for actions, that is certain only if `p` is 100. With
        `over_s` only complete windows count.
        """
        left = sla.remaining(statistics, plan)
        for limit, windows in zip(_limits(self.config), self._windows, strict=True):
            if windows is not None:
                if windows.exceeding(100 - Fraction(str(limit["p"])), complete=True)[0]:
                    return self.check(statistics)
                continue
            # the number of calls of an action cannot be known beforehand
            more = None if "action" in limit else left
            least = least_percentile(_times(limit, statistics), limit["p"], more)
            if least > round(limit["max_s"] * 1e9):
                return self.check(statistics)
        return None


def _limits(config: Any) -> Sequence[Mapping[str, Any]]:
    return [config] if isinstance(config, Mapping) else config


def _times(limit: Mapping[str, Any], statistics: sla.Statistics) -> sla.Histogram:
    if "action" in limit:
        found = statistics.actions.get(limit["action"])
        return found.state("ok") if found is not None else sla.Histogram()
    times = statistics.response if limit.get("of") == "response" else statistics.service
    return times.state("ok")


def _windows_verdict(limit: Mapping[str, Any], windows: Windows) -> tuple[bool, str]:
    name = f"p{limit['p']:g} of {limit.get('of', 'service')} time in any {limit['over_s']:g} s"
    worst = windows.worst()
    if worst is None:
        return False, f"{name}: no iteration succeeded"
    above, judged = windows.exceeding(100 - Fraction(str(limit["p"])))
    return (
        not above,
        f"{name}: above {duration(limit['max_s'])} in {above} of {judged} windows, {worst.span}"
        f" {worst.bad} of {worst.count} took longer",
    )


def _load_verdict(limit: Mapping[str, Any], statistics: sla.Statistics) -> tuple[bool, str]:
    times = _times(limit, statistics)
    action = limit.get("action")
    name = f"p{limit['p']:g} of {action or limit.get('of', 'service') + ' time'}"
    known = statistics.actions
    if action and action not in known and (known or statistics.count("ok")):
        return False, f"{name}: {unknown(action, known)}"
    if not times.count:
        return False, f"{name}: no iteration succeeded"
    value = times.percentile(limit["p"])
    return (
        value <= round(limit["max_s"] * 1e9),
        f"{name} {duration(value / 1e9)}, allowed {duration(limit['max_s'])}",
    )
