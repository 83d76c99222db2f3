"""The part of a run's page on an overload: the loop of load against latency, and its phases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup, escape

from osbench.common.errors import DamagedRun
from osbench.coordinator.formatting import spaced, three_digits
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.page_part import PagePart
from osbench.coordinator.report.run_facts import RunFacts
from osbench.edges.overload.overload_figures import LoopPoint, OverloadFigures
from osbench.edges.overload.overload_sentences import held_text

#: Units of the drawing: width, height, and room for its axes.
_WIDTH, _HEIGHT, _FREE = 720.0, 320.0, 48.0
#: Lines of the loop by phase: dashes of SVG, and width.
_LINES = {"before": ("", 3.0), "overload": ("2 4", 2.0), "after": ("8 4", 2.0)}


@dataclass(frozen=True, kw_only=True)
class PhaseRow:
    """A phase as a row of the table: its name, and its figures as text."""

    name: str
    cells: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class LoopChart:
    """The loop of one workload, and the table below it."""

    drawing: Markup
    rows: Sequence[PhaseRow]
    held: Sequence[str]


class OverloadPart(PagePart):
    """The loop of each workload that has an overload."""

    OVER_TIME: ClassVar[str] = "osbench.edges.overload:overload.j2"

    def __init__(self, charts: Mapping[int, LoopChart]) -> None:
        self._charts = charts

    @classmethod
    def of(cls, facts: RunFacts, *, live: bool) -> OverloadPart | None:
        """Return the part; None without an overload. Raises DamagedRun."""
        charts = {}
        for number, workload in enumerate(facts.report.workloads):
            found = workload.drill.overload if workload.drill is not None else None
            if found is not None:
                charts[number] = loop_chart(_figures(found, facts.run_id))
        return cls(charts) if charts else None

    def chart(self, workload: int) -> LoopChart | None:
        """Return the loop of a workload; None if it has no overload."""
        return self._charts.get(workload)


def _figures(document: Mapping[str, object], run_id: str) -> OverloadFigures:
    try:
        return json_codec.from_json(OverloadFigures, document)
    except (ValueError, TypeError) as error:
        raise DamagedRun(f"summary.json of run {run_id} is damaged: overload: {error}") from None


def loop_chart(found: OverloadFigures) -> LoopChart:
    """Return the loop and the table of an overload."""
    return LoopChart(
        drawing=_drawing(found),
        rows=[
            PhaseRow(
                name=one.name,
                cells=(
                    f"{one.from_s:.4g} to {one.to_s:.4g} s",
                    three_digits(one.ran_per_s),
                    three_digits(one.ok_per_s),
                    "-" if one.bad_share is None else f"{three_digits(100 * one.bad_share)} %",
                    "-" if one.p50_s is None else spaced(one.p50_s),
                    "-" if one.p90_s is None else spaced(one.p90_s),
                    three_digits(one.in_flight),
                    three_digits(one.requests),
                    three_digits(one.connections),
                ),
            )
            for one in found.phases
        ],
        held=[held_text(one) for one in found.held_by],
    )


def _drawing(found: OverloadFigures) -> Markup:
    """Return the loop as SVG: load to the right, the logarithm of the median upwards."""
    timed = [one for one in found.loop if one.p50_s]
    if len(timed) < 2:
        return Markup("")
    times = [one.p50_s or 0.0 for one in timed]
    low, high = min(times), max(times)
    most = max(one.offered_per_s for one in timed)

    def place(one: LoopPoint) -> str:
        x = _FREE + one.offered_per_s / most * (_WIDTH - 2 * _FREE)
        span = math.log(high / low) if high > low else 1.0
        y = _HEIGHT - _FREE - math.log((one.p50_s or low) / low) / span * (_HEIGHT - 2 * _FREE)
        return f"{x:.1f} {y:.1f}"

    parts = [_axes(low, high, most)]
    for name, points in _by_phase(found, timed):
        dashes, width = _LINES[name]
        line = " ".join(map(place, points))
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="{width:g}"'
            f' stroke-dasharray="{dashes}" opacity="0.8"><title>{name}</title></polyline>'
        )
    for one in timed:
        title = escape(
            f"{one.at_s:.4g} s: {three_digits(one.offered_per_s)}/s, {spaced(one.p50_s)}"
            + (f", {three_digits(100 * one.bad_share)} % fail" if one.bad_share else "")
        )
        x, y = place(one).split()
        parts.append(
            f'<circle cx="{x}" cy="{y}" r="3" fill="currentColor"><title>{title}</title></circle>'
        )
    # numbers, and osbench's own words
    return Markup(  # noqa: S704
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="100%" role="img" aria-label="Median time'
        f' by offered load, in the order of time">{"".join(parts)}</svg>'
    )


def _by_phase(
    found: OverloadFigures, points: Sequence[LoopPoint]
) -> Iterator[tuple[str, list[LoopPoint]]]:
    """Yield the points of each phase, each after the last point of the phase before it."""
    bounds = (("before", found.begin_s), ("overload", found.return_s), ("after", math.inf))
    from_s, last = -math.inf, list[LoopPoint]()
    for name, to_s in bounds:
        here = [one for one in points if from_s <= one.at_s < to_s]
        if here:
            yield name, [*last, *here]
            last = here[-1:]
        from_s = to_s


def _axes(low: float, high: float, most: float) -> str:
    left, bottom, right, top = _FREE, _HEIGHT - _FREE, _WIDTH - _FREE, _FREE
    text = 'fill="currentColor" font-size="12"'
    return (
        f'<path d="M{left:g} {top:g}V{bottom:g}H{right:g}" fill="none" stroke="currentColor"'
        ' opacity="0.4"/>'
        f'<text x="{left:g}" y="{top - 8:g}" {text}>{escape(spaced(high))}</text>'
        f'<text x="{left:g}" y="{bottom + 16:g}" {text}>0/s, {escape(spaced(low))}</text>'
        f'<text x="{right:g}" y="{bottom + 16:g}" {text} text-anchor="end">'
        f"{escape(three_digits(most))}/s</text>"
    )
