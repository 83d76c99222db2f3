"""The times of a run as a table, which spreadsheets and terminals can show."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.exported_files import SummaryRun, exported, text_of
from helpers.sample_reports import constant_workload, full_report, run_report


def test_times_have_a_line_for_each_workload_time_and_state(tmp_path: Path) -> None:
    run = SummaryRun(full_report())

    lines = list(csv.DictReader(text_of(exported("csv-times", run, tmp_path))))

    service = run.summary["workloads"][0]["latency"]["service"]
    found = {(line["workload"], line["time"], line["state"]): line for line in lines}
    line = found["Authenticate.keystone", "service", "ok"]
    assert int(line["count"]) == service["ok"]["count"]
    assert float(line["p99"]) == service["ok"]["p99"]
    assert ("Authenticate.keystone", "action keystone_v3.create_token", "ok") in found
    assert ("Dummy.dummy", "service", "failed") not in found
    assert ("Dummy.dummy", "start_lag", "all") in found


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_csv_holds_nothing_that_a_spreadsheet_would_run(tmp_path: Path, begin: str) -> None:
    report = run_report(replace(constant_workload(), title=f"{begin}1+1", name=f"{begin}x"))

    rows = list(csv.reader(text_of(exported("csv-times", SummaryRun(report), tmp_path))))

    # a carriage return becomes a line feed
    shown = begin.replace("\r", "\n")
    assert rows[1][:3] == [f"'{shown}1+1", "0", f"'{shown}x"]


def test_control_characters_do_not_reach_a_terminal_that_shows_csv(tmp_path: Path) -> None:
    report = run_report(replace(constant_workload(), title="a\x1b[31m\x9b2J\nb"))

    text = exported("csv-times", SummaryRun(report), tmp_path).read_text("utf-8")

    assert '"a\\x1b[31m\\x9b2J\nb"' in text
