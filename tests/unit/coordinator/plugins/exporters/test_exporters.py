"""Exporters write a run to files that other programs read."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.openmetrics import parser

from helpers.exported_files import SummaryRun, exported, text_of
from helpers.result_rows import row
from helpers.sample_reports import constant_workload, full_report, run_report
from helpers.stored_runs import ROWS, stored_run
from osbench.common.plugin.exporter import DurationCounts, IterationRow
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.exporters import openmetrics
from osbench.coordinator.plugins.exporters.csv import write
from osbench.coordinator.results.accounting.totals import Accounting


def test_native_exporters_can_be_found() -> None:
    names = Plugins().names("exporter")

    assert {"csv", "hdr", "html", "json", "junit", "otlp", "opensearch", "rally"} <= set(names)


def test_json_is_the_object_of_the_run(tmp_path: Path) -> None:
    run = SummaryRun(full_report())

    indented = exported("json", run, tmp_path).read_text("utf-8")
    short = exported("json", run, tmp_path, indent=0).read_text("utf-8")

    assert json.loads(indented) == json.loads(short) == run.summary
    assert len(short.splitlines()) == 1


def test_a_line_of_csv_is_exact_and_safe(tmp_path: Path) -> None:
    rows = [
        row(1, due=-1, started=0, ended=10_000_000_000, outcome=Outcome.FAILED, failure=2),
        row(2, outcome=Outcome.DROPPED_LATE, due=5),
    ]
    first, second = csv.DictReader(text_of(exported("csv", stored_run(tmp_path, rows), tmp_path)))

    assert first == {
        "workload": "0",
        "iteration": "1",
        "outcome": "failed",
        "due_s": "-0.001000000",
        "started_s": "0.000000000",
        "service_s": "10000000.000000000",
        "response_s": "10000000.001000000",
        "start_lag_s": "0.001000000",
        "error": "IterationTimeout: no end after 2 s",
        "trace_id": "",
        "worker": "'=rack",
        "warmup": "false",
    }
    assert (second["due_s"], second["started_s"], second["service_s"]) == ("0.005000000", "", "")


def test_a_line_of_csv_says_whether_it_is_of_the_warm_up() -> None:
    file = io.StringIO()
    one = IterationRow(0, 1, "ok", 5, 5, 9, 0, "", "", "", "w", warmup=True)

    write([one, one._replace(iteration=2, warmup=False)], file)

    file.seek(0)
    assert [line["warmup"] for line in csv.DictReader(file)] == ["true", "false"]


@pytest.mark.parametrize("timeline", [True, False])
def test_prometheus_reads_counts_and_buckets(tmp_path: Path, timeline: bool) -> None:
    run = stored_run(tmp_path, ROWS, timeline=timeline)
    text = exported("openmetrics", run, tmp_path).read_text("utf-8")

    families = {one.name: one for one in parser.text_string_to_metric_families(text)}

    counts = {one.labels["state"]: one.value for one in families["osbench_iterations"].samples}
    assert (counts["ok"], counts["failed"], counts["dropped"]) == (35, 4, 1)
    service = {
        (one.name.rpartition("_")[2], one.labels.get("le")): one.value
        for one in families["osbench_service_seconds"].samples
    }
    # 20 ms itself may count as a little longer
    assert service["bucket", "0.01"] == 0
    assert service["bucket", "0.05"] == service["bucket", "+Inf"] == service["count", None] == 35
    assert service["sum", None] == pytest.approx(35 * 0.02)
    lag = {one.name: one.value for one in families["osbench_start_lag_seconds"].samples}
    assert lag["osbench_start_lag_seconds_count"] == 39
    (errors,) = families["osbench_errors"].samples
    assert (errors.labels["type"], errors.value) == ("GatewayTimeout", 4)
    assert families["osbench_exit_code"].samples[0].value == 0


def test_prometheus_reads_every_state_and_all_types_of_errors(tmp_path: Path) -> None:
    states = {"ok": 1, "failed": 2, "timed_out": 3, "dropped": 4, "lost": 5, "not_started": 6}
    run = stored_run(tmp_path, ROWS, accounting=Accounting(planned=21, **states))
    workload = run.summary["workloads"][0]
    error = workload["errors"][0]
    workload |= {"errors": [error, {**error, "message": "another"}], "other_errors": 9}
    run.summary["exit_code"] = 3

    text = exported("openmetrics", run, tmp_path).read_text("utf-8")

    families = {one.name: one.samples for one in parser.text_string_to_metric_families(text)}
    assert {one.labels["state"]: one.value for one in families["osbench_iterations"]} == states
    (planned,) = families["osbench_planned_iterations"]
    assert planned.value == 21
    types = {one.labels["type"]: one.value for one in families["osbench_errors"]}
    assert types == {error["type"]: 2 * error["count"], "(others)": 9}
    assert families["osbench_exit_code"][0].value == 3


def test_a_duration_counts_in_the_bucket_that_it_does_not_exceed() -> None:
    durations = DurationCounts(upper_ns=[10_000_000, 10_000_001], counts=[3, 4], sum_s=0.07)

    found = dict(openmetrics._buckets(durations))

    assert (found["0.005"], found["0.01"], found["0.02"], found["+Inf"]) == (0, 3, 7, 7)


@pytest.mark.parametrize("timestamps", [True, False])
def test_values_have_times_only_where_they_are_asked_for(tmp_path: Path, timestamps: bool) -> None:
    run = stored_run(tmp_path, ROWS)
    text = exported("openmetrics", run, tmp_path, timestamps=timestamps).read_text("utf-8")

    families = parser.text_string_to_metric_families(text)

    assert {one.timestamp is not None for family in families for one in family.samples} == {
        timestamps
    }


def test_the_time_of_values_is_the_end_of_the_run(tmp_path: Path) -> None:
    run = stored_run(tmp_path, ROWS)
    text = exported("openmetrics", run, tmp_path, timestamps=True).read_text("utf-8")

    families = list(parser.text_string_to_metric_families(text))

    times = {float(sample.timestamp) for one in families for sample in one.samples}
    assert list(times) == pytest.approx([run.at], abs=1e-3)


def test_names_cannot_break_out_of_their_quotes(tmp_path: Path) -> None:
    name = 'a"} 1\nosbench_exit_code 9\\'
    text = exported("openmetrics", stored_run(tmp_path, ROWS, name=name), tmp_path).read_text()

    families = {one.name: one for one in parser.text_string_to_metric_families(text)}

    assert {one.labels["name"] for one in families["osbench_iterations"].samples} == {name}
    assert [one.value for one in families["osbench_exit_code"].samples] == [0]


def test_rally_json_has_the_iterations(tmp_path: Path) -> None:
    run = stored_run(tmp_path, ROWS[:3])
    given = {"args": {"password": "hunter2"}, "sla": {}}
    run.directory.write("run.json", {"run_id": "r", "task": "t", "workloads": [given]})

    text = exported("rally", run, tmp_path).read_text("utf-8")

    (task,) = json.loads(text)["tasks"]
    assert len(task["subtasks"][0]["workloads"][0]["data"]) == 3
    assert "hunter2" not in text


def test_openmetrics_has_verdicts_and_limits_of_criteria(tmp_path: Path) -> None:
    verdicts = (
        Verdict(criterion="percentile", success=False, detail="", limits={"p95.max_s": 0.5}),
        Verdict(criterion="failure_rate", success=True, detail="", limits={"max": 0.0}),
    )
    run = SummaryRun(run_report(replace(constant_workload(), verdicts=verdicts)))
    run.durations = lambda: [  # type: ignore[method-assign]
        dict.fromkeys(("service", "response", "start_lag"), DurationCounts())
    ]

    text = exported("openmetrics", run, tmp_path).read_text("utf-8")

    found = {
        (sample.name, sample.labels["criterion"], sample.labels.get("limit")): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("osbench_sla_")
    }
    assert found == {
        ("osbench_sla_passed", "percentile", None): 0.0,
        ("osbench_sla_passed", "failure_rate", None): 1.0,
        ("osbench_sla_limit", "percentile", "p95.max_s"): 0.5,
        ("osbench_sla_limit", "failure_rate", "max"): 0.0,
    }
