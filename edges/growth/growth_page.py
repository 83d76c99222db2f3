"""Renders the growth of the requests of a task as an HTML page: one file, without scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from osbench.coordinator.formatting import count, spaced, three_digits
from osbench.coordinator.report.html.single_page import page_environment
from osbench.edges.growth.growth_result import (
    SPANS,
    SQL,
    TIME,
    GrowthResult,
    Measure,
    RequestGrowth,
)
from osbench.edges.growth.growth_sentences import notes, remarks, request_sentence, short_answer
from osbench.edges.growth.growth_text import row_of, shown_measures, verdict_word
from osbench.edges.growth.growth_verdicts import GrowthVerdict
from osbench.edges.growth.laws import Law, law_value

#: Package of the template and the style.
_PACKAGE = "osbench.edges.growth"
#: Units of a drawing: width, height, and free space around its lines.
_WIDTH, _HEIGHT, _FREE = 1000, 220, 12
#: Points of the drawn curve of a law.
_STEPS = 40
#: A count of 0 on a logarithmic axis.
_LEAST_COUNT = 0.5
#: Requests at most that have drawings; the table has all.
_DRAWN = 20
_TITLES = {TIME: "Time of a call", SQL: "SQL statements of a call", SPANS: "Spans of a call"}


def growth_page(result: GrowthResult, verdicts: Sequence[GrowthVerdict]) -> str:
    """Return the growth of all requests as an HTML page with a log-log chart for each."""
    shown = shown_measures(result)
    environment = page_environment(_PACKAGE, "growth.css")
    return environment.get_template("growth.html.j2").render(
        result=result,
        answer=short_answer(result),
        grows=bool(result.requests) and result.requests[0].badness[0] > 0,
        headings=[
            f"time at {count(result.populations[-1])}",
            *("law of time", "exponent (95 %)", f"at {count(result.predict)} (95 %)"),
            *shown,
            "verdict",
        ],
        rows=[row_of(one, result, shown) for one in result.requests],
        sections=[_section(one, result) for one in result.requests[:_DRAWN]],
        verdicts=verdicts,
        notes=list(notes(result)),
    )


def _section(one: RequestGrowth, result: GrowthResult) -> dict[str, object]:
    return {
        "name": one.name,
        "word": verdict_word(one),
        "sentence": request_sentence(one, result),
        "remarks": list(remarks(one, result)),
        "figures": [
            {
                "title": _TITLES[name],
                "law": measure.law,
                "drawing": _drawing(measure, name, result.predict),
                "low": _axis_ends(measure, name, result.predict)[0],
                "high": _axis_ends(measure, name, result.predict)[1],
                "first": count(measure.points[0].population),
                "last": count(_last(measure, result.predict)),
            }
            for name in (TIME, SQL, SPANS)
            if (measure := one.measures.get(name)) is not None and len(measure.points) > 1
        ],
    }


def _last(measure: Measure, predict: int) -> int:
    """Return the greatest population of a drawing: the predicted one, if there is a prediction."""
    greatest = measure.points[-1].population
    return max(greatest, predict) if measure.fit.predicted is not None else greatest


def _axis_ends(measure: Measure, name: str, predict: int) -> tuple[str, str]:
    low, high = _range(measure, predict)
    form = spaced if name == TIME else three_digits
    return form(low), form(high)


def _range(measure: Measure, predict: int) -> tuple[float, float]:
    """Return the least and the greatest value of a drawing, both above 0."""
    values = [bound for one in measure.points for bound in (one.low, one.high, one.value)]
    found = measure.fit.predicted
    if found is not None and _last(measure, predict) == predict:
        values += [found.value, found.high]
    positive = [value for value in values if value > 0]
    least = min(positive, default=_LEAST_COUNT)
    if len(positive) < len(values):
        least = min(least, _LEAST_COUNT)
    return least, max(*values, least)


def _drawing(measure: Measure, name: str, predict: int) -> Markup:
    """Return a log-log drawing (SVG) of a measure: points with intervals, law, prediction."""
    low, high = _range(measure, predict)
    first, last = measure.points[0].population, _last(measure, predict)

    def x(population: float) -> float:
        share = math.log(population / first) / math.log(last / first)
        return round(_FREE + share * (_WIDTH - 2 * _FREE), 1)

    def y(value: float) -> float:
        span = math.log(high / low)
        share = math.log(min(max(value, low), high) / low) / span if span else 0.5
        return round(_HEIGHT - _FREE - share * (_HEIGHT - 2 * _FREE), 1)

    parts = []
    places = [first * (last / first) ** (step / _STEPS) for step in range(_STEPS + 1)]
    curve = [
        (population, value)
        for population in places
        if (value := law_value(measure.fit, population)) is not None
    ]
    if curve:
        line = " ".join(f"{x(population)} {y(value)}" for population, value in curve)
        parts.append(f'<polyline class="law" points="{line}"/>')
    found = measure.fit.predicted
    if found is not None and last == predict:
        parts.append(f'<path class="whisker" d="M{x(last)} {y(found.low)}V{y(found.high)}"/>')
    for point in measure.points:
        parts.append(
            f'<path class="whisker" d="M{x(point.population)} {y(point.low)}V{y(point.high)}"/>'
        )
        written = spaced(point.value) if name == TIME else three_digits(point.value)
        title = escape(f"{count(point.population)}: {written}")
        place = f"M{x(point.population)} {y(point.value)}h0"
        parts.append(f'<path class="dots" d="{place}"><title>{title}</title></path>')
    # numbers, and osbench's own words
    return Markup(  # noqa: S704
        f'<svg class="growth {"flat" if measure.fit.law is Law.CONSTANT else "grows"}"'
        f' viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )
