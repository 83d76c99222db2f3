"""Exporter `junit`: a run as a test suite, for continuous integration systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from xml.etree import ElementTree

from osbench.plugin import exporter

#: Exit codes of a run with the requested load; a failed SLA is reported for its workload.
AS_ASKED = (0, 1)


class Junit(exporter.Exporter):
    """Writes junit.xml: a test suite with a test case for each workload, and one for the run.

    A workload is a failure if its SLA failed, and an error if iterations were lost or not
    started. The run is an error if the load was not as requested, for example because the
    generator was the limit.
    """

    NAME: ClassVar[str] = "junit"

    def export(self, summary: Mapping[str, Any]) -> Mapping[str, bytes]:
        """junit.xml, with the elements of Apache Ant's reports."""
        cases = [_workload_case(workload) for workload in summary["workloads"]]
        cases.append(_run_case(summary))
        suite = ElementTree.Element(
            "testsuite",
            name=_legal(summary["task"]),
            timestamp=summary["started_at"].removesuffix("Z").partition(".")[0],
            tests=str(len(cases)),
            failures=str(sum(case.find("failure") is not None for case in cases)),
            errors=str(sum(case.find("error") is not None for case in cases)),
            skipped="0",
            time=f"{sum(float(case.get('time', 0)) for case in cases):.3f}",
        )
        properties = ElementTree.SubElement(suite, "properties")
        pairs = (
            ("run_id", summary["run_id"]),
            ("tags", " ".join(summary["tags"])),
            ("exit_code", str(summary["exit_code"])),
        )
        for name, value in pairs:
            ElementTree.SubElement(properties, "property", name=name, value=_legal(value))
        suite.extend(cases)
        ElementTree.indent(suite)
        text = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
        return {"junit.xml": text + b"\n"}


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
    return case


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
