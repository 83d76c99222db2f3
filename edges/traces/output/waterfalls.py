"""A trace as the rows of a waterfall, with all data that OSProfiler has written of each span."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from osbench.coordinator.formatting import count, plain, spaced
from osbench.edges.traces.analysis.sentences import percent, words
from osbench.edges.traces.collection.trace_set import TraceSet
from osbench.edges.traces.model.critical_path import Path, is_pause, paused_on
from osbench.edges.traces.model.span_keys import SpanKey, key_of
from osbench.edges.traces.model.spans import (
    LOST_START,
    LOST_STOP,
    SpanOrigin,
    Trace,
    uuid_form,
)
from osbench.edges.traces.model.tree import Tree
from osbench.edges.traces.output.equal_siblings import chosen_rows, folds, parents
from osbench.edges.traces.output.span_rows import duration_s, row_of, rows_of

#: Kinds of segments: the whole span, and whether it failed; own work on the critical path; called
#: and not begun, also on it; a pause of the scenario.
SPAN, ERROR, PATH, WAITED, PAUSED = "span", "error", "path", "waited", "pause"


#: Rows of a waterfall at most: a trace may have 10,000 spans.
ROWS = 200
#: Segments of the bar of a fold at most.
_SEGMENTS = 200


@dataclass(frozen=True, kw_only=True)
class WaterfallSegment:
    """A coloured part of the bar of a row in a waterfall, by `kind`.

    Begin and end are seconds after the start of the trace.
    """

    #: `SPAN`, `ERROR`, `PATH`, `WAITED` or `PAUSED`. The first segment of a row is the span itself.
    kind: str
    from_s: float
    to_s: float


@dataclass(frozen=True, kw_only=True)
class WaterfallRow:
    """A span in a waterfall, with all data that is kept of it.

    Times are seconds; `start_s` counts from the start of the trace.
    """

    depth: int
    name: str
    #: A statement without its values, a path without its ids, a function; or "".
    detail: str
    #: "" if they are not known.
    project: str
    service: str
    host: str
    start_s: float
    duration_s: float
    #: Without the spans within it; the part of that on the critical path; how long its caller
    #: waited for its start.
    self_s: float
    critical_s: float
    waited_s: float
    on_path: bool
    #: It continued after the span around it had ended, and was not waited for.
    outlives: bool
    is_pause: bool
    #: Type of the exception, or "".
    error: str
    #: "stop lost", "start lost", "clock stepped".
    marks: tuple[str, ...]
    #: Ids as they were written.
    span_id: str
    parent_id: str
    #: When it started and stopped by the clock of its host, UTC, as OSProfiler writes it; "" if it
    #: was not written.
    started_at: str
    stopped_at: str
    #: Everything else that is kept of it: `request.path`, `db.params`, `message` and others.
    fields: tuple[tuple[str, str], ...]
    segments: tuple[WaterfallSegment, ...]
    #: Reason if it does not belong to the tree, or "".
    left_out: str = ""
    #: Its fold's place in `Waterfall.folds`; -1 if it is in none.
    fold: int = -1


@dataclass(frozen=True, kw_only=True)
class WaterfallFold:
    """Consecutive siblings of equal name, project and service, which a page can show as one row.

    It has their number and the sums of their times, seconds.
    """

    depth: int
    name: str
    #: Of the siblings: how many there are, how many failed, and the sums of their times.
    count: int
    failed: int
    duration_s: float
    critical_s: float
    segments: tuple[WaterfallSegment, ...]
    #: Rows of the fold that are not shown.
    hidden: int


@dataclass(frozen=True, kw_only=True)
class Waterfall:
    """A trace in the form in which pages show it: a row per span. Times are seconds.

    Made by `waterfall`.
    """

    #: As OSProfiler writes it.
    trace_id: str
    #: Of the iteration, with the pauses of its scenario.
    duration_s: float
    paused_s: float
    #: End of the last span: services may go on after the iteration.
    end_s: float
    #: The work that took most of the critical path.
    cause: str
    #: In tree order.
    rows: tuple[WaterfallRow, ...]
    #: Spans that do not belong to the tree.
    left_out: tuple[WaterfallRow, ...]
    #: Spans above the limit, which are in neither of the two.
    hidden: int = 0
    #: Of repeated spans.
    folds: tuple[WaterfallFold, ...] = ()


def waterfall(trace_set: TraceSet, trace: Trace, limit: int = ROWS) -> Waterfall:
    """Return the waterfall of a trace, whose spans are read already; `trace_set` has its clocks.

    If there are more than `limit` spans, the spans with the most time on the critical path are
    shown, then the longest ones, with the spans around them. Of left-out spans the first `limit`,
    by start, are shown. A trace without spans has no rows.
    """
    tree, paths = trace_set.tree_and_paths(trace)
    zero = min(map(tree.start.__getitem__, tree.roots or range(len(tree.spans))), default=0)
    place = {span.span_id: at for at, span in enumerate(tree.spans)}
    segments = _segments(tree, paths, zero)
    rows = tuple(
        _row(trace, place[row.span_id], vars(row), segments.get(place[row.span_id], ()))
        for row in rows_of(tree, paths)
    )
    left_out = tuple(
        _row(trace, at, vars(row_of(tree, at, zero)), (), why)
        for at, why in sorted(tree.left_out.items(), key=lambda one: (tree.start[one[0]], one[0]))
    )
    length = duration_s(tree)
    (shown, found), lost = _folded_rows(rows, limit), left_out[:limit]
    return Waterfall(
        trace_id=uuid_form(trace.trace_id),
        duration_s=length,
        paused_s=sum(paused_on(tree, path) for path in paths) / 1e9,
        end_s=max([length, *(row.start_s + row.duration_s for row in rows)]),
        cause=_cause(tree, paths),
        rows=shown,
        left_out=lost,
        hidden=len(rows) - len(shown) + len(left_out) - len(lost),
        folds=found,
    )


def _folded_rows(
    rows: Sequence[WaterfallRow], limit: int
) -> tuple[tuple[WaterfallRow, ...], tuple[WaterfallFold, ...]]:
    """Return the rows to show, at most `limit`, in tree order, and all folds.

    Rows are copied, with the number of their fold. Preferred are rows with the most time on the
    critical path, then long ones. If there are more than `limit`, a fold shows at most 50.
    """
    around = parents([row.depth for row in rows])
    numbers = folds(around, [(row.name, row.project, row.service) for row in rows])
    order = sorted(
        range(len(rows)),
        key=lambda at: (-rows[at].critical_s - rows[at].waited_s, -rows[at].duration_s, at),
    )
    kept = chosen_rows(order, around, numbers, limit)
    members: dict[int, list[int]] = {}
    for at, number in enumerate(numbers):
        if number >= 0:
            members.setdefault(number, []).append(at)
    found = tuple(
        _fold([rows[at] for at in places], sum(at not in kept for at in places))
        for _, places in sorted(members.items())
    )
    return tuple(replace(rows[at], fold=numbers[at]) for at in sorted(kept)), found


def _fold(rows: Sequence[WaterfallRow], hidden: int) -> WaterfallFold:
    """Return a fold from its rows, which are in tree order.

    Its siblings are the rows with the depth of the first; others lie within them. `hidden` is the
    number of rows that are not shown.
    """
    siblings = [row for row in rows if row.depth == rows[0].depth]
    end_s = max(row.start_s + row.duration_s for row in siblings)
    whole = WaterfallSegment(kind=SPAN, from_s=siblings[0].start_s, to_s=end_s)
    parts = sorted(
        (part for row in siblings for part in row.segments[1:]), key=lambda one: one.from_s
    )
    return WaterfallFold(
        depth=rows[0].depth,
        name=rows[0].name,
        count=len(siblings),
        failed=sum(bool(row.error) for row in siblings),
        duration_s=sum(row.duration_s for row in siblings),
        critical_s=sum(row.critical_s for row in siblings),
        segments=(whole, *_joined_segments(parts, (whole.to_s - whole.from_s) / _SEGMENTS)),
        hidden=hidden,
    )


def _joined_segments(parts: Sequence[WaterfallSegment], gap_s: float) -> list[WaterfallSegment]:
    """Join segments of the same kind that are at most `gap_s` apart; return the first `_SEGMENTS`.

    `parts` are ordered by begin; they are not changed.
    """
    joined: list[WaterfallSegment] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last and last.kind == part.kind and part.from_s - last.to_s <= gap_s:
            joined[-1] = replace(last, to_s=max(last.to_s, part.to_s))
        else:
            joined.append(part)
    return joined[:_SEGMENTS]


def _row(
    trace: Trace,
    at: int,
    row: Mapping[str, Any],
    segments: Sequence[WaterfallSegment],
    left_out: str = "",
) -> WaterfallRow:
    span = trace.spans[at]
    written = trace.origins.get(span.span_id) or _origin(span.service, span.span_id, span.parent_id)
    shown = {name: row[name] for name in WaterfallRow.__dataclass_fields__ if name in row}
    end_s = row["start_s"] + row["duration_s"]
    whole = WaterfallSegment(kind=ERROR if span.error else SPAN, from_s=row["start_s"], to_s=end_s)
    return WaterfallRow(
        **{
            **shown,
            "project": written.project,
            "service": written.service,
            "span_id": written.span_id,
            "parent_id": written.parent_id,
        },
        is_pause=any(one.kind == PAUSED for one in segments),
        started_at="" if span.marks & LOST_START else _timestamp(span.start_ns),
        stopped_at="" if span.marks & LOST_STOP else _timestamp(span.end_ns),
        fields=tuple(_flat(span.attributes)),
        segments=(whole, *segments),
        left_out=left_out,
    )


def _origin(service: str, span_id: str, parent_id: str) -> SpanOrigin:
    """Return an origin for a span that OSProfiler did not write.

    The service is split at "/" into project and service; ids are kept.
    """
    project, _, rest = service.partition("/")
    return SpanOrigin(project if rest else "", rest or service, span_id, parent_id)


def _segments(
    tree: Tree, paths: Sequence[Path], zero: int
) -> dict[int, tuple[WaterfallSegment, ...]]:
    found: dict[int, list[WaterfallSegment]] = {}
    for path in paths:
        for segment in sorted(path.segments, key=lambda one: one.start):
            kind = PATH if segment.awaited < 0 else WAITED
            found.setdefault(segment.span, []).append(
                WaterfallSegment(
                    kind=PAUSED if is_pause(tree, segment.span) else kind,
                    from_s=(segment.start - zero) / 1e9,
                    to_s=(segment.end - zero) / 1e9,
                )
            )
    return {at: tuple(parts) for at, parts in found.items()}


def _cause(tree: Tree, paths: Sequence[Path]) -> str:
    """Return text on the work that took most of the critical paths: its name, time and percentage.

    Pauses of the scenario do not count; "" if no time is left.
    """
    spent: dict[SpanKey, int] = {}
    calls: dict[SpanKey, set[int]] = {}
    for path in paths:
        for segment in path.segments:
            if not is_pause(tree, segment.span):
                key = key_of(tree, segment)
                spent[key] = spent.get(key, 0) + segment.end - segment.start
                calls.setdefault(key, set()).add(
                    segment.span if segment.awaited < 0 else segment.awaited
                )
    if not spent or not sum(spent.values()):
        return ""
    # of equal ones the first by name, so that the same trace always gives the same message
    key = min(spent, key=lambda one: (-spent[one], one))
    number = len(calls[key])
    many = f" in {count(number, 'call')}" if number > 1 else ""
    share = percent(spent[key] / sum(spent.values()))
    return f"{plain(words(key))}: {spaced(spent[key] / 1e9)} of the path ({share} %){many}"


def _flat(attributes: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{before}{name}", text


def _timestamp(at_ns: int) -> str:
    second, rest = divmod(at_ns // 1000, 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second)) + f"{rest:06d}"
