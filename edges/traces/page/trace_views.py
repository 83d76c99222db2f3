"""Computes the page's views of traces: why iterations are slow, waterfalls, and the ranking.

A waterfall draws the spans of one trace as bars over time.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from osbench.common.secrets.url_masking import mask_url, without_credentials
from osbench.coordinator.report.html.inline_graphics import graphic, pair_bar, rect, share_bar
from osbench.coordinator.report.html.page_numbers import spaced_text, time_text, whole
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.edges.traces.analysis.bands import Band
from osbench.edges.traces.analysis.ranking import Ranked
from osbench.edges.traces.analysis.sentences import band_name
from osbench.edges.traces.analysis.slow_causes import Cause
from osbench.edges.traces.model.spans import detail_after
from osbench.edges.traces.output.report_traces import TracePick, WorkloadTraces
from osbench.edges.traces.output.waterfalls import (
    Waterfall,
    WaterfallFold,
    WaterfallRow,
    WaterfallSegment,
)

#: Waterfalls of a page, and spans of one.
WATERFALLS = 60
SPANS = 200
_CAUSES = 5
_BANDS = 1
#: Spans with so much of the critical path have a bold name.
_HEAVY = 0.1
_LOOKS = {
    "span": ("sp", 6, "10"),
    "error": ("bad-s", 6, "10"),
    "path": ("cp", 6, "10"),
    "waited": ("wt", 9, "4"),
    "pause": ("wait", 6, "10"),
}


@dataclass(frozen=True, kw_only=True)
class SpanLine:
    """A span as a row of a waterfall; seconds.

    `depth` is its nesting from 0, `bar` its drawing.
    """

    depth: int
    name: str
    detail: str
    #: Service and host.
    where: str
    bar: Markup
    duration_s: float
    critical_s: float
    error: str
    is_heavy: bool
    fields: list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class SpanGroup:
    """A row of a waterfall, or a fold: repeated spans, shown as one line and as their rows."""

    spans: list[SpanLine]
    #: The line that replaces repeated spans; None for a single row.
    fold: SpanLine | None = None
    #: Spans of the fold that are left out.
    hidden: int = 0


@dataclass(frozen=True, kw_only=True)
class WaterfallView:
    """The waterfall of an example iteration: its spans as bars over time. Times are seconds."""

    #: The beginning of the trace id, unique in the page.
    id: str
    trace_id: str
    label: str
    kind: str
    iteration: int
    due_s: float
    latency_s: float
    lag_s: float
    trace_s: float
    #: Of it, spent in pauses of the scenario.
    paused_s: float
    cause: str
    axis: Markup
    groups: list[SpanGroup]
    #: Spans that are left out, not counting the spans of folds.
    more: int
    #: Command that shows the trace in OSProfiler; "" if it is in no store of OSProfiler.
    command: str


@dataclass(frozen=True, kw_only=True)
class CauseRow:
    """A cause of slowness, with a bar that compares its time in slow and in normal traces."""

    cause: Cause
    bar: Markup


@dataclass(frozen=True, kw_only=True)
class BandView:
    """The traces in one range of percentiles, compared with traces around the median.

    Has the main causes of the difference.
    """

    #: Of its traces, as the subject of a text.
    name: str
    band: Band
    causes: list[CauseRow]


@dataclass(frozen=True, kw_only=True)
class TraceGroup:
    """The traces of one workload on the page: why iterations are slow, and example waterfalls."""

    number: int
    reason: str
    sentence: str
    #: The explanation names a clear cause.
    has_cause: bool
    bands: list[BandView]
    #: Gain of halving one span, and the name of that span; "" if not known.
    best: str
    waterfalls: list[WaterfallView]

    def examples(self) -> list[dict[str, Any]]:
        """Return a mark of the heat map for each waterfall that has a latency.

        `x` is the due time in s, `y` the latency in ms; `id` names the waterfall.
        """
        return [
            {
                "x": round(fall.due_s, 3),
                "y": round(1e3 * fall.latency_s, 3),
                "id": fall.id,
                "iteration": fall.iteration,
                "kind": fall.kind,
                "label": fall.label,
            }
            for fall in self.waterfalls
            if fall.latency_s > 0
        ]


@dataclass(frozen=True, kw_only=True)
class RankingRow:
    """A trace point (all spans with one name) in the ranking, with a bar of its critical time."""

    row: Ranked
    bar: Markup


@dataclass(frozen=True, kw_only=True)
class TraceSection:
    """The section of the page on traces: groups by workload, ranking of trace points, notes."""

    groups: list[TraceGroup]
    ranking: list[RankingRow]
    pauses: int
    paused_s: float
    notes: list[str]
    has_arguments: bool


def trace_section(
    found: Sequence[WorkloadTraces], workloads: Sequence[WorkloadReport], store: str = ""
) -> TraceSection:
    """Return the section of the page on the traces of a run, with at most `WATERFALLS` waterfalls.

    `store` is the connection string of OSProfiler's store, "" for none; commands show it without
    its password.
    """
    names = _Names(without_credentials(store))
    share = _shares([len(one.picks) for one in found])
    groups = [
        _group(workloads[one.workload], one, names, most)
        for one, most in zip(found, share, strict=True)
    ]
    ranked = next((one.ranking for one in found if one.ranking), ())
    first = found[0] if found else None
    return TraceSection(
        groups=groups,
        ranking=_ranking(ranked),
        pauses=first.pauses if first else 0,
        paused_s=first.paused_s if first else 0.0,
        notes=[mask_url(note) for note in first.notes] if first else [],
        has_arguments=bool(first and first.has_arguments),
    )


class _Names:
    """Makes short ids of traces, unique in the page, and commands for OSProfiler."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._taken: set[str] = set()

    def command(self, trace_id: str) -> str:
        if not self._store:
            return ""
        where = shlex.quote(self._store)
        return f"osprofiler trace show --html {trace_id} --connection-string {where}"

    def short(self, trace_id: str) -> str:
        digits = trace_id.replace("-", "")
        length = 8
        while digits[:length] in self._taken and length < len(digits):
            length += 4
        self._taken.add(digits[:length])
        return digits[:length]


