"""Exporter `csv-times`: the times of every workload and atomic action as a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.plugin import exporter
from osbench.plugin.spreadsheet import cell

#: Columns of a distribution, as the JSON object names them; all but the first are seconds.
FIGURES = ("count", "min", "mean", "p50", "p90", "p95", "p99", "p999", "max")

HEADER = ("subtask", "position", "workload", "time", "state", *FIGURES)


class CsvTimes(exporter.Exporter):
    """Writes times.csv: one line per workload, time and state, in seconds.

    `time` is service, response, start_lag, or "action" with the name of an atomic action.
    """

    NAME: ClassVar[str] = "csv-times"
    FILE: ClassVar[str] = "times.csv"

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write the table to `path`, with lines of start_lag, and of other states that occurred."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADER)
            for workload in run.summary["workloads"]:
                place = (cell(workload["subtask"]), workload["position"], cell(workload["name"]))
                for time, state, times in _distributions(workload):
                    figures = (times[figure] for figure in FIGURES)
                    writer.writerow((*place, cell(time), state, *figures))


def _distributions(workload: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    named = {**workload["latency"]}
    named |= {f"action {path}": timings for path, timings in workload["actions"].items()}
    for name, timings in named.items():
        for state, times in timings.items():
            if times["count"]:
                yield name, state, times
    yield "start_lag", "all", workload["start_lag"]
