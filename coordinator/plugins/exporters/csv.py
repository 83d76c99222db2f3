"""Exporter `csv`: a line for each iteration."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np

from osbench.plugin import exporter
from osbench.plugin.spreadsheet import cell

#: Begins the note of a run that is exported although its files are damaged.
PARTIAL = "PARTIAL"
#: Lines that are made together, column by column.
ROWS = 1_000

#: Columns that follow from others: the outcome, the start, and the error with its type before it.
LEFT_OUT = ("state", "started_at", "error_type")


def _error(row: exporter.IterationRow) -> str:
    return f"{row.error_type}: {row.error}" if row.error_type else row.error


def _columns() -> list[exporter.ExportColumn]:
    named = {one.name: one for one in exporter.ITERATION_COLUMNS if one.name not in LEFT_OUT}
    named["error"] = named["error"]._replace(get=_error)
    # after the worker, which was the last column of the first release
    warmup = named.pop("warmup")
    found = list(named.values())
    found.insert(found.index(named["worker"]) + 1, warmup)
    return found


#: `workload` counts from 0, as in the JSON object; times are seconds after t0.
COLUMNS = _columns()


class Csv(exporter.Exporter):
    """Writes iterations.csv: a line for each iteration that ended or was dropped, times in seconds.

    Texts that a spreadsheet would take for a formula begin with an apostrophe.
    """

    NAME: ClassVar[str] = "csv"
    FILE: ClassVar[str] = "iterations.csv"

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write all rows of the run to `path`, below a comment if files of the run are damaged."""
        with path.open("w", encoding="utf-8", newline="") as file:
            notes = run.summary.get("notes", ())
            partial = (note for note in notes if note.startswith(PARTIAL))
            write(run.rows(), file, next(partial, ""))


def write(rows: Iterable[exporter.IterationRow], file: TextIO, partial: str = "") -> None:
    """Write a heading and a line for each row to `file`.

    `partial`: why rows are missing, which becomes a comment line before the heading; "" for no
    comment.
    """
    if partial:
        file.write(f"# {partial}\n")
    file.write(",".join(column.name for column in COLUMNS) + "\n")
    left = iter(rows)
    while some := list(itertools.islice(left, ROWS)):
        formats, columns = [], []
        for _, kind, get in COLUMNS:
            form, *parts = _CELLS[kind](list(map(get, some)))
            formats.append(form)
            columns += parts
        lines = map(",".join(formats).__mod__, zip(*columns, strict=True))
        file.write("\n".join(lines) + "\n")


#: Format string of a cell, and its columns of values.
_Cells = tuple[str, *tuple[Iterable[Any], ...]]


def _seconds(values: list[int | None]) -> _Cells:
    # floats would lose nanoseconds of late times
    try:
        whole, rest = np.divmod(np.array(values, np.int64), 10**9)
    except (TypeError, OverflowError):
        return "%s", ["" if ns is None else _exact(ns) for ns in values]
    if (whole < 0).any():
        return "%s", [_exact(ns) for ns in values if ns is not None]
    return "%d.%09d", whole.tolist(), rest.tolist()


def _exact(nanoseconds: int) -> str:
    if nanoseconds < 0:
        return f"-{_exact(-nanoseconds)}"
    return "%d.%09d" % divmod(nanoseconds, 10**9)  # noqa: UP031 - faster, five times a line


@functools.lru_cache(4096)
def _text(text: str) -> str:
    """Return a text as a cell of CSV, in quotes if it needs them (RFC 4180).

    Formulas of spreadsheets are disarmed by `cell`. Cached, because the same few texts are in most
    rows.
    """
    shown = cell(text)
    if any(mark in shown for mark in ',"\n'):
        return '"' + shown.replace('"', '""') + '"'
    return shown


_CELLS: Mapping[exporter.Kind, Callable[[list[Any]], _Cells]] = {
    "count": lambda values: ("%d", values),
    "seconds": _seconds,
    "word": lambda values: ("%s", map(_text, values)),
    "text": lambda values: ("%s", map(_text, values)),
    "flag": lambda values: ("%s", ["true" if one else "false" for one in values]),
}
