"""Makes the end of a report in text: causes of the exit code, and commands that show more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from osbench.coordinator.formatting import count, plain
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.statements.search_statements import search_headline
from osbench.coordinator.results.accounting.totals import NOT_MADE

#: Causes that are named.
_CAUSES = 4


def causes(report: Report) -> Sequence[str]:
    """Return messages on causes of the exit code: at most `_CAUSES`, and the number of others.

    Causes are failed criteria (1 and 4) and lost iterations (3). Other causes are notes.
    """
    found = [
        text for workload in report.workloads for text in _of_workload(workload, report.exit_code)
    ]
    left = len(found) - _CAUSES
    return [*found[:_CAUSES], *([f"and {left} more"] if left > 0 else [])]


def _of_workload(workload: WorkloadReport, code: int | None) -> Iterator[str]:
    name = plain(workload.name)
    if code in (1, 4):
        for verdict in workload.sla:
            if not verdict.success and verdict.criterion == "search" and workload.search:
                yield f"{name}: {search_headline(workload.search)}"
            elif not verdict.success:
                yield f"{name}: {plain(verdict.criterion)}: {plain(verdict.detail, 500)}"
    elif code == 3:
        sums = workload.accounting
        dropped = sum(sums.drops.get(reason, 0) for reason in NOT_MADE)
        parts = [(sums.lost, "lost"), (sums.not_started, "not started"), (dropped, "dropped")]
        numbers = ", ".join(f"{count(number)} {word}" for number, word in parts if number)
        if numbers:
            yield f"{name}: {numbers}"


def commands(report: Report) -> Iterator[tuple[str, str]]:
    """Yield (command, subject) of commands that show more on failures; nothing if all is well."""
    run, code = report.run_id, report.exit_code
    bad = sum(workload.bad for workload in report.workloads)
    if bad:
        yield f"osbench-coord results {run} --errors", "tracebacks"
    if bad or code == 3:
        yield f"osbench-coord logs {run}", "logs"
    if code == 1 and any(workload.tracing.traced for workload in report.workloads):
        yield f"osbench-coord trace explain {run}", "why slow"
    if bad or code in (1, 3, 4):
        yield f"osbench-coord report {run} --html report.html", "charts"
