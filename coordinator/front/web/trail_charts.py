"""Draws the figures of a run over time as small line charts of SVG, for the live view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from osbench.coordinator.formatting import duration, three_digits

#: Size of the drawing, without unit: width and height.
SIZE = 600, 80
#: A point of `ProgressTrail`: elapsed_s, iterations per second, p50_s and p95_s.
Point = Sequence[float | None]


class TrailChart(NamedTuple):
    """A chart as texts: its title, the upper end of its axis, lines, and the ends of the time."""

    title: str
    most: str
    #: Names of the lines, which are also their CSS classes, and the data of SVG paths.
    lines: list[tuple[str, str]]
    begin: str
    end: str


def trail_charts(points: Sequence[Point], time: str) -> list[TrailChart]:
    """Return the charts of iterations per second and of durations; [] for fewer than two points.

    `time`: the duration that percentiles are of, service or response.
    """
    if len(points) < 2:
        return []
    begin, end = (duration(points[at][0]) for at in (0, -1))
    found = []
    for title, columns, text in (
        ("iterations per second", {"rate": 1}, three_digits),
        (f"{time} time of the last seconds", {"p50": 2, "p95": 3}, duration),
    ):
        values = [point[column] or 0.0 for point in points for column in columns.values()]
        most = max(values) or 1.0
        lines = [(name, _path(points, column, most)) for name, column in columns.items()]
        found.append(TrailChart(title, text(most), lines, begin, end))
    return found


def _path(points: Sequence[Point], column: int, most: float) -> str:
    """Return the data of an SVG path; points without a value interrupt the line."""
    width, height = SIZE
    begin_s = points[0][0] or 0.0
    span_s = (points[-1][0] or 0.0) - begin_s or 1.0
    parts, joined = list[str](), False
    for point in points:
        value = point[column]
        if value is not None:
            x = width * ((point[0] or 0.0) - begin_s) / span_s
            y = height - 1 - (height - 2) * value / most
            parts.append(f"{'L' if joined else 'M'}{x:.0f} {y:.1f}")
        joined = value is not None
    return "".join(parts)
