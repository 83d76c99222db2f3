"""SLA criterion `growth`: how fast requests may grow with the population of the service."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from osbench.plugin import sla

#: Laws that a criterion may allow, from the slowest growth to the fastest.
LAWS = ("constant", "logarithmic", "linear", "n log n", "quadratic")
#: Measures that a criterion may limit.
LIMITED = ("time", "spans", "sql", "calls", "bytes")

_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "exponent": {
            "type": "object",
            "properties": {"max": {"type": "number", "description": "greatest"}},
            "required": ["max"],
            "additionalProperties": False,
            "description": "slope of the logarithms between the two greatest populations, such as 0"
            " (constant), 1 (linear) or 2 (quadratic)",
        },
        "law": {"enum": list(LAWS), "description": "the fastest law of growth that is allowed"},
    },
    "minProperties": 1,
    "additionalProperties": False,
}
_DESCRIPTIONS = {
    "time": "median seconds of a call",
    "spans": "spans of services in a call",
    "sql": "statements in SQL in a call",
    "calls": "calls in an iteration",
    "bytes": "bytes of the responses of a call",
}
_LIMITS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "action": {
            "type": "string",
            "minLength": 1,
            "description": "atomic action; all requests of the workload unless given",
        },
        **{name: {**_LIMIT, "description": _DESCRIPTIONS[name]} for name in LIMITED},
    },
    "additionalProperties": False,
}


class GrowthLimits(sla.Sla):
    """Limits of growth, judged by `osbench-coord grow`, which runs a task at several populations.

    A usual run has one population, and cannot judge them. It says so, and its exit code is not
    changed.
    """

    NAME: ClassVar[str] = "growth"
    AT_END: ClassVar[bool] = True
    JUDGES_FAILURES: ClassVar[bool] = False
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "anyOf": [_LIMITS, {"type": "array", "items": _LIMITS, "minItems": 1}],
        "examples": [{"spans": {"exponent": {"max": 0.1}}, "sql": {"law": "constant"}}],
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message if an element limits no measure."""
        return [
            f"there is no limit; add one of {', '.join(LIMITED)}, such as"
            " spans: {exponent: {max: 0.1}}"
            for one in elements(config)
            if not one.keys() & set(LIMITED)
        ]

    @classmethod
    def judged_actions(cls, config: Any) -> Collection[str]:
        """Return the atomic actions that elements of the configuration name."""
        return [one["action"] for one in elements(config) if "action" in one]

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return a verdict that fails nothing, and says which command judges this criterion."""
        return self.verdict(
            True, "not judged by a single run: `osbench-coord grow` runs it at several populations"
        )


def elements(config: Any) -> Sequence[Mapping[str, Any]]:
    """Return the elements of a configuration, which may be one or a list."""
    return [config] if isinstance(config, Mapping) else config