def _shares(wanted: Sequence[int]) -> list[int]:
    """Return how many waterfalls each workload gets, in order; at most `WATERFALLS` in all.

    They are dealt one by one in turn; no workload gets more than its number in `wanted`.
    """
    given = [0] * len(wanted)
    left = min(WATERFALLS, sum(wanted))
    while left:
        for number, want in enumerate(wanted):
            if given[number] < want and left:
                given[number] += 1
                left -= 1
    return given


def _group(
    workload: WorkloadReport, traces: WorkloadTraces, names: _Names, most: int
) -> TraceGroup:
    bands = traces.answer.bands if traces.answer else ()
    seen: set[str] = set()
    falls = []
    for pick in traces.picks[:most]:
        if pick.trace_id not in seen:
            seen.add(pick.trace_id)
            falls.append(_waterfall(workload, pick, names))
    return TraceGroup(
        number=traces.workload,
        reason=mask_url(traces.reason),
        sentence=spaced_text(mask_url(traces.sentence)),
        has_cause=any(band.clear is not None for band in bands if band.enough),
        bands=[_band(band) for band in bands if band.enough][:_BANDS],
        best=spaced_text(mask_url(traces.best)),
        waterfalls=falls,
    )


def _band(band: Band) -> BandView:
    causes = band.causes[:_CAUSES]
    most = max((max(cause.slow_s, cause.base_s) for cause in causes), default=0)
    return BandView(
        name=band_name(band.name, "trace"),
        band=band,
        causes=[
            CauseRow(
                cause=cause,
                bar=pair_bar(
                    cause.base_s, cause.slow_s, most, "b-bad" if cause.clear else "b-tail"
                ),
            )
            for cause in causes
        ],
    )


def _ranking(ranked: Sequence[Ranked]) -> list[RankingRow]:
    most = max((row.critical_s for row in ranked), default=0) or 1
    return [
        RankingRow(row=row, bar=share_bar(row.critical_s / most, _ranking_look(row)))
        for row in ranked
    ]


def _ranking_look(row: Ranked) -> str:
    return "b-tail" if row.service.startswith("osbench/") else "b-mid"


def _waterfall(workload: WorkloadReport, pick: TracePick, names: _Names) -> WaterfallView:
    fall = pick.waterfall
    total = max(fall.end_s, fall.duration_s, 1e-9)
    ticks = nice_ticks(total)
    grid = Markup("").join(rect(100 * tick / total, 0.08, "grid") for tick in ticks)
    rows = [*fall.rows, *fall.left_out]
    # hidden spans of a fold are counted with it
    told = sum(fall.folds[at].hidden for at in {row.fold for row in rows[:SPANS]} - {-1})
    return WaterfallView(
        id=names.short(pick.trace_id),
        trace_id=pick.trace_id,
        label=pick.label,
        kind=pick.kind,
        iteration=pick.iteration,
        due_s=pick.due_s,
        latency_s=pick.response_s if workload.is_open else pick.service_s,
        lag_s=pick.lag_s,
        trace_s=fall.duration_s,
        paused_s=fall.paused_s,
        cause=spaced_text(mask_url(pick.cause)),
        axis=_axis(ticks, total),
        groups=_span_groups(rows[:SPANS], fall, total, grid),
        more=max(0, len(rows) - SPANS) + fall.hidden - told,
        command=names.command(pick.trace_id),
    )


