"""Makes the list of the most frequent failures of all workloads, for the first screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osbench.coordinator.report.html.error_rows import ErrorRow
from osbench.coordinator.report.html.page_numbers import percent_text
from osbench.coordinator.report.html.workload_view import WorkloadView

#: Kinds that are shown, and letters of a message.
_KINDS = 5
_LETTERS = 240


@dataclass(frozen=True, kw_only=True)
class FailureLine:
    """A kind of failure of one workload, as a line of the first screen."""

    #: The workload; "" if there is only one.
    title: str
    type: str
    message: str
    count: int
    #: Of the iterations of the workload that ended.
    share: str
    #: Anchor of the workload's list of errors.
    anchor: str
    #: The waterfall of one such iteration; "" for none.
    trace: str


@dataclass(frozen=True, kw_only=True)
class FailureView:
    """The most frequent kinds of failure of all workloads, for the first screen."""

    lines: Sequence[FailureLine]
    #: Kinds that are not shown.
    more: int


def failures_of(views: Sequence[WorkloadView], shown: Mapping[str, str]) -> FailureView:
    """Return the most frequent kinds of failure of all workloads, the most frequent first.

    At most `_KINDS`. `shown`: element ids of the page's waterfalls by trace id.
    """
    found = [(view, row) for view in views for row in view.errors]
    found.sort(key=lambda one: -one[1].count)
    several = len(views) > 1
    return FailureView(
        lines=[_line(view, row, shown, several=several) for view, row in found[:_KINDS]],
        more=len(found[_KINDS:]),
    )


def _line(
    view: WorkloadView, row: ErrorRow, shown: Mapping[str, str], *, several: bool
) -> FailureLine:
    message = " ".join(row.message.split())
    return FailureLine(
        title=view.facts.title if several else "",
        type=row.type,
        message=message if len(message) <= _LETTERS else f"{message[: _LETTERS - 1]}…",
        count=row.count,
        share=percent_text(row.count / view.report.ran if view.report.ran else None),
        anchor=f"{view.facts.anchor}-errors",
        trace=shown.get(row.trace_id, ""),
    )
