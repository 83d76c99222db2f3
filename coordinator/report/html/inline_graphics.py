"""Small graphics as inline SVG: geometry in attributes, so they need no script and no style."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from osbench.common.outcomes import STATES
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
    """Return a rectangle; left and width in percent of the graphic."""
    place = Markup('<rect x="{:.2f}%" y="{:g}" width="{:.2f}%" height="{}" class="{}"').format(
        left, top, max(width, _LEAST), height, look
    )
    if not title:
        return place + Markup("/>")
    return place + Markup("><title>{}</title></rect>").format(title)


def graphic(look: str, parts: Iterable[Markup], label: str = "") -> Markup:
    """Return a graphic of a class; without a label it repeats the adjacent text."""
    said = (
        Markup('role="img" aria-label="{}"').format(label)
        if label
        else Markup('aria-hidden="true"')
    )
    inner = Markup("").join(parts)
    return Markup('<svg class="{}" {}>{}</svg>').format(look, said, inner)


def stacked(counts: dict[str, int], states: Sequence[str] = STATES, label: str = "") -> Markup:
    """Return a bar of iterations by state."""
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
    """A logarithmic axis from least to greatest, shared by the bars of a table."""

    def __init__(self, values: Iterable[float | None]) -> None:
        known = [value for value in values if value and value > 0]
        self.low = min(known, default=1e-3)
        self.high = max(known, default=1.0)
        if self.high <= self.low:
            self.high = 1.001 * self.low

    def at(self, value: float) -> float:
        """Return the position of a value in percent."""
        inside = min(max(value, self.low), self.high)
        return 100 * math.log(inside / self.low) / math.log(self.high / self.low)

    def spread(self, values: Sequence[float], look: str = "b-mid") -> Markup:
        """Draw minimum to maximum as a hairline, p50 to p95 as a bar, p99 as a tick."""
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
    """Return a bar of a share of the cell, 0 to 1."""
    return graphic("bar-i", [rect(0, 100 * min(max(share, 0), 1), look, 4, "8")])


def limit_bar(share: float, look: str) -> Markup:
    """Return a bar of the used share of a limit: it ends at 200 %, the tick is the limit."""
    used = min(max(share, 0), 2) / 2
    parts = [
        rect(0, 100, "b-base", 7, "2"),
        rect(0, 100 * used, look, 4, "8"),
        rect(49.7, 0.6, "b-tick", 1, "14"),
    ]
    return graphic("bar-i", parts)


def pair_bar(normal: float, slow: float, most: float, look: str) -> Markup:
    """Return a bar of the time in slow traces, and over it the time in normal traces."""
    most = most or 1
    parts = [
        rect(0, 100 * slow / most, look, 3, "10"),
        rect(0, 100 * normal / most, "b-mid", 3, "10"),
    ]
    label = f"{time_text(normal)} in the middle, {time_text(slow)} in slow traces"
    return graphic("bar-i", parts, label)


def spark(counts: Sequence[int], label: str) -> Markup:
    """Return counts over the load as small columns."""
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
    """Return CPU usage over the load as a line from 0 to one core; more than a core is cut off."""
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
