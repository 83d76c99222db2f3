"""Notes on the quality of traces: missing parts, clock offsets, unreadable entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from osbench.coordinator.formatting import count, plain, spaced
from osbench.edges.traces.analysis.comparison import spaced_difference
from osbench.edges.traces.analysis.coverage import TraceCoverage
from osbench.edges.traces.model.clock_skew import Clocks, HostSkew

#: Number of services, or kinds of work, that are named, worst first.
_NAMED = 10


def trace_notes(
    coverage: TraceCoverage,
    clocks: Clocks,
    skipped: int,
    *,
    by_otlp: bool = False,
    queried: Sequence[str] = (),
) -> Iterable[str]:
    """Yield notes on the quality of traces: queries, missing parts, late work, clocks, bad entries.

    `queried` are notes on queries of a backend, which come first; `skipped` is a number of
    unreadable entries; `by_otlp` is as for `missing_parts`.
    """
    yield from queried
    yield from missing_parts(coverage, by_otlp=by_otlp, queried=bool(queried))
    for name, after in sorted(coverage.after.items(), key=lambda item: -item[1].after_ns)[:_NAMED]:
        mean = after.after_ns / after.count / 1e9
        yield (
            f"{plain(name)} continued after its caller's end {count(after.count, 'time')},"
            f" {spaced(mean)} on average: not part of any path"
        )
    for one in clocks.skews:
        if one.add_ns or one.stretches or one.unsteady or _is_bounded(one):
            yield _clock(one, *clocks.odd(one))
    if coverage.stepped:
        yield f"{count(coverage.stepped, 'span')} in which a clock was set back: counted as 0 s"
    if skipped:
        yield f"{count(skipped, 'entry', 'entries')} could not be read"


def missing_parts(
    coverage: TraceCoverage, *, by_otlp: bool = False, queried: bool = False
) -> Iterator[str]:
    """Yield notes on parts that are missing from the traces, or were left out of trees.

    `by_otlp`: the run received spans of services; `queried`: the run queried them. Both only decide
    which advice is given if services wrote no spans.
    """
    if coverage.unanswered and queried:
        yield (
            f"no service wrote a span into any of {count(coverage.traces, 'trace')}. Look at"
            " whether services send spans to this backend, whether OTEL_PROPAGATORS has"
            " tracecontext, and OTEL_TRACES_SAMPLER (a parentbased one follows the run)"
        )
    elif coverage.unanswered and by_otlp:
        yield (
            f"no service wrote a span into any of {count(coverage.traces, 'trace')}. Look at"
            " OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_PROTOCOL (http/protobuf) of the"
            " services, whether they can reach it, and whether OTEL_PROPAGATORS has tracecontext"
        )
    elif coverage.unanswered:
        yield (
            f"no service wrote a span into any of {count(coverage.traces, 'trace')}. Look at"
            " enabled, hmac_keys (the deployment's profiler_hmac_key must be among them) and"
            " connection_string in [profiler] of the services, and whether OSProfiler is in their"
            " pipelines; `osbench-coord deployment check` asks each of them for a span"
        )
    for name, traces in sorted(coverage.silent.items()):
        yield (
            f"{name} wrote no span into any of {count(traces, 'trace')} that call it, other"
            " services did: perhaps it has another key, or OSProfiler is disabled there;"
            " `osbench-coord deployment check` says which"
        )
    if coverage.incomplete:
        yield (
            f"{count(coverage.incomplete)} of {count(coverage.traces, 'trace')} incomplete:"
            f" {count(coverage.lost_stops)} stops and {count(coverage.lost_starts)} starts of spans"
            " are missing"
        )
    if coverage.rootless:
        yield f"{count(coverage.rootless, 'trace')} without the span of their iteration: left out"
    if coverage.headless:
        yield (
            f"{count(coverage.headless, 'trace')} start in a service whose spans are missing:"
            " their topmost spans are used as roots"
        )
    worst = sorted(
        ((name, spans) for name, spans in coverage.services.items() if spans.stale + spans.orphan),
        key=lambda item: (-item[1].stale - item[1].orphan, item[0]),
    )
    for name, spans in worst[:_NAMED]:
        who = plain(name) or "a service without a name"
        for number, why in (
            (spans.stale, "written into traces that its threads had kept from earlier requests"),
            (spans.orphan, "the spans around them are not recorded"),
        ):
            if number:
                share = f"{100 * number / spans.count:.0f} %"
                yield f"{who}: {count(number, 'span')} left out ({share}), {why}"
    if len(worst) > _NAMED:
        yield f"spans of {count(len(worst) - _NAMED, 'more service')} left out"


def _clock(offset: HostSkew, odd: str, other: str) -> str:
    """Return a note on the clock offset of two hosts, and whether it was corrected.

    `odd` is the host whose clock counts as wrong, `other` its counterpart.
    """
    host, reference = plain(odd), plain(other)
    if offset.unsteady:
        return (
            f"the clocks of {host} and {reference} moved against each other from call to call: no"
            " correction fits"
        )
    # positive if the odd clock is ahead
    sign = -1 if odd == offset.host else 1
    if offset.stretches:
        return _moved_clock_note(offset, sign, host, reference)
    if not offset.add_ns:
        low, high = (
            spaced_difference((bound or 0) / 1e9) for bound in (offset.low_ns, offset.high_ns)
        )
        return (
            f"the clocks of {plain(offset.reference)} and {plain(offset.host)} may agree"
            f" ({low} to {high})"
        )
    apart = spaced(abs(offset.add_ns) / 1e9)
    sure = f" (+-{spaced(max(offset.width_ns, offset.error_ns) / 1e9)})"
    if not _is_bounded(offset):
        apart, sure = f"at least {apart}", ""
    ahead = "ahead of" if sign * offset.add_ns > 0 else "behind"
    return f"the clock of {host} is {apart} {ahead} the clock of {reference}{sure}, corrected"


def _moved_clock_note(offset: HostSkew, sign: int, host: str, reference: str) -> str:
    """Return a note on the clock of `host`, which was set, or drifted, during the run.

    `sign` is 1 or -1: `sign` times an `add_ns` of the offset is how far the clock is ahead of that
    of `reference`.
    """
    ahead = [sign * add for one in offset.stretches for add in (one.add_ns, one.last_add_ns)]
    low, high = (
        f"{spaced(abs(ns) / 1e9)} {'behind' if ns < 0 else 'ahead'}"
        for ns in (min(ahead), max(ahead))
    )
    steps = len(offset.stretches) - 1
    how = f"set {'once' if steps == 1 else count(steps, 'time')}" if steps else "it drifted"
    return (
        f"the clock of {host} moved during the run ({how}): between {low} and {high} of"
        f" {reference}, corrected (+-{spaced(offset.error_ns / 1e9)})"
    )


def _is_bounded(offset: HostSkew) -> bool:
    return offset.low_ns is not None and offset.high_ns is not None
