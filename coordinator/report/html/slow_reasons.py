"""Makes the messages of the page on why slow iterations of each workload were slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.report.page_part import PagePart, SlowReason
from osbench.coordinator.report.severity import severity

#: Workloads whose slow iterations are explained on the first screen.
_WHY = 5


@dataclass(frozen=True, kw_only=True)
class WhyLine:
    """A message of the first screen on why slow iterations of a workload were slow."""

    #: Title of the workload.
    title: str
    reason: SlowReason


@dataclass(frozen=True, kw_only=True)
class WhyView:
    """Messages of the first screen on why iterations were slow, the worst workload first."""

    lines: list[WhyLine]
    #: Workloads that are left out.
    more: int
    #: Explanations that name a clear cause, by workload.
    by_workload: dict[int, SlowReason]


def explanations_of(
    workloads: Sequence[WorkloadFacts], parts: Iterable[PagePart]
) -> dict[int, SlowReason]:
    """Return the explanation of slow iterations of each workload, by number of the workload.

    It is from the first part that looks for one, else from the report; its text may be "".
    """
    given = list(parts)
    found = {}
    for one in workloads:
        asked = (part.explanation(one.number) for part in given)
        tracing = one.report.tracing
        told = next((reason for reason in asked if reason is not None), None)
        found[one.number] = told or SlowReason(text=tracing.explanation)
    return found


def why_of(workloads: Sequence[WorkloadFacts], explanations: dict[int, SlowReason]) -> WhyView:
    """Return the messages of the first screen on slow iterations, at most `_WHY`, the worst first.

    A workload without explanation has no message: the section on traces has the reason.
    """
    lines = [
        WhyLine(title=one.title, reason=explanations[one.number])
        for one in sorted(workloads, key=lambda one: severity(one.report))
        if one.number in explanations and explanations[one.number].text
    ]
    clear = {number: one for number, one in explanations.items() if one.text and one.is_clear}
    return WhyView(lines=lines[:_WHY], more=len(lines[_WHY:]), by_workload=clear)
