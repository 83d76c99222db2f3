"""SLA criterion `good`: the share of iterations that meet all of several limits at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from osbench.edges.capacity.good_counts import GoodCounts
from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import count, three_digits
from osbench.plugin.statistics import made_checks, name_paths, unknown

Bools = NDArray[np.bool_]

#: Drops by the load generator: it is unknown how these arrivals would have fared.
OWN_DROPS = (
    sla.Outcome.DROPPED_LATE,
    sla.Outcome.DROPPED_WORKER_LOST,
    sla.Outcome.DROPPED_COORDINATOR_GONE,
)
#: A percentage as tasks write it.
_WRITTEN = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,12})?)\s*%?\s*")
#: From this on a number is a percentage; a smaller one is a fraction by mistake.
_LEAST_PERCENT = 1

_MAX: Mapping[str, Any] = {
    **DURATION,
    "exclusiveMinimum": 0,
    "maximum": 1e9,
    "description": "longest time allowed",
}
_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "p": {
            "enum": ["response", "service"],
            "description": "time of the iteration: from the scheduled time, or from start, to end",
        },
        "action": {
            "type": "string",
            "minLength": 1,
            "description": "time of each call of an atomic action, nested ones as 'outer > inner'",
        },
        "max": _MAX,
        "check": {"type": "string", "minLength": 1, "description": "a soft check that has to pass"},
    },
    "minProperties": 1,
    "additionalProperties": False,
}


class Goodput(sla.Sla):
    """Goodput: the share of iterations that are successful and meet all limits of `of` at once.

    Failed and timed out iterations are not good, nor are arrivals that were dropped because all
    virtual users were busy, or for `max_concurrency`. An iteration that did not call an action, or
    did not make a check, of a limit is not good. The interval of the share is exact; iterations
    that resemble their neighbours in time count as fewer.
    """

    NAME: ClassVar[str] = "good"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "min": {
                "type": ["number", "string"],
                "minimum": 0,
                "maximum": 100,
                "description": "least percentage of good iterations: 99 % or 99",
            },
            "of": {
                "type": "array",
                "minItems": 1,
                "items": _LIMIT,
                "description": "limits that a good iteration meets, all at once",
            },
        },
        "required": ["min", "of"],
        "examples": [{"min": "99 %", "of": [{"p": "response", "max": 1}]}],
        "additionalProperties": False,
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._counts = GoodCounts()
        #: Arrivals that the generator dropped, which are left out.
        self._left_out = 0
        #: Actions and checks of successful iterations, as far as a limit names one; else unused.
        self._actions: set[str] = set()
        self._checks: set[str] = set()

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return messages on a share that is not a percentage, and on limits of mixed kinds."""
        found = []
        written = _WRITTEN.fullmatch(str(config["min"]))
        if not written or not _LEAST_PERCENT < Fraction(written[1]) <= 100:
            found.append(
                f"min is a percentage above {_LEAST_PERCENT} and up to 100, such as 99 %, "
                f"got {config['min']}"
            )
        for at, limit in enumerate(config["of"]):
            kinds = [key for key in ("p", "action", "check") if key in limit]
            if len(kinds) != 1:
                got = ", ".join(kinds) or "none of them"
                found.append(f"of[{at}] needs either p, action or check, got {got}")
            elif ("max" in limit) == ("check" in limit):
                found.append(
                    f"of[{at}]: a check has no max"
                    if "check" in limit
                    else f"of[{at}] needs max, the longest time allowed, such as 1s"
                )
        return found

    @classmethod
    def judged_actions(cls, config: Any) -> list[str]:
        """Return the names of the actions in the limits."""
        return [limit["action"] for limit in config["of"] if "action" in limit]

    def add(self, columns: sla.Columns) -> None:
        """Count good and other iterations by time; drops of the generator are left out."""
        own = np.isin(columns.outcome, OWN_DROPS)
        self._left_out += int(np.count_nonzero(own))
        good = columns.outcome == sla.Outcome.OK
        for limit in self.config["of"]:
            good &= self._met(limit, columns)
        self._counts.add(np.where(good, columns.ended, columns.due)[~own], good[~own])

    def _met(self, limit: Mapping[str, Any], columns: sla.Columns) -> Bools:
        """Return for each row whether it meets one limit."""
        if "check" in limit:
            return self._passed(limit["check"], columns)
        most_ns = round(limit["max"] * 1e9)
        if "action" in limit:
            return self._quick_calls(limit["action"], most_ns, columns)
        begun = columns.due if limit["p"] == "response" else columns.started
        found: Bools = columns.ended - begun - columns.idle <= most_ns
        return found

    def _passed(self, check: str, columns: sla.Columns) -> Bools:
        passed: dict[int, bool] = {}
        for number, name, _, failed in made_checks(columns.outputs):
            if len(self._checks) < 20:
                self._checks.add(name)
            if name == check:
                passed[number] = passed.get(number, True) and not failed
        return np.isin(columns.iteration, [number for number, fine in passed.items() if fine])

    def _quick_calls(self, action: str, most_ns: int, columns: sla.Columns) -> Bools:
        found = np.zeros(len(columns), np.bool_)
        lines = columns.actions
        if not len(lines):
            return found
        number, labels = name_paths(lines, columns.names)
        self._actions.update(labels[:20])
        if action not in labels:
            return found
        self._actions.add(action)
        calls = lines[number == labels.index(action)]
        # left open, it lasted until its iteration's end
        ended = np.where(calls[:, 4] < calls[:, 3], columns.ended[calls[:, 0]], calls[:, 4])
        slow = (ended - calls[:, 3] > most_ns) | (calls[:, 5] != 0)
        found[calls[:, 0]] = True
        found[calls[slow, 0]] = False
        return found

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the share of good iterations is at least `min`.

        Fails if no iteration has ended.
        """
        good, every = self._counts.good, self._counts.every
        if not every:
            return self.verdict(False, "no iteration has ended")
        low, high = self._counts.interval
        said = (
            f"{_percent_text(good / every)} of {count(every, 'iteration')} were good, with 95 % "
            f"between {_percent_text(low)} and {_percent_text(high)}; at least "
            f"{float(_least(self.config)):g} % wanted"
        )
        rate, well = statistics.ok_per_s, statistics.count("ok")
        if rate is not None and well:
            said += f"; {three_digits(rate * good / well)} good/s"
        if self._left_out:
            said += f"; {count(self._left_out, 'arrival')} that the generator dropped left out"
        hints = "".join(f"; {hint}" for hint in self._hints()) if not good else ""
        return self.verdict(100 * Fraction(good, every) >= _least(self.config), said + hints)

    def _hints(self) -> Iterator[str]:
        """Yield why no iteration is good, for names that no iteration had."""
        for limit in self.config["of"]:
            if "action" in limit and limit["action"] not in self._actions:
                yield unknown(limit["action"], sorted(self._actions))
            if "check" in limit and limit["check"] not in self._checks:
                known = ", ".join(sorted(self._checks)) or "none"
                yield f"no iteration made the check {limit['check']} (made: {known})"

    def breach(self, statistics: sla.Statistics, plan: int | None) -> sla.Verdict | None:
        """Return the failed verdict if too few are good even if all remaining iterations are.

        Else None. Without a known plan that is certain only for `min` 100.
        """
        good, every = self._counts.good, self._counts.every
        bad, least = every - good, _least(self.config)
        if not bad:
            return None
        # without end any share of others can still become small, though never none at all
        best = 100 * (1 - Fraction(bad, max(plan, every))) if plan else Fraction(100)
        certain = best < least or least == 100
        return self.check(statistics) if certain else None


def _least(config: Mapping[str, Any]) -> Fraction:
    """Return the least percentage, exactly as it is written."""
    return Fraction(str(config["min"]).strip().removesuffix("%").strip())


def _percent_text(share: float) -> str:
    # 99.996 % is not 100 %
    text = f"{100 * share:.4g}"
    return f"{'>99.99' if text == '100' and share < 1 else text} %"
