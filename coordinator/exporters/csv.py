"""Exporter `csv`: a line for each iteration."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, TextIO

from osbench.coordinator.exporters.spreadsheet import cell
from osbench.plugin import exporter

#: `workload` counts from 0, as in the JSON object; instants are seconds after t0.
HEADER = (
    "workload",
    "iteration",
    "outcome",
    "due_s",
    "started_s",
    "service_s",
    "response_s",
    "start_lag_s",
    "error",
    "trace_id",
    "worker",
    "warmup",
)


class Csv(exporter.Exporter):
    """Writes iterations.csv: a line for each iteration that ended or was dropped, in seconds.

    Texts that a spreadsheet would take for a formula begin with an apostrophe.
    """

    NAME: ClassVar[str] = "csv"
    FILE: ClassVar[str] = "iterations.csv"

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write the lines one by one."""
        with path.open("w", encoding="utf-8", newline="") as file:
            write(run.rows(), file)


def write(rows: Iterable[exporter.IterationRow], file: TextIO) -> None:
    """Write a heading and a line for each row."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(map(_line, rows))


def _line(row: exporter.IterationRow) -> tuple[str | int, ...]:
    error = f"{row.error_type}: {row.error}" if row.error_type else row.error
    return (
        row.workload,
        row.iteration,
        row.outcome,
        _seconds(row.due_ns),
        _seconds(row.started_ns),
        _seconds(row.service_ns),
        _seconds(row.response_ns),
        _seconds(row.start_lag_ns),
        cell(error),
        row.trace_id,
        cell(row.worker),
        "true" if row.warmup else "false",
    )


def _seconds(nanoseconds: int | None) -> str:
    if nanoseconds is None:
        return ""
    # exact: a float would lose nanoseconds of late instants
    sign = "-" if nanoseconds < 0 else ""
    whole, part = divmod(abs(nanoseconds), 10**9)
    return f"{sign}{whole}.{part:09d}"
