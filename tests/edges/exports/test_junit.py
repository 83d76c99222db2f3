"""A run as a test suite, which CI systems read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from helpers.exported_files import SummaryRun, exported
from helpers.sample_reports import constant_workload, rps_workload, run_report
from osbench.common.plugin.sla import Verdict
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.results.accounting.totals import Accounting, Bound


def suite_of(report: RunOutcome, folder: Path) -> ElementTree.Element:
    return ElementTree.parse(exported("junit", SummaryRun(report), folder)).getroot()


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
