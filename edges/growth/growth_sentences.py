"""Words for the growth of requests: the short message, the cells of tables, and notes."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import count, plain, size, spaced, three_digits
from osbench.coordinator.report.exit_code import LIMITED, meaning
from osbench.edges.growth.growth_result import (
    BYTES,
    CALLS,
    SPANS,
    SQL,
    TIME,
    GrowthResult,
    Measure,
    RequestGrowth,
)
from osbench.edges.growth.laws import FEWEST, Estimate, Law

#: Share of failed iterations from which a note says so.
_FAILED = 0.05
#: Exit codes of runs that need no note: criteria and the load generator are judged here.
_USUAL = (0, 1, LIMITED)
#: Characters of the name of a request in a sentence.
_NAME = 120

_WORDS = {SPANS: "spans", SQL: "SQL statements"}
_LAWS = {
    Law.LOGARITHMIC: "logarithmically",
    Law.LINEAR: "linearly",
    Law.LINEARITHMIC: "as n log n",
    Law.QUADRATIC: "quadratically",
}


def short_answer(result: GrowthResult) -> str:
    """Return the message on the request that grows worst, or that none grows."""
    populations = result.populations
    if len(populations) < 2:
        return f"Only {count(populations[0])} was measured: growth takes two populations."
    over = f"from {count(populations[0])} to {count(populations[-1])}"
    worst = result.requests[0] if result.requests else None
    if worst is not None and worst.badness[0] > 0:
        return request_sentence(worst, result)
    if not result.times_judged:
        known = "No growth of counts was found" if result.has_spans else "No counts are known"
        return f"{known} {over}. Times have no verdict: the load generator was the limit."
    beside = "" if result.has_spans else ", as far as times show"
    unclear = next((one for one in result.requests if one.unclear), None)
    if unclear is not None:
        beside = f"; {plain(unclear.name, _NAME)} is unclear"
    return f"No growth of a request was found {over}{beside}."


def request_sentence(request: RequestGrowth, result: GrowthResult) -> str:
    """Return a message on the growth of one request."""
    name = plain(request.name, _NAME)
    work = _work(request, result)
    time = _time(request, result)
    if work and time:
        return f"{name} {work}: {time}."
    if work:
        return f"{name} {work}{_time_does_not_grow(request)}."
    law = _grows(request.measures[TIME]) if time else ""
    more = f", and {_returns(request, result)}" if request.returns_more else ""
    return (
        f"{name} takes longer {law}{more}: {time}." if time else f"No growth of {name} was found."
    )


def _work(request: RequestGrowth, result: GrowthResult) -> str:
    """Return the clause on the growth of statements, spans or calls; "" if they do not grow."""
    for name in (SQL, SPANS, CALLS):
        if request.each(name):
            each = request.each(name)
            if name == CALLS:
                return f"is called {_each(each)} times {result.item_phrase}"
            verb = "makes" if name == SQL else "causes"
            return f"{verb} {_each(each)} {_WORDS[name]} {result.item_phrase}"
    for name in (SQL, SPANS, CALLS):
        measure = request.measures.get(name)
        if measure is not None and measure.fit.grows:
            subject = {SQL: "makes more SQL", SPANS: "causes more spans", CALLS: "is called more"}
            last = measure.points[-1]
            return (
                f"{subject[name]} {_grows(measure)}, {_number(last.value)} at"
                f" {count(last.population)}"
            )
    return ""


def _grows(measure: Measure) -> str:
    fit = measure.fit
    if fit.law is Law.POWER and fit.exponent is not None:
        return f"as n^{fit.exponent.value:.2g}"
    if fit.law in _LAWS:
        return _LAWS[fit.law]
    first, last = measure.points[0], measure.points[-1]
    return f"from {count(first.population)} to {count(last.population)}"


def _time(request: RequestGrowth, result: GrowthResult) -> str:
    """Return the clause on the predicted time; "" if time does not grow or is not known."""
    measure = request.measures.get(TIME)
    if measure is None or not measure.fit.grows:
        return ""
    if measure.fit.predicted is None:
        last = measure.points[-1]
        return f"{spaced(last.value)} at {count(last.population)}"
    return f"{time_estimate(measure.fit.predicted)} at {count(result.predict)}"


def _time_does_not_grow(request: RequestGrowth) -> str:
    measure = request.measures.get(TIME)
    if measure is None or len(measure.points) < 2:
        return ""
    last = measure.points[-1]
    return f"; its time shows no growth yet, {spaced(last.value)} at {count(last.population)}"


def _returns(request: RequestGrowth, result: GrowthResult) -> str:
    each = request.each(BYTES)
    beside = f", {size(round(each))} {result.item_phrase}" if each >= 1 else ""
    return f"returns more{beside}"


def time_estimate(estimate: Estimate) -> str:
    """Return a time with its interval: "9.01 s (8.20 to 9.80 s)"."""
    low, high = spaced(estimate.low), spaced(estimate.high)
    if low.partition(" ")[2] == high.partition(" ")[2]:
        low = low.partition(" ")[0]
    return f"{spaced(estimate.value)} ({low} to {high})"


def law_cell(request: RequestGrowth, name: str) -> str:
    """Return the cell of a measure: its law, and for counts their number or number for each."""
    measure = request.measures.get(name)
    if measure is None:
        return "-"
    law = measure.fit.law
    if name == TIME:
        return law.value if law is not Law.POWER else _grows(measure)
    last = measure.points[-1].value
    figure = size(round(last)) if name == BYTES else _number(last)
    if law is Law.CONSTANT:
        return f"constant {figure}"
    if each := request.each(name):
        each_figure = size(round(each)) if name == BYTES else _each(each)
        return f"linear, {each_figure} each"
    return f"{_grows(measure) if law is Law.POWER else law.value}, {figure}"


def exponent_cell(request: RequestGrowth, name: str) -> str:
    """Return the exponent of a measure with its interval; "-" if it is not known."""
    measure = request.measures.get(name)
    if measure is None or measure.fit.exponent is None:
        return "-"
    found = measure.fit.exponent
    if found.low == found.high:
        return _signed_number(found.value)
    value, low, high = map(_signed_number, (found.value, found.low, found.high))
    return f"{value} ({low} to {high})"


def remarks(request: RequestGrowth, result: GrowthResult) -> Iterator[str]:
    """Yield messages on details of a request that grows: its statement, other laws, its size."""
    if request.badness[0] <= 0:
        return
    kinds = [one for one in request.kinds if one.each] or list(request.kinds)
    if kinds:
        each = f"{_each(kinds[0].each)} {result.item_phrase}" if kinds[0].each else "grows"
        yield f"{each}: {plain(kinds[0].name, 160)}"
    measure = request.measures.get(TIME)
    if measure is not None and measure.fit.also:
        others = " or ".join(law.value for law in measure.fit.also)
        yield f"its times fit {others} as well"
    if request.returns_more and request.key.action:
        yield _returns(request, result)


def notes(result: GrowthResult) -> Iterator[str]:
    """Yield messages that the reader of a result must know."""
    populations = result.populations
    if len(populations) == 2:
        yield f"Two populations show whether a request grows; a law takes {FEWEST} or more."
    if not result.has_spans:
        yield (
            "No spans of the service: only times are compared. Trace it by --otlp, --traces-from,"
            " or the trace key of its deployment"
        )
    for one in result.requests:
        for name in one.unclear:
            yield unclear_sentence(one, name)
    for population in result.limited:
        yield (
            f"The load generator was the limit at {count(population)}: times there are left out;"
            " use a smaller load or a larger machine"
        )
    yield from _notes_on_runs(result)
    if result.times_judged:
        percent = f"{100 * result.spread:.0f} %"
        if result.spread_measured:
            yield f"Medians of equal runs differ by {percent} (standard deviation)"
        else:
            yield (
                f"Medians of equal runs are assumed to differ by {percent}; --rounds 3 measures it"
            )


def _notes_on_runs(result: GrowthResult) -> Iterator[str]:
    for run in result.runs:
        if run.exit_code not in _USUAL:
            yield (
                f"Run {run.run_id} at {count(run.population)} ended with exit code {run.exit_code}:"
                f" {meaning(run.exit_code)}"
            )
        if result.has_spans and not (run.has_spans or run.incomplete):
            yield f"No spans of the service at {count(run.population)} (run {run.run_id})"
        if run.bad > _FAILED * (run.ok + run.bad):
            yield (
                f"{count(run.bad)} of {count(run.ok + run.bad, 'iteration')} failed at"
                f" {count(run.population)} (run {run.run_id})"
            )
        if run.incomplete:
            yield (
                f"{count(run.incomplete, 'trace')} of {count(run.incomplete + run.counted)} at"
                f" {count(run.population)} lack spans, and are not counted"
            )
        elif run.has_spans and run.counted < run.traced:
            yield (
                f"Counts at {count(run.population)} are of {count(run.counted)} of"
                f" {count(run.traced, 'traced iteration')}: the slowest, and a random sample"
            )


def unclear_sentence(request: RequestGrowth, name: str) -> str:
    """Return a message on a count of which it is not clear whether it grows, with the remedy."""
    points = request.measures[name].points
    widest = max(points, key=lambda one: one.high - one.low)
    least, greatest = (side(one.value for one in points) for side in (min, max))
    within = f"{_number(widest.low)} to {_number(widest.high)}"
    return (
        f"{plain(request.name, _NAME)}: {_WORDS.get(name, name)} are {_number(least)} to"
        f" {_number(greatest)} by population, and {within} by iteration at"
        f" {count(widest.population)}, so that growth is unclear; make more iterations, or leave"
        " the first ones out by `warmup`"
    )


def _number(value: float) -> str:
    return count(round(value)) if value == round(value) else three_digits(value)


def _each(value: float) -> str:
    return f"{value:.1f}" if value >= 0.95 else f"{value:.2g}"


def _signed_number(value: float) -> str:
    # no minus before zeros
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00")
