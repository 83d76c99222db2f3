"""Why iterations failed, on the first screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from helpers.report_facts import facts_of
from helpers.sample_reports import constant_workload, run_report
from osbench.coordinator.report.html.error_rows import ErrorRow
from osbench.coordinator.report.html.failure_lines import FailureView, failures_of
from osbench.coordinator.report.html.workload_facts import workloads_of
from osbench.coordinator.report.html.workload_view import WorkloadView, view_of
from osbench.coordinator.report.page_facts import gather


def view(folder: Path) -> WorkloadView:
    facts = facts_of(folder, run_report(constant_workload()), sla=())
    (workload,) = workloads_of(gather(facts))
    return view_of(workload, {})


def failed(view: WorkloadView, *errors: tuple[str, int]) -> WorkloadView:
    """The workload with errors of these messages, so many times each."""
    return replace(
        view,
        errors=[
            ErrorRow(
                type="E",
                message=message,
                count=count,
                first_iteration=1,
                traceback="",
                trace_id=f"trace of {message}",
            )
            for message, count in errors
        ],
    )


def said(found: FailureView) -> list[tuple[str, int]]:
    return [(one.message, one.count) for one in found.lines]


def test_the_most_frequent_kinds_of_all_workloads_come_first(tmp_path: Path) -> None:
    one = view(tmp_path)
    many = [(f"kind {n}", n) for n in range(1, 7)]

    found = failures_of([failed(one, *many), failed(one, ("most", 99))], {})

    assert said(found) == [("most", 99), *sorted(many, key=lambda one: -one[1])[:4]]
    assert found.more == 2
    assert all(line.title == one.facts.title for line in found.lines)


def test_a_kind_leads_to_its_errors_and_a_trace_of_the_page(tmp_path: Path) -> None:
    one = failed(view(tmp_path), ("a\n  b", 4), ("c", 1))

    first, second = failures_of([one], {"trace of a\n  b": "f00d"}).lines

    assert (first.title, first.message, first.trace) == ("", "a b", "f00d")
    assert first.anchor == second.anchor == f"{one.facts.anchor}-errors"
    assert first.share == "50\u202f%"
    assert second.trace == ""


def test_a_long_message_is_cut(tmp_path: Path) -> None:
    (line,) = failures_of([failed(view(tmp_path), ("x" * 5000, 1))], {}).lines

    assert len(line.message) == 240
    assert line.message.endswith("x…")


def test_without_failures_there_is_nothing_to_say(tmp_path: Path) -> None:
    found = failures_of([failed(view(tmp_path))], {})

    assert (list(found.lines), found.more) == ([], 0)
