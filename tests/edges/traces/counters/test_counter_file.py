"""The file of counters, and values that it cannot hold."""

from __future__ import annotations

import json
from pathlib import Path

from helpers.planted_counters import counters_of, queue, share
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.counters.counter_file import read_counters, write_counters
from osbench.edges.traces.page.counter_part import counter_charts


def test_values_that_are_too_great_are_gaps_of_the_charts(tmp_path: Path) -> None:
    directory = RunDirectory.create(str(tmp_path), "20260401-101500-abcd")
    counters = counters_of(
        share("CPU", "db1", [0.5, -1e300, 0.7]),
        queue("jobs", "mq1", [1.0, 1e39, 3.0]),
        queue("waits", "mq1", [1e39, 1e39, 1e39]),
    )

    write_counters(directory, {0: counters})
    kept = read_counters(directory)[0]
    directory.close()

    for one in (counters, kept):
        json.dumps(counter_charts(one).payload(), allow_nan=False)
    charts = counter_charts(kept)
    assert [round(one, 2) if one else one for one in charts.shares[0].values] == [0.5, None, 0.7]
    assert [(one.label, one.values) for one in charts.queues] == [("jobs of mq1", [1.0, None, 3.0])]


def test_an_infinite_value_is_a_gap_of_the_charts() -> None:
    charts = counter_charts(counters_of(share("CPU", "db1", [0.5, float("inf"), 0.7])))

    assert charts.shares[0].values == [0.5, None, 0.7]
