"""Renders staircases of several runs as an HTML page: one file, without scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from osbench.coordinator.report.staircase.staircase import Staircase
from osbench.edges.history.comparison.comparison_page import drawing, page_environment
from osbench.edges.history.comparison.load_series import RunsStaircase

#: Units of the drawings, and free space at their top and bottom.
_WIDTH, _HEIGHT, _FREE = 1000, 100, 8


def staircases_page(found: Sequence[RunsStaircase]) -> str:
    """Return an HTML page that draws throughput and latency by load for each staircase.

    There must be at least one staircase.
    """
    environment = page_environment()
    environment.filters.update(drawn_throughput=_throughput, drawn_times=_times)
    return environment.get_template("staircases.html.j2").render(found=list(found), frame=None)


def _throughput(staircase: Staircase) -> Markup:
    points = [(step.load, step.throughput) for step in staircase.steps]
    return _drawing(staircase, [points], 0.0)


def _times(staircase: Staircase) -> Markup:
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
    return _drawing(staircase, lines, min(known)) if known else Markup("")


def _drawing(
    staircase: Staircase, lines: Sequence[Sequence[tuple[float, float]]], low: float
) -> Markup:
    """Return a drawing (SVG) of lines by load, from load 0 to the greatest, with the knee marked.

    From the knee on p95 grows faster than throughput. `lines` are points (load, value); `low` is
    the value at the bottom.
    """
    most = staircase.steps[-1].load
    high = max(value for line in lines for _, value in line)

    def x(load: float) -> float:
        return round(_WIDTH * load / most, 1)

    def y(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(_HEIGHT - _FREE - share * (_HEIGHT - 2 * _FREE), 1)

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
    return drawing("series", _HEIGHT, parts)
