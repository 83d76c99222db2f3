"""Why slow iterations were slow: from a part of the page, or from the report without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from helpers.report_facts import facts_of
from osbench.coordinator.report.html.slow_reasons import explanations_of, why_of
from osbench.coordinator.report.html.workload_facts import WorkloadFacts, workloads_of
from osbench.coordinator.report.page_facts import gather
from osbench.coordinator.report.page_part import PagePart, SlowReason


class Reasons(PagePart):
    """A part that explains one workload."""

    def __init__(self, workload: int, reason: SlowReason) -> None:
        self._workload, self._reason = workload, reason

    def explanation(self, workload: int) -> SlowReason | None:
        return self._reason if workload == self._workload else None


def workloads(folder: Path, *explanations: str) -> list[WorkloadFacts]:
    """The first workloads of a report, with these explanations."""
    every = workloads_of(gather(facts_of(folder)))
    return [
        replace(one, report=replace(one.report, tracing=replace(tracing, explanation=text)))
        for one, text in zip(every, explanations, strict=False)
        for tracing in [one.report.tracing]
    ]


def test_a_part_goes_before_the_report_and_the_report_serves_without_one(tmp_path: Path) -> None:
    both = workloads(tmp_path, "the database", "the network")
    clear = SlowReason(text="a lock", is_clear=True, details="traces-w1", example="ab12")

    found = explanations_of(both, [PagePart(), Reasons(0, clear)])

    assert found == {0: clear, 1: SlowReason(text="the network")}
    assert explanations_of(both, []) == {
        0: SlowReason(text="the database"),
        1: SlowReason(text="the network"),
    }


def test_only_clear_reasons_stand_in_the_section_of_a_workload(tmp_path: Path) -> None:
    both = workloads(tmp_path, "", "")
    clear = SlowReason(text="a lock", is_clear=True)

    why = why_of(both, {0: SlowReason(text="unsure"), 1: clear})

    assert why.by_workload == {1: clear}
    assert sorted(line.reason.text for line in why.lines) == ["a lock", "unsure"]
    assert why_of(both, explanations_of(both, [])).lines == []
