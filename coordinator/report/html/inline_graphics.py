"""Makes small graphics as inline SVG: geometry is in attributes, so they need no script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from osbench.common.values.outcomes import STATES
from osbench.coordinator.report.html.page_numbers import time_text, whole

#: Narrowest rectangle that is still seen, percent.
_LEAST = 0.15
#: Points below which a line says nothing.
MIN_LINE_POINTS = 2
#: Columns of a spark.
SPARK_BINS = 40


def rect(
    left: float, width: float, look: str, top: float = 0, height: str = "100%", title: str = ""
) -> Markup:
    """Return an SVG rectangle of CSS class `look`, with `title` as its tooltip.

    `left` and `width` are percent of the graphic, `top` is pixels. It is at least `_LEAST` wide.
    """
    place = Markup('<rect x="{:.2f}%" y="{:g}" width="{:.2f}%" height="{}" class="{}"').format(
        left, top, max(width, _LEAST), height, look
    )
    if not title:
        return place + Markup("/>")
    return place + Markup("><title>{}</title></rect>").format(title)


def graphic(look: str, parts: Iterable[Markup], label: str = "") -> Markup:
    """Return an SVG element of CSS class `look` with `parts`.

    `label` is read by screen readers; without it, they ignore the graphic.
    """
    said = (
        Markup('role="img" aria-label="{}"').format(label)
        if label
        else Markup('aria-hidden="true"')
    )
    inner = Markup("").join(parts)
    return Markup('<svg class="{}" {}>{}</svg>').format(look, said, inner)


def stacked_bar(counts: dict[str, int], states: Sequence[str] = STATES, label: str = "") -> Markup:
    """Return a stacked bar of the numbers of iterations by state, in the order of `states`.

    States without iterations have no part. `label` is for screen readers.
    """
    total = sum(counts[state] for state in states)
    parts, left = [], 0.0
    for state in states:
        width = 100 * counts[state] / total if total else 0
        if width:
            title = f"{state.replace('_', ' ')} {whole(counts[state])}"
            parts.append(rect(left, width, f"k-{state}", title=title))
        left += width
    return graphic("stack", parts, label)


class LogScale:
    """A logarithmic axis from the least to the greatest of `values`, shared by the bars of a table.

    None and values of 0 or less are ignored; without others it is 0.001 to 1.
    """

    def __init__(self, values: Iterable[float | None]) -> None:
        known = [value for value in values if value and value > 0]
        self.low = min(known, default=1e-3)
        self.high = max(known, default=1.0)
        if self.high <= self.low:
            self.high = 1.001 * self.low

    def at(self, value: float) -> float:
        """Return the position of a value on the axis in percent, clipped to 0 to 100."""
        inside = min(max(value, self.low), self.high)
        return 100 * math.log(inside / self.low) / math.log(self.high / self.low)

    def spread(self, values: Sequence[float], look: str = "b-mid") -> Markup:
        """Return a bar of a distribution: minimum to maximum thin, p50 to p95 thick, p99 as a tick.

        `values` are minimum, p50, p95, p99 and maximum, in seconds; `look` is the CSS class of the
        thick part.
        """
        least, middle, p95, p99, most = values
        line, bar, end = self.at(least), self.at(middle), self.at(p95)
        parts = [
            rect(line, self.at(most) - line, "b-base", 7, "2"),
            rect(bar, end - bar, look, 3, "10"),
            rect(min(self.at(p99), 99.4), 0.6, "b-tick", 3, "10"),
        ]
        label = f"p50 {time_text(middle)}, p95 {time_text(p95)}, p99 {time_text(p99)}"
        return graphic("bar-i", parts, label)


def share_bar(share: float, look: str = "b-mid") -> Markup:
    """Return a bar that fills the fraction `share` of its cell, clipped to 0 to 1."""
    return graphic("bar-i", [rect(0, 100 * min(max(share, 0), 1), look, 4, "8")])


def limit_bar(share: float, look: str) -> Markup:
    """Return a bar of the used fraction of a limit, `share`: 2 or more fills it, a tick marks 1."""
    used = min(max(share, 0), 2) / 2
    parts = [
        rect(0, 100, "b-base", 7, "2"),
        rect(0, 100 * used, look, 4, "8"),
        rect(49.7, 0.6, "b-tick", 1, "14"),
    ]
    return graphic("bar-i", parts)


def pair_bar(normal: float, slow: float, most: float, look: str) -> Markup:
    """Return a bar of the time in slow traces with the time in normal traces drawn over it.

    Times are seconds; `most` is the time of a full bar.
    """
    most = most or 1
    parts = [
        rect(0, 100 * slow / most, look, 3, "10"),
        rect(0, 100 * normal / most, "b-mid", 3, "10"),
    ]
    label = f"{time_text(normal)} in the middle, {time_text(slow)} in slow traces"
    return graphic("bar-i", parts, label)


def spark(counts: Sequence[int], label: str) -> Markup:
    """Return counts, one for each of SPARK_BINS parts of the load, as small columns of SVG.

    The greatest count has full height. `label` is for screen readers.
    """
    most = max(counts, default=0) or 1
    columns = [
        Markup('<rect x="{:g}" y="{:.1f}" width="2.4" height="{:.1f}"/>').format(
            3 * number, 15 - 14 * count / most, 14 * count / most
        )
        for number, count in enumerate(counts[:SPARK_BINS])
        if count
    ]
    inner = Markup('<path d="M0 15.5H120"/>') + Markup("").join(columns)
    return Markup(
        '<svg class="spark" viewBox="0 0 120 16" role="img" aria-label="{}">{}</svg>'
    ).format(label, inner)


def cpu_line(points: Sequence[tuple[float, float]], end_s: float, label: str) -> Markup:
    """Return CPU usage over the load as an SVG line from 0 to one core; more is cut off.

    `points`: (seconds after t0, cores); `end_s`: right end of the axis. Empty if that is 0, or
    there are fewer than MIN_LINE_POINTS points.
    """
    if len(points) < MIN_LINE_POINTS or end_s <= 0:
        return Markup("")
    places = " ".join(
        f"{120 * min(at_s / end_s, 1):.1f},{15 - 14 * min(max(cpu, 0), 1):.1f}"
        for at_s, cpu in points
    )
    return Markup(
        '<svg class="spark cpu" viewBox="0 0 120 16" role="img" aria-label="{}">'
        '<path d="M0 15.5H120M0 1H120"/><polyline points="{}"/></svg>'
    ).format(label, places)
