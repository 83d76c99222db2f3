"""Exporters write a run to files that other programs read."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from prometheus_client.openmetrics import parser

from helpers.result_rows import row
from helpers.sample_reports import constant_workload, full_report, rps_workload, run_report
from helpers.stored_runs import ROWS, stored_run
from helpers.summaries import to_json
from osbench.common.plugin.exporter import DurationCounts, ExportedRun, IterationRow
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.exporters import openmetrics
from osbench.coordinator.plugins.exporters.csv import write
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.results.accounting.totals import Accounting, Bound


class _Run(ExportedRun):
    """A run without rows."""

    def __init__(self, report: RunOutcome) -> None:
        self.summary = to_json(report)


def exported(name: str, run: ExportedRun, folder: Path, **options: Any) -> Path:
    """The file that an exporter writes."""
    path = folder / "exported"
    Plugins().get("exporter", name)(options).export(run, path)
    return path


def text_of(path: Path) -> io.StringIO:
    """A file with its line breaks as they are."""
    return io.StringIO(path.read_bytes().decode(), newline="")


def suite_of(report: RunOutcome, folder: Path) -> ElementTree.Element:
    return ElementTree.parse(exported("junit", _Run(report), folder)).getroot()


def test_native_exporters_can_be_found() -> None:
    names = Plugins().names("exporter")

    assert {"csv", "hdr", "html", "json", "junit", "otlp", "opensearch", "rally"} <= set(names)


def test_json_is_the_object_of_the_run(tmp_path: Path) -> None:
    run = _Run(full_report())

    indented = exported("json", run, tmp_path).read_text("utf-8")
    short = exported("json", run, tmp_path, indent=0).read_text("utf-8")

    assert json.loads(indented) == json.loads(short) == run.summary
    assert len(short.splitlines()) == 1


def test_times_have_a_line_for_each_workload_time_and_state(tmp_path: Path) -> None:
    run = _Run(full_report())

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

    rows = list(csv.reader(text_of(exported("csv-times", _Run(report), tmp_path))))

    # a carriage return becomes a line feed
    shown = begin.replace("\r", "\n")
    assert rows[1][:3] == [f"'{shown}1+1", "0", f"'{shown}x"]


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


def test_control_characters_do_not_reach_a_terminal_that_shows_csv(tmp_path: Path) -> None:
    report = run_report(replace(constant_workload(), title="a\x1b[31m\x9b2J\nb"))

    text = exported("csv-times", _Run(report), tmp_path).read_text("utf-8")

    assert '"a\\x1b[31m\\x9b2J\nb"' in text


def test_junit_of_a_run_that_is_well(tmp_path: Path) -> None:
    suite = suite_of(run_report(constant_workload()), tmp_path)

    cases = suite.findall("testcase")
    assert suite.tag == "testsuite"
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["1", "0", "0"]
    assert [case.get("name") for case in cases] == ["Dummy.dummy [0]"]
    assert [list(case) for case in cases] == [[]]


def test_junit_fails_a_workload_by_its_sla(tmp_path: Path) -> None:
    verdict = Verdict(criterion="percentile", success=False, detail="p99 is 2 s, 1 s allowed")
    workload = replace(constant_workload(), verdicts=(*constant_workload().verdicts, verdict))

    suite = suite_of(run_report(workload, exit_code=1), tmp_path)

    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text == "percentile: p99 is 2 s, 1 s allowed"
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")


def test_junit_has_an_error_for_what_was_lost_and_the_notes_of_the_run(tmp_path: Path) -> None:
    report = run_report(rps_workload(), exit_code=3, notes=("a worker vanished",))

    suite = suite_of(report, tmp_path)

    (case,) = (one.find("error") for one in suite.findall("testcase"))
    assert case is not None
    assert case.get("message") == "1 iterations lost, 2 not started"
    assert "failure_rate: 6 of 998" in (case.text or "")
    assert suite.findtext("system-err") == "a worker vanished"
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")


def test_junit_has_the_errors_of_iterations(tmp_path: Path) -> None:
    suite = suite_of(run_report(rps_workload()), tmp_path)

    output = suite.findtext("testcase/system-err")
    assert output is not None
    assert "5 x GatewayTimeout: HTTP 504" in output
    assert 'File "x.py", line 1' in output
    assert "1 x IterationTimeout: no end after 2 s" in output


def test_junit_has_the_soft_checks(tmp_path: Path) -> None:
    workload = constant_workload()
    workload.statistics.soft_checks.counts.update({"price is known": [7, 2], "\x00": [1, 0]})

    suite = suite_of(run_report(workload), tmp_path)

    assert suite.findtext("testcase/system-out") == (
        "check price is known: failed 2 times, passed 7 times\n"
        "check \ufffd: failed 0 times, passed 1 times"
    )


def test_junit_tells_that_the_generator_was_the_limit(tmp_path: Path) -> None:
    late = Bound(cause="late", fault="generator", sentence="the event loops were late")
    slow = Bound(cause="service", fault="service", sentence="the service did not answer")
    limited = replace(constant_workload(), bounds=(late,))
    overloaded = replace(constant_workload(), bounds=(slow,))

    suite = suite_of(run_report(limited, overloaded, exit_code=4), tmp_path)

    (error,) = suite.findall("testcase/error")
    assert (error.get("type"), error.text) == ("load", "the event loops were late")


def test_junit_has_workloads_that_were_never_begun_with_their_plan(tmp_path: Path) -> None:
    never = replace(
        constant_workload(),
        begun=False,
        not_begun="the run was interrupted before",
        accounting=Accounting(planned=8, not_started=8),
    )

    suite = suite_of(run_report(constant_workload(), never, exit_code=130), tmp_path)

    (error,) = suite.findall("testcase/error")
    assert error.get("type") == "not begun"
    assert error.text == "not begun, 8 iterations planned: the run was interrupted before"


def test_junit_has_a_hook_that_failed(tmp_path: Path) -> None:
    workload = rps_workload()
    calm = replace(
        workload, accounting=Accounting(planned=8, ok=8), verdicts=(), hooks=workload.hooks
    )

    suite = suite_of(run_report(calm, exit_code=5), tmp_path)

    (error,) = suite.findall("testcase/error")
    assert error.get("type") == "around"
    assert (error.text or "").startswith("hook ")


def test_junit_shows_what_is_of_no_workload_at_the_last(tmp_path: Path) -> None:
    report = run_report(constant_workload(), constant_workload(), exit_code=5, notes=("no csv",))

    suite = suite_of(report, tmp_path)

    first, last = suite.findall("testcase")
    assert (first.find("error"), last.findtext("error")) == (
        None,
        "all is well but for a hook or export that failed, or a context that could not be undone\n"
        "no csv",
    )


def test_junit_is_well_formed_whatever_a_message_holds(tmp_path: Path) -> None:
    workload = replace(
        constant_workload(),
        title="a\x00b <&> \ud800",
        accounting=Accounting(planned=1, not_started=1),
        verdicts=(Verdict(criterion="x", success=False, detail="\x1b[31m ]]> \ufffe"),),
    )

    suite = suite_of(run_report(workload), tmp_path)

    case = suite.find("testcase")
    assert case is not None
    assert case.get("classname") == "a\ufffdb <&> \ufffd"


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
    run = _Run(run_report(replace(constant_workload(), verdicts=verdicts)))
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
