"""Makes the first and last lines of a report in text: verdicts, and commands that show more."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import count, plain
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.model.workload_parts import SlaVerdict
from osbench.coordinator.report.statements.search_statements import search_headline
from osbench.coordinator.report.statements.statement import Look, Phrase
from osbench.coordinator.results.accounting.totals import NOT_MADE

#: Criteria that the short report names.
NAMED = 4


def verdict_lines(report: Report, most: int) -> Iterator[tuple[Phrase, ...]]:
    """Yield lines on the verdict of a run: iterations without an end, then criteria, failed first.

    At most `most` of either have a line each; further lines have the numbers of the rest. A single
    workload is not named.
    """
    several = len(report.workloads) > 1
    named = [(f"{plain(one.name)}: " if several else "", one) for one in report.workloads]
    missing = [f"{name}{text}" for name, workload in named if (text := _missing(workload))]
    yield from ((Phrase(text, Look.BAD),) for text in missing[:most])
    if len(missing) > most:
        yield (Phrase(f"and {count(len(missing) - most, 'more workload')}", Look.BAD),)
    criteria = [(name, workload, one) for name, workload in named for one in workload.sla]
    criteria.sort(key=lambda found: found[2].success)
    for name, workload, verdict in criteria[:most]:
        word = Phrase("met", Look.GOOD) if verdict.success else Phrase("not met", Look.BAD)
        look = Look.PLAIN if verdict.success else Look.STRONG
        yield word, Phrase(f"  {name}{_verdict_text(workload, verdict)}", look)
    if failed := sum(not verdict.success for _, _, verdict in criteria[most:]):
        yield (Phrase(f"and {count(failed)} more not met", Look.BAD),)
    if met := len(criteria[most:]) - failed:
        yield (Phrase(f"and {count(met)} more met"),)


def _missing(workload: WorkloadReport) -> str:
    sums = workload.accounting
    dropped = sum(sums.drops.get(reason, 0) for reason in NOT_MADE)
    parts = [(sums.lost, "lost"), (sums.not_started, "not started"), (dropped, "dropped")]
    return ", ".join(f"{count(number)} {word}" for number, word in parts if number)


def _verdict_text(workload: WorkloadReport, verdict: SlaVerdict) -> str:
    if not verdict.success and verdict.criterion == "search" and workload.search:
        return search_headline(workload.search)
    return f"{plain(verdict.criterion)}: {plain(verdict.detail, 500)}"


def commands(report: Report, *, details: bool) -> Iterator[tuple[str, str]]:
    """Yield (command, subject) of commands that show more; unless `details`, also all figures."""
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
    if not details:
        yield f"osbench-coord results {run} --details", "all figures"
