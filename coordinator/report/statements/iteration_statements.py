"""Statements on iterations: their requests, traces, errors, criteria, checks and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus

from osbench.coordinator.formatting import count, duration, plain, size
from osbench.coordinator.report.error_kinds import kinds_of
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.workload_parts import Outputs, RequestCounts
from osbench.coordinator.report.statements.statement import (
    Statement,
    each,
    statement_of,
)
from osbench.coordinator.results.accounting.totals import Cost, Shift, Tracing

#: Charts that are described; the JSON object has all.
CHARTS = 10
#: Soft checks that did not always hold which are listed.
CHECKS = 10
_SLOWEST, _ERRORS = 3, 5
#: Outputs that are in no chart: key, and the noun for one and several.
_CUT = (
    ("charts", "item of too many charts", "items of too many charts"),
    ("values", "value of too many names", "values of too many names"),
    ("malformed", "value that is not a number", "values that are not numbers"),
    ("not_additive", "item that cannot be added up", "items that cannot be added up"),
    ("too_large", "output or error too large", "outputs or errors too large"),
)


def request_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield a statement on phases, connections, status codes and bytes of HTTP requests, if any."""
    total = workload.requests.total if workload.requests else None
    if total is not None and total.requests:
        bad = any(int(status) >= HTTPStatus.BAD_REQUEST for status in total.statuses)
        rare = total.unanswered or total.sent_twice or total.false_bodies
        text = _requests(total, workload.throughput.span_s)
        yield statement_of("requests", text, in_short=bool(bad or rare))


def _requests(total: RequestCounts, span_s: float) -> str:
    phases = {name: duration(times.mean) for name, times in total.phases.items()}
    opened = ""
    if total.new_connections:
        tls = f", TLS {phases['tls']}" if total.phases["tls"].count else ""
        opened = f" (lookup {phases['lookup']}, connect {phases['connect']}{tls})"
    text = f"{count(total.requests)}: "
    if total.phases["wait"].count:
        text += f"first bytes after {phases['wait']}, the rest {phases['rest']} on average; "
    text += (
        f"{count(total.new_connections, 'new connection')}{opened}, "
        f"{count(total.reused_connections)} reused"
    )
    if total.statuses:
        statuses = (f"{code} x {count(n)}" for code, n in total.statuses.items())
        text += f"; status {', '.join(statuses)}"
    rare = (
        (total.unanswered, "without a response"),
        (total.sent_twice, "sent twice"),
        (total.false_bodies, "with a false body"),
    )
    text += "".join(f"; {count(number)} {words}" for number, words in rare if number)
    moved = ((total.sent_bytes, "sent"), (total.received_bytes, "received"))
    return f"{text}; " + ", ".join(f"{size(n)} {way}{_rate(n, span_s)}" for n, way in moved)


def _rate(number: int, span_s: float) -> str:
    return f" ({size(round(number / span_s))}/s)" if number > 1e6 * span_s > 0 else ""


def trace_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield statements on tracing, its cost, reasons of slowness, and the slowest iterations."""
    tracing = workload.tracing
    yield statement_of("tracing", _tracing(tracing), in_short=bool(tracing.spans_dropped))
    if tracing.cost:
        yield statement_of("tracing", _tracing_cost(tracing.cost))
    elif tracing.traced:
        why = ": all iterations were traced" if tracing.sample_rate == 1 else ""
        yield statement_of("tracing", f"its cost is not known{why}")
    if tracing.explanation:
        yield statement_of("why slow", plain(tracing.explanation, 1000), in_short=True)
    for one in workload.exemplars[:_SLOWEST]:
        ended = "" if one.outcome == "ok" else f", {one.outcome.replace('_', ' ')}"
        yield statement_of(
            "slowest",
            f"{duration(one.service_s)}  {one.trace_id}  iteration {one.iteration}{ended}",
        )


def _tracing(tracing: Tracing) -> str:
    text = plain(tracing.state)
    if not tracing.traced:
        return text if text == "on" else f"off: {text}"
    text += f", {count(tracing.traced, 'iteration')} traced"
    if tracing.rate_reason:
        text += f" (sample rate {tracing.sample_rate:.3g}: {plain(tracing.rate_reason)})"
    elif tracing.sample_rate < 1:
        text += f" (sample rate {tracing.sample_rate:g})"
    written, dropped = count(tracing.spans_written, "span"), count(tracing.spans_dropped)
    return f"{text}; {written} written, {dropped} dropped"


def _tracing_cost(cost: Cost) -> str:
    parts = f"{_shift(cost.p50, 'the median')}, {_shift(cost.p99, 'p99')}"
    return f"traced iterations took {parts}, against {count(cost.untraced)} others"


def _shift(shift: Shift, word: str) -> str:
    text = f"{_signed_duration(shift.added_s)} at {word}"
    if shift.low_s is None or shift.high_s is None:
        return f"{text} (so few give no interval)"
    return f"{text} (95 %: {_signed_duration(shift.low_s)} to {_signed_duration(shift.high_s)})"


def _signed_duration(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{duration(abs(seconds))}"


def error_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield a statement for each of the most frequent kinds of errors, at most `_ERRORS`.

    If there are other errors, another one has their number.
    """
    errors = [one.error for one in kinds_of(workload.errors)]
    texts = [
        f"{count(error.count)} x {plain(error.type)}: {plain(error.message)}"
        f" (first in iteration {error.first_iteration})"
        for error in errors[:_ERRORS]
    ]
    rest = sum(error.count for error in errors[_ERRORS:]) + workload.other_errors
    texts += [f"{count(rest)} x other errors"] if rest else []
    yield from each("errors", texts, in_short=True)


def output_statements(outputs: Outputs) -> Iterator[Statement]:
    """Yield statements on complete charts, which have no sums, and on the number of parts left out.

    At most `CHARTS` charts are named.
    """
    texts = [
        f"{plain(chart['title'])} ({plain(chart['chart_plugin'])}) of "
        f"{count(chart['iterations'], 'iteration')}, the first {count(chart['first_iteration'])}"
        for chart in outputs.complete
    ]
    more = max(0, len(texts) - CHARTS) + max(0, len(outputs.additive) - CHARTS)
    texts = [*texts[:CHARTS], *([f"{count(more, 'more chart')}"] if more else [])]
    cut = [count(outputs.cut[key], one, many) for key, one, many in _CUT if outputs.cut.get(key)]
    yield from each("outputs", texts)
    if cut:
        yield statement_of("outputs", f"left out: {', '.join(cut)}", in_short=True)


def check_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield statements on soft checks that failed sometimes, most failures first.

    There are at most `CHECKS`, and another with the number of checks that always passed.
    """
    broken = [(name, one) for name, one in workload.checks.items() if one.failed]
    texts = [
        f"{plain(name)}: failed {count(one.failed)} of {count(one.held + one.failed)} times"
        for name, one in sorted(broken, key=lambda item: -item[1].failed)
    ]
    held = len(workload.checks) - len(broken)
    yield from each("checks", _shortened_texts(texts), on_page=True, in_short=True)
    yield from each("checks", [f"{count(held)} always passed"] if held > 0 else [], on_page=True)


def _shortened_texts(texts: Sequence[str]) -> Sequence[str]:
    if len(texts) <= CHECKS:
        return texts
    left = len(texts) - CHECKS + 1
    return [*texts[: CHECKS - 1], f"and {left} others that did not always pass"]
