"""The iterations of a run in each format, as golden files hold them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from helpers.sample_iterations import WHOLE, sample_run
from osbench.common.plugin.exporter import ITERATION_COLUMNS, json_values
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.exporters import csv
from osbench.coordinator.report.iteration_record import iteration_records

Golden = Callable[[str, str], None]


def exported(name: str, data: Path) -> Path:
    """The file that an exporter makes of the sample run."""
    path = data / "exported"
    Plugins().get("exporter", name)({}).export(sample_run(data), path)
    return path


def test_each_export_has_each_column_but_for_those_it_names(tmp_path: Path) -> None:
    names = {one.name for one in ITERATION_COLUMNS}
    data = [tmp_path / name for name in ("csv", "json")]

    header = exported("csv", data[0]).read_text().splitlines()[0].split(",")
    run = sample_run(data[1])
    (record,) = iteration_records(run.directory, WHOLE, run.report)
    documents = [json_values(row, None) for row in run.rows()]

    assert {*header, *csv.LEFT_OUT} == names
    assert names - set(record) == {"state", "error_type"}
    assert all(set(one) == names for one in documents)


def test_csv_is_the_same_text(tmp_path: Path, golden: Golden) -> None:
    path = exported("csv", tmp_path)

    # with its line breaks as they are
    golden("iterations.csv", path.read_bytes().decode())


def test_the_json_of_an_iteration_is_the_same(tmp_path: Path, golden: Golden) -> None:
    run = sample_run(tmp_path)

    numbers = (1, 2, WHOLE, 6, 11)
    found = [iteration_records(run.directory, number, run.report) for number in numbers]

    golden("iteration-records.json", json.dumps(found, indent=1) + "\n")