def _span_groups(
    rows: Sequence[WaterfallRow], fall: Waterfall, total: float, grid: Markup
) -> list[SpanGroup]:
    groups = []
    for number, some in itertools.groupby(rows, key=lambda row: row.fold):
        lines = [_span(row, fall, total, grid) for row in some]
        if number < 0:
            groups += [SpanGroup(spans=[line]) for line in lines]
        else:
            fold = fall.folds[number]
            line = _fold_line(fold, fall, total, grid)
            groups.append(SpanGroup(spans=lines, fold=line, hidden=fold.hidden))
    return groups


def _fold_line(fold: WaterfallFold, fall: Waterfall, total: float, grid: Markup) -> SpanLine:
    failed = f"{whole(fold.failed)} failed" if fold.failed else ""
    each = time_text(fold.duration_s / fold.count)
    is_pause = any(one.kind == "pause" for one in fold.segments)
    return SpanLine(
        depth=fold.depth,
        name=f"{fold.name} \u00d7 {whole(fold.count)}",
        detail=", ".join(part for part in (f"{each} each on average", failed) if part),
        where="",
        bar=_segments_bar(fold.segments, total, grid, is_failed=False),
        duration_s=fold.duration_s,
        critical_s=fold.critical_s,
        error=failed,
        is_heavy=fold.critical_s >= _HEAVY * max(fall.duration_s, 1e-9) and not is_pause,
        fields=[],
    )


def _segments_bar(
    segments: Sequence[WaterfallSegment], total: float, grid: Markup, *, is_failed: bool
) -> Markup:
    parts = []
    for segment in segments:
        look, top, height = _LOOKS[segment.kind]
        if segment.kind == "path" and is_failed:
            look = "bad"
        left = 100 * max(segment.from_s, 0) / total
        width = 100 * (segment.to_s - max(segment.from_s, 0)) / total
        parts.append(rect(left, min(width, 100 - left), look, top, height))
    return graphic("tl", [grid, *parts])


def _span(row: WaterfallRow, fall: Waterfall, total: float, grid: Markup) -> SpanLine:
    service = "/".join(part for part in (row.project, row.service) if part)
    return SpanLine(
        depth=row.depth,
        name=row.name,
        detail=mask_url(detail_after(row.name, row.detail)),
        where=" on ".join(part for part in (service, row.host) if part),
        bar=_segments_bar(row.segments, total, grid, is_failed=bool(row.error)),
        duration_s=row.duration_s,
        critical_s=row.critical_s,
        error=row.error,
        is_heavy=row.critical_s >= _HEAVY * max(fall.duration_s, 1e-9) and not row.is_pause,
        fields=_fields(row),
    )


def _fields(row: WaterfallRow) -> list[tuple[str, str]]:
    """Return (name, value) pairs that describe a span, without empty values; secrets masked."""
    pairs = [
        ("name", row.name),
        ("project", row.project),
        ("service", row.service),
        ("host", row.host),
        ("starts", time_text(row.start_s)),
        ("takes", time_text(row.duration_s)),
        ("own time", time_text(row.self_s)),
        ("waited to begin", time_text(row.waited_s) if row.waited_s else ""),
        ("exception", row.error),
        *((name, mask_url(value)) for name, value in row.fields),
        ("note", ", ".join(_remarks(row))),
        ("started", row.started_at),
        ("finished", row.stopped_at),
        ("trace id", row.span_id),
        ("parent id", row.parent_id),
    ]
    return [(name, value) for name, value in pairs if value]


def _remarks(row: WaterfallRow) -> list[str]:
    remarks = [*row.marks]
    if row.outlives:
        remarks.append("ended after its caller")
    if row.is_pause:
        remarks.append("a pause of the scenario")
    if row.left_out:
        remarks.append(f"no part of the tree: {row.left_out}")
    return remarks


def nice_ticks(total: float) -> list[float]:
    """Return two to five round times for an axis, from 0 up to at most `total`, which is not 0."""
    step = 10.0 ** math.floor(math.log10(total / 3))
    step = next((size for size in (step, 2 * step, 5 * step) if total / size <= 4.6), 10 * step)
    return [number * step for number in range(int(total / step) + 1)]


def _axis(ticks: Sequence[float], total: float) -> Markup:
    texts = []
    for tick in ticks:
        middle = Markup(' text-anchor="middle"') if 0 < tick < 0.95 * total else Markup("")
        if tick >= 0.95 * total:
            middle = Markup(' text-anchor="end"')
        said = time_text(tick, 2) if tick else "0"
        texts.append(
            Markup('<text x="{:.2f}%" y="11"{}>{}</text>').format(100 * tick / total, middle, said)
        )
    return Markup('<svg aria-hidden="true">{}</svg>').format(Markup("").join(texts))
