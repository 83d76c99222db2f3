"""Renders comparisons, trends and staircases of runs as HTML pages.

A page is one file, without scripts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup, escape

from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import spaced
from osbench.coordinator.report.html import single_page
from osbench.coordinator.report.html.page_assets import PageFrame
from osbench.coordinator.report.staircase.staircase import Staircase
from osbench.edges.history.comparison.comparison_result import (
    Basis,
    ChangeRow,
    ChangeVerdict,
    ComparisonResult,
)
from osbench.edges.history.comparison.comparison_text import interval_text
from osbench.edges.history.comparison.findable_changes import signed_percent
from osbench.edges.history.comparison.load_series import RunsStaircase
from osbench.edges.history.comparison.trends import RunsTrend, TrendChange, TrendSeries

#: Package of templates and style.
_PACKAGE, _STYLE = "osbench.edges.history.comparison", "comparison.css"
#: A sign next to each verdict: not everybody can distinguish colours.
_SIGNS = {
    ChangeVerdict.WORSE: "✕",
    ChangeVerdict.MIXED: "✕",
    ChangeVerdict.BETTER: "✓",
    ChangeVerdict.EQUIVALENT: "=",
    ChangeVerdict.NO_EVIDENCE: "~",
}
#: Workloads that a heading names.
_HEADED = 2
#: Date and time at the begin of a run's id.
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)\d\d-")
#: Ratios drawn at most to either side, and at least.
_WIDEST, _NARROWEST = math.log(4), math.log(1.05)
#: Units of drawings, and free space at the top and bottom of a series.
_WIDTH, _HEIGHT, _FREE = 1000, 100, 8


def page_policy() -> str:
    """Return the Content-Security-Policy of these pages: only their own style, by hash."""
    return single_page.page_policy(_PACKAGE, _STYLE)


def compare_page(result: ComparisonResult, frame: PageFrame | None = None) -> str:
    """Return the result of a comparison as an HTML page.

    `frame`: additions of the web server, None for a page in a file.
    """
    told, colon, rest = result.sentence.partition(":")
    if not colon:
        told, rest = result.sentence, ""
    reach = _reach(result)
    environment = _page_environment()
    environment.filters["forest"] = lambda row: _forest(row, reach, result.margin)
    names = [name or "" for name in result.names]
    return environment.get_template("comparison.html.j2").render(
        frame=frame,
        result=result,
        told=told + colon,
        rest=rest,
        heading=_heading(result),
        axis=f"after / before, {math.exp(-reach):.2f} to {math.exp(reach):.2f}; line: the same",
        sides=[
            (f"before {names[0]}".strip(), result.before),
            (f"after {names[1]}".strip(), result.after),
        ],
        command=compare_command(result),
    )


def trends_page(
    trends: Sequence[RunsTrend], frame: PageFrame | None = None, notes: Sequence[str] = ()
) -> str:
    """Return trends of runs, at least one, as an HTML page.

    `frame`: additions of the web server, None for a page in a file. `notes` are messages on runs
    that are left out.
    """
    template = _page_environment().get_template("trends.html.j2")
    return template.render(trends=list(trends), frame=frame, notes=notes)


def staircases_page(found: Sequence[RunsStaircase]) -> str:
    """Return an HTML page that draws throughput and latency by load for each staircase.

    There must be at least one staircase.
    """
    environment = _page_environment()
    environment.filters.update(drawn_throughput=_drawn_throughput, drawn_times=_drawn_times)
    return environment.get_template("staircases.html.j2").render(found=list(found), frame=None)


def compare_command(result: ComparisonResult) -> str:
    """Return the command line `osbench-coord compare` of this comparison, without `--archive`."""
    given = f" --margin {100 * result.margin:g}%" if result.margin is not None else ""
    if result.basis is Basis.PAIRS:
        given += " --in-pairs"
    if result.block_size:
        given += f" --in-blocks {result.block_size}"
    if any(caveat.refuses for caveat in result.caveats):
        given += " --anyway"
    before, after = " ".join(result.before), " ".join(result.after)
    against = " " if len(result.before) == len(result.after) == 1 else " --against "
    return f"osbench-coord compare {before}{against}{after}{given}"


def _page_environment() -> Environment:
    """Return a new Jinja environment with the templates of the pages and their common filters."""
    environment = single_page.page_environment(_PACKAGE, _STYLE)
    environment.filters.update(
        sign=lambda verdict: _SIGNS[verdict],
        word=lambda verdict: str(verdict).replace(" ", "-"),
        duration=spaced,
        signed=signed_percent,
        interval=interval_text,
        code=_with_code,
        trend_word=lambda trend: "worse" if _got_worse(trend) else "",
        all_changes=_all_changes,
        series_range=_series_range,
        series_top=_series_top,
        began=_began,
        drawn_series=_drawn_series,
    )
    return environment


def _heading(result: ComparisonResult) -> str:
    """Return the workloads and both sides by name or date: "Shop: after against before"."""
    sides = [
        name or (_began(runs[0]) if len(runs) == 1 else f"{len(runs)} runs from {_began(runs[0])}")
        for name, runs in zip(result.names, (result.before, result.after), strict=True)
    ]
    names = [workload.name for workload in result.workloads]
    if len(names) > _HEADED:
        names[_HEADED:] = [f"{len(names) - _HEADED} more"]
    return f"{', '.join(names)}{': ' if names else ''}{sides[1]} against {sides[0]}"


def _began(run_id: str) -> str:
    """Return the date and minute in an id of a run; ids of another form as they are."""
    found = _DATE.match(run_id)
    return "{}-{}-{} {}:{} UTC".format(*found.groups()) if found else run_id


def _with_code(text: str) -> Markup:
    """Return a message as HTML: parts between backticks are code."""
    parts = escaped(text, breaks=True).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def _reach(result: ComparisonResult) -> float:
    """Return half the width of the axis of intervals, as the logarithm of a ratio.

    It covers all intervals, within `_NARROWEST` and `_WIDEST`.
    """
    rows = [row for workload in result.workloads for row in workload.rows]
    bounds = [bound for row in rows for bound in (row.ratio, *(row.interval or ()))]
    furthest = max((abs(math.log(bound)) for bound in bounds), default=0.0)
    return min(max(furthest * 1.1, _NARROWEST), _WIDEST)


def _forest(row: ChangeRow, reach: float, margin: float | None) -> Markup:
    """Return a drawing (SVG) of a row's interval on an axis of log ratios from -reach to reach.

    All rows of a page share it. `margin`: fraction of change that is shaded; None: no shading.
    """

    def at(ratio: float) -> float:
        place = math.log(ratio) / reach
        return round(_WIDTH / 2 * (1 + min(max(place, -1.0), 1.0)), 1)

    parts = []
    if margin is not None:
        low, high = at(1 / (1 + margin)), at(1 + margin)
        parts.append(f'<rect class="margin" x="{low}" y="0" width="{high - low:.1f}" height="16"/>')
    parts.append(f'<line class="whisker zero" x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="0" y2="16"/>')
    if row.interval is not None:
        low, high = map(at, row.interval)
        parts.append(f'<line class="whisker" x1="{low}" x2="{high}" y1="8" y2="8"/>')
    parts.append(f'<path class="centre" d="M{at(row.ratio)} 8h0"/>')
    return _drawing("forest", 16, parts)


def _drawn_series(trend: RunsTrend, one: TrendSeries, *, linked: bool) -> Markup:
    """Return a drawing (SVG) of a series by run, with its lasting changes; "" without values.

    The axis begins at 0, and is common to the percentiles of a workload or action. Each run with a
    value has a point, which leads to its report if it is `linked`. Each change has a line with its
    size, and levels before and after it.
    """
    if all(value is None for value in one.values_s):
        return Markup("")
    high = _top_s(trend, one) or 1.0
    last = max(len(one.values_s) - 1, 1)

    def x(at: float) -> float:
        return round(_WIDTH * at / last, 1)

    def y(value: float) -> float:
        return round(_HEIGHT - value / high * (_HEIGHT - _FREE), 1)

    points = [(at, value) for at, value in enumerate(one.values_s) if value is not None]
    line = " ".join(f"{x(at)} {y(value)}" for at, value in points)
    parts = [f'<polyline class="line" points="{line}"/>']
    for at, value in points:
        run_id = trend.runs[at].run_id
        text = escape(f"{escaped(run_id)}: {spaced(value)}")
        point = f'<path class="dots" d="M{x(at)} {y(value)}h0"><title>{text}</title></path>'
        address = quote(f"/runs/{run_id}")
        parts.append(f'<a href="{address}" aria-label="{text}">{point}</a>' if linked else point)
    places = {run.run_id: at for at, run in enumerate(trend.runs)}
    begin = 0.0
    for number, change in enumerate(one.changes):
        edge = (places[change.before_run] + places[change.after_run]) / 2
        level = y(change.before_s)
        parts.append(f'<path class="level" d="M{x(begin)} {level}H{x(edge)}"/>')
        size = f"<title>{escape(signed_percent(change.ratio))}</title>"
        parts.append(f'<path class="step" d="M{x(edge)} 0V{_HEIGHT}">{size}</path>')
        begin = edge
        if number == len(one.changes) - 1:
            parts.append(f'<path class="level" d="M{x(edge)} {y(change.after_s)}H{_WIDTH}"/>')
    return _drawing("series", _HEIGHT, parts, hidden=not linked)


def _drawn_throughput(staircase: Staircase) -> Markup:
    points = [(step.load, step.throughput) for step in staircase.steps]
    return _drawn_by_load(staircase, [points], 0.0)


def _drawn_times(staircase: Staircase) -> Markup:
    """Return an SVG drawing of p50, p95 and p99 by load, logarithmic; "" without times."""
    lines = [
        [
            (step.load, math.log(value))
            for step, value in zip(staircase.steps, values, strict=True)
            if value
        ]
        for values in (
            [step.p50_s for step in staircase.steps],
            [step.p95_s for step in staircase.steps],
            [step.p99_s for step in staircase.steps],
        )
    ]
    known = [value for line in lines for _, value in line]
    return _drawn_by_load(staircase, lines, min(known)) if known else Markup("")


def _drawn_by_load(
    staircase: Staircase, lines: Sequence[Sequence[tuple[float, float]]], low: float
) -> Markup:
    """Return a drawing (SVG) of lines by load, from load 0 to the greatest; a knee is marked.

    From a knee on p95 grows faster than throughput. `lines` are points (load, value); `low` is
    the value at the bottom.
    """
    most = staircase.steps[-1].load
    high = max(value for line in lines for _, value in line)

    def x(load: float) -> float:
        return round(_WIDTH * load / most, 1)

    def y(value: float) -> float:
        return _place_between(low, high, value)

    parts = []
    knee = staircase.knee
    if knee is not None:
        left, right = x(knee.below), x(knee.above)
        parts.append(
            f'<rect class="margin" x="{left}" y="0" width="{right - left:.1f}" height="{_HEIGHT}"/>'
        )
        parts.append(f'<path class="level" d="M{x(knee.load)} 0V{_HEIGHT}"/>')
    for line in lines:
        points = [(x(load), y(value)) for load, value in line]
        joined = " ".join(f"{a} {b}" for a, b in points)
        parts.append(f'<polyline class="line" points="{joined}"/>')
        parts.append(f'<path class="dots" d="{"".join(f"M{a} {b}h0" for a, b in points)}"/>')
    return _drawing("series", _HEIGHT, parts)


def _place_between(low: float, high: float, value: float) -> float:
    """Return the place of a value from the top of a series, in its units."""
    share = (value - low) / (high - low) if high > low else 0.5
    return round(_HEIGHT - _FREE - share * (_HEIGHT - 2 * _FREE), 1)


def _drawing(name: str, height: int, parts: Sequence[str], *, hidden: bool = True) -> Markup:
    """Return an SVG drawing of `parts`, 1000 units wide and `height` high.

    `name` is its CSS class. Parts are not escaped. `hidden`: from screen readers, as it has no
    links, and a table has the numbers.
    """
    role = 'aria-hidden="true"' if hidden else 'role="group" aria-label="Runs"'
    # numbers, osbench's own words, and escaped ids of runs
    return Markup(  # noqa: S704
        f'<svg class="{name}" viewBox="0 0 {_WIDTH} {height}" preserveAspectRatio="none"'
        f" {role}>{''.join(parts)}</svg>"
    )


def _series_top(one: TrendSeries, trend: RunsTrend) -> str:
    return spaced(_top_s(trend, one))


def _top_s(trend: RunsTrend, one: TrendSeries) -> float | None:
    """Return the greatest value, seconds, of all series of its workload and action, or None."""
    alike = [
        series
        for series in trend.series
        if (series.workload, series.action) == (one.workload, one.action)
    ]
    values = (value for series in alike for value in series.values_s)
    return max((value for value in values if value is not None), default=None)


def _series_range(one: TrendSeries) -> str:
    known = [value for value in one.values_s if value is not None]
    if not known:
        return "too few iterations"
    changes = "".join(
        f"; {signed_percent(change.ratio)} since {change.after_run}" for change in one.changes
    )
    return f"{spaced(min(known))} to {spaced(max(known))}, last {spaced(known[-1])}{changes}"


def _all_changes(trend: RunsTrend) -> list[tuple[TrendSeries, TrendChange]]:
    return [(one, change) for one in trend.series for change in one.changes]


def _got_worse(trend: Any) -> bool:
    return any(change.ratio > 1 for _, change in _all_changes(trend))
