"""What the page of a run is drawn from: its iterations, if it has more than a page holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgpack
import pytest

from helpers.made_runs import made_run
from helpers.result_rows import row_of
from helpers.sample_reports import ACTIONS, columns
from helpers.stored_runs import stored_run
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.coordinator.report import page_facts
from osbench.coordinator.report.iterations import Reported, counted_blocks
from osbench.coordinator.report.page_facts import (
    all_rows,
    gather,
    rows_of,
    some_rows,
    traced_numbers,
)
from osbench.coordinator.report.run_facts import read_facts
from osbench.coordinator.results.accounting.charts import Charts


def test_exemplars_and_kept_traces_of_a_large_run(tmp_path: Path) -> None:
    facts = read_facts(made_run(tmp_path, 30_000))
    workloads = facts.report.workloads
    kept = [29_999, 5, 12_345]
    numbers = traced_numbers(workloads, {0: kept})
    slow = {one.iteration for one in workloads[0].exemplars}
    assert set(numbers[0].tolist()) == slow | set(kept)

    rows = list(some_rows(counted_blocks(facts.directory), workloads, numbers))

    every = {row.iteration: row for row in all_rows(counted_blocks(facts.directory), workloads)}
    assert len(every) == 30_000
    assert {row.iteration: row for row in rows} == {one: every[one] for one in slow | set(kept)}
    assert all(row.trace_id for row in rows)


def test_a_failed_iteration_has_its_error_its_step_and_the_status_of_its_last_answer() -> None:
    made = columns(400)
    exchanges = made.exchanges.copy()
    exchanges["status"][made.exchanged == 199] = 503
    made = replace(made, exchanges=exchanges)
    errors = {0: ("", "", ""), 1: ("GatewayTimeout", "no answer", "f()")}

    rows = {row.iteration: row for row in rows_of(Reported(0, "w", made, errors), is_open=True)}

    failed = rows[200]
    assert (failed.error_type, failed.error) == ("GatewayTimeout", "no answer")
    assert (failed.step, failed.status) == (ACTIONS[0], 503)
    assert (rows[199].error_type, rows[199].step, rows[199].status) == ("", "", 0)


def test_a_page_holds_no_more_than_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_facts, "ROWS", 12)
    facts = read_facts(made_run(tmp_path, 1000))
    numbers = traced_numbers(facts.report.workloads, {0: list(range(1, 900))})

    found = gather(facts)

    assert len(numbers[0]) == 12
    assert not found.rows_are_all
    assert len(found.rows) <= 12


def test_a_page_of_few_iterations_has_all_of_them(tmp_path: Path) -> None:
    facts = read_facts(made_run(tmp_path, 1000))

    found = gather(facts)

    assert found.rows_are_all
    assert len(found.rows) == 1000
    failed = sum(row.outcome == "failed" for row in found.rows)
    (times,) = found.failed_s.values()
    assert len(times) == failed
    assert list(found.failed_s) == [(0, ("GatewayTimeout", "HTTP 504"))]


def test_complete_charts_have_the_data_of_the_iteration_that_the_report_names(
    tmp_path: Path,
) -> None:
    long = "t" * 300
    given = {
        # blocks come in any order
        3: [("a", "Pie", 3), ("b", "Pie", 3), (long, "Pie", 3)],
        1: [("a", "Pie", 1), ("a", "Pie", 2)],
        2: [("b", "Table", 2), ("a", "Pie", 5)],
    }
    rows = [
        row_of(number, 1, 0, 0, 1_000_000, 0, 0, (), (b"", list(map(packed, charts)), b""))
        for number, charts in given.items()
    ]
    charts = Charts()
    charts.add(decode_rows(encode_rows(rows, (), 0)))
    run = stored_run(tmp_path, rows, charts=charts)

    found = gather(read_facts(run.directory)).first_outputs

    kinds = {("a", "Pie"): 1, ("b", "Pie"): 3, ("b", "Table"): 2, (long[:200], "Pie"): 3}
    assert found == {0: kinds}


def packed(chart: tuple[str, str, int]) -> bytes:
    """A complete chart as an iteration puts it out: title, plug-in, data."""
    item = dict(zip(("title", "chart_plugin", "data"), chart, strict=True))
    return bytes(msgpack.packb({"kind": "complete", "item": item}))


def test_a_live_page_is_drawn_without_a_look_at_blocks_and_traces(tmp_path: Path) -> None:
    facts = read_facts(made_run(tmp_path, 1000))

    found = gather(facts, live=True)

    assert (found.rows, found.first_outputs) == ((), {})
    assert "traces" not in found.parts
