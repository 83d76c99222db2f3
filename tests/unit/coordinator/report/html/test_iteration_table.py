"""The table of iterations of a run with more than a page holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.made_runs import made_run
from osbench.coordinator.report.html import iteration_table
from osbench.coordinator.report.html.iteration_table import (
    all_rows,
    is_complete,
    some_rows,
    traced_numbers,
)
from osbench.coordinator.report.html.workload_facts import workloads_of
from osbench.coordinator.report.run_facts import read_facts


def test_exemplars_and_kept_traces_of_a_large_run(tmp_path: Path) -> None:
    facts = read_facts(made_run(tmp_path, 30_000))
    workloads = workloads_of(facts)
    kept = [29_999, 5, 12_345]
    numbers = traced_numbers(workloads, {0: kept})
    slow = {one["iteration"] for one in facts.summary["workloads"][0]["exemplars"]}
    assert not is_complete(workloads)
    assert set(numbers[0].tolist()) == slow | set(kept)

    rows = list(some_rows(facts, workloads, numbers))

    every = {row.iteration: row for row in all_rows(facts, workloads)}
    assert len(every) == 30_000
    assert {row.iteration: row for row in rows} == {one: every[one] for one in slow | set(kept)}
    assert all(row.trace_id for row in rows)


def test_a_page_holds_no_more_than_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iteration_table, "ROWS", 12)
    facts = read_facts(made_run(tmp_path, 1000))
    numbers = traced_numbers(workloads_of(facts), {0: list(range(1, 900))})
    assert len(numbers[0]) == 12
