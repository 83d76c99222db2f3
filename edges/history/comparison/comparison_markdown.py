"""Formats a comparison as Markdown, short enough for a comment on a code change."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import count, duration
from osbench.coordinator.report.markdown_text import markdown_text
from osbench.edges.history.comparison.comparison_result import (
    ChangeRow,
    ChangeVerdict,
    ComparisonResult,
    WorkloadChanges,
)
from osbench.edges.history.comparison.comparison_text import interval_text
from osbench.edges.history.comparison.findable_changes import signed_percent

_SIGNS = {
    ChangeVerdict.WORSE: "❌",
    ChangeVerdict.MIXED: "❌",
    ChangeVerdict.BETTER: "✅",
    ChangeVerdict.EQUIVALENT: "✅",
    ChangeVerdict.NO_EVIDENCE: "✅",
}
#: Verdicts of rows that a comment shows, in addition to rows of the iteration.
_CHANGED = (ChangeVerdict.WORSE, ChangeVerdict.BETTER)


def comparison_markdown(result: ComparisonResult) -> str:
    """Return a comparison as Markdown: verdict, basis, and per workload calls and percentiles.

    Rows of actions are left out unless they changed; caveats and remarks come last.
    """
    return "\n".join(_lines(result)) + "\n"


def _lines(result: ComparisonResult) -> Iterator[str]:
    yield f"{_SIGNS[result.verdict]} **{result.verdict}**: {markdown_text(result.sentence)}"
    yield ""
    before, after = (markdown_text(name) for name in result.names)
    yield f"{count(len(result.before), 'run')} of {before}, {len(result.after)} of {after}."
    yield f"Basis: {markdown_text(result.grounds)}."
    for workload in result.workloads:
        yield ""
        yield from _workload(workload)
    for caveat in result.caveats:
        yield ""
        yield f"⚠ {markdown_text(caveat.text)}."
    for remark in result.remarks:
        yield ""
        yield f"{markdown_text(remark)}."


def _workload(workload: WorkloadChanges) -> Iterator[str]:
    yield f"**{markdown_text(workload.name)}**: {workload.verdict}"
    if workload.calls:
        yield f"Changed calls: {markdown_text(workload.calls)}"
    yield ""
    yield "| time of | | before | after | change | 95 % | verdict |"
    yield "|---|---|--:|--:|--:|--:|---|"
    for row in workload.rows:
        if not row.action or row.verdict in _CHANGED:
            yield _row(row)


def _row(row: ChangeRow) -> str:
    cells = (
        markdown_text(row.action or "the iteration"),
        f"p{row.percent:g}",
        duration(row.before_s),
        duration(row.after_s),
        signed_percent(row.ratio),
        interval_text(row),
        f"**{row.verdict}**" if row.verdict in _CHANGED else row.verdict,
    )
    return f"| {' | '.join(cells)} |"
