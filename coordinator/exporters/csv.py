"""Exporter `csv`: the times of every workload and atomic action as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from osbench.plugin import exporter

#: Columns of a distribution, as the JSON object names them; all but the first are seconds.
FIGURES = ("count", "min", "mean", "p50", "p90", "p95", "p99", "p999", "max")

HEADER = ("subtask", "position", "workload", "time", "state", *FIGURES)

#: Prefixes that make a spreadsheet treat a cell as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Csv(exporter.Exporter):
    """Writes times.csv: one line per workload, time and state, in seconds.

    `time` is service, response, start_lag, or "action" with the name of an atomic action.
    """

    NAME: ClassVar[str] = "csv"

    def export(self, summary: Mapping[str, Any]) -> Mapping[str, str]:
        """times.csv."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for workload in summary["workloads"]:
            place = (_cell(workload["subtask"]), workload["position"], _cell(workload["name"]))
            for time, state, times in _distributions(workload):
                writer.writerow((*place, time, state, *(times[figure] for figure in FIGURES)))
        return {"times.csv": file.getvalue()}


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text


def _distributions(workload: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    named = {**workload["latency"]}
    named |= {f"action {path}": timings for path, timings in workload["actions"].items()}
    for name, timings in named.items():
        for state, times in timings.items():
            if times["count"]:
                yield name, state, times
    yield "start_lag", "all", workload["start_lag"]
