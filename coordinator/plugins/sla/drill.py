"""SLA criterion `drill`: limits on the effects of a fault under load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import count, duration


class DrillLimits(sla.Sla):
    """Limits on bad iterations from a fault on, time of recovery, and resources left in error.

    The workload's key `phases` says which hook causes the fault. Failed, timed out and dropped
    iterations count. The criterion fails if a hook of `phases` has failed, or has not fired.
    """

    NAME: ClassVar[str] = "drill"
    AT_END: ClassVar[bool] = True
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "failed": {
                "type": "object",
                "properties": {
                    "max": {"type": "integer", "minimum": 0, "description": "most iterations"}
                },
                "required": ["max"],
                "additionalProperties": False,
                "description": "iterations that fail, time out or are dropped from the fault on",
            },
            "recovery_s": {
                "type": "object",
                "properties": {"max": {**DURATION, "minimum": 0, "description": "seconds"}},
                "required": ["max"],
                "additionalProperties": False,
                "description": "time from the fault until the load is as before, and stays so",
            },
            "left_in_error": {
                "type": "object",
                "properties": {
                    "max": {"type": "integer", "minimum": 0, "description": "most resources"}
                },
                "required": ["max"],
                "additionalProperties": False,
                "description": "resources in a cloud that are in error, or still changing, at the"
                " end of the load",
            },
        },
        "minProperties": 1,
        "examples": [{"failed": {"max": 50}, "recovery_s": {"max": 10}}],
        "additionalProperties": False,
    }

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether bad iterations, recovery and resources are within the limits.

        Fails without `phases`, or if a hook in it failed or did not fire; with a limit on
        recovery also if none was found, with one on resources also if some could not be listed.
        """
        drill = statistics.drill
        if drill is None:
            return self.verdict(False, "the workload has no `phases`, so it has no fault")
        if drill.problem:
            return self.verdict(False, drill.problem)
        found = list(self._judged(drill))
        bad = [text for fine, text in found if not fine]
        return self.verdict(not bad, "; ".join(bad or [text for _, text in found]))

    def _judged(self, drill: sla.Drill) -> Iterator[tuple[bool, str]]:
        if "failed" in self.config:
            most = self.config["failed"]["max"]
            yield (
                drill.bad <= most,
                f"{count(drill.bad, 'iteration')} did not succeed from the fault on,"
                f" allowed {count(most)}",
            )
        if "left_in_error" in self.config:
            yield self._judged_left(drill)
        if "recovery_s" in self.config:
            longest = self.config["recovery_s"]["max"]
            if drill.recovery_s is None:
                yield False, f"{drill.doubt}, allowed {duration(longest)} to recover"
                return
            low, high = drill.recovery_ci or (None, None)
            yield (
                drill.recovery_s <= longest,
                f"recovered after {duration(drill.recovery_s)} (95 %: {duration(low)} to"
                f" {duration(high)}), allowed {duration(longest)}",
            )

    def _judged_left(self, drill: sla.Drill) -> tuple[bool, str]:
        most, found = self.config["left_in_error"]["max"], drill.left_in_error
        text = f"{count(found or 0, 'resource')} left in error"
        if found is None or (drill.left_doubt and not found):
            text = drill.left_doubt
        elif drill.left_doubt:
            text += f", and {drill.left_doubt}"
        fine = found is not None and found <= most and not drill.left_doubt
        return fine, f"{text}, allowed {count(most)}"
