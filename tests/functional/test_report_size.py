"""The report of a million iterations is small and soon there."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from helpers.made_runs import made_run
from osbench.coordinator.report.html import render_report
from osbench.coordinator.report.run_facts import read_facts

pytestmark = [pytest.mark.functional, pytest.mark.alone]


def test_a_million_iterations_take_three_megabytes_and_ten_seconds_at_most(tmp_path: Path) -> None:
    directory = made_run(tmp_path, 1_000_000)

    begun = time.perf_counter()
    html = render_report(read_facts(directory))
    took_s = time.perf_counter() - begun

    assert len(html.encode()) < 3_000_000
    assert took_s < 10
    assert "1,000,000 iterations were planned" in html
    assert "osbench-coord results" in html
