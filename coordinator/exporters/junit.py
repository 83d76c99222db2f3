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
    """Writes junit.xml: a test suite with a test case for each workload, and one for the run.

    A workload is a failure if its SLA failed, and an error if iterations were lost or not
    started; soft checks are its output, the exceptions of its iterations its error output. The run
    is an error if the load was not as requested, for example because the generator was the limit,
    and if it could not start: then it is the only test case.
    """

    NAME: ClassVar[str] = "junit"
    FILE: ClassVar[str] = "junit.xml"

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write the suite, with the elements of Apache Ant's reports."""
        summary = run.summary
        cases = [_workload_case(workload) for workload in summary["workloads"]]
        cases.append(_run_case(summary))
        properties = {
            "run_id": summary["run_id"],
            "tags": " ".join(summary["tags"]),
            "exit_code": str(summary["exit_code"]),
        }
        _write(path, summary["task"], summary["started_at"], cases, properties)

    def export_failure(self, failure: Mapping[str, Any], path: Path) -> bool:
        """Write a suite whose only case is the run, with its error."""
        error = failure["error"]
        lines = [error["message"]]
        for one in error["problems"]:
            # a problem of the whole file has no place
            lines.append(f"{one['place']}: {one['message']}" if one["place"] else one["message"])
        case = _case("osbench", "the run", 0.0)
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
    missing = [
        f"{workload['accounting'][state]} {words}"
        for state, words in (("lost", "iterations lost"), ("not_started", "not started"))
        if workload["accounting"][state]
    ]
    # a case is either a failure or an error: missing iterations take precedence
    if missing:
        _add(case, "error", "accounting", [", ".join(missing), *details])
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
    return f"check {name}: failed {failed} times, held {held} times"


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


def _run_case(summary: Mapping[str, Any]) -> ElementTree.Element:
    case = _case("osbench", "the run", 0.0)
    code = summary["exit_code"]
    if code not in AS_ASKED:
        lines = [summary["exit_meaning"], *summary["notes"]]
        _add(case, "error", f"exit code {code}", lines)
    return case


def _case(group: str, name: str, seconds: float) -> ElementTree.Element:
    names = {"classname": _legal(group), "name": _legal(name)}
    return ElementTree.Element("testcase", {**names, "time": f"{seconds:.3f}"})


def _add(case: ElementTree.Element, tag: str, kind: str, lines: list[str]) -> None:
    element = ElementTree.SubElement(case, tag, message=_legal(lines[0]), type=kind)
    element.text = _legal("\n".join(lines))


def _legal(text: str) -> str:
    """`text` with characters that XML 1.0 (section 2.2) does not allow replaced."""
    return "".join(
        char
        if char in "\t\n\r"
        or " " <= char <= "\ud7ff"
        or "\ue000" <= char <= "\ufffd"
        or char >= "\U00010000"
        else "\ufffd"
        for char in text
    )
