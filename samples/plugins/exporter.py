"""An exporter: the slowest iterations of a run, with which to look for their traces."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.plugin import exporter


class Slowest(exporter.Exporter):
    """Writes slowest.txt: the iterations of a run that took longest, with their trace ids."""

    NAME: ClassVar[str] = "slowest"
    FILE: ClassVar[str] = "slowest.txt"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"most": {"type": "integer", "minimum": 1, "default": 20}},
        "additionalProperties": False,
    }

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write a line per iteration, the slowest first."""
        # holds that many rows and no more, however long the run was
        ran = (row for row in run.rows() if row.service_s is not None)
        found = heapq.nlargest(self.config.get("most", 20), ran, key=lambda row: row.service_ns)
        with path.open("w", encoding="utf-8") as file:
            file.write(f"run {run.summary['run_id']}\n")
            for row in found:
                name = run.summary["workloads"][row.workload]["name"]
                times = f"{row.service_s:.6f} s  {row.outcome}"
                file.write(f"{times}  {name} {row.iteration}  {row.trace_id}\n")
