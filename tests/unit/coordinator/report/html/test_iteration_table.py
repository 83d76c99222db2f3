"""The columns of the table of iterations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from helpers.report_facts import facts_of
from osbench.coordinator.report.html.iteration_table import table_of
from osbench.coordinator.report.page_facts import TableRow, gather

OK = TableRow(workload=0, iteration=1, outcome="ok", due_s=0.0, latency_s=0.1, trace_id="")
FAILED = replace(OK, iteration=2, outcome="failed", error_type="Refused")


def reasons(tmp_path: Path, *rows: TableRow) -> list[str]:
    table = table_of(replace(gather(facts_of(tmp_path)), rows=rows), {})
    return [table.columns["reasons"][place] for place in table.columns["reason"]]


def test_the_reason_names_step_and_status_that_the_message_lacks(tmp_path: Path) -> None:
    said = "order answered 503, expected 201"
    told = replace(FAILED, error=said, step="order", status=503)
    bare = replace(FAILED, iteration=3, error="no end", step="order", status=503)

    found = reasons(tmp_path, OK, told, bare)

    assert found == ["", f"Refused: {said}", "order · status 503 · Refused: no end"]


def test_a_reason_is_kept_once_without_secrets_and_cut(tmp_path: Path) -> None:
    secret = replace(FAILED, error="at http://me:hunter2@shop/ " + "x" * 5000)
    rows = [replace(secret, iteration=number) for number in range(2, 9)]

    table = table_of(replace(gather(facts_of(tmp_path)), rows=(OK, *rows)), {})

    assert len(table.columns["reasons"]) == 2
    assert "hunter2" not in table.columns["reasons"][1]
    assert len(table.columns["reasons"][1]) < 400
