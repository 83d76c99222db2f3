"""Statements on parts of the results, such as zones: share, failures, and times of each."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import count, duration, plain
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.statements.statement import Look, Statement, statement_of
from osbench.coordinator.results.accounting.breakdown import BreakdownRow

#: Parts that have a line each.
_LINES = 10


def breakdown_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield a statement for each part of each breakdown, `_LINES` at most."""
    for found in workload.breakdowns:
        # names of headers are too long for labels
        label = f"by {found.by}" if found.of == "iterations" else "by server"
        for row in found.rows[:_LINES]:
            look = Look.WARNING if row.failed else Look.PLAIN
            text = row_words(row, found.of)
            yield statement_of(label, text, look, on_page=True, in_short=True)
        if len(found.rows) > _LINES:
            more = f"and {count(len(found.rows) - _LINES)} more; --json has all"
            yield statement_of(label, more, on_page=True)


def row_words(row: BreakdownRow, of: str) -> str:
    """Return the figures of a part in words; `of` is "iterations" or "requests"."""
    share = f"{100 * row.share:.1f} % of {of}"
    share += "" if row.asked is None else f" ({100 * row.asked:g} % planned)"
    failed = f", {count(row.failed)} failed" if row.failed else ""
    times = [("p50", row.p50), ("p95", row.p95), ("p99", row.p99)]
    said = "".join(f", {key} {duration(value)}" for key, value in times if value is not None)
    return f"{plain(row.name)}: {share}, {count(row.ok)} ok{failed}{said}"
