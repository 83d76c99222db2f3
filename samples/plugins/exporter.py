"""An exporter: the figures of a run as lines that monitoring reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import exporter


class OpenMetrics(exporter.Exporter):
    """Writes osbench.prom: iterations by state and the median, for a textfile collector."""

    NAME: ClassVar[str] = "openmetrics"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"prefix": {"type": "string", "pattern": "^[a-z_]+$", "default": "osbench"}},
        "additionalProperties": False,
    }

    def export(self, summary: Mapping[str, Any]) -> Mapping[str, str]:
        """Write one line per metric and workload."""
        prefix = self.config.get("prefix", "osbench")
        lines = []
        for number, workload in enumerate(summary["workloads"]):
            label = f'workload="{number}",scenario="{workload["name"]}"'
            for state in ("ok", "failed", "timed_out", "dropped", "lost", "not_started"):
                count = workload["accounting"][state]
                lines.append(f'{prefix}_iterations{{{label},state="{state}"}} {count}')
            median = workload["latency"]["service"]["ok"]["p50"]
            if median is not None:
                lines.append(f"{prefix}_service_p50_seconds{{{label}}} {median}")
        return {"osbench.prom": "\n".join(lines) + "\n"}
