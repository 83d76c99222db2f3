"""The report of a million iterations is small, and made soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from helpers.made_runs import made_run
from helpers.shown_page import page_of
from osbench.coordinator.report.run_facts import read_facts

pytestmark = pytest.mark.functional


@pytest.mark.timing
def test_a_report_of_a_million_iterations_takes_ten_seconds_on_an_idle_machine(
    tmp_path: Path,
) -> None:
    directory = made_run(tmp_path, 1_000_000)

    begun = time.perf_counter()
    page_of(read_facts(directory))

    assert time.perf_counter() - begun < 10


def test_a_report_of_a_million_iterations_has_three_megabytes_at_most(tmp_path: Path) -> None:
    html = page_of(read_facts(made_run(tmp_path, 1_000_000)))

    assert len(html.encode()) < 3_000_000
    assert "1,000,000 iterations were planned" in html
    assert "osbench-coord results" in html
