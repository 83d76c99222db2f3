"""SLA criterion `recovers`: how fast a service has to come back after an overload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import sla
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import duration


class Recovers(sla.Sla):
    """The longest time from the end of an overload until the service is as before it.

    The runner `overload` makes the load. A service that is stuck, leaks, or whose recovery is not
    known, does not meet it. A service that the overload does not overload meets it.
    """

    NAME: ClassVar[str] = "recovers"
    AT_END: ClassVar[bool] = True
    RUNNER: ClassVar[str] = "overload"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "within": {
                **DURATION,
                "minimum": 0,
                "maximum": 1e9,
                "description": "seconds from the return to the share that was held before",
            }
        },
        "required": ["within"],
        "additionalProperties": False,
        "examples": [{"within": 30}],
    }

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether the service was as before in time. Fails without overload."""
        # an edge's own figures: the interface of criteria knows drills alone
        found = getattr(statistics.drill, "overload", None)
        if found is None:
            return self.verdict(False, "the workload has no overload: use the runner overload")
        longest = float(self.config["within"])
        allowed = f"allowed {duration(longest)}"
        back_s, said = found["back_s"], str(found["sentences"][0])
        # the figures without the generator's doing have this key; the measured ones do not
        if found["verdict"] == "not overloaded" or found.get("is_excused"):
            return self.verdict(True, said)
        fine = found["verdict"] == "back" and back_s is not None and back_s <= longest
        return self.verdict(fine, f"{said}, {allowed}")
