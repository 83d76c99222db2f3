"""Exporter `csv`: a line for each iteration."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, TextIO

from osbench.coordinator.exporters.spreadsheet import cell
from osbench.plugin import exporter

#: Begins the note of a run that is exported although its files are damaged.
PARTIAL = "PARTIAL"
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
            notes = run.summary.get("notes", ())
            partial = (note for note in notes if note.startswith(PARTIAL))
            write(run.rows(), file, next(partial, ""))


def write(rows: Iterable[exporter.IterationRow], file: TextIO, partial: str = "") -> None:
    """Write a heading and a line for each row.

    `partial` says why there are not all; it makes a line of its own before the heading.
    """
    if partial:
        file.write(f"# {partial}\n")
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
