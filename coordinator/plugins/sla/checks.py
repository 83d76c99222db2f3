"""SLA criterion `checks`: how often soft checks have to hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from osbench.plugin import sla

_LIMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "description": "of the check; all checks, each by itself, unless given",
        },
        "min_percent": {
            "type": "number",
            "minimum": 0,
            "maximum": 100,
            "description": "least percentage of times that the check passed",
        },
    },
    "required": ["min_percent"],
    "additionalProperties": False,
}


class SoftCheckRate(sla.Sla):
    """Soft checks (`self.verify`, and `verify` of requests), by how often they passed."""

    NAME: ClassVar[str] = "checks"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "oneOf": [_LIMIT, {"type": "array", "minItems": 1, "items": _LIMIT}],
        "examples": [{"name": "GET /item/[id]: $.id", "min_percent": 99}],
    }

    @property
    def _limits(self) -> list[Mapping[str, Any]]:
        return [self.config] if isinstance(self.config, Mapping) else list(self.config)

    def check(self, statistics: sla.Statistics) -> sla.Verdict:
        """Return the verdict: whether each limited check passed in enough percent of its times.

        A check that was never made fails the criterion; a limit of all checks fails without any.
        """
        found = list(self._judged(statistics))
        bad = [text for fine, text in found if not fine]
        return self.verdict(not bad, "; ".join(bad or [text for _, text in found]))

    def _judged(self, statistics: sla.Statistics) -> Iterator[tuple[bool, str]]:
        counts = statistics.checks
        for limit in self._limits:
            least = float(limit["min_percent"])
            names = [limit["name"]] if "name" in limit else sorted(counts)
            if not names:
                yield False, "no soft check was made"
            for name in names:
                held, failed = counts.get(name, (0, 0))
                if not held + failed:
                    yield False, f"{name} was never checked"
                    continue
                percent = 100 * held / (held + failed)
                yield (
                    percent >= least,
                    f"{name} passed {percent:.4g} % of {held + failed} times, at least {least:g} %",
                )
