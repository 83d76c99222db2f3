"""Exporters make files of a run's JSON object, and the command writes them."""

import csv
import io
import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from helpers.readme import REPOSITORY
from helpers.sample_reports import constant_workload, full_report, rps_workload, run_report
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.coordinator.cli.base import Group
from osbench.coordinator.cli.commands.results import results
from osbench.coordinator.report.summary_json import to_json
from osbench.coordinator.results.totals import Accounting
from osbench.coordinator.storage.run_directory import RunDirectory

SAMPLE = REPOSITORY / "samples" / "plugins" / "exporter.py"

FAILS = """
from osbench.plugin import exporter

class Fails(exporter.Exporter):
    NAME = "fails"

    def export(self, summary):
        raise RuntimeError("no route to the archive")

class Climbs(exporter.Exporter):
    NAME = "climbs"

    def export(self, summary):
        return {"../outside": "x"}
"""


@pytest.fixture
def invoke(tmp_path):
    """Call the command with a data directory that holds one run."""
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")
    directory = RunDirectory.create(str(tmp_path), "20260401-a")
    directory.write("summary.json", to_json(full_report()))
    directory.close()
    group = Group(commands=[results])

    def call(*args):
        return CliRunner().invoke(group, ["results", "last", *args, "--config-file", str(conf)])

    return call


def exported(name, summary, config=None):
    """The files that a native exporter makes."""
    return Plugins().get("exporter", name)(config or {}).export(summary)


def suite_of(report):
    return ElementTree.fromstring(exported("junit", to_json(report))["junit.xml"])


def test_native_exporters_can_be_found():
    assert {"csv", "json", "junit"} <= set(Plugins().names("exporter"))


def test_json_is_the_object_of_the_run():
    summary = to_json(full_report())

    indented = exported("json", summary)["results.json"]
    short = exported("json", summary, {"indent": 0})["results.json"]

    assert json.loads(indented) == json.loads(short) == summary
    assert len(short.splitlines()) == 1


def test_csv_has_a_line_for_each_workload_time_and_state():
    summary = to_json(full_report())

    lines = list(csv.DictReader(io.StringIO(exported("csv", summary)["times.csv"])))

    service = summary["workloads"][0]["latency"]["service"]
    found = {(line["workload"], line["time"], line["state"]): line for line in lines}
    line = found["Authenticate.keystone", "service", "ok"]
    assert int(line["count"]) == service["ok"]["count"]
    assert float(line["p99"]) == service["ok"]["p99"]
    assert ("Authenticate.keystone", "action keystone_v3.create_token", "ok") in found
    assert ("Dummy.dummy", "service", "failed") not in found
    assert ("Dummy.dummy", "start_lag", "all") in found


def test_csv_holds_nothing_that_a_spreadsheet_would_run():
    report = run_report(replace(constant_workload(), title="=1+1"))

    lines = list(csv.DictReader(io.StringIO(exported("csv", to_json(report))["times.csv"])))

    assert lines[0]["subtask"] == "'=1+1"


def test_junit_of_a_run_that_is_well():
    suite = suite_of(run_report(constant_workload()))

    cases = suite.findall("testcase")
    assert suite.tag == "testsuite"
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["2", "0", "0"]
    assert [case.get("name") for case in cases] == ["Dummy.dummy [0]", "the run"]
    assert [list(case) for case in cases] == [[], []]


def test_junit_fails_a_workload_by_its_sla():
    verdict = Verdict(criterion="percentile", success=False, detail="p99 is 2 s, 1 s allowed")
    workload = replace(constant_workload(), verdicts=(*constant_workload().verdicts, verdict))

    suite = suite_of(run_report(workload, exit_code=1))

    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text == "percentile: p99 is 2 s, 1 s allowed"
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")


def test_junit_has_errors_for_what_was_lost_and_for_the_run():
    suite = suite_of(run_report(rps_workload(), exit_code=3, notes=("a worker vanished",)))

    case, run = (one.find("error") for one in suite.findall("testcase"))
    assert case is not None
    assert run is not None
    assert case.get("message") == "1 iterations lost, 2 not started"
    assert "failure_rate: 6 of 998" in (case.text or "")
    assert "a worker vanished" in (run.text or "")
    assert (suite.get("failures"), suite.get("errors")) == ("0", "2")


def test_junit_tells_that_the_generator_was_the_limit():
    note = "Dummy.dummy: iterations started late"

    suite = suite_of(run_report(constant_workload(), exit_code=4, notes=(note,)))

    error = suite.find("testcase[@name='the run']/error")
    assert error is not None
    assert error.get("type") == "exit code 4"
    assert note in (error.text or "")


def test_junit_is_well_formed_whatever_a_message_holds():
    workload = replace(
        constant_workload(),
        title="a\x00b <&> \ud800",
        accounting=Accounting(planned=1, not_started=1),
        verdicts=(Verdict(criterion="x", success=False, detail="\x1b[31m ]]> \ufffe"),),
    )

    suite = suite_of(run_report(workload))

    case = suite.find("testcase")
    assert case is not None
    assert case.get("classname") == "a\ufffdb <&> \ufffd"


def test_the_command_writes_the_files(invoke, tmp_path):
    target = tmp_path / "reports" / "today"

    found = invoke("--export", "json", "--to", str(target), "--option", "indent=0")

    assert (found.exit_code, found.stdout) == (0, "")
    assert f"wrote {target / 'results.json'}" in found.stderr
    assert len((target / "results.json").read_text().splitlines()) == 1


def test_the_sample_exporter(invoke, tmp_path):
    found = invoke(
        *("--export", "openmetrics", "--plugin-path", str(SAMPLE)),
        *("--to", str(tmp_path), "--option", "prefix=bench"),
    )

    lines = (tmp_path / "osbench.prom").read_text().splitlines()
    assert found.exit_code == 0
    assert 'bench_iterations{workload="0",scenario="Authenticate.keystone",state="ok"} 992' in lines
    assert any(line.startswith("bench_service_p50_seconds") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--export", "json"), "need each other"),
        (("--to", "x"), "need each other"),
        (("--option", "indent=1"), "need each other"),
        (("--export", "json", "--to", "x", "--csv"), "cannot be combined with"),
        (("--export", "jsn", "--to", "x"), "there is no exporter 'jsn'"),
        (("--export", "json", "--to", "x", "--option", "indent"), "must be NAME=VALUE"),
        (("--export", "json", "--to", "x", "--option", "indent=a"), "indent"),
        (("--export", "csv", "--to", "x", "--option", "indent=1"), "indent"),
        (("--export", "json", "--to", "x", "--option", "indent=["), "is not YAML"),
        (("--export", "json", "--to", "/dev/null/x"), "cannot write to /dev/null/x"),
    ],
)
def test_wrong_usage_is_reported(invoke, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)

    found = invoke(*arguments)

    assert found.exit_code == 2
    assert message in found.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fails", "RuntimeError: no route to the archive"),
        ("climbs", "invalid file name: '../outside'"),
    ],
)
def test_an_exporter_that_does_wrong_is_reported(invoke, tmp_path, name, message):
    plugin = tmp_path / "plugin.py"
    plugin.write_text(FAILS)

    found = invoke("--export", name, "--to", str(tmp_path / "x"), "--plugin-path", str(plugin))

    assert found.exit_code == 2
    assert message in found.stderr
    assert not (tmp_path / "x").exists()
