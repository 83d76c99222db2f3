"""Exporter `junit`: a run as a test suite, for continuous integration systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

from osbench.plugin import exporter

#: Exit codes of a run with the requested load; a failed SLA is reported for its workload.
AS_ASKED = (0, 1)


#: Errors of a workload that are described.
ERRORS = 10


class Junit(exporter.Exporter):
    """Writes junit.xml: a test suite with a test case for each workload of the task.

    A workload is an error if it was not begun, if iterations were lost or not started, if the load
    generator was the limit, if a hook failed, or if a context was not undone. Else it is a failure
    if its SLA failed. Soft checks are its output, the exceptions of its iterations its error
    output. The notes of the run are the error output of the suite.
    If the run could not start, the only test case has the name of the task.
    """

    NAME: ClassVar[str] = "junit"
    FILE: ClassVar[str] = "junit.xml"

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write the test suite to `path` as XML with the elements of Apache Ant's reports.

        If the exit code is above 1 and no test case has a failure or an error, the last one gets an
        error; without workloads it is a test case of the task.
        """
        summary = run.summary
        cases = [_workload_case(workload) for workload in summary["workloads"]]
        if summary["exit_code"] not in AS_ASKED and all(map(_is_well, cases)):
            # what is of the run as a whole shows at the workload that it ended with
            last = cases[-1] if cases else _case("osbench", summary["task"], 0.0)
            lines = [summary["exit_meaning"], *summary["notes"]]
            _add(last, "error", f"exit code {summary['exit_code']}", lines)
            cases = cases or [last]
        properties = {
            "run_id": summary["run_id"],
            "tags": " ".join(summary["tags"]),
            "exit_code": str(summary["exit_code"]),
        }
        notes = summary["notes"]
        _write(path, summary["task"], summary["started_at"], cases, properties, notes)

    def export_failure(self, failure: Mapping[str, Any], path: Path) -> bool:
        """Write a suite of a run that could not start: its task in error. Return True."""
        error = failure["error"]
        lines = [error["message"]]
        for one in error["problems"]:
            # a problem of the whole file has no place
            lines.append(f"{one['place']}: {one['message']}" if one["place"] else one["message"])
        case = _case("osbench", failure["task"] or "osbench", 0.0)
        _add(case, "error", f"exit code {failure['exit_code']}", lines)
        properties = {"run_id": failure["run_id"], "exit_code": str(failure["exit_code"])}
        now = datetime.now(UTC).isoformat()
        _write(path, failure["task"] or "osbench", now, [case], properties)
        return True


def _write(
    path: Path,
    name: str,
    started_at: str,
    cases: Sequence[ElementTree.Element],
    properties: Mapping[str, str],
    notes: Sequence[str] = (),
) -> None:
    suite = ElementTree.Element(
        "testsuite",
        name=_legal(name),
        timestamp=started_at[:19],
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped="0",
        time=f"{sum(float(case.get('time', 0)) for case in cases):.3f}",
    )
    listed = ElementTree.SubElement(suite, "properties")
    for key, value in properties.items():
        ElementTree.SubElement(listed, "property", name=key, value=_legal(value))
    suite.extend(cases)
    if notes:
        ElementTree.SubElement(suite, "system-err").text = _legal("\n".join(notes))
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    path.write_bytes(text + b"\n")


def _workload_case(workload: Mapping[str, Any]) -> ElementTree.Element:
    case = _case(
        workload["subtask"],
        f"{workload['name']} [{workload['position']}]",
        workload["offered"]["duration_s"],
    )
    details = [
        f"{verdict['criterion']}: {verdict['detail']}"
        for verdict in workload["sla"]
        if not verdict["success"]
    ]
    # a case is either a failure or an error: an error goes first, since it prevents a verdict
    kind, errors = _errors_of(workload)
    if errors:
        _add(case, "error", kind, [*errors, *details])
    elif details:
        _add(case, "failure", "sla", details)
    # runs of older releases have no checks
    checks = workload.get("checks", {})
    if checks:
        shown = ElementTree.SubElement(case, "system-out")
        shown.text = _legal("\n".join(map(_check, checks, checks.values())))
    if workload["errors"] or workload["other_errors"]:
        output = ElementTree.SubElement(case, "system-err")
        output.text = _legal("\n".join(_errors(workload)))
    return case


def _check(name: str, counts: Mapping[str, int]) -> str:
    failed, held = counts["failed"], counts["held"]
    return f"check {name}: failed {failed} times, passed {held} times"


def _errors(workload: Mapping[str, Any]) -> Iterator[str]:
    described = workload["errors"][:ERRORS]
    for error in described:
        yield (
            f"{error['count']} x {error['type']}: {error['message']}"
            f" (first in iteration {error['first_iteration']})"
        )
        yield error["traceback"]
    rest = sum(error["count"] for error in workload["errors"][ERRORS:]) + workload["other_errors"]
    if rest:
        yield f"{rest} x other errors"


def _errors_of(workload: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the first kind of error that a workload has, and its messages; [] without an error.

    In this order: not begun, iterations lost or not started, generator at its limit, hooks and
    contexts.
    """
    # runs of older releases say less
    unbegun = workload.get("error") or workload.get("not_begun")
    if unbegun:
        planned = workload["accounting"]["planned"]
        return "not begun", [f"not begun, {planned} iterations planned: {unbegun}"]
    accounting = workload["accounting"]
    missing = [
        f"{accounting[state]} {words}"
        for state, words in (("lost", "iterations lost"), ("not_started", "not started"))
        if accounting[state]
    ]
    if missing:
        return "accounting", [", ".join(missing)]
    bounds = workload.get("bounds", ())
    limits = [bound["sentence"] for bound in bounds if bound["fault"] == "generator"]
    if limits:
        return "load", limits
    return "around", [*_failed_hooks(workload), *_failed_contexts(workload)]


def _failed_hooks(workload: Mapping[str, Any]) -> Iterator[str]:
    for hook in workload["hooks"]:
        counts = hook["summary"]
        fired = sum(counts.values())
        if failed := fired - counts.get("success", 0):
            yield f"hook {next(iter(hook['action']), '?')}: {failed} of {fired} failed"


def _failed_contexts(workload: Mapping[str, Any]) -> Iterator[str]:
    for context in workload.get("contexts", ()):
        cleanup = context["cleanup"]
        if cleanup is not None and cleanup["error"] is not None:
            yield f"context {context['name']} could not be undone: {cleanup['error']['msg']}"


def _is_well(case: ElementTree.Element) -> bool:
    return case.find("error") is None and case.find("failure") is None


def _case(group: str, name: str, seconds: float) -> ElementTree.Element:
    names = {"classname": _legal(group), "name": _legal(name)}
    return ElementTree.Element("testcase", {**names, "time": f"{seconds:.3f}"})


def _add(case: ElementTree.Element, tag: str, kind: str, lines: list[str]) -> None:
    element = ElementTree.SubElement(case, tag, message=_legal(lines[0]), type=kind)
    element.text = _legal("\n".join(lines))


def _legal(text: str) -> str:
    """Return `text` with U+FFFD for characters that XML 1.0 (section 2.2) does not allow."""
    return "".join(
        char
        if char in "\t\n\r"
        or " " <= char <= "\ud7ff"
        or "\ue000" <= char <= "\ufffd"
        or char >= "\U00010000"
        else "\ufffd"
        for char in text
    )
