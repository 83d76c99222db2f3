"""Exporters of Parquet and of HdrHistogram write files that other programs read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from pyarrow import parquet

from helpers.exported_files import exported
from helpers.result_rows import row
from helpers.stored_runs import ROWS, T0_AT, stored_run
from osbench.common.errors import ExportError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.results.accounting.totals import Warmup
from osbench.edges.history.exporters import hdr

WIDEST_NS = 864 * 10**12


def test_parquet_is_written_group_by_group(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("osbench.edges.history.exporters.parquet.ROW_GROUP", 16)
    run = stored_run(tmp_path, ROWS, ROWS[:3])

    file = parquet.ParquetFile(exported("parquet", run, tmp_path))

    assert file.num_row_groups == 3
    table = file.read().to_pylist()
    assert [(one["workload"], one["iteration"]) for one in table] == [
        *((0, at) for at in range(1, 41)),
        *((1, at) for at in range(1, 4)),
    ]
    assert table[0]["started_at"].timestamp() == pytest.approx(T0_AT + 0.101, abs=1e-6)
    assert table[41]["started_at"].timestamp() == pytest.approx(T0_AT + 100.201, abs=1e-6)
    assert (table[4]["state"], table[4]["outcome"]) == ("dropped", "dropped_late")
    assert (table[4]["started_at"], table[4]["service_s"]) == (None, None)
    assert (table[9]["error_type"], table[8]["error_type"]) == ("GatewayTimeout", None)
    assert file.schema_arrow.metadata[b"osbench.run_id"] == run.summary["run_id"].encode()
    assert json.loads(file.schema_arrow.metadata[b"osbench.summary"]) == run.summary


def test_a_run_without_rows_is_an_empty_table(tmp_path: Path) -> None:
    run = stored_run(tmp_path, [])

    assert parquet.read_table(exported("parquet", run, tmp_path)).num_rows == 0


def test_without_pyarrow_what_to_install_is_said_at_once(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(ExportError, match=r"pip install 'osbench\[parquet\]'"):
        Plugins().get("exporter", "parquet")({})


def read_log(path: Path) -> list[tuple[str, HdrHistogram]]:
    reader = HistogramLogReader(str(path), HdrHistogram(1, WIDEST_NS, 3))
    found = []
    while (histogram := reader.get_next_interval_histogram()) is not None:
        found.append((histogram.get_tag(), histogram))
    reader.close()
    return found


def test_the_interval_log_has_a_histogram_for_each_second(tmp_path: Path) -> None:
    path = exported("hdr", stored_run(tmp_path, ROWS, ROWS[:3]), tmp_path)

    found = read_log(path)

    counts = [(tag, one.get_total_count()) for tag, one in found]
    # 100 ms apart from the first on, without those that failed and the dropped one
    assert counts == [
        ("0-Dummy.dummy", 8),
        *[("0-Dummy.dummy", 9)] * 3,
        ("1-Dummy.dummy", 3),
    ]
    assert [one.get_start_time_stamp() for _, one in found] == pytest.approx(
        [T0_AT * 1000 + at for at in (0, 1000, 2000, 3000, 100_000)], abs=1
    )
    assert found[0][1].get_value_at_percentile(50) == pytest.approx(20e6, rel=1e-3)


def test_the_log_of_response_times(tmp_path: Path) -> None:
    path = exported("hdr", stored_run(tmp_path, ROWS), tmp_path, time="response", interval_s=10)

    ((_, histogram),) = read_log(path)

    assert histogram.get_total_count() == 35
    assert histogram.get_max_value() == pytest.approx(21e6, rel=1e-3)


def test_intervals_widen_and_lose_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(hdr, "INTERVALS", 3)
    rows = [row(at, due=1000 * at, started=1000 * at, ended=1001 * at) for at in range(30)]

    found = read_log(exported("hdr", stored_run(tmp_path, rows), tmp_path))

    assert len(found) == 2
    assert [one.get_total_count() for _, one in found] == [16, 14]
    assert [one.get_max_value() for _, one in found] == pytest.approx([15e6, 29e6], rel=1e-3)


def test_the_warm_up_is_in_no_histogram(tmp_path: Path) -> None:
    run = stored_run(tmp_path, ROWS[:4], warmup=Warmup(seconds=0.15, left_out=1))
    run.directory.write("run.json", {"workloads": [{"warmup": 0.15}]})

    ((_, histogram),) = read_log(exported("hdr", run, tmp_path))

    assert histogram.get_total_count() == 3
