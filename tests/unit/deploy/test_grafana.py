"""The Grafana dashboard shows series that osbench has."""

from __future__ import annotations

import json
import re
from pathlib import Path

from helpers.sample_reports import full_report
from helpers.summaries import to_json
from osbench.common.plugin.exporter import RunSnapshot
from osbench.worker.process.worker_metrics import GAUGES

DASHBOARD = Path(__file__).parents[3] / "deploy" / "grafana" / "osbench.json"


class _Snapshot(RunSnapshot):
    """A run with criteria and errors, without durations."""

    def __init__(self) -> None:
        self.summary = to_json(full_report())

    def durations(self):
        """None."""
        return []


def test_each_series_of_the_dashboard_is_one_of_ours() -> None:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    asked = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"\bosbench_\w+", target["expr"])
    }
    ours = {
        "osbench_iterations_total",
        "osbench_errors_total",
        "osbench_planned_iterations",
        "osbench_sla_passed",
        "osbench_sla_limit",
        "osbench_exit_code",
        "osbench_response_seconds_bucket",
        "osbench_start_lag_seconds_bucket",
        "osbench_worker_processes",
        "osbench_worker_state",
        *(f"osbench_worker_{name}" for name in GAUGES),
    }

    assert len(asked) >= 8
    assert asked <= ours


def test_panels_do_not_overlap() -> None:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in panels}) == len(panels)
